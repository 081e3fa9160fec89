//! The end of a client, asked for or because nobody is left who could use it.

use std::sync::Arc;

use crate::shared::Shared;
use crate::wait::Wait;

/// Begins to close; `None` when that is over, or in a forked child.
pub(crate) fn start_close(shared: &Arc<Shared>) -> Option<Wait> {
    if shared.is_closed() {
        return None;
    }
    Wait::begin(shared, |core, now, listener| core.engine.close(now, listener)).ok()
}

/// Closes, and lets the connection end as it should.
pub(crate) async fn close(shared: &Arc<Shared>) {
    if let Some(wait) = start_close(shared) {
        wait.await;
    }
    if let Some(farewell) = shared.farewell() {
        farewell.await;
    }
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
