//! What cancels blocking waits.

use std::sync::Arc;

/// Cancels blocking waits from another thread, once and for good. Asynchronous ones have a `cancel` of
/// their own.
#[derive(uniffi::Object)]
pub struct CancelToken(pub(crate) fencelock_support::CancelToken);

#[uniffi::export]
impl CancelToken {
    /// One that is not cancelled.
    #[uniffi::constructor]
    pub fn new() -> Arc<CancelToken> {
        Arc::new(CancelToken(fencelock_support::CancelToken::new()))
    }

    /// Ends the waits that were given this token, and those that will be, with `Cancelled`. A wait
    /// that has its lock already keeps it.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}
