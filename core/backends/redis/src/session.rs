//! Connects, runs the connection, and connects again, until closed.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use fencelock_engine::ClientId;
use fencelock_engine::event::Event;
use fencelock_engine::redis::session::NoSession;
use fencelock_engine::transport::caught;

use crate::attempt::{Attempts, Connected};
use crate::backoff::Backoff;
use crate::handshake::Ready;
use crate::options::Options;
use crate::pump::Pump;
use crate::rival::Rival;
use crate::shared::Shared;

/// How often to look whether an operator has mended what only an operator can.
const MISCONFIGURED_PAUSE: Duration = Duration::from_secs(1);

pub(crate) async fn run(options: Options, client: ClientId, shared: Arc<Shared>) {
    let mut backoff = Backoff::new(options.backoff_min, options.backoff_max);
    let mut attempts = Attempts::new(&options, &client);
    let address = options.address.to_string();
    while !shared.is_closed() {
        // Out here it outlives a panic, and answers for what is under way.
        let mut pump = None;
        let why = caught(round(&options, &mut attempts, &client, &shared, &mut pump)).await;
        let why = why.unwrap_or_else(|panic| {
            NoSession::Later(format!("the connection's task panicked: {panic}; please report it"))
        });
        let pause = match (why, pump) {
            (NoSession::Later(reason), Some(pump)) => {
                tracing::warn!(%address, %reason, "connection lost");
                // A connection that did not last is no success.
                if pump.age() >= options.backoff_max {
                    backoff.reset();
                }
                pump.finish(reason);
                backoff.next()
            }
            (NoSession::Later(reason), None) => {
                tracing::warn!(%address, %reason, "cannot connect, will try again");
                shared.deliver(&mut vec![Event::Down { reason }]);
                backoff.next()
            }
            (NoSession::Misconfigured(error), pump) => {
                tracing::error!(%address, %error, "cannot connect until this is mended");
                if let Some(pump) = pump {
                    pump.finish(error.message().to_owned());
                }
                shared.deliver(&mut vec![Event::Misconfigured(error)]);
                backoff.next().max(MISCONFIGURED_PAUSE)
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Connects, and runs the connection in `pump` to its end; says why that came. One that is silent
/// gives way to another that is answered.
async fn round(
    options: &Options,
    attempts: &mut Attempts<'_>,
    client: &ClientId,
    shared: &Arc<Shared>,
    pump: &mut Option<Pump>,
) -> NoSession {
    let mut next = attempts.next().await;
    loop {
        let Connected { mut codec, ready } = match next {
            Ok(connected) => connected,
            Err(why) => return why,
        };
        codec.set_wide(shared.wide());
        let Ready { main, pushes, inbox } = ready;
        let address = &options.address;
        tracing::info!(%address, ?inbox, separate = pushes.is_some(), "connected");
        let running = pump.insert(Pump::new(Arc::clone(shared), codec, main, pushes));
        shared.up(running.link(), running.sockets(), inbox);
        let mut rival = Rival::new(|| Attempts::new(options, client), options.backoff_max);
        let end = std::future::poll_fn(|cx| match running.poll(cx) {
            Poll::Ready(reason) => Poll::Ready(Err(NoSession::Later(reason))),
            Poll::Pending => rival
                .poll(shared.is_doubted(), cx)
                .map(|made| made.map_err(NoSession::Misconfigured)),
        });
        match end.await {
            Ok(connected) => next = Ok(connected),
            Err(why) => return why,
        }
        if let Some(silent) = pump.take() {
            let reason = "it was silent, and another connection is answered".to_owned();
            tracing::warn!(%address, %reason, "connection given up");
            silent.finish(reason);
        }
    }
}
