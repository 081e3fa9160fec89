//! What a server is like, for an operator: findings, what they mean for locks, what to do.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use fencelock_engine::finding::{Finding, Severity};
use fencelock_engine::redis::session::{self, Greeting, NoSession, Purpose};
use fencelock_engine::redis::{Codec, Inbox, Value};
use fencelock_engine::{ClientId, Error, Name};

use crate::conversation::Conversation;
use crate::handshake;
use crate::options::{Address, Options};
use crate::survey_cluster::{self, ClusterSurvey};
use crate::survey_sentinels::{self, SentinelSurvey};

/// What a server is like. `None` stands for what the server would not tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Which server it is: `redis`, `valkey`, …
    pub flavour: String,
    /// Its version.
    pub version: Option<String>,
    /// Whether it speaks RESP3: pushes then come on the same connection.
    pub resp3: bool,
    /// Whether this user may subscribe.
    pub pubsub: bool,
    /// `master` or `slave`.
    pub role: Option<String>,
    /// How many replicas are connected.
    pub replicas: Option<u64>,
    /// The bound of its memory in bytes; 0 for none.
    pub maxmemory: Option<u64>,
    /// What it throws away when that is full.
    pub maxmemory_policy: Option<String>,
    /// Whether it writes an append-only file.
    pub append_only: Option<bool>,
    /// Its `save` setting.
    pub save: Option<String>,
    /// How far its clock is ahead of this machine's, in microseconds.
    pub clock_ahead: i64,
    /// By how much that may be wrong: half a round trip, in microseconds.
    pub clock_error: u64,
    /// The fastest round trip of those tried.
    pub round_trip: Duration,
    /// Commands and keys that this user may not use and locks need.
    pub missing: Vec<String>,
    /// What its Sentinels are like, where they name it.
    pub sentinels: Option<SentinelSurvey>,
    /// What the servers of its cluster are like, where it is of one.
    pub cluster: Option<ClusterSurvey>,
}

impl Survey {
    /// Whether locks could be thrown away when memory is full.
    pub fn may_evict(&self) -> Option<bool> {
        let policy = self.maxmemory_policy.as_deref()?;
        Some(policy != "noeviction" && self.maxmemory? > 0)
    }
}

/// Commands that the scripts and the connection use, each in a form that changes nothing but a key
/// of its own, which vanishes at once.
pub(crate) const NEEDED: &[&[&str]] = &[
    &["TIME"],
    &["HMGET", "{key}", "v"],
    &["HGET", "{key}", "v"],
    &["HGETALL", "{key}"],
    &["HKEYS", "{key}"],
    &["HLEN", "{key}"],
    &["HEXISTS", "{key}", "v"],
    &["EXISTS", "{key}"],
    &["HDEL", "{key}", "v"],
    &["HSET", "{key}", "v", "1"],
    &["DEL", "{key}"],
    &["ZADD", "{key}", "1", "v"],
    &["ZCARD", "{key}"],
    &["ZCOUNT", "{key}", "0", "+inf"],
    &["ZRANGEBYSCORE", "{key}", "0", "+inf", "LIMIT", "0", "1"],
    &["ZREVRANGEBYSCORE", "{key}", "+inf", "0", "LIMIT", "0", "1"],
    &["PEXPIRE", "{key}", "1"],
    &["ZREM", "{key}", "v"],
    &["PUBLISH", "{channel}", ""],
    &["SCAN", "0", "COUNT", "1"],
    &["SCRIPT", "LOAD", "return 1"],
    &["EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "1", "{key}"],
];

/// Connects as `options` say and asks what the server is like. It changes nothing but a key of its
/// own, which vanishes at once.
///
/// # Errors
/// When no connection can be made; the message says why and what to do.
pub async fn survey(options: Options) -> Result<Survey, Error> {
    options.check()?;
    let servers = match &options.address {
        Address::Sentinel(sentinel) => u32::try_from(sentinel.nodes.len() * 2).unwrap_or(8),
        // Nobody knows yet how many there are; each has a bound of its own.
        Address::Cluster(_) => 1_000,
        _ => 0,
    };
    let limit = options.connect_timeout * (2 + servers);
    tokio::time::timeout(limit, look(&options))
        .await
        .unwrap_or_else(|_| {
            Err(NoSession::Later(format!("no answer from {} within {limit:?}", options.address)))
        })
        .map_err(NoSession::into_error)
}

async fn look(options: &Options) -> Result<Survey, NoSession> {
    let login = handshake::login(options).await?;
    let mut cluster = None;
    let (sentinels, node) = match &options.address {
        Address::Sentinel(sentinel) => {
            let survey = survey_sentinels::look(options, sentinel, login.as_ref()).await?;
            let master = survey.master().cloned();
            (Some(survey), master)
        }
        Address::Cluster(address) => {
            let survey = survey_cluster::look(options, address, login.as_ref()).await?;
            let master = survey.some_master().cloned();
            cluster = Some(survey);
            (None, master)
        }
        _ => (None, None),
    };
    let node = node.as_ref();
    let mut talk = handshake::greet(options, node, Purpose::Questions, login.as_ref()).await?;
    let resp3 = talk.greeted.resp3;
    if options.db != 0 {
        let reply = talk.ask(&["SELECT", &options.db.to_string()]).await?;
        talk.refuse("SELECT", reply)?;
    }
    let client = ClientId::new(fastrand::u64(..), "doctor").map_err(NoSession::Misconfigured)?;
    let codec = Codec::new(client, &options.prefix).map_err(NoSession::Misconfigured)?;

    let missing = match &cluster {
        Some(cluster) => cluster.missing(),
        None => missing(&mut talk, &codec, &[]).await?,
    };
    let clock = clock(&mut talk).await?;
    let info = info(&mut talk).await?;
    let save = setting(&mut talk, "save").await?;
    let purpose = Purpose::Pushes { channel: codec.channel().to_vec() };
    let mut apart = None;
    if resp3 {
        talk.go_on(Greeting::further(talk.greeted.clone(), purpose)).await?;
    } else {
        apart = Some(handshake::greet(options, node, purpose, login.as_ref()).await?);
    }
    let subscribed = apart.as_ref().unwrap_or(&talk);
    handshake::told(subscribed.greeted.denied.as_deref());
    let pubsub = subscribed.greeted.inbox == Inbox::Subscribed;

    let secrets = &talk.greeted.secrets;
    let text = |name: &str| info.get(name).map(|value| secrets.hide(value).into_owned());
    let number = |name: &str| info.get(name).and_then(|value| value.parse().ok());
    let flavour = ["valkey", "dragonfly", "keydb", "kvrocks", "redict"]
        .into_iter()
        .find(|name| {
            info.contains_key(&format!("{name}_version"))
                || info.get("server_name").is_some_and(|server| server == name)
        })
        .unwrap_or("redis");
    Ok(Survey {
        flavour: flavour.to_owned(),
        version: text(&format!("{flavour}_version")).or_else(|| text("redis_version")),
        resp3,
        pubsub,
        role: text("role"),
        replicas: number("connected_slaves"),
        maxmemory: number("maxmemory"),
        maxmemory_policy: text("maxmemory_policy"),
        append_only: info.get("aof_enabled").map(|value| value == "1"),
        save,
        clock_ahead: clock.ahead,
        clock_error: u64::try_from(clock.round_trip.as_micros() / 2).unwrap_or(u64::MAX),
        round_trip: clock.round_trip,
        missing,
        sentinels,
        cluster,
    })
}

/// One of several servers may take no longer than a connection.
pub(crate) async fn bounded<T>(
    options: &Options,
    asking: impl Future<Output = Result<T, NoSession>>,
) -> Result<T, NoSession> {
    let limit = options.connect_timeout;
    let late = |_| Err(NoSession::Later(format!("no answer within {limit:?}")));
    tokio::time::timeout(limit, asking).await.unwrap_or_else(late)
}

/// Tries every command that locks need, and more; gives what the server's ACL refuses.
pub(crate) async fn missing(
    talk: &mut Conversation,
    codec: &Codec,
    more: &[&[&str]],
) -> Result<Vec<String>, NoSession> {
    let name = Name::new(format!("fencelock doctor {:016x}", fastrand::u64(..)));
    let name = name.map_err(NoSession::Misconfigured)?;
    let [key, ..] = codec.keys(&name);
    let mut missing: Vec<String> = Vec::new();
    for words in NEEDED.iter().chain(more) {
        let words: Vec<&[u8]> = words
            .iter()
            .map(|&word| match word {
                "{key}" => &key[..],
                "{channel}" => codec.channel(),
                word => word.as_bytes(),
            })
            .collect();
        if let Value::Error(line) = talk.ask(&words).await?
            && line.starts_with("NOPERM")
        {
            let what = line.trim_start_matches("NOPERM").trim().to_owned();
            let command = String::from_utf8_lossy(words[0]);
            missing.push(format!("{command}: {what}"));
        }
    }
    Ok(missing)
}

struct Clock {
    ahead: i64,
    round_trip: Duration,
}

/// Compares the clocks by the fastest of a few round trips.
async fn clock(talk: &mut Conversation) -> Result<Clock, NoSession> {
    let mut best: Option<Clock> = None;
    for _ in 0..8 {
        let before = wall_clock();
        let start = tokio::time::Instant::now();
        let reply = talk.ask(&["TIME"]).await?;
        let round_trip = start.elapsed();
        let server = session::time(&talk.refuse("TIME", reply)?)?;
        if best.as_ref().is_none_or(|best| round_trip < best.round_trip) {
            let middle = before + round_trip.as_micros() as i64 / 2;
            best = Some(Clock { ahead: (server as i64).saturating_sub(middle), round_trip });
        }
    }
    best.ok_or_else(|| NoSession::Later("the clocks were not compared".to_owned()))
}

/// Comparing the server's clock with this machine's is the purpose here.
pub(crate) fn wall_clock() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}

/// The lines of INFO; empty when this user may not ask.
pub(crate) async fn info(talk: &mut Conversation) -> Result<BTreeMap<String, String>, NoSession> {
    Ok(match talk.ask(&["INFO"]).await? {
        Value::Bytes(text) => String::from_utf8_lossy(&text)
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        _ => BTreeMap::new(),
    })
}

/// One setting; `None` when this user may not ask.
pub(crate) async fn setting(
    talk: &mut Conversation,
    name: &str,
) -> Result<Option<String>, NoSession> {
    Ok(match talk.ask(&["CONFIG", "GET", name]).await? {
        Value::Array(pair) => match pair.get(1) {
            Some(Value::Bytes(value)) => Some(String::from_utf8_lossy(value).into_owned()),
            _ => None,
        },
        _ => None,
    })
}
