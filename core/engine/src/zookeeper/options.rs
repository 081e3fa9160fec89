//! What the machine must be told once.

use crate::error::{Error, ErrorKind};

/// How a lock is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Recipe {
    /// A queue of sequential nodes, each watching the one before it: Curator's
    /// `InterProcessMutex`.
    #[default]
    Queue,
    /// One node that everybody wants to make and everybody watches. For comparison only: each
    /// release wakes all who wait, and there is no order among them.
    Simple,
}

impl Recipe {
    pub(crate) fn is_simple(self) -> bool {
        self == Recipe::Simple
    }
}

/// What the machine must be told once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Options {
    /// The path under which all locks lie: empty, or `/a/b` without a slash at its end.
    pub chroot: String,
    /// How a lock is laid out. All clients of a lock must agree on it.
    pub recipe: Recipe,
}

impl Options {
    /// Checks the chroot.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] when it is no path that ZooKeeper accepts.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |why: &str| {
            let text = format!("the chroot {:?} {why}; it looks like /apps/shop", self.chroot);
            Err(Error::new(ErrorKind::InvalidArgument, text))
        };
        if self.chroot.is_empty() {
            return Ok(());
        }
        let Some(rest) = self.chroot.strip_prefix('/') else {
            return wrong("does not begin with a slash");
        };
        for part in rest.split('/') {
            if part.is_empty() || part == "." || part == ".." {
                return wrong("has an empty part, '.' or '..'");
            }
            if part.chars().any(super::name::is_refused) {
                return wrong("has a character that ZooKeeper does not accept");
            }
        }
        if rest == "zookeeper" || rest.starts_with("zookeeper/") {
            return wrong("is ZooKeeper's own");
        }
        Ok(())
    }
}
