//! Connects, runs the connection, and connects again, until closed.

use std::sync::Arc;
use std::time::Duration;

use fencelock_engine::ClientId;
use fencelock_engine::event::Event;
use fencelock_engine::redis::Codec;
use fencelock_engine::transport::caught;

use crate::backoff::Backoff;
use crate::handshake::{self, Caller, Ready};
use crate::options::{Address, Options};
use crate::pump::Pump;
use crate::refusal::NoSession;
use crate::shared::Shared;

/// How often to look whether an operator has mended what only an operator can.
const MISCONFIGURED_PAUSE: Duration = Duration::from_secs(1);

pub(crate) async fn run(options: Options, client: ClientId, shared: Arc<Shared>) {
    let mut backoff = Backoff::new(options.backoff_min, options.backoff_max);
    let address = options.address.to_string();
    while !shared.is_closed() {
        // Out here it outlives a panic, and answers for what is under way.
        let mut pump = None;
        let why = caught(round(&options, &client, &shared, &mut pump)).await;
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
            (NoSession::Misconfigured(error), _) => {
                tracing::error!(%address, %error, "cannot connect until this is mended");
                shared.deliver(&mut vec![Event::Misconfigured(error)]);
                backoff.next().max(MISCONFIGURED_PAUSE)
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Connects, and runs the connection in `pump` to its end; says why that came.
async fn round(
    options: &Options,
    client: &ClientId,
    shared: &Arc<Shared>,
    pump: &mut Option<Pump>,
) -> NoSession {
    let (codec, ready) = match connect(options, client).await {
        Ok(connected) => connected,
        Err(why) => return why,
    };
    let Ready { main, pushes, inbox, now } = ready;
    let address = &options.address;
    tracing::info!(%address, ?inbox, separate = pushes.is_some(), "connected");
    let pump = pump.insert(Pump::new(Arc::clone(shared), codec, main, pushes));
    shared.up(pump.link(), pump.sockets(), inbox);
    NoSession::Later(pump.run(Event::Up { now }).await)
}

async fn connect(options: &Options, client: &ClientId) -> Result<(Codec, Ready), NoSession> {
    let mut codec =
        Codec::new(client.clone(), &options.prefix).map_err(NoSession::Misconfigured)?;
    let channel = codec.channel().to_vec();
    let caller = Caller { client, channel: &channel };
    let ready = tokio::time::timeout(options.connect_timeout, handshake::connect(options, &caller))
        .await
        .map_err(|_| {
            let hint = match options.address {
                Address::Tls { .. } => "; does this port speak TLS?",
                _ => "",
            };
            NoSession::Later(format!(
                "no connection to {} within {:?} (connect_timeout){hint}",
                options.address, options.connect_timeout
            ))
        })??;
    codec.set_inbox(ready.inbox);
    Ok((codec, ready))
}
