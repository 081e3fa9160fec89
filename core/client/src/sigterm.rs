//! Closing when the process is told to end.

use std::sync::Arc;

use crate::client::Client;
use crate::handle;

impl Client {
    /// Closes the client when the process is told to end (SIGTERM; Ctrl-C where there is none).
    /// The handle resolves when that is done.
    ///
    /// From now on SIGTERM does not end the process by itself: await the handle, then return from
    /// `main`. Call it in a tokio runtime.
    ///
    /// ```no_run
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # async fn serve() {}
    /// let client = fencelock::Client::connect("redis://127.0.0.1").await?;
    /// let ended = client.close_on_sigterm();
    /// tokio::select! {
    ///     () = serve() => {
    ///         client.close().await;
    ///     }
    ///     _ = ended => {}
    /// }
    /// # Ok(()) }
    /// ```
    pub fn close_on_sigterm(&self) -> tokio::task::JoinHandle<()> {
        // Not a handle: the task must not keep the client open.
        let shared = Arc::downgrade(self.shared());
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
                handle::close(&shared).await;
            }
        })
    }
}
