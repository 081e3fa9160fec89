//! From a bare stream to a connection that the codec can use.

use fencelock_engine::ClientId;
use fencelock_engine::redis::{Codec, Inbox, Value};
use fencelock_engine::secret::Secrets;
use fencelock_engine::transport::caught;

use crate::connect;
use crate::conversation::Conversation;
use crate::credentials::Login;
use crate::encode;
use crate::options::{Options, Protocol};
use crate::refusal::{NoSession, classify};
use crate::resp::Frame;

/// A connection that is ready for requests.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) main: Conversation,
    /// The connection of the subscription, when RESP3 is not to be had.
    pub(crate) pushes: Option<Conversation>,
    pub(crate) inbox: Inbox,
    /// The server's time.
    pub(crate) now: u64,
}

/// Who asks, and what for.
pub(crate) struct Caller<'a> {
    pub(crate) client: &'a ClientId,
    pub(crate) channel: &'a [u8],
}

/// Connects, logs in, loads the scripts, subscribes, asks the time.
pub(crate) async fn connect(options: &Options, caller: &Caller<'_>) -> Result<Ready, NoSession> {
    let login = login(options).await?;
    let (mut main, resp3) = greet(options, login.as_ref()).await?;

    let scripts = Codec::scripts();
    let db = options.db.to_string();
    let mut out = Vec::new();
    encode::words(&mut out, &[&b"CLIENT"[..], b"SETNAME", client_name(caller.client).as_bytes()]);
    if options.db != 0 {
        encode::words(&mut out, &["SELECT", &db]);
    }
    for script in scripts {
        encode::words(&mut out, &["SCRIPT", "LOAD", script.text]);
    }
    if resp3 {
        encode::words(&mut out, &[b"SUBSCRIBE", caller.channel]);
    }
    encode::words(&mut out, &["TIME"]);
    main.send(&out).await?;

    // The name is for people; a user who may not set it goes without.
    main.reply().await?;
    if options.db != 0 {
        let selected = main.reply().await?;
        main.refuse("SELECT", selected)?;
    }
    for script in scripts {
        let loaded = main.reply().await?;
        match main.refuse("SCRIPT LOAD", loaded)? {
            Value::Bytes(sha) if sha == script.sha.as_bytes() => {}
            _ => {
                return Err(NoSession::misconfigured(format!(
                    "the server changed the script '{}' (it answered with another hash): connect \
                     without the proxy in between",
                    script.name
                )));
            }
        }
    }
    let mut inbox = Inbox::Polling;
    if resp3 && confirmed(&mut main).await? {
        inbox = Inbox::Subscribed;
    }
    let now = main.reply().await?;
    let now = time(main.refuse("TIME", now)?)?;
    Codec::check_time(now).map_err(NoSession::Misconfigured)?;

    let mut pushes = None;
    if !resp3 {
        pushes = subscribe_apart(options, login.as_ref(), caller.channel).await?;
        if pushes.is_some() {
            inbox = Inbox::Subscribed;
        }
    }
    Ok(Ready { main, pushes, inbox, now })
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

/// Connects and logs in; says whether the server speaks RESP3.
pub(crate) async fn greet(
    options: &Options,
    login: Option<&Login>,
) -> Result<(Conversation, bool), NoSession> {
    let mut secrets = Secrets::default();
    if let Some(login) = login {
        secrets.add(&login.password);
    }
    let mut talk = Conversation::new(connect::dial(options).await?, secrets);
    if options.protocol == Protocol::Auto {
        let mut words = vec!["HELLO", "3"];
        if let Some(login) = login {
            words.extend(["AUTH", login.user.as_deref().unwrap_or("default"), &login.password]);
        }
        match talk.ask(&words).await? {
            Value::Error(line) => match line.split(' ').next().unwrap_or_default() {
                // An older server, a proxy, or a user who may not: RESP2 will do.
                "NOPROTO" | "ERR" | "NOPERM" | "NOAUTH" if !is_login_error(&line) => {}
                _ => return Err(classify("HELLO", &line, talk.secrets())),
            },
            _ => return Ok((talk, true)),
        }
    }
    if let Some(login) = login {
        let mut words = vec!["AUTH"];
        words.extend(login.user.as_deref());
        words.push(&login.password);
        let answer = talk.ask(&words).await?;
        talk.refuse("AUTH", answer)?;
    } else if let Value::Error(line) = talk.ask(&["PING"]).await?
        && line.starts_with("NOAUTH")
    {
        // Asked apart, since a server hangs up on who sends a script without having logged in.
        return Err(classify("PING", &line, talk.secrets()));
    }
    Ok((talk, false))
}

/// Whether an answer to HELLO is about the login, which AUTH would only repeat. A server that
/// wants a login says NOAUTH to HELLO, whether or not it knows the command.
fn is_login_error(line: &str) -> bool {
    line.contains("password configured")
        || (line.starts_with("NOAUTH") && !line.contains("Authentication required"))
        || line.contains("max number of clients")
}

/// Waits for the answer to SUBSCRIBE; false when it was refused for good.
pub(crate) async fn confirmed(talk: &mut Conversation) -> Result<bool, NoSession> {
    match talk.frame().await? {
        Frame::Push(values) => Ok(is_confirmation(&values)),
        Frame::Reply(Value::Array(values)) => Ok(is_confirmation(&values)),
        Frame::Reply(Value::Error(line)) => {
            let reason = talk.secrets().hide(&line);
            tracing::warn!(%reason, "may not subscribe: waiting polls instead");
            match classify("SUBSCRIBE", &line, talk.secrets()) {
                NoSession::Misconfigured(_) => Ok(false),
                later => Err(later),
            }
        }
        Frame::Reply(_) => Ok(false),
    }
}

fn is_confirmation(values: &[Value]) -> bool {
    matches!(values.first(), Some(Value::Bytes(kind)) if kind == b"subscribe")
}

pub(crate) async fn subscribe_apart(
    options: &Options,
    login: Option<&Login>,
    channel: &[u8],
) -> Result<Option<Conversation>, NoSession> {
    let options = Options { protocol: Protocol::Resp2, ..options.clone() };
    let (mut talk, _) = greet(&options, login).await?;
    let mut out = Vec::new();
    encode::words(&mut out, &[b"SUBSCRIBE", channel]);
    talk.send(&out).await?;
    Ok(if confirmed(&mut talk).await? { Some(talk) } else { None })
}

/// The server's time in microseconds, out of TIME's reply.
pub(crate) fn time(value: Value) -> Result<u64, NoSession> {
    let part = |value: &Value| match value {
        Value::Bytes(digits) => std::str::from_utf8(digits).ok()?.parse::<u64>().ok(),
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    match &value {
        Value::Array(parts) if parts.len() == 2 => part(&parts[0])
            .zip(part(&parts[1]))
            .and_then(|(seconds, micros)| seconds.checked_mul(1_000_000)?.checked_add(micros)),
        _ => None,
    }
    .ok_or_else(|| NoSession::misconfigured("TIME was answered with something that is no time"))
}

/// What `CLIENT LIST` shows: the server takes no spaces and nothing outside printable ASCII.
fn client_name(client: &ClientId) -> String {
    let label = client.label();
    let mut name = format!("fencelock:{}", client.id());
    if !label.is_empty() {
        name.push(':');
        name.extend(label.chars().map(|c| if c.is_ascii_graphic() { c } else { '_' }));
    }
    name
}
