//! From a bare stream to a connection that the codec can use.

use fencelock_engine::ClientId;
use fencelock_engine::redis::Inbox;
use fencelock_engine::redis::session::{Greeting, Login, NoSession, Protocol, Purpose};
use fencelock_engine::transport::caught;

use crate::connect;
use crate::conversation::Conversation;
use crate::options::Options;

/// A connection that is ready for requests.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) main: Conversation,
    /// The connection of the subscription, when RESP3 is not to be had.
    pub(crate) pushes: Option<Conversation>,
    pub(crate) inbox: Inbox,
}

/// Connects, logs in, loads the scripts, subscribes, asks the time.
pub(crate) async fn connect(
    options: &Options,
    client: &ClientId,
    channel: &[u8],
) -> Result<Ready, NoSession> {
    let login = login(options).await?;
    let (client, db) = (client.clone(), options.db);
    let purpose = Purpose::Requests { client, channel: channel.to_vec(), db };
    let main = greet(options, purpose, login.as_ref()).await?;
    told(&main);
    let mut inbox = main.greeted.inbox;
    let mut pushes = None;
    if !main.greeted.resp3 {
        let purpose = Purpose::Pushes { channel: channel.to_vec() };
        let apart = greet(options, purpose, login.as_ref()).await?;
        told(&apart);
        inbox = apart.greeted.inbox;
        pushes = (inbox == Inbox::Subscribed).then_some(apart);
    }
    Ok(Ready { main, pushes, inbox })
}

/// Logs that the user may not subscribe.
pub(crate) fn told(talk: &Conversation) {
    if let Some(reason) = &talk.greeted.denied {
        tracing::warn!(%reason, "may not subscribe: waiting polls instead");
    }
}

/// The login for this connection.
pub(crate) async fn login(options: &Options) -> Result<Option<Login>, NoSession> {
    match &options.credentials {
        Some(credentials) => match caught(async { credentials.login().await }).await {
            Ok(Ok(login)) => Ok(Some(login)),
            Err(panic) => {
                Err(NoSession::Later(format!("the credentials callback panicked: {panic}")))
            }
            Ok(Err(error)) if error.is_retryable() => {
                Err(NoSession::Later(format!("the credentials callback failed: {error}")))
            }
            Ok(Err(error)) => {
                Err(NoSession::misconfigured(format!("the credentials callback failed: {error}")))
            }
        },
        None => Ok(options.login.clone()),
    }
}

/// Connects, and makes the connection ready for its purpose.
pub(crate) async fn greet(
    options: &Options,
    purpose: Purpose,
    login: Option<&Login>,
) -> Result<Conversation, NoSession> {
    let protocol = match purpose {
        Purpose::Pushes { .. } => Protocol::Resp2,
        _ => options.protocol,
    };
    let stream = connect::dial(options).await?;
    Conversation::begin(stream, Greeting::new(purpose, protocol, login.cloned())).await
}
