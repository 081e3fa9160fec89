//! One server of the cluster: what it has, what it knows, and what it answers.

use std::collections::{BTreeMap, BTreeSet};

use fencelock_engine::redis::{Codec, Command, Value, Words};

use crate::clock::{Instant, StoreClock};
use crate::cluster::shape::{Shape, View};
use crate::cluster::wire::text;
use crate::redis::{Keyspace, ModelRedis, Published};
use crate::sentinel::address;

/// One server.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub number: usize,
    /// Whose replica it is; it takes itself for a master where it is none.
    pub follows: Option<usize>,
    /// Which slots are whose, as far as it knows.
    pub view: View,
    /// The parts that it gives away, and to whom; and those that it gets.
    pub leaving: BTreeMap<usize, usize>,
    pub coming: BTreeMap<usize, usize>,
    pub keys: Keyspace,
    /// How many writes are in it.
    pub offset: u64,
    pub scripts: BTreeSet<&'static str>,
    pub clock: StoreClock,
    /// It is not there until then.
    pub down_until: Instant,
    /// It stands still until then.
    pub mute_until: Instant,
    /// It thinks that the cluster does not serve.
    pub fails: bool,
    /// It is cut off from the others.
    pub alone: bool,
}

/// What one command came to.
pub(super) struct Answer {
    pub value: Value,
    pub published: Published,
    /// The lock whose keys a script touched.
    pub wrote: Option<usize>,
}

/// What a server runs on.
pub(super) struct Stage<'a> {
    pub redis: &'a mut ModelRedis,
    pub shape: &'a Shape,
    pub now: Instant,
    /// Whether somebody is subscribed to a channel at this server.
    pub listens: &'a dyn Fn(&[u8]) -> bool,
}

fn error(line: impl Into<String>) -> Value {
    Value::Error(line.into())
}

impl Node {
    pub fn new(number: usize, follows: Option<usize>, view: View, clock: StoreClock) -> Node {
        Node {
            number,
            follows,
            view,
            leaving: BTreeMap::new(),
            coming: BTreeMap::new(),
            keys: Keyspace::default(),
            offset: 0,
            scripts: BTreeSet::new(),
            clock,
            down_until: 0,
            mute_until: 0,
            fails: false,
            alone: false,
        }
    }

    /// Its answer to the questions for a map.
    pub fn map(&self, shape: &Shape) -> [Value; 2] {
        let state = if self.fails { "fail" } else { "ok" };
        [shape.slots(&self.view), text(format!("cluster_state:{state}\r\n"))]
    }

    /// Executes a command; `asking` is whether ASKING came right before it.
    pub fn answer(
        &mut self,
        stage: &mut Stage<'_>,
        asking: &mut bool,
        words: &[Vec<u8>],
    ) -> Answer {
        let asked = std::mem::take(asking);
        let plain = |value| Answer { value, published: Vec::new(), wrote: None };
        let ok = text("OK");
        let command = words.first().map_or(&[][..], Vec::as_slice);
        plain(match command {
            b"ROLE" => match self.follows {
                None => Value::Array(vec![text("master"), Value::Int(1), Value::Array(Vec::new())]),
                Some(master) => {
                    let host = text(address(master).host);
                    let rest = [Value::Int(6379), text("connected"), Value::Int(1)];
                    Value::Array([text("slave"), host].into_iter().chain(rest).collect())
                }
            },
            b"HELLO" => Value::Array(Vec::new()),
            b"TIME" => {
                let time = Command::Plain(vec![b"TIME".to_vec()]);
                stage.redis.run(self.clock.read(stage.now), &time, stage.listens).0
            }
            b"ASKING" => {
                *asking = true;
                ok
            }
            b"SCRIPT" => {
                let script = Codec::scripts().iter().find(|it| it.text.as_bytes() == words[2]);
                match script {
                    Some(script) => {
                        self.scripts.insert(script.sha);
                        text(script.sha)
                    }
                    None => error("ERR what"),
                }
            }
            b"EVALSHA" => return self.script(stage, asked, words),
            _ => ok,
        })
    }

    fn script(&mut self, stage: &mut Stage<'_>, asked: bool, words: &[Vec<u8>]) -> Answer {
        let refused = |value| Answer { value, published: Vec::new(), wrote: None };
        let count = std::str::from_utf8(&words[2]).ok().and_then(|count| count.parse().ok());
        let (keys, args) = words[3..].split_at(count.unwrap_or(0));
        let now = self.clock.read(stage.now);
        let lock = match self.serves(stage.shape, now, asked, keys) {
            Ok(lock) => lock,
            Err(line) => return refused(error(line)),
        };
        let script = Codec::scripts().iter().find(|it| it.sha.as_bytes() == words[1]);
        let Some(script) = script.filter(|it| self.scripts.contains(it.sha)) else {
            return refused(error("NOSCRIPT No matching script. Please use EVAL."));
        };
        let (keys, args) = (keys.iter().collect::<Words>(), args.iter().collect::<Words>());
        let command = Command::Script { script, keys, args };
        stage.redis.exchange(&mut self.keys);
        let (value, published) = stage.redis.run(now, &command, stage.listens);
        stage.redis.exchange(&mut self.keys);
        self.offset += 1;
        Answer { value, published, wrote: lock }
    }

    /// Whose keys these are, if they are to be served here; or what a server says instead.
    fn serves(
        &self,
        shape: &Shape,
        now: u64,
        asked: bool,
        keys: &[Vec<u8>],
    ) -> Result<Option<usize>, String> {
        let mut locks = keys.iter().map(|key| shape.lock_of(key));
        let Some(Some(lock)) = locks.next() else { return Ok(None) };
        if locks.any(|other| other != Some(lock)) {
            return Err("CROSSSLOT Keys in request don't hash to the same slot".to_owned());
        }
        if self.fails {
            return Err("CLUSTERDOWN The cluster is down".to_owned());
        }
        let (part, slot) = (shape.part_of(lock), shape.slot_of(lock));
        let missing = keys.iter().filter(|key| !self.keys.has(key, now)).count();
        let try_again = || "TRYAGAIN Multiple keys request during rehashing of slot".to_owned();
        if let Some(&to) = self.leaving.get(&part)
            && missing > 0
        {
            return Err(match missing == keys.len() {
                true => format!("ASK {slot} {}", address(to)),
                false => try_again(),
            });
        }
        if asked && self.coming.contains_key(&part) {
            return if keys.len() > 1 && missing > 0 { Err(try_again()) } else { Ok(Some(lock)) };
        }
        let owner = self.view[part].owner;
        match self.follows.is_none() && owner == self.number {
            true => Ok(Some(lock)),
            false => Err(format!("MOVED {slot} {}", address(owner))),
        }
    }
}
