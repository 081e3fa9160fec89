//! Connects, runs the connection, and connects again, until closed.

use std::sync::Arc;
use std::time::Duration;

use fencelock_engine::ClientId;
use fencelock_engine::event::Event;
use fencelock_engine::redis::Codec;

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
        match connect(&options, &client).await {
            Ok((codec, ready)) => {
                let Ready { main, pushes, inbox, now } = ready;
                let since = tokio::time::Instant::now();
                tracing::info!(%address, ?inbox, separate = pushes.is_some(), "connected");
                let mut pump = Pump::new(Arc::clone(&shared), codec, main, pushes);
                shared.up(pump.link(), pump.sockets(), inbox);
                let reason = pump.run(Event::Up { now }).await;
                tracing::warn!(%address, %reason, "connection lost");
                pump.finish(reason);
                // A connection that did not last is no success.
                if since.elapsed() >= options.backoff_max {
                    backoff.reset();
                }
                tokio::time::sleep(backoff.next()).await;
            }
            Err(NoSession::Later(reason)) => {
                tracing::warn!(%address, %reason, "cannot connect, will try again");
                shared.deliver(&mut vec![Event::Down { reason }]);
                tokio::time::sleep(backoff.next()).await;
            }
            Err(NoSession::Misconfigured(error)) => {
                tracing::error!(%address, %error, "cannot connect until this is mended");
                shared.deliver(&mut vec![Event::Misconfigured(error)]);
                tokio::time::sleep(backoff.next().max(MISCONFIGURED_PAUSE)).await;
            }
        }
    }
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
