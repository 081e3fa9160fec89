//! The end of a client, asked for or because nobody is left who could use it.

use std::sync::Arc;

use crate::shared::Shared;
use crate::wait::Wait;

/// Begins to close; the wait is `None` when that is over, or in a forked child. Gives whether nothing
/// was held or waited for.
pub(crate) fn start_close(shared: &Arc<Shared>) -> (Option<Wait>, bool) {
    if shared.is_closed() {
        return (None, shared.is_unused());
    }
    // In a forked child nothing is.
    let mut unused = true;
    let wait = Wait::begin(shared, |core, now, listener| {
        unused = core.engine.is_idle();
        core.engine.close(now, listener);
    });
    (wait.ok(), unused)
}

/// Closes, and lets the connection end as it should. Gives whether all was released.
pub(crate) async fn close(shared: &Arc<Shared>) -> bool {
    let (wait, unused) = start_close(shared);
    if let Some(wait) = wait {
        wait.await;
    }
    if let Some(farewell) = shared.farewell() {
        farewell.await;
    }
    unused && shared.left_nothing()
}

/// The clones of a client, its locks and guards. The last one closes it.
pub(crate) struct Handle {
    pub(crate) shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.shared.is_forked() {
            // Dropping the parent's connection here would disturb the parent: keep it for ever.
            std::mem::forget(self.shared.clone());
        } else {
            // Sent by the drop; the alarm keeps the client until it is done.
            drop(start_close(&self.shared));
        }
    }
}
