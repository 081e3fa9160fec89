//! The name of a lock.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, ErrorKind};

/// The longest name, in bytes of UTF-8.
pub const MAX_NAME: usize = 512;

/// A lock's name: 1 to 512 bytes of UTF-8 without NUL.
///
/// Cheap to clone. Two clients that use the same name on the same store contend for the same lock,
/// whatever their language.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// Checks `name` and takes it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] when it is empty, longer than 512 bytes or contains NUL.
    pub fn new(name: impl AsRef<str>) -> Result<Name, Error> {
        let name = name.as_ref();
        let wrong = if name.is_empty() {
            "a lock's name must not be empty".to_owned()
        } else if name.len() > MAX_NAME {
            format!("a lock's name may have {MAX_NAME} bytes of UTF-8; this one has {}", name.len())
        } else if name.contains('\0') {
            "a lock's name must not contain NUL".to_owned()
        } else {
            return Ok(Name(name.into()));
        };
        Err(Error::new(ErrorKind::InvalidArgument, wrong))
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
