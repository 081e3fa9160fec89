//! The modelled server.

use std::collections::BTreeSet;

use fencelock_engine::redis::{Command, Value};
use fencelock_sim::redis::{ModelRedis, Stored};

use crate::compare::{Published, Server};

pub struct Model {
    redis: ModelRedis,
    subscribed: BTreeSet<Vec<u8>>,
}

impl Default for Model {
    fn default() -> Model {
        Model { redis: ModelRedis::mutated(), subscribed: BTreeSet::new() }
    }
}

impl Server for Model {
    fn run(&mut self, now: u64, command: &Command) -> (Value, Published) {
        let subscribed = &self.subscribed;
        self.redis.run(now, command, &|channel| subscribed.contains(channel))
    }

    fn subscribe(&mut self, channel: &[u8], on: bool) {
        if on {
            self.subscribed.insert(channel.to_vec());
        } else {
            self.subscribed.remove(channel);
        }
    }

    fn flush(&mut self) {
        self.redis.flush();
    }

    fn evict(&mut self, key: &[u8]) {
        self.redis.evict(key);
    }

    fn set_oom(&mut self, on: bool) {
        self.redis.set_oom(on);
    }

    fn set_readonly(&mut self, on: bool) {
        self.redis.set_readonly(on);
    }

    fn set_publish_denied(&mut self, on: bool) {
        self.redis.set_publish_denied(on);
    }

    fn hash(&mut self, key: &[u8]) -> Vec<Value> {
        let Some(Stored::Hash(hash)) = self.redis.keyspace().get(key) else { return Vec::new() };
        let pair = |(f, v): (&Vec<u8>, &Vec<u8>)| [f.clone(), v.clone()].map(Value::Bytes);
        hash.iter().flat_map(pair).collect()
    }

    fn sorted(&mut self, key: &[u8]) -> Vec<(Vec<u8>, i64)> {
        let Some(Stored::Sorted(sorted)) = self.redis.keyspace().get(key) else {
            return Vec::new();
        };
        sorted.iter().map(|(member, score)| (member.to_vec(), score)).collect()
    }

    fn expiry(&mut self, key: &[u8]) -> Option<Option<u64>> {
        let keyspace = self.redis.keyspace();
        keyspace.get(key).map(|_| keyspace.expiry(key))
    }
}
