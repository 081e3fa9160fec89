//! Naming locks: several rounds of `SCAN`, then `TIME`.

use std::collections::BTreeSet;

use crate::name::Name;
use crate::redis::codec::{Codec, Command};
use crate::redis::decode::time;
use crate::redis::error::{garbled, refusal};
use crate::redis::key::{decode_name, encode_name, escape_pattern};
use crate::redis::value::Value;
use crate::reply::{Body, Failure, Reply};
use crate::request::Op;

/// How many keys the server looks at in one round.
const ROUND: &str = "1000";

/// What was found so far for one [`Op::List`].
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The first of them, as many as were asked for: the others are met in no order, and forgotten.
    names: BTreeSet<Name>,
    scanned: bool,
}

impl Listing {
    /// Goes on at another server, with what was found so far.
    pub fn go_on(&mut self) {
        self.scanned = false;
    }

    fn found(&mut self, name: Name, limit: usize) {
        self.names.insert(name);
        if self.names.len() > limit {
            self.names.pop_last();
        }
    }
}

/// How a listing goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListStep {
    /// Send this, and give its reply to the next step.
    Send(Command),
    /// This is the answer.
    Done(Reply),
}

impl Codec {
    /// Takes the reply to one round of [`Op::List`]: first to what [`Codec::encode`] gave, then
    /// to what each step asks to send. `SCAN` may name a key twice, and names are sorted, so the
    /// answer is complete only when it is done.
    ///
    /// # Errors
    /// When the server refuses; the listing is over.
    pub fn list_step(
        &self,
        op: &Op,
        listing: &mut Listing,
        value: Value,
    ) -> Result<ListStep, Failure> {
        self.advance(op, listing, &value).unwrap_or_else(|| {
            Err(Failure::Refused(match value {
                Value::Error(text) => refusal(&text, None, &self.secrets),
                _ => garbled("list"),
            }))
        })
    }

    fn advance(
        &self,
        op: &Op,
        listing: &mut Listing,
        value: &Value,
    ) -> Option<Result<ListStep, Failure>> {
        let Op::List { prefix, limit } = op else { return None };
        if listing.scanned {
            let names = listing.names.iter().cloned().collect();
            let reply = Reply { now: time(value)?, body: Body::List(names) };
            return Some(Ok(ListStep::Done(reply)));
        }
        let [cursor, keys] = value.array()? else { return None };
        for key in keys.array()? {
            if let Some(name) = key.text().and_then(|key| self.name_of_key(key)) {
                listing.found(name, *limit);
            }
        }
        let cursor = cursor.text()?;
        listing.scanned = cursor == "0";
        Some(Ok(ListStep::Send(if listing.scanned {
            Command::Plain(vec![b"TIME".to_vec()])
        } else {
            self.scan(prefix, cursor)
        })))
    }

    /// The queues' keys end otherwise, so that the pattern leaves them out.
    pub(super) fn scan(&self, prefix: &str, cursor: &str) -> Command {
        let keys = escape_pattern(&self.prefix);
        let names = escape_pattern(&encode_name(prefix));
        let pattern = format!("{keys}{{{names}*}}");
        let words = ["SCAN", cursor, "MATCH", &pattern, "COUNT", ROUND, "TYPE", "hash"];
        Command::Plain(words.map(|word| word.as_bytes().to_vec()).to_vec())
    }

    fn name_of_key(&self, key: &str) -> Option<Name> {
        decode_name(key.strip_prefix(&self.prefix)?.strip_prefix('{')?.strip_suffix('}')?)
    }
}
