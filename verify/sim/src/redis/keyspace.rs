//! Keys with their values and expiry times, and the commands on them that the scripts use.

use std::collections::BTreeMap;

use fencelock_engine::redis::Value;

use crate::redis::sorted::Sorted;

/// Fields and values of a hash.
pub type Hash = BTreeMap<Vec<u8>, Vec<u8>>;

/// A value at a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// A hash.
    Hash(Hash),
    /// A sorted set.
    Sorted(Sorted),
    /// A string, such as another library's lock.
    String(Vec<u8>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Slot {
    stored: Stored,
    /// Absolute, in milliseconds, as replication carries it.
    expiry: Option<u64>,
}

/// A server's data: what a replica copies, and what a restart without memory loses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keyspace {
    slots: BTreeMap<Vec<u8>, Slot>,
}

/// How the server treats a command.
pub(crate) struct Traits {
    pub write: bool,
    pub denied_when_full: bool,
}

pub(crate) fn traits(command: &[u8]) -> Traits {
    let (write, denied_when_full) = match command.to_ascii_uppercase().as_slice() {
        b"HSET" | b"SET" | b"ZADD" => (true, true),
        b"HDEL" | b"ZREM" | b"DEL" | b"UNLINK" | b"PEXPIRE" | b"FLUSHALL" => (true, false),
        _ => (false, false),
    };
    Traits { write, denied_when_full }
}

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const NOT_INTEGER: &str = "ERR value is not an integer or out of range";

fn wrong_type() -> Value {
    Value::Error(WRONG_TYPE.to_owned())
}

fn arity(name: &str) -> Value {
    Value::Error(format!("ERR wrong number of arguments for '{}' command", name.to_lowercase()))
}

fn integer(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn count(n: usize) -> Value {
    Value::Int(i64::try_from(n).unwrap_or(i64::MAX))
}

impl Keyspace {
    /// Forgets everything.
    pub fn flush(&mut self) {
        self.slots.clear();
    }

    /// Removes a key; false when there was none.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        self.slots.remove(key).is_some()
    }

    /// Puts a value at a key, without expiry.
    pub fn put(&mut self, key: &[u8], stored: Stored) {
        self.slots.insert(key.to_vec(), Slot { stored, expiry: None });
    }

    /// Every key, also those past their expiry that nobody has looked at.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.slots.keys().map(Vec::as_slice)
    }

    /// The value at a key.
    pub fn get(&self, key: &[u8]) -> Option<&Stored> {
        self.slots.get(key).map(|slot| &slot.stored)
    }

    /// When a key expires, in milliseconds.
    pub fn expiry(&self, key: &[u8]) -> Option<u64> {
        self.slots.get(key)?.expiry
    }

    /// Whether there is such a key, at a time in microseconds.
    pub fn has(&self, key: &[u8], now: u64) -> bool {
        let slot = self.slots.get(key);
        slot.is_some_and(|slot| slot.expiry.is_none_or(|at| now / 1_000 <= at))
    }

    /// Gives a key to another server, with when it expires; false when there is none.
    pub fn hand_over(&mut self, key: &[u8], to: &mut Keyspace) -> bool {
        let Some(slot) = self.slots.remove(key) else { return false };
        to.slots.insert(key.to_vec(), slot);
        true
    }

    fn live(&mut self, key: &[u8], now_ms: u64) -> Option<&mut Slot> {
        if self.slots.get(key)?.expiry.is_some_and(|at| now_ms > at) {
            self.slots.remove(key);
        }
        self.slots.get_mut(key)
    }

    fn hash(&mut self, key: &[u8], now_ms: u64) -> Result<Option<&mut Hash>, Value> {
        match self.live(key, now_ms) {
            None => Ok(None),
            Some(Slot { stored: Stored::Hash(hash), .. }) => Ok(Some(hash)),
            Some(_) => Err(wrong_type()),
        }
    }

    fn sorted(&mut self, key: &[u8], now_ms: u64) -> Result<Option<&mut Sorted>, Value> {
        match self.live(key, now_ms) {
            None => Ok(None),
            Some(Slot { stored: Stored::Sorted(sorted), .. }) => Ok(Some(sorted)),
            Some(_) => Err(wrong_type()),
        }
    }

    /// Executes one command at the time `now`, in microseconds.
    pub(crate) fn execute(&mut self, now: u64, command: &[Vec<u8>]) -> Value {
        let now_ms = now / 1_000;
        let Some((name, args)) = command.split_first() else {
            return Value::Error("ERR empty command".to_owned());
        };
        let name = String::from_utf8_lossy(name).to_uppercase();
        match self.dispatch(now, now_ms, &name, args) {
            Ok(value) | Err(value) => value,
        }
    }

    fn dispatch(
        &mut self,
        now: u64,
        now_ms: u64,
        name: &str,
        args: &[Vec<u8>],
    ) -> Result<Value, Value> {
        let found = |value: Option<Vec<u8>>| value.map_or(Value::Nil, Value::Bytes);
        Ok(match (name, args) {
            ("PING", []) => Value::Bytes(b"PONG".to_vec()),
            ("TIME", []) => Value::Array(vec![
                Value::Bytes((now / 1_000_000).to_string().into_bytes()),
                Value::Bytes((now % 1_000_000).to_string().into_bytes()),
            ]),
            ("HGET", [key, field]) => {
                found(self.hash(key, now_ms)?.and_then(|hash| hash.get(field).cloned()))
            }
            ("HMGET", [key, fields @ ..]) if !fields.is_empty() => {
                let hash = self.hash(key, now_ms)?;
                let get = |field| hash.as_ref().and_then(|hash| hash.get(field).cloned());
                Value::Array(fields.iter().map(|field| found(get(field))).collect())
            }
            ("HGETALL", [key]) => {
                let pairs = self.hash(key, now_ms)?.into_iter().flatten();
                let both = |(f, v): (&Vec<u8>, &mut Vec<u8>)| {
                    [Value::Bytes(f.clone()), Value::Bytes(v.clone())]
                };
                Value::Array(pairs.flat_map(both).collect())
            }
            ("HKEYS", [key]) => {
                let fields = self.hash(key, now_ms)?.into_iter().flatten();
                Value::Array(fields.map(|(field, _)| Value::Bytes(field.clone())).collect())
            }
            ("HEXISTS", [key, field]) => {
                let there = self.hash(key, now_ms)?.is_some_and(|hash| hash.contains_key(field));
                Value::Int(i64::from(there))
            }
            ("ZADD", [key, words @ ..]) if words.len() > 1 => {
                let only_new = words[0] == b"NX";
                let pairs = &words[usize::from(only_new)..];
                if !pairs.len().is_multiple_of(2) {
                    return Err(arity(name));
                }
                let mut scores = Vec::with_capacity(pairs.len() / 2);
                for pair in pairs.chunks_exact(2) {
                    let score = integer(&pair[0]);
                    let score = score.ok_or_else(|| Value::Error(NOT_INTEGER.to_owned()))?;
                    scores.push((score, &pair[1]));
                }
                if self.sorted(key, now_ms)?.is_none() {
                    self.put(key, Stored::Sorted(Sorted::default()));
                }
                let mut added = 0;
                if let Some(sorted) = self.sorted(key, now_ms)? {
                    for (score, member) in scores {
                        if !(only_new && sorted.has(member)) {
                            added += usize::from(sorted.add(score, member));
                        }
                    }
                }
                count(added)
            }
            ("ZREM", [key, members @ ..]) if !members.is_empty() => {
                let Some(sorted) = self.sorted(key, now_ms)? else { return Ok(Value::Int(0)) };
                let removed = members.iter().filter(|member| sorted.remove(member)).count();
                if sorted.len() == 0 {
                    self.remove(key);
                }
                count(removed)
            }
            ("ZCARD", [key]) => count(self.sorted(key, now_ms)?.map_or(0, |sorted| sorted.len())),
            ("ZCOUNT", [key, least, most]) => {
                let sorted = self.sorted(key, now_ms)?;
                count(sorted.map_or(0, |sorted| sorted.between(least, most).count()))
            }
            ("ZRANGEBYSCORE", [key, least, most, limit, skip, most_many]) if limit == b"LIMIT" => {
                let sorted = self.sorted(key, now_ms)?;
                let range = sorted.into_iter().flat_map(|sorted| sorted.between(least, most));
                page(range, skip, most_many)
            }
            ("ZREVRANGEBYSCORE", [key, most, least, limit, skip, most_many])
                if limit == b"LIMIT" =>
            {
                let sorted = self.sorted(key, now_ms)?;
                let range = sorted.into_iter().flat_map(|sorted| sorted.between(least, most).rev());
                page(range, skip, most_many)
            }
            ("HLEN", [key]) => count(self.hash(key, now_ms)?.map_or(0, |hash| hash.len())),
            ("HSET", [key, pairs @ ..]) if !pairs.is_empty() && pairs.len().is_multiple_of(2) => {
                if self.hash(key, now_ms)?.is_none() {
                    self.put(key, Stored::Hash(Hash::new()));
                }
                let mut added = 0;
                if let Some(hash) = self.hash(key, now_ms)? {
                    for pair in pairs.chunks_exact(2) {
                        let new = hash.insert(pair[0].clone(), pair[1].clone()).is_none();
                        added += usize::from(new);
                    }
                }
                count(added)
            }
            ("HDEL", [key, fields @ ..]) if !fields.is_empty() => {
                let mut removed = 0;
                let mut empty = false;
                if let Some(hash) = self.hash(key, now_ms)? {
                    removed = fields.iter().filter(|field| hash.remove(*field).is_some()).count();
                    empty = hash.is_empty();
                }
                if empty {
                    self.remove(key);
                }
                count(removed)
            }
            ("DEL" | "UNLINK", keys) if !keys.is_empty() => {
                let mut removed = 0;
                for key in keys {
                    removed += usize::from(self.live(key, now_ms).is_some() && self.remove(key));
                }
                count(removed)
            }
            ("EXISTS", keys) if !keys.is_empty() => {
                count(keys.iter().filter(|key| self.live(key, now_ms).is_some()).count())
            }
            ("TYPE", [key]) => {
                let kind = match self.live(key, now_ms).map(|slot| &slot.stored) {
                    None => "none",
                    Some(Stored::Hash(_)) => "hash",
                    Some(Stored::Sorted(_)) => "zset",
                    Some(Stored::String(_)) => "string",
                };
                Value::Bytes(kind.as_bytes().to_vec())
            }
            ("SET", [key, text]) => {
                self.put(key, Stored::String(text.clone()));
                Value::Bytes(b"OK".to_vec())
            }
            ("GET", [key]) => match self.live(key, now_ms).map(|slot| &slot.stored) {
                None => Value::Nil,
                Some(Stored::String(text)) => Value::Bytes(text.clone()),
                Some(_) => return Err(wrong_type()),
            },
            ("PEXPIRE", [key, span]) => {
                let span = integer(span).ok_or_else(|| Value::Error(NOT_INTEGER.to_owned()))?;
                let Some(slot) = self.live(key, now_ms) else { return Ok(Value::Int(0)) };
                match u64::try_from(span) {
                    Ok(span) if span > 0 => slot.expiry = Some(now_ms.saturating_add(span)),
                    _ => drop(self.remove(key)),
                }
                Value::Int(1)
            }
            ("PTTL", [key]) => match self.live(key, now_ms).map(|slot| slot.expiry) {
                None => Value::Int(-2),
                Some(None) => Value::Int(-1),
                Some(Some(at)) => Value::Int(i64::try_from(at - now_ms).unwrap_or(i64::MAX)),
            },
            ("FLUSHALL", _) => {
                self.flush();
                Value::Bytes(b"OK".to_vec())
            }
            ("SCAN", [cursor, options @ ..]) => self.scan(now_ms, cursor, options)?,
            (
                "PING" | "TIME" | "HGET" | "HMGET" | "HGETALL" | "HLEN" | "HSET" | "HDEL" | "DEL"
                | "UNLINK" | "EXISTS" | "TYPE" | "SET" | "GET" | "PEXPIRE" | "PTTL" | "SCAN"
                | "HKEYS" | "HEXISTS" | "ZADD" | "ZREM" | "ZCARD" | "ZCOUNT" | "ZRANGEBYSCORE"
                | "ZREVRANGEBYSCORE",
                _,
            ) => return Err(arity(name)),
            _ => Value::Error(format!("ERR unknown command '{name}'")),
        })
    }

    /// Goes on in key order; the cursor is how many keys were visited.
    fn scan(&mut self, now_ms: u64, cursor: &[u8], options: &[Vec<u8>]) -> Result<Value, Value> {
        let syntax = || Value::Error("ERR syntax error".to_owned());
        let start = integer(cursor).and_then(|at| usize::try_from(at).ok());
        let start = start.ok_or_else(|| Value::Error("ERR invalid cursor".to_owned()))?;
        let (mut pattern, mut batch, mut hashes_only) = (b"*".to_vec(), 10, false);
        for option in options.chunks(2) {
            let [word, text] = option else { return Err(syntax()) };
            match word.to_ascii_uppercase().as_slice() {
                b"MATCH" => pattern.clone_from(text),
                b"COUNT" => {
                    let n = integer(text).and_then(|n| usize::try_from(n).ok());
                    batch = n.filter(|n| *n > 0).ok_or_else(syntax)?;
                }
                b"TYPE" => hashes_only = text == b"hash",
                _ => return Err(syntax()),
            }
        }
        self.slots.retain(|_, slot| slot.expiry.is_none_or(|at| now_ms <= at));
        let wanted = |(key, slot): &(&Vec<u8>, &Slot)| {
            (!hashes_only || matches!(slot.stored, Stored::Hash(_))) && glob(&pattern, key)
        };
        let visited = self.slots.iter().skip(start).take(batch);
        let found = visited.filter(wanted).map(|(key, _)| Value::Bytes(key.clone())).collect();
        let next = if start + batch < self.slots.len() { start + batch } else { 0 };
        Ok(Value::Array(vec![Value::Bytes(next.to_string().into_bytes()), Value::Array(found)]))
    }
}

/// As many members as `LIMIT` says, from where it says.
fn page<'a>(members: impl Iterator<Item = &'a Vec<u8>>, skip: &[u8], many: &[u8]) -> Value {
    let number = |text| integer(text).map_or(0, |n| usize::try_from(n).unwrap_or(0));
    let some = members.skip(number(skip)).take(number(many));
    Value::Array(some.map(|member| Value::Bytes(member.clone())).collect())
}

/// Redis's own pattern language, as far as an escaped prefix and `*` go.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', rest @ ..] => (0..=text.len()).any(|skip| glob(rest, &text[skip..])),
        [b'?', rest @ ..] => !text.is_empty() && glob(rest, &text[1..]),
        [b'\\', c, rest @ ..] | [c, rest @ ..] => text.first() == Some(c) && glob(rest, &text[1..]),
    }
}
