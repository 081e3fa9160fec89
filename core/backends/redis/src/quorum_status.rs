//! What the servers of a quorum are like, for an operator; and an operator's word that they may vote.

use std::fmt;
use std::time::Duration;

use fencelock_engine::Error;
use fencelock_engine::redis::session::{self, NoSession};
use fencelock_engine::redis::{Charter, Codec, Node, Value, run_of};
use tokio::task::JoinSet;

use crate::conversation::Conversation;
use crate::lookup;
use crate::options::{self, Address, Options, Quorum};
use crate::survey::wall_clock;

/// What the servers of a quorum are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumStatus {
    /// How many must agree.
    pub majority: usize,
    /// Of the list and the longest lease that the URL names: servers give votes to one alone.
    pub fingerprint: String,
    /// The longest lease, and for how long a server that has forgotten gives no votes.
    pub max_lease: Duration,
    /// Each server as the URL names it, in the order in which all clients ask them, and what it said, or why it
    /// said nothing.
    pub servers: Vec<(Node, Result<Voter, String>)>,
}

/// What a server of a quorum said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voter {
    /// `master`, or what else it is.
    pub role: String,
    /// Which run of the server this is.
    pub run: String,
    /// The fingerprint in its marker, if it has one.
    pub fingerprint: Option<String>,
    /// For how long it has remembered what it said, if it has a marker of this run.
    pub age: Option<Duration>,
    /// How far its clock is ahead of this machine's, in microseconds.
    pub clock_ahead: i64,
    /// Whether it gives votes.
    pub standing: Standing,
}

/// Whether a server gives votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It does.
    Votes,
    /// It has remembered for less than the longest lease: so much is left.
    Waits(Duration),
    /// It has no marker, or one of an earlier run: it has forgotten, and waits from its next client on.
    Unborn,
    /// Its marker is of another list of servers, or another longest lease.
    OfAnother,
    /// It takes no writes.
    Replica,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Standing::Votes => f.write_str("votes"),
            Standing::Waits(left) => write!(f, "waits {} s more", left.as_secs() + 1),
            Standing::Unborn => f.write_str("waits from its next client on"),
            Standing::OfAnother => f.write_str("is of another quorum"),
            Standing::Replica => f.write_str("is a replica"),
        }
    }
}

impl QuorumStatus {
    /// How many servers give votes.
    pub fn voters(&self) -> usize {
        let votes = |said: &&Voter| said.standing == Standing::Votes;
        self.servers.iter().filter_map(|(_, said)| said.as_ref().ok()).filter(votes).count()
    }
}

/// Asks each server of a quorum what it is like. It changes nothing.
///
/// # Errors
/// When an option is wrong, or the address is no quorum's. A server that cannot be reached is no error here.
pub async fn quorum_status(options: Options) -> Result<QuorumStatus, Error> {
    each(options, false).await
}

/// Has each server that can be reached say that it has remembered for longer than any lease, for the list and the
/// longest lease of these options, whatever it said before; and says what they are like then.
///
/// Where a server has forgotten a vote whose lease goes on, two clients may then hold one lock, told apart by their
/// tokens alone. It is for servers that are new, or while all clients have been stopped for the longest lease.
///
/// # Errors
/// As [`quorum_status`].
pub async fn quorum_init(options: Options) -> Result<QuorumStatus, Error> {
    each(options, true).await
}

async fn each(options: Options, init: bool) -> Result<QuorumStatus, Error> {
    options.check()?;
    let Address::Quorum(quorum) = options.address.clone() else {
        return Err(options::invalid("this is no quorum: name one as redis+quorum://h1,h2,h3"));
    };
    let names = quorum.sorted();
    let charter = Charter::new(&names, quorum.max_lease, &options.prefix);
    let mut questions = JoinSet::new();
    for (at, name) in names.iter().enumerate() {
        let (options, charter, node) = (options.clone(), charter.clone(), quorum.reached(name));
        questions.spawn(async move {
            let limit = options.connect_timeout;
            let said = tokio::time::timeout(limit, one(&options, &node, &charter, init)).await;
            let late = |_| Err(NoSession::Later(format!("no answer within {limit:?}")));
            (at, said.unwrap_or_else(late).map_err(|why| why.into_error().message().to_owned()))
        });
    }
    let mut said = questions.join_all().await;
    said.sort_by_key(|(at, _)| *at);
    Ok(QuorumStatus {
        majority: Quorum::majority(&quorum),
        fingerprint: charter.fingerprint().to_owned(),
        max_lease: quorum.max_lease,
        servers: names.into_iter().zip(said.into_iter().map(|(_, said)| said)).collect(),
    })
}

async fn one(
    options: &Options,
    node: &Node,
    charter: &Charter,
    init: bool,
) -> Result<Voter, NoSession> {
    let mut talk = lookup::talk(options, node).await?;
    if options.db != 0 {
        let reply = talk.ask(&["SELECT", &options.db.to_string()]).await?;
        talk.refuse("SELECT", reply)?;
    }
    let info = info(&mut talk).await?;
    let run = run_of(&info).unwrap_or_default().to_owned();
    if init {
        write(&mut talk, charter, &run).await?;
    }
    let before = wall_clock();
    let reply = talk.ask(&["TIME"]).await?;
    let middle = before + (wall_clock() - before) / 2;
    let now = session::time(&talk.refuse("TIME", reply)?)?;
    let words: [&[u8]; 5] = [b"HMGET", charter.marker(), b"run", b"birth", b"list"];
    let marker = talk.ask(&words).await?;
    let marker = fields(&talk.refuse("the birth marker", marker)?);
    let role = info.lines().find_map(|line| line.strip_prefix("role:"));
    let role = role.unwrap_or("unknown").trim().to_owned();
    let [of, birth, list] = marker;
    let born = birth.and_then(|birth| birth.parse::<u64>().ok());
    let age = born.filter(|birth| of.as_ref() == Some(&run) && *birth <= now);
    let age = age.map(|birth| Duration::from_micros(now - birth));
    let other = list.as_ref().is_some_and(|list| list != charter.fingerprint());
    let max_lease = Duration::from_micros(charter.max_lease());
    let standing = match age {
        _ if role == "slave" => Standing::Replica,
        _ if other => Standing::OfAnother,
        None => Standing::Unborn,
        Some(age) if age < max_lease => Standing::Waits(max_lease - age),
        Some(_) => Standing::Votes,
    };
    let clock_ahead = (now as i64).saturating_sub(middle);
    Ok(Voter { role, run, fingerprint: list, age, clock_ahead, standing })
}

/// Writes the marker: born the longest lease ago.
async fn write(talk: &mut Conversation, charter: &Charter, run: &str) -> Result<(), NoSession> {
    let Some(script) = Codec::quorum_scripts().iter().find(|script| script.name == "birth") else {
        return Ok(());
    };
    let loaded = talk.ask(&["SCRIPT", "LOAD", script.text]).await?;
    talk.refuse("SCRIPT LOAD", loaded)?;
    let ago = charter.max_lease().to_string();
    let words: [&[u8]; 7] = [
        b"EVALSHA",
        script.sha.as_bytes(),
        b"1",
        charter.marker(),
        run.as_bytes(),
        charter.fingerprint().as_bytes(),
        ago.as_bytes(),
    ];
    let written = talk.ask(&words).await?;
    talk.refuse("the birth marker", written).map(drop)
}

/// What INFO says of the server and of its role.
async fn info(talk: &mut Conversation) -> Result<String, NoSession> {
    let mut all = String::new();
    for section in ["server", "replication"] {
        let reply = talk.ask(&["INFO", section]).await?;
        match talk.refuse("INFO", reply)? {
            Value::Bytes(text) => all.push_str(&String::from_utf8_lossy(&text)),
            _ => return Err(NoSession::misconfigured("INFO tells nothing")),
        }
    }
    Ok(all)
}

/// The values of a reply to HMGET.
fn fields(reply: &Value) -> [Option<String>; 3] {
    let text = |at: usize| match reply {
        Value::Array(values) => match values.get(at) {
            Some(Value::Bytes(text)) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        },
        _ => None,
    };
    [text(0), text(1), text(2)]
}
