//! A lock.

use std::sync::Arc;
use std::time::Duration;

use fencelock_support::{OwnerId, Patience};

use crate::acquiring::Acquiring;
use crate::cancel::CancelToken;
use crate::ending::call;
use crate::error::Result;
use crate::hold::Hold;

/// Who acquires.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum Owner {
    /// The calling thread, which enters again without waiting. For blocking calls.
    Thread,
    /// A number of the program's own (below 2 to the 62nd) for a task or a thread; it means nothing
    /// outside of this client.
    Local {
        /// The number.
        number: u64,
    },
    /// Whoever shows the same text, in any thread, process or language: 1 to 256 bytes without control
    /// characters.
    Explicit {
        /// The text.
        id: String,
    },
}

/// How a lock is acquired.
#[derive(Clone, Debug, Default, PartialEq, Eq, uniffi::Record)]
pub struct LockOptions {
    /// Who acquires, and then enters again without waiting. Without one, each acquire is on its own,
    /// and waits for all others.
    #[uniffi(default = None)]
    pub owner: Option<Owner>,
    /// A lease that is not renewed (0.1 s to 7 days): the hold ends with it.
    #[uniffi(default = None)]
    pub lease: Option<Duration>,
    /// For how long the hold is renewed at most.
    #[uniffi(default = None)]
    pub max_hold: Option<Duration>,
}

/// A lock: a name on a client's store, with the options of its acquires. Asks the store nothing until
/// it is acquired. For all threads.
#[derive(uniffi::Object)]
pub struct Lock(fencelock_support::Lock);

impl Lock {
    pub(crate) fn new(lock: fencelock_support::Lock, options: LockOptions) -> Result<Arc<Lock>> {
        let mut lock = lock.owner(match options.owner {
            None => fencelock_support::Owner::Fresh,
            Some(Owner::Thread) => fencelock_support::Owner::Thread,
            Some(Owner::Local { number }) => fencelock_support::Owner::Local(number),
            Some(Owner::Explicit { id }) => fencelock_support::Owner::Explicit(OwnerId::new(id)?),
        });
        if let Some(lease) = options.lease {
            lock = lock.lease(lease);
        }
        if let Some(ceiling) = options.max_hold {
            lock = lock.max_hold(ceiling);
        }
        Ok(Arc::new(Lock(lock)))
    }
}

#[uniffi::export]
impl Lock {
    /// The lock's name.
    pub fn name(&self) -> String {
        self.0.name().to_owned()
    }

    /// Acquires, blocking: for as long as it takes, or for `limit`, which may be zero. `cancel` ends
    /// the wait from another thread.
    ///
    /// Errors: `Contended` when the limit is zero; `TimedOut`; `Cancelled`; `Unavailable` when the
    /// store could not be asked within the limit (without one, an outage is waited out).
    #[uniffi::method(default(limit = None, cancel = None))]
    pub fn acquire(
        &self,
        limit: Option<Duration>,
        cancel: Option<Arc<CancelToken>>,
    ) -> Result<Arc<Hold>> {
        let cancel = cancel.as_deref().map(|token| &token.0);
        Ok(Hold::new(self.0.acquire(patience(limit), cancel)?))
    }

    /// Begins to acquire, without blocking: for as long as it takes, or for `limit`, which may be zero.
    /// With the owner `Thread`, that is the calling one.
    ///
    /// Errors: `Unavailable` when the operating system gives no thread; all else comes from `ended`.
    #[uniffi::method(default(limit = None))]
    pub fn begin_acquire(&self, limit: Option<Duration>) -> Result<Arc<Acquiring>> {
        Ok(Acquiring::begin(|done| self.0.acquire_async(patience(limit), done))?)
    }

    /// Whether anybody, on any machine, holds the lock, by the store's word; blocks. Good for display,
    /// never for a decision: it may have changed when the answer arrives.
    ///
    /// Errors: `Unavailable`, `Misconfigured`, `Closed`.
    pub fn is_locked(&self) -> Result<bool> {
        Ok(self.0.is_locked()?)
    }

    /// As `is_locked`, without blocking.
    pub async fn is_locked_async(&self) -> Result<bool> {
        Ok(call(|done| Ok(Some(self.0.is_locked_async(done)))).await?)
    }

    /// How many holds the owner has on the lock in this client.
    pub fn hold_count(&self) -> u64 {
        self.0.hold_count() as u64
    }
}

fn patience(limit: Option<Duration>) -> Patience {
    match limit {
        None => Patience::Forever,
        Some(Duration::ZERO) => Patience::Try,
        Some(limit) => Patience::For(limit),
    }
}
