//! The shipped scripts over a modelled Redis.

use fencelock_engine::redis::{Codec, Command, Inbox, Value};
use fencelock_engine::reply::{Failure, Reply};
use fencelock_engine::request::Op;
use fencelock_engine::{ClientId, Name};

use crate::fault::Refusing;
use crate::redis::{Keyspace, ModelRedis};
use crate::store::{Reach, Store};

/// A modelled server, and one codec for each client.
#[derive(Debug)]
pub struct RedisStore {
    server: ModelRedis,
    codecs: Vec<Codec>,
    replica: Keyspace,
    forgotten: Vec<Name>,
}

impl RedisStore {
    /// A store whose scripts have these bugs, none by default, and the mutant if there is one.
    pub fn patched(patches: &[(&str, &str)]) -> RedisStore {
        let server = ModelRedis::mutated();
        let mut store = RedisStore {
            server,
            codecs: Vec::new(),
            replica: Keyspace::default(),
            forgotten: Vec::new(),
        };
        for (from, to) in patches {
            store.server.patch(from, to);
        }
        store
    }

    /// Notes the locks of a request whose records have expired, which it is about to find out.
    fn note_expired(&mut self, now: u64, op: &Op, command: &Command) {
        let Command::Script { .. } = command else { return };
        let locks = match op {
            Op::Acquire(ask) => vec![&ask.lock],
            Op::Beat(beats) => beats.iter().map(|beat| &beat.lock).collect(),
            Op::Release(release) => vec![&release.lock],
            Op::Convert(ask) => vec![&ask.lock],
            Op::Resize(ask) => vec![&ask.lock],
            Op::Break(what) => vec![&what.lock],
            Op::Inspect(lock) => vec![lock],
            Op::List { .. } | Op::Time | Op::Revoke(_) => return,
        };
        for lock in locks {
            let Some(codec) = self.codecs.first() else { return };
            let [record, ..] = codec.keys(lock);
            let expiry = self.server.keyspace().expiry(&record);
            let over = expiry.is_some_and(|expiry| now / 1_000 > expiry);
            if over && !self.forgotten.contains(lock) {
                self.forgotten.push(lock.clone());
            }
        }
    }
}

impl Store for RedisStore {
    fn reset(&mut self) {
        self.server.flush();
        self.refuse(None);
        self.server.set_publish_denied(false);
        self.codecs.clear();
        self.replica = Keyspace::default();
        self.forgotten.clear();
        for script in Codec::scripts() {
            self.server.load(script);
        }
    }

    fn enrol(&mut self, number: u64, polling: bool) {
        let client = ClientId::new(number, "sim").expect("a short label");
        let mut codec = Codec::new(client, "fl:").expect("the default prefix");
        codec.set_inbox(if polling { Inbox::Polling } else { Inbox::Subscribed });
        self.codecs.push(codec);
    }

    fn execute(
        &mut self,
        now: u64,
        incarnation: usize,
        op: &Op,
        reach: &mut Reach,
    ) -> Result<Reply, Failure> {
        let command = self.codecs[incarnation].encode(op);
        self.note_expired(now, op, &command);
        self.server.set_publish_denied(reach.muted);
        let codecs = &self.codecs;
        let owner_of = |channel: &[u8]| codecs.iter().position(|codec| codec.channel() == channel);
        let listens = |channel: &[u8]| owner_of(channel).is_some_and(|inc| reach.listening[inc]);
        let (value, published) = self.server.run(now, &command, &listens);
        for (channel, payload) in published {
            if let Some(inc) = owner_of(&channel)
                && let Some(push) = codecs[inc].decode_push(&payload)
            {
                reach.sent.push((inc, push));
            }
        }
        if matches!(&value, Value::Error(text) if text.starts_with("NOSCRIPT")) {
            // A transport loads the scripts before it says so.
            for script in Codec::scripts() {
                self.server.load(script);
            }
        }
        self.codecs[incarnation].decode(op, value)
    }

    fn work(&mut self) -> u64 {
        self.server.work()
    }

    fn forgotten(&mut self) -> Vec<Name> {
        std::mem::take(&mut self.forgotten)
    }

    fn wipe(&mut self) {
        self.server.flush();
        self.replica = Keyspace::default();
    }

    fn evict(&mut self, lock: &Name) {
        // The lock's hash is the key that its inspection reads first.
        let command = self.codecs[0].encode(&Op::Inspect(lock.clone()));
        if let Command::Script { keys, .. } = command
            && let Some(key) = keys.get(0)
        {
            self.server.evict(key);
        }
    }

    fn snapshot(&mut self) {
        self.replica = self.server.keyspace().clone();
    }

    fn rollback(&mut self) {
        self.server.restore(self.replica.clone());
    }

    fn foreign(&mut self, lock: &Name, queue: Option<bool>) {
        let command = self.codecs[0].encode(&Op::Inspect(lock.clone()));
        let Command::Script { keys, .. } = command else { return };
        for key in keys.iter() {
            self.server.evict(key);
        }
        if let Some(queue) = queue
            && let Some(key) = keys.get(usize::from(queue))
        {
            self.server.set_string(key, b"another program's");
        }
    }

    fn refuse(&mut self, how: Option<Refusing>) {
        self.server.set_readonly(how == Some(Refusing::ReadOnly));
        self.server.set_oom(how == Some(Refusing::MemoryFull));
    }

    fn forget_scripts(&mut self) {
        self.server.script_flush();
    }
}
