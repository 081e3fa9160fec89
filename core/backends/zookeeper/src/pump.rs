//! The task that hears answers and watches while a session lives.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use fencelock_engine::zookeeper::Input;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::Sleep;
use zookeeper_client as zk;

use crate::clock;
use crate::shared::Shared;
use crate::watches::Watch;

/// Timers do not count the time during which the host was suspended: the clock is looked at again.
const LOOK: Duration = Duration::from_secs(1);

/// Why the pump ended.
pub(crate) enum End {
    /// The session is over.
    Expired,
    /// The login was refused.
    AuthFailed,
    /// The transport was closed.
    Closed,
    /// The connection is to be given up, and the session kept.
    GivenUp,
}

/// Runs until the session is over.
pub(crate) async fn run(shared: &Arc<Shared>, client: &zk::Client) -> End {
    let mut states = client.state_watcher();
    let mut watches: FuturesUnordered<Watch> = FuturesUnordered::new();
    let mut sleep: Pin<Box<Sleep>> = Box::pin(tokio::time::sleep(LOOK));
    let mut connected = true;
    // What changed before there was a watcher.
    let mut state = client.state();
    loop {
        match state {
            zk::SessionState::Expired => return End::Expired,
            zk::SessionState::AuthFailed => return End::AuthFailed,
            zk::SessionState::Closed => return End::Closed,
            zk::SessionState::SyncConnected if !connected => {
                connected = true;
                tracing::info!("ZooKeeper connection is back");
                shared.handle(Input::Reattached);
            }
            zk::SessionState::Disconnected if connected => {
                connected = false;
                tracing::warn!("ZooKeeper connection lost");
                let reason = "the connection to ZooKeeper was lost, and no server takes it up yet \
                              (without a quorum none does)";
                shared.handle(Input::Disconnected { reason: reason.to_owned() });
            }
            _ => {}
        }
        let mut changed = pin!(states.changed());
        let next = poll_fn(|cx| {
            loop {
                if shared.is_closed() {
                    return Poll::Ready(Err(End::Closed));
                }
                if shared.gives_up() {
                    return Poll::Ready(Err(End::GivenUp));
                }
                let (new, wake) = shared.poll(cx);
                watches.extend(new);
                let mut fired = false;
                while let Poll::Ready(Some(ended)) = watches.poll_next_unpin(cx) {
                    // One that nobody waits for is dropped here, and the crate hears of it.
                    fired |= ended.is_ok_and(|ended| shared.fired(ended));
                }
                if fired {
                    // The calls that follow must be listened to, or their answers wake nobody.
                    continue;
                }
                if let Poll::Ready(state) = changed.as_mut().poll(cx) {
                    return Poll::Ready(Ok(state));
                }
                let pause = wake.map_or(LOOK, |at| at.since(clock::now()).min(LOOK));
                sleep.as_mut().reset(tokio::time::Instant::now() + pause);
                if sleep.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await;
        match next {
            Ok(next) => state = next,
            Err(end) => return end,
        }
    }
}
