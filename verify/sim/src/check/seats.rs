//! Local readers that join others of their client, by what that client was told.

use std::collections::BTreeMap;
use std::time::Duration;

use fencelock_engine::HoldId;
use fencelock_engine::reply::{Body, Failure, Push, Reply, Standing, State};
use fencelock_engine::request::{Op, Request, RequestId};

use crate::clock::{Instant, MS};
use crate::ids::HoldMap;
use crate::plan::Plan;

/// What a client knows of one of its entries.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    /// When the latest request left that was answered.
    asked: Instant,
    /// The latest word was that somebody waits.
    waits: bool,
    /// An answer said that it is granted: a push that says so is older.
    granted: bool,
}

/// What clients were told of who waits for what they read.
#[derive(Debug)]
pub(crate) struct Seats {
    /// Several may hold a name together in this run.
    on: bool,
    /// How old the store's word may be when a reader joins.
    fresh: u64,
    /// What is under way: whose it is, and when it left.
    sent: BTreeMap<(usize, u64), (Instant, Vec<HoldId>)>,
    known: HoldMap<Word>,
}

impl Seats {
    pub fn new(plan: &Plan) -> Seats {
        let heartbeat = plan.options.heartbeat().as_nanos() as u64;
        // Clocks run wrong, and are read a little before.
        let fresh = heartbeat + heartbeat / 50 + 5 * MS;
        // A session's machine hears for its engine, and says what it heard when it is asked.
        let on = plan.shares() && plan.zk.is_none();
        Seats { on, fresh, sent: BTreeMap::new(), known: HoldMap::default() }
    }

    /// A client sends a request.
    pub fn asks(&mut self, at: Instant, incarnation: usize, request: &Request) {
        let holds = match &request.op {
            _ if !self.on => return,
            Op::Acquire(ask) => vec![ask.hold],
            Op::Beat(beats) => beats.iter().map(|beat| beat.hold).collect(),
            Op::Convert(ask) => vec![ask.hold],
            _ => return,
        };
        self.sent.insert((incarnation, request.id.0), (at, holds));
    }

    /// An answer reaches a client.
    pub fn answered(
        &mut self,
        incarnation: usize,
        request: RequestId,
        result: &Result<Reply, Failure>,
    ) {
        let Some((asked, holds)) = self.sent.remove(&(incarnation, request.0)) else { return };
        let states: Vec<Option<&State>> = match result.as_ref().map(|reply| &reply.body) {
            Ok(Body::Acquire(state)) => vec![Some(state)],
            Ok(Body::Convert(state)) => vec![Some(state)],
            Ok(Body::Beat(states)) => states.iter().map(|state| state.as_ref().ok()).collect(),
            _ => return,
        };
        for (hold, state) in holds.into_iter().zip(states) {
            let Some(state) = state else { continue };
            match state.standing {
                Standing::Granted => {
                    let waits = state.others_waiting > 0;
                    self.known.insert(hold, Word { asked, waits, granted: true });
                }
                // A reader that may not write is told who waits.
                Standing::Contended => {
                    self.known.entry(hold).or_default().waits = state.others_waiting > 0;
                }
                Standing::Queued => self.known.entry(hold).or_default().asked = asked,
                _ => {}
            }
        }
    }

    /// The store tells a client something unasked.
    pub fn pushed(&mut self, push: &Push) {
        match push {
            _ if !self.on => {}
            Push::Granted { hold, others_waiting, .. } => {
                let word = self.known.entry(*hold).or_default();
                if !word.granted {
                    word.waits = *others_waiting > 0;
                }
            }
            Push::Wanted { hold, .. } => self.known.entry(*hold).or_default().waits = true,
            _ => {}
        }
    }

    /// A reader joined those who read by this hold, without a request of its own: at once, or, having
    /// waited for so long, by a renewal.
    pub fn joined(&self, at: Instant, hold: HoldId, waited: Duration) -> Result<(), String> {
        if !self.on {
            return Ok(());
        }
        let Some(word) = self.known.get(&hold) else {
            return Err(format!("{hold:?}: a reader joins a hold of which nothing was heard"));
        };
        if word.waits {
            return Err(format!("{hold:?}: a reader joins past one that is known to wait"));
        }
        if word.asked + self.fresh < at - (waited.as_nanos() as u64).min(at) {
            let asked = word.asked;
            return Err(format!("{hold:?}: a reader joins on the store's word of {asked}"));
        }
        Ok(())
    }
}
