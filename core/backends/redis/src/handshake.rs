//! Who logs in, and a connection for questions.

use fencelock_engine::redis::Node;
use fencelock_engine::redis::session::{Greeting, Login, NoSession, Protocol, Purpose};
use fencelock_engine::transport::caught;

use crate::connect;
use crate::conversation::Conversation;
use crate::options::Options;

/// Logs that the user may not subscribe.
pub(crate) fn told(denied: Option<&str>) {
    if let Some(reason) = denied {
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

/// Connects, to `node` where Sentinels named it, and makes the connection ready for its purpose.
pub(crate) async fn greet(
    options: &Options,
    node: Option<&Node>,
    purpose: Purpose,
    login: Option<&Login>,
) -> Result<Conversation, NoSession> {
    let protocol = match purpose {
        Purpose::Pushes { .. } => Protocol::Resp2,
        _ => options.protocol,
    };
    let stream = connect::dial(options, node.cloned()).await?;
    Conversation::begin(stream, Greeting::new(purpose, protocol, login.cloned())).await
}

/// Connects to one of several servers that were named, to ask it something.
pub(crate) async fn question(
    options: &Options,
    node: &Node,
    tls: bool,
    login: Option<Login>,
) -> Result<Conversation, NoSession> {
    let stream = connect::reach(options, node, tls).await?;
    let greeting = Greeting::new(Purpose::Questions, options.protocol, login);
    Conversation::begin(stream, greeting).await
}
