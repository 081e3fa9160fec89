//! What Sentinels, and the servers that could take over, are like.

use std::time::Duration;

use fencelock_engine::redis::session::{self, Login, NoSession};
use fencelock_engine::redis::{Node, Value};

use crate::handshake;
use crate::options::{Options, Sentinel};
use crate::survey::{bounded, wall_clock};

/// What the Sentinels of a master are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentinelSurvey {
    /// How many were asked.
    pub all: usize,
    /// Who said that which server is the master, since which epoch.
    pub said: Vec<(Node, Node, u64)>,
    /// Those that did not, and why.
    pub silent: Vec<(Node, String)>,
    /// For how long the master must be silent until it is taken for down.
    pub down_after: Option<Duration>,
    /// The servers that could take over: how far the clock of each is ahead of this machine's, in
    /// microseconds, or why it was not asked.
    pub replicas: Vec<(Node, Result<Replica, String>)>,
}

/// What a server that could take over said of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    /// How far its clock is ahead of this machine's, in microseconds.
    pub clock_ahead: i64,
    /// It takes itself for the master.
    pub claims: bool,
}

/// What one Sentinel said.
struct Said {
    master: Node,
    epoch: u64,
    down_after: Option<u64>,
    replicas: Vec<Node>,
}

impl SentinelSurvey {
    /// The master of the highest epoch.
    pub fn master(&self) -> Option<&Node> {
        self.said.iter().max_by_key(|(_, _, epoch)| *epoch).map(|(_, master, _)| master)
    }
}

/// Asks each of them, and then each replica that they know.
///
/// # Errors
/// When none of them says which server is the master.
pub(crate) async fn look(
    options: &Options,
    sentinel: &Sentinel,
    login: Option<&Login>,
) -> Result<SentinelSurvey, NoSession> {
    let mut survey = SentinelSurvey {
        all: sentinel.nodes.len(),
        said: Vec::new(),
        silent: Vec::new(),
        down_after: None,
        replicas: Vec::new(),
    };
    let mut wrong = None;
    let mut replicas = Vec::new();
    for node in &sentinel.nodes {
        match bounded(options, ask(options, sentinel, node)).await {
            Ok(said) => {
                survey.down_after =
                    said.down_after.map(Duration::from_millis).or(survey.down_after);
                replicas.extend(said.replicas);
                survey.said.push((node.clone(), reached(sentinel, &said.master), said.epoch));
            }
            Err(why) => {
                survey.silent.push((node.clone(), why.clone().into_error().message().to_owned()));
                wrong.get_or_insert(why);
            }
        }
    }
    let Some(master) = survey.master().cloned() else {
        return Err(wrong.unwrap_or_else(|| NoSession::Later("no Sentinel was asked".to_owned())));
    };
    replicas.sort();
    replicas.dedup();
    for node in replicas.iter().map(|node| reached(sentinel, node)).filter(|it| *it != master) {
        let said = bounded(options, replica(options, sentinel, &node, login)).await;
        let said = said.map_err(|why| why.into_error().message().to_owned());
        survey.replicas.push((node, said));
    }
    Ok(survey)
}

/// By which address a server is reached.
fn reached(sentinel: &Sentinel, seen: &Node) -> Node {
    sentinel.map.get(seen).unwrap_or(seen).clone()
}

async fn ask(options: &Options, sentinel: &Sentinel, node: &Node) -> Result<Said, NoSession> {
    let (tls, login) = (sentinel.sentinel_tls, sentinel.login.clone());
    let mut talk = handshake::question(options, node, tls, login).await?;
    let reply = talk.ask(&["SENTINEL", "MASTER", &sentinel.master]).await?;
    let fields = fields(&talk.refuse("SENTINEL MASTER", reply)?);
    let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let number = |name: &str| field(name).and_then(|value| value.parse::<u64>().ok());
    let master =
        node_of(&fields).ok_or_else(|| NoSession::Later("it names no address".to_owned()))?;
    let (epoch, down_after) =
        (number("config-epoch").unwrap_or(0), number("down-after-milliseconds"));
    // One that may not tell its replicas tells the rest all the same.
    let replicas = match talk.ask(&["SENTINEL", "REPLICAS", &sentinel.master]).await? {
        Value::Array(list) => {
            list.iter().filter_map(|entry| node_of(&self::fields(entry))).collect()
        }
        _ => Vec::new(),
    };
    Ok(Said { master, epoch, down_after, replicas })
}

async fn replica(
    options: &Options,
    sentinel: &Sentinel,
    node: &Node,
    login: Option<&Login>,
) -> Result<Replica, NoSession> {
    let mut talk = handshake::question(options, node, sentinel.tls, login.cloned()).await?;
    let role = talk.ask(&["ROLE"]).await?;
    let role = talk.refuse("ROLE", role)?;
    let claims = matches!(&role, Value::Array(parts)
        if matches!(parts.first(), Some(Value::Bytes(role)) if role == b"master"));
    let before = wall_clock();
    let reply = talk.ask(&["TIME"]).await?;
    let middle = before + (wall_clock() - before) / 2;
    let server = session::time(&talk.refuse("TIME", reply)?)?;
    Ok(Replica { clock_ahead: (server as i64).saturating_sub(middle), claims })
}

/// The pairs of a reply that names its values.
fn fields(reply: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| match value {
        Value::Bytes(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Int(number) => number.to_string(),
        _ => String::new(),
    };
    match reply {
        Value::Array(parts) => {
            parts.chunks_exact(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
        }
        _ => Vec::new(),
    }
}

fn node_of(fields: &[(String, String)]) -> Option<Node> {
    let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    Some(Node { host: field("ip")?.clone(), port: field("port")?.parse().ok()? })
}
