//! One attempt to connect, and how long it may take.

use std::time::Duration;

use fencelock_engine::ClientId;
use fencelock_engine::redis::Codec;
use fencelock_engine::redis::session::NoSession;

use crate::handshake::{self, Ready};
use crate::options::{Address, Options};

/// A connection that is ready, and the codec that fits it.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) codec: Codec,
    pub(crate) ready: Ready,
}

/// Attempts to connect, one after the other.
///
/// A server that has much to do takes connections and greets them late. To give each of them up
/// would cost it the work and bring nobody a connection; so each that was not ready in time gives
/// the next one twice as long, up to four times the option.
#[derive(Debug)]
pub(crate) struct Attempts<'a> {
    options: &'a Options,
    client: &'a ClientId,
    late: u32,
}

impl<'a> Attempts<'a> {
    pub(crate) fn new(options: &'a Options, client: &'a ClientId) -> Attempts<'a> {
        Attempts { options, client, late: 0 }
    }

    fn limit(&self) -> Duration {
        self.options.connect_timeout.saturating_mul(1 << self.late.min(2))
    }

    /// Connects, logs in and subscribes.
    pub(crate) async fn next(&mut self) -> Result<Connected, NoSession> {
        let options = self.options;
        let mut codec =
            Codec::new(self.client.clone(), &options.prefix).map_err(NoSession::Misconfigured)?;
        let channel = codec.channel().to_vec();
        let limit = self.limit();
        let Ok(result) =
            tokio::time::timeout(limit, handshake::connect(options, self.client, &channel)).await
        else {
            self.late += 1;
            let hint = match options.address {
                Address::Tls { .. } => "; does this port speak TLS?",
                _ => "",
            };
            return Err(NoSession::Later(format!(
                "no connection to {} within {limit:?} (connect_timeout){hint}",
                options.address
            )));
        };
        self.late = 0;
        let ready = result?;
        codec.set_inbox(ready.inbox);
        codec.set_secrets(ready.main.greeted.secrets.clone());
        Ok(Connected { codec, ready })
    }
}
