//! What the URL gives.

use fencelock_engine::options::CLIENT_PARAMETERS;
use fencelock_engine::{Error, ErrorKind};

/// Which store of this process to open.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Options {
    /// The store's name. Clients of the process that open the same name share their locks; the
    /// empty name is a store like any other.
    pub name: String,
}

impl Options {
    /// Reads `memory:` or `memory:name`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for another scheme, or when the URL has a query: this store
    /// has no options.
    pub fn from_url(url: &str) -> Result<Options, Error> {
        let wrong = |message: &str| Error::new(ErrorKind::InvalidArgument, message);
        let name = url
            .strip_prefix("memory:")
            .ok_or_else(|| wrong("the memory store's URL is memory: or memory:name"))?;
        if name.contains(['?', '#']) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("memory: has no options but the client's {CLIENT_PARAMETERS}"),
            ));
        }
        Ok(Options { name: name.to_owned() })
    }
}
