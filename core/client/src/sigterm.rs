//! Closing when the process is told to end.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::client::Client;

pub(crate) fn close_on_sigterm(client: &Client) -> JoinHandle<()> {
    // Not a handle: the task must not keep the client open.
    let shared = Arc::downgrade(client.shared());
    #[cfg(unix)]
    let mut signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
    tokio::spawn(async move {
        #[cfg(unix)]
        match &mut signal {
            Ok(signal) => {
                signal.recv().await;
            }
            Err(error) => {
                tracing::error!(%error, "SIGTERM cannot be listened to; close the client yourself");
                std::future::pending::<()>().await;
            }
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
        if let Some(shared) = shared.upgrade() {
            shared.close().await;
        }
    })
}
