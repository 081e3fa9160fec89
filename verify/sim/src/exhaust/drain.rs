//! From any state, the rest of the story without further trouble.

use std::time::Duration;

use crate::exhaust::state::State;
use crate::exhaust::step::Rules;

/// Within this, whoever waits is granted: a lease, a silence, a claim and a heartbeat, and the
/// longest pause between two attempts.
const BOUND: Duration = Duration::from_millis(3_000 + 1_000 + 1_000 + 334 + 1_000);
/// Within this, nothing is left to do.
const REST: Duration = Duration::from_secs(60);
/// More steps without time passing are a loop.
const STEPS: usize = 10_000;

/// Lets faults stop: connections come back, replies arrive, timers fire, and whoever gets the lock
/// releases it at once. Everybody who waits must be granted in time, every call must end, and in
/// the end nothing may be left, here or at the store.
pub(super) fn drain(state: &State, rules: &Rules<'_>) -> Result<(), &'static str> {
    let mut state = state.clone();
    let begun = state.now;
    for c in 0..state.clients.len() {
        if state.clients[c].alive && !state.clients[c].wire.up {
            state.up(c, rules);
        }
    }
    loop {
        settle(&mut state, rules)?;
        let waits = state.clients.iter().filter(|client| client.alive).any(|client| {
            let open = client.callers.iter().filter_map(|caller| caller.open);
            open.filter(|open| open.key.is_some()).count() > 0
        });
        if waits && state.now > begun + BOUND {
            return Err("a waiter is not granted in time");
        }
        let Some(next) = state.next_wake() else {
            if waits {
                return Err("a waiter waits for ever");
            }
            break;
        };
        if next > begun + REST {
            return Err("a client never comes to rest");
        }
        state.now = state.now.max(next);
    }
    // What is still under way must come too late for anything.
    for (c, op) in std::mem::take(&mut state.strays) {
        let _ = state.serve(c, op, rules);
    }
    residue(&state)
}

/// Does all that can be done without time passing.
fn settle(state: &mut State, rules: &Rules<'_>) -> Result<(), &'static str> {
    for _ in 0..STEPS {
        let mut busy = false;
        for c in 0..state.clients.len() {
            if !state.clients[c].alive {
                continue;
            }
            if !state.clients[c].wire.up {
                busy = true;
                state.up(c, rules);
            }
            while !state.clients[c].wire.requests.is_empty() {
                busy = true;
                // Tokens must not outrun the store's clock.
                state.now = state.now + Duration::from_micros(10);
                state.execute(c, rules);
            }
            while let Some(push) = state.clients[c].wire.pushes.pop_front() {
                busy = true;
                state.hear(c, fencelock_engine::Event::Push(push), rules);
            }
            while let Some((request, result)) = state.clients[c].wire.replies.pop_front() {
                busy = true;
                state.hear(c, fencelock_engine::Event::Reply { request, result }, rules);
            }
            if state.clients[c].is_due(state.now) {
                busy = true;
                state.wake(c, rules);
            }
            for a in 0..state.clients[c].callers.len() {
                if state.clients[c].callers[a].open.is_none()
                    && let Some(held) = state.clients[c].callers[a].holds.pop()
                {
                    busy = true;
                    state.release(c, a, held, rules);
                }
            }
        }
        state.check();
        if let Some(broken) = state.broken {
            return Err(broken);
        }
        if !busy {
            return Ok(());
        }
    }
    Err("the clients never come to rest")
}

fn residue(state: &State) -> Result<(), &'static str> {
    for client in state.clients.iter().filter(|client| client.alive) {
        if client.callers.iter().any(|caller| caller.open.is_some()) {
            return Err("a call never ends");
        }
        if client.engine.waiting() > 0 {
            return Err("the engine keeps a call that has ended");
        }
        let mine = &client.known.client;
        if state.record.holds.iter().any(|hold| hold.client == *mine) {
            return Err("a hold is left at the store");
        }
        if state.record.waiters.iter().any(|waiter| waiter.client == *mine) {
            return Err("a waiter is left at the store");
        }
    }
    Ok(())
}
