//! What each server of a cluster is like.

use std::collections::BTreeMap;
use std::time::Duration;

use fencelock_engine::redis::cluster::{SLOTS, place};
use fencelock_engine::redis::session::{self, Login, NoSession};
use fencelock_engine::redis::{Codec, Node, Value};
use fencelock_engine::{ClientId, Name};

use crate::conversation::Conversation;
use crate::handshake;
use crate::options::{Cluster, Options};
use crate::survey::{self, wall_clock};

/// What a cluster takes beside what a server does.
const NEEDED: &[&[&str]] = &[
    &["ROLE"],
    &["CLUSTER", "SLOTS"],
    &["CLUSTER", "INFO"],
    &["SPUBLISH", "{channel}", ""],
    &["ASKING"],
];

/// What the servers of a cluster are like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSurvey {
    /// Each server that one of them knows, and what it said of itself, or why it did not.
    pub members: Vec<(Node, Result<Member, String>)>,
    /// Which of them are masters of slots, as the one says that was asked first.
    pub masters: Vec<Node>,
}

/// What one server of a cluster said of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// It takes itself for a master.
    pub master: bool,
    /// Since which epoch it has its slots.
    pub epoch: u64,
    /// The slots that it takes for its own, first and last of each range.
    pub slots: Vec<(u16, u16)>,
    /// Those that come or go, as it shows them.
    pub moving: Vec<String>,
    /// How many replicas are connected to it.
    pub replicas: Option<u64>,
    /// What it throws away when its memory is full, where it throws anything away.
    pub evicts: Option<String>,
    /// Whether it writes an append-only file.
    pub append_only: Option<bool>,
    /// For how long another server must be silent until it is taken for down.
    pub node_timeout: Option<Duration>,
    /// How far its clock is ahead of this machine's, in microseconds.
    pub clock_ahead: i64,
    /// Commands and keys that this user may not use there and locks need.
    pub missing: Vec<String>,
    /// Of a master: whether it has channels of locks (`None` where it knows none), or why not for this user.
    pub channels: Option<Result<(), String>>,
}

/// One line of `CLUSTER NODES`.
struct Line {
    node: Option<Node>,
    myself: bool,
    master: bool,
    epoch: u64,
    slots: Vec<(u16, u16)>,
    moving: Vec<String>,
}

impl Line {
    /// A master that died goes on as one in the list, without slots, when its replica has taken over.
    fn serves(&self) -> bool {
        self.master && !self.slots.is_empty()
    }
}

impl ClusterSurvey {
    /// A server that is a master and answers.
    pub fn some_master(&self) -> Option<&Node> {
        let answers = |(_, said): &&(Node, Result<Member, String>)| {
            said.as_ref().is_ok_and(|member| member.master)
        };
        self.members.iter().find(answers).map(|(node, _)| node)
    }

    /// What this user may not do, and where: each server has users of its own.
    pub(crate) fn missing(&self) -> Vec<String> {
        let of = |(node, said): &(Node, Result<Member, String>)| -> Vec<String> {
            let missing = said.as_ref().map(|member| &member.missing[..]).unwrap_or_default();
            missing.iter().map(|what| format!("{node}: {what}")).collect()
        };
        self.members.iter().flat_map(of).collect()
    }

    /// How many slots no master that answers takes for its own, and which ones two do.
    pub fn slots(&self) -> (usize, Vec<u16>) {
        let mut owners = vec![0_u16; usize::from(SLOTS)];
        for member in self.members.iter().filter_map(|(_, said)| said.as_ref().ok()) {
            for &(first, last) in member.slots.iter().filter(|_| member.master) {
                for owner in &mut owners[usize::from(first)..=usize::from(last)] {
                    *owner += 1;
                }
            }
        }
        let twice = (0..SLOTS).filter(|slot| owners[usize::from(*slot)] > 1).collect();
        (owners.iter().filter(|count| **count == 0).count(), twice)
    }
}

/// Asks one of them who there is, and then each.
///
/// # Errors
/// When none of those that are named tells.
pub(crate) async fn look(
    options: &Options,
    cluster: &Cluster,
    login: Option<&Login>,
) -> Result<ClusterSurvey, NoSession> {
    let mut wrong = None;
    for seed in &cluster.nodes {
        match survey::bounded(options, lines(options, cluster, seed, login)).await {
            Ok(lines) => return Ok(of_all(options, cluster, login, lines).await),
            Err(why) => drop(wrong.get_or_insert(why)),
        }
    }
    Err(wrong.unwrap_or_else(|| NoSession::Later("no server was asked".to_owned())))
}

async fn of_all(
    options: &Options,
    cluster: &Cluster,
    login: Option<&Login>,
    lines: Vec<Line>,
) -> ClusterSurvey {
    let mut survey = ClusterSurvey::default();
    for line in lines {
        let Some(node) = &line.node else { continue };
        let node = cluster.map.get(node).unwrap_or(node).clone();
        let said = survey::bounded(options, member(options, cluster, &node, login)).await;
        let said = said.map_err(|why| why.into_error().message().to_owned());
        if line.serves() {
            survey.masters.push(node.clone());
        }
        survey.members.push((node, said));
    }
    survey
}

async fn lines(
    options: &Options,
    cluster: &Cluster,
    node: &Node,
    login: Option<&Login>,
) -> Result<Vec<Line>, NoSession> {
    let mut talk = handshake::question(options, node, cluster.tls, login.cloned()).await?;
    nodes(&mut talk, node).await
}

/// What a server says of all, with its own address where it does not know it.
async fn nodes(talk: &mut Conversation, said: &Node) -> Result<Vec<Line>, NoSession> {
    let reply = talk.ask(&["CLUSTER", "NODES"]).await?;
    match talk.refuse("CLUSTER NODES", reply)? {
        Value::Bytes(text) => {
            Ok(String::from_utf8_lossy(&text).lines().filter_map(|it| read(said, it)).collect())
        }
        _ => Err(NoSession::Later("it does not say who is in the cluster".to_owned())),
    }
}

/// `id host:port@bus[,name] flags master ping pong epoch link slots…`
fn read(said: &Node, line: &str) -> Option<Line> {
    let words: Vec<&str> = line.split(' ').collect();
    let [_, address, flags, _, _, _, epoch, _, slots @ ..] = &words[..] else { return None };
    let flag = |name: &str| flags.split(',').any(|flag| flag == name);
    let (address, name) = address.split_once(',').unwrap_or((address, ""));
    let (host, port) = address.split('@').next()?.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port != 0);
    // Later versions put more behind the name.
    let name = name.split(',').next().filter(|name| !name.is_empty() && !name.contains('='));
    let host = match name.unwrap_or(host) {
        "" => said.host.as_str(),
        host => host.trim_matches(['[', ']']),
    };
    let known = !flag("noaddr") && !flag("handshake");
    let node = port.filter(|_| known).map(|port| Node { host: host.to_owned(), port });
    let range = |text: &&str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last && last < SLOTS).then_some((first, last))
    };
    let moving = slots.iter().filter(|text| text.starts_with('['));
    Some(Line {
        node,
        myself: flag("myself"),
        master: flag("master"),
        epoch: epoch.parse().unwrap_or(0),
        slots: slots.iter().filter_map(range).collect(),
        moving: moving.map(|text| text.trim_matches(['[', ']']).to_owned()).collect(),
    })
}

async fn member(
    options: &Options,
    cluster: &Cluster,
    node: &Node,
    login: Option<&Login>,
) -> Result<Member, NoSession> {
    let mut talk = handshake::question(options, node, cluster.tls, login.cloned()).await?;
    let role = talk.ask(&["ROLE"]).await?;
    let role = talk.refuse("ROLE", role)?;
    let before = wall_clock();
    let reply = talk.ask(&["TIME"]).await?;
    let middle = before + (wall_clock() - before) / 2;
    let time = session::time(&talk.refuse("TIME", reply)?)?;
    let own = nodes(&mut talk, node).await?.into_iter().find(|line| line.myself);
    let own = own.ok_or_else(|| NoSession::Later("it does not name itself".to_owned()))?;
    let info = survey::info(&mut talk).await?;
    let number = |name: &str| info.get(name).and_then(|value| value.parse::<u64>().ok());
    let timeout = survey::setting(&mut talk, "cluster-node-timeout").await?;
    let master = matches!(&role, Value::Array(parts)
        if matches!(parts.first(), Some(Value::Bytes(role)) if role == b"master"));
    let client = ClientId::new(fastrand::u64(..), "doctor").map_err(NoSession::Misconfigured)?;
    let codec = Codec::new(client, &options.prefix).map_err(NoSession::Misconfigured)?;
    let missing = survey::missing(&mut talk, &codec, NEEDED).await?;
    let channels = match (master, own.slots.first()) {
        (true, Some(slots)) => channels(&codec, &mut talk, *slots).await?,
        _ => None,
    };
    Ok(Member {
        master,
        epoch: own.epoch,
        slots: own.slots,
        moving: own.moving,
        replicas: number("connected_slaves"),
        evicts: evicts(&info),
        append_only: info.get("aof_enabled").map(|value| value == "1"),
        node_timeout: timeout.and_then(|it| it.parse().ok()).map(Duration::from_millis),
        clock_ahead: (time as i64).saturating_sub(middle),
        missing,
        channels,
    })
}

fn evicts(info: &BTreeMap<String, String>) -> Option<String> {
    let policy = info.get("maxmemory_policy").filter(|policy| *policy != "noeviction")?;
    let bounded = info.get("maxmemory").is_some_and(|bytes| bytes != "0");
    bounded.then(|| policy.clone())
}

/// Tries to subscribe to the channel of a lock in one of these slots.
async fn channels(
    codec: &Codec,
    talk: &mut Conversation,
    (first, last): (u16, u16),
) -> Result<Option<Result<(), String>>, NoSession> {
    let mut names = (0..1 << 20).filter_map(|number| Name::new(format!("doctor {number}")).ok());
    let Some(name) = names.find(|name| (first..=last).contains(&place(name).0)) else {
        return Ok(None);
    };
    if !talk.greeted.resp3 {
        return Ok(None);
    }
    let refused = talk.subscribe(&[&b"SSUBSCRIBE"[..], &codec.channel_of(&name)]).await?;
    Ok(match refused {
        None => Some(Ok(())),
        Some(line) if line.contains("unknown command") => None,
        Some(line) => Some(Err(line)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_server_is_read() {
        let said = Node { host: "10.0.0.1".to_owned(), port: 7 };
        let line = "id 10.0.0.2:7001@17001,h2 myself,master - 0 5 12 connected 0-4 9 [93-<-other]";
        let read = |line: &str| super::read(&said, line);
        let one = read(line).unwrap();
        assert_eq!(one.node.unwrap().to_string(), "h2:7001");
        assert_eq!((one.myself, one.master, one.epoch), (true, true, 12));
        assert_eq!((one.slots, one.moving), (vec![(0, 4), (9, 9)], vec!["93-<-other".to_owned()]));
        for (address, shown) in [
            (":7001@17001", Some("10.0.0.1:7001")),
            ("::1:7001@17001", Some("[::1]:7001")),
            ("10.0.0.3:7001@17001,,shard-id=x", Some("10.0.0.3:7001")),
            ("10.0.0.3:0@0", None),
        ] {
            let line = read(&format!("id {address} slave,fail x 0 5 12 disconnected")).unwrap();
            assert_eq!(line.node.map(|node| node.to_string()).as_deref(), shown);
            assert!(!line.master && !line.myself && line.slots.is_empty());
        }
        assert!(read("id h:7@17 master - 0 5 12 connected 0-4").unwrap().serves());
        assert!(!read("id h:7@17 master,fail - 0 5 12 disconnected").unwrap().serves());
        assert!(!read("id h:7@17 slave x 0 5 12 connected").unwrap().serves());
        assert!(read("id :0@0 slave,noaddr x 0 5 12 disconnected").unwrap().node.is_none());
        assert!(read("").is_none());
    }
}
