//! An acquire that is under way.

use std::sync::Arc;

use fencelock_support::Operation;

use crate::ending::Ending;
use crate::error::{FencelockError, Result, invalid};
use crate::hold::Hold;

/// An acquire that is under way: it has its place in the queue. Await `ended`, then fetch the `hold`.
/// When it is dropped unfetched, the place is given up, or the lock released.
#[derive(uniffi::Object)]
pub struct Acquiring {
    ending: Arc<Ending<fencelock_support::Hold>>,
    operation: Operation,
}

impl Acquiring {
    pub(crate) fn begin(
        start: impl FnOnce(Done) -> Operation,
    ) -> fencelock_support::Result<Arc<Acquiring>> {
        let ending = Ending::new()?;
        let told = ending.clone();
        let operation = start(Box::new(move |result| told.end(result)));
        Ok(Arc::new(Acquiring { ending, operation }))
    }
}

/// Told how an acquire ended.
pub(crate) type Done = Box<dyn FnOnce(fencelock_support::Result<fencelock_support::Hold>) + Send>;

#[uniffi::export]
impl Acquiring {
    /// Waits until the acquire has ended: returns when the lock was granted. To cancel this does not
    /// cancel the acquire.
    ///
    /// Errors: `Contended`, `TimedOut`, `Cancelled`, `Unavailable`, and those of every call.
    pub async fn ended(&self) -> Result<()> {
        Ok(self.ending.ended().await?)
    }

    /// Gives the hold, once, after `ended`.
    ///
    /// Errors: as `ended`; `InvalidArgument` before it has ended, or when it was fetched already.
    pub fn hold(&self) -> Result<Arc<Hold>> {
        match self.ending.fetch() {
            Some(result) => Ok(Hold::new(result?)),
            None if self.ending.is_open() => {
                Err(invalid("this acquire has not ended: await `ended` first"))
            }
            None => Err(FencelockError::InvalidArgument("this hold was fetched already".into())),
        }
    }

    /// Cancels, from any thread: the wait ends with `Cancelled`, nothing is held and nobody queued. A
    /// hold that was granted and not fetched is released; one that was fetched is not touched.
    pub fn cancel(&self) {
        self.operation.cancel();
        self.ending.revoke();
    }
}

impl Drop for Acquiring {
    fn drop(&mut self) {
        self.cancel();
    }
}
