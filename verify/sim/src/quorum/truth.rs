//! What must be so, whatever happens.

use std::collections::BTreeMap;

use crate::clock::{Instant, MS};
use crate::quorum::client::Client;

/// A hold that a caller was told of.
#[derive(Clone, Copy, Debug)]
struct Held {
    client: usize,
    call: u32,
    token: u64,
    /// An operator ended it, and it may be trusted until then.
    broken: Option<Instant>,
    /// A clock that it hung on jumped.
    excused: bool,
}

/// What is known of the locks.
#[derive(Debug, Default)]
pub struct Truth {
    /// The highest token of each lock that was told to anybody.
    tokens: BTreeMap<usize, u64>,
    held: BTreeMap<usize, Vec<Held>>,
    /// Until when votes may be about that an operator ended before their hold was told of.
    breaking: BTreeMap<usize, Instant>,
}

impl Truth {
    /// A caller was told that it has a lock.
    pub fn granted(
        &mut self,
        now: Instant,
        clients: &[Client],
        (client, lock, call, token): (usize, usize, u32, u64),
        excused: bool,
    ) -> Result<(), String> {
        let breaking = self.breaking.get(&lock).is_some_and(|until| now < *until);
        let highest = self.tokens.entry(lock).or_default();
        // A client may hand on what it does not know to be broken.
        if token <= *highest && !breaking {
            return Err(format!("token {token} after {highest}, of lock {lock}"));
        }
        *highest = token.max(*highest);
        self.look(now, clients)?;
        let held = self.held.entry(lock).or_default();
        for other in held.iter() {
            let trusts = trusts(now, clients, lock, other);
            if trusts && other.broken.is_none() && !other.excused && !excused {
                return Err(format!(
                    "client {client} is told that it has lock {lock} under {token}, while client \
                     {} may trust its hold under {}",
                    other.client, other.token
                ));
            }
        }
        let excused = excused || breaking;
        held.push(Held { client, call, token, broken: None, excused });
        Ok(())
    }

    /// Whoever has a lock may trust it no longer than until then.
    pub fn broken(&mut self, now: Instant, clients: &[Client], lock: usize, span: Instant) {
        self.breaking.insert(lock, now + span);
        for held in self.held.entry(lock).or_default() {
            let client = &clients[held.client];
            let Some((_, hold, _)) = client.holds.get(&held.call) else { continue };
            let left = client.engine.remaining(client.read(now), *hold).unwrap_or_default();
            let left = left.as_nanos() as Instant;
            held.broken.get_or_insert(now + left + left / 50 + MS);
        }
    }

    /// A server's clock jumped, on which those hang who have no more votes than they need.
    pub fn jumped(
        &mut self,
        clients: &[Client],
        lock: usize,
        name: &fencelock_engine::Name,
        quorum: usize,
    ) {
        for held in self.held.entry(lock).or_default() {
            let votes = clients[held.client].machine.votes(name);
            held.excused |= votes.iter().any(|(given, held)| *held && *given <= quorum);
        }
    }

    /// A caller gave its hold up, or was told that it is lost.
    pub fn ended(&mut self, lock: usize, client: usize, call: u32) {
        self.held
            .entry(lock)
            .or_default()
            .retain(|held| (held.client, held.call) != (client, call));
    }

    /// Nobody trusts what an operator ended long ago.
    pub fn look(&mut self, now: Instant, clients: &[Client]) -> Result<(), String> {
        for (lock, held) in &self.held {
            for one in held {
                let over = one.broken.is_some_and(|until| now > until);
                if over && trusts(now, clients, *lock, one) {
                    return Err(format!(
                        "client {} goes on with lock {lock} under {}, which an operator ended",
                        one.client, one.token
                    ));
                }
            }
        }
        Ok(())
    }
}

fn trusts(now: Instant, clients: &[Client], lock: usize, held: &Held) -> bool {
    let client = &clients[held.client];
    let hold = client.holds.get(&held.call).filter(|(of, ..)| *of == lock);
    hold.is_some_and(|(_, hold, _)| client.trusts(now, *hold))
}
