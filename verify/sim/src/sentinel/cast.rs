//! The servers and the Sentinels.

use fencelock_engine::redis::session::{Frame, Incoming};
use fencelock_engine::redis::{Codec, Node, Value};

use crate::clock::Instant;

/// What a server takes itself for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It takes writes, rightly or not.
    Master,
    /// It does not.
    Replica,
}

/// One Redis server.
#[derive(Clone, Debug)]
pub struct Server {
    /// What it says of itself.
    pub role: Role,
    /// It is not there until then.
    pub down_until: Instant,
    /// It stands still until then.
    pub mute_until: Instant,
}

/// What one Sentinel believes.
#[derive(Clone, Debug)]
pub struct Sentinel {
    /// The epoch of the last failover it knows.
    pub epoch: u64,
    /// Who is the master since then.
    pub master: usize,
    /// What its list says meanwhile: the leader of a failover has the old master there for some seconds.
    pub listed: usize,
    /// Until when its list is so.
    pub listed_until: Instant,
    /// It is not there until then.
    pub down_until: Instant,
    /// It stands still until then.
    pub mute_until: Instant,
    /// Since when it believes that.
    pub since: Instant,
}

/// The master's name with the Sentinels.
pub const NAME: &str = "shop";

/// Where a server listens.
pub fn address(server: usize) -> Node {
    Node { host: format!("10.0.0.{server}"), port: 6379 }
}

/// Which server listens there.
pub fn server_at(node: &Node) -> Option<usize> {
    node.host.rsplit('.').next()?.parse().ok()
}

/// Commands that came in pieces.
#[derive(Clone, Debug, Default)]
pub struct Reads(Incoming);

impl Reads {
    /// The commands that are whole now, word by word.
    pub fn commands(&mut self, bytes: &[u8]) -> Vec<Vec<String>> {
        self.0.extend(bytes);
        let mut commands = Vec::new();
        while let Ok(Some(Frame::Reply(Value::Array(words)))) = self.0.frame() {
            let text = |word| match word {
                Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                _ => String::new(),
            };
            commands.push(words.into_iter().map(text).collect());
        }
        commands
    }
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn subscribed(channel: &str) -> String {
    format!(">3\r\n{}{}:1\r\n", bulk("subscribe"), bulk(channel))
}

impl Server {
    /// What it answers.
    pub fn answer(&self, words: &[String]) -> String {
        match words[0].as_str() {
            "HELLO" => "%0\r\n".to_owned(),
            "ROLE" if self.role == Role::Master => format!("*3\r\n{}:1\r\n*0\r\n", bulk("master")),
            "ROLE" => {
                let (host, state) = (bulk("10.0.0.9"), bulk("connected"));
                format!("*5\r\n{}{host}:6379\r\n{state}:1\r\n", bulk("slave"))
            }
            "SUBSCRIBE" => subscribed(&words[1]),
            "TIME" => format!("*2\r\n{}{}", bulk("1700000000"), bulk("1")),
            "SCRIPT" => {
                let script = Codec::scripts().iter().find(|script| script.text == words[2]);
                script.map_or("-ERR what\r\n".to_owned(), |script| bulk(script.sha))
            }
            _ => "+OK\r\n".to_owned(),
        }
    }
}

impl Sentinel {
    /// What it answers.
    pub fn answer(&self, now: Instant, words: &[String]) -> String {
        match (words[0].as_str(), words.get(1).map(String::as_str)) {
            ("HELLO", _) => "%0\r\n".to_owned(),
            ("SUBSCRIBE", _) => subscribed("+switch-master"),
            ("SENTINEL", Some("MASTER")) => {
                let listed = if now < self.listed_until { self.listed } else { self.master };
                let (ip, epoch) = (address(listed).host, self.epoch.to_string());
                let fields = ["name", NAME, "ip", &ip, "port", "6379", "config-epoch", &epoch];
                format!("%4\r\n{}", fields.map(bulk).concat())
            }
            _ => format!("*2\r\n{}{}", bulk(&address(self.master).host), bulk("6379")),
        }
    }

    /// The message with which it tells of a failover.
    pub fn message(&self, old: usize) -> String {
        let (old, new) = (address(old).host, address(self.master).host);
        let text = format!("{NAME} {old} 6379 {new} 6379");
        format!(">3\r\n{}{}{}", bulk("message"), bulk("+switch-master"), bulk(&text))
    }
}
