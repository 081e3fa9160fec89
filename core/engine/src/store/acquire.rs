//! Taking the lock, queueing for it, or learning that it is taken.

use core::time::Duration;

use crate::id::HoldId;
use crate::reply::{Refusal, Standing, State};
use crate::request::{Acquire, Mode, Wait};
use crate::store::mode::Tie;
use crate::store::queue::Heard;
use crate::store::record::{Announce, Caller, Record, StoredHold, StoredWaiter};
use crate::store::refusal::check_clock;
use crate::store::settle::{Settle, Settled};
use crate::time::micros_up;

/// The claim that a request without one is measured by.
const DEFAULT_CLAIM: Duration = Duration::from_secs(3);

impl Record {
    /// Takes the lock, queues, or tells that it is taken.
    ///
    /// # Errors
    /// When the store's clock leaves no room for tokens.
    pub fn acquire(
        &mut self,
        now: u64,
        caller: &Caller,
        ask: &Acquire,
        out: &mut dyn Announce,
    ) -> Result<State, Refusal> {
        check_clock(now)?;
        if self.released == Some(ask.hold) {
            return Ok(self.state(Standing::Released));
        }
        let timely = is_timely(now, ask.not_after, ask.wait.map(|wait| wait.claim));
        if !timely && !planted!(NotAfterIgnored) {
            return Ok(self.state(Standing::Late));
        }
        let silence = ask.wait.map(|wait| micros_up(wait.silence));
        let heard = self.waiters.hear(now, caller.polling, ask.hold, silence, ask.local_waiters);
        self.tick(now);
        let known = heard != Heard::Nobody || self.holds.iter().any(|hold| hold.hold == ask.hold);
        if !known {
            self.check_kind(now, ask.mode)?;
        }
        if let Some(release) = &ask.after {
            self.end(release);
        }
        let mut settle = Settle { now, lock: &ask.lock, caller: None, floor: ask.floor };
        if let Some(at) = self.holds.iter().position(|hold| hold.hold == ask.hold)
            && !planted!(RetryCountedTwice)
        {
            if !planted!(ClaimNotRenewed) {
                // Whoever repeats an acquire has given out nothing yet.
                let reach = self.reach(at, 0);
                self.holds[at].renew(now, micros_up(ask.lease), caller.polling, reach);
                self.holds[at].local_waiters = ask.local_waiters;
            }
            let settled = self.settle(&settle, out);
            return Ok(self.standing(now, ask.hold, settled));
        }
        // A release in the same step may have ended this very entry.
        if heard != Heard::Nobody && self.waiters.get(ask.hold).is_some() {
            let tie = self.tie(ask.owner.as_ref(), ask.mode);
            if tie == Tie::Deadlock && !planted!(OwnHoldAwaited) {
                return Ok(self.end_wait(ask.hold, Standing::Deadlock, &settle, out));
            }
            if let Some(doomed) = self.waiters.get(ask.hold).and_then(StoredWaiter::is_doomed) {
                return Ok(self.end_wait(ask.hold, doomed, &settle, out));
            }
            settle.caller = Some(ask.hold);
            let mut settled = self.settle(&settle, out);
            settled.publish_failed |= self.announce_newcomer(heard, ask.hold, &ask.lock, out);
            return Ok(self.standing(now, ask.hold, settled));
        }
        if planted!(TryPassesWaiters) && ask.wait.is_none() && ask.attach.is_none() {
            return Ok(self.try_now(now, caller, ask, None, Settled::default()));
        }
        if self.tie(ask.owner.as_ref(), ask.mode) == Tie::Deadlock {
            return Ok(self.end_wait(ask.hold, Standing::Deadlock, &settle, out));
        }
        match (ask.attach, ask.wait) {
            (None, Some(wait)) => Ok(self.enqueue(caller, ask, wait, &mut settle, out)),
            (attach, _) => {
                let settled = self.settle(&settle, out);
                Ok(self.try_now(now, caller, ask, attach, settled))
            }
        }
    }

    /// Takes the lock without waiting; the queue has been served before.
    fn try_now(
        &mut self,
        now: u64,
        caller: &Caller,
        ask: &Acquire,
        attach: Option<u64>,
        settled: Settled,
    ) -> State {
        let publish_failed = settled.publish_failed;
        let mistaken = self.joins_by_mistake(caller, ask).then_some(self.token);
        let joins = match self.tie(ask.owner.as_ref(), ask.mode) {
            Tie::Joins(token) => Some(token),
            Tie::Stranger | Tie::Deadlock => mistaken,
        };
        if attach.is_some_and(|token| joins != Some(token)) {
            return State { publish_failed, ..self.state(Standing::NotHeld) };
        }
        // Live ones may stand behind those that this contact has passed over, and at the head of
        // those who fit when so many were let in at once.
        let exclusive = ask.mode == Mode::Exclusive;
        let first = exclusive || self.waiters.listed() == 0 || planted!(SharedTryPasses);
        if joins.is_none() && (settled.cut || !first || !self.fits(ask.mode)) {
            let expires_in = self.expires_in(now);
            let others_waiting = self.others_waiting(ask.hold);
            let state = self.state(Standing::Contended);
            return State { expires_in, others_waiting, publish_failed, ..state };
        }
        let told = self.admit(now, ask.floor, ask.mode, ask.owner.as_ref());
        if exclusive && self.holds.is_empty() {
            self.owner.clone_from(&ask.owner);
        }
        let lease = micros_up(ask.lease);
        self.holds.push(StoredHold {
            hold: ask.hold,
            client: caller.client.clone(),
            polling: caller.polling,
            deadline: now.saturating_add(lease),
            lease,
            asked: lease,
            claim: false,
            local_waiters: ask.local_waiters,
            mode: ask.mode,
            token: told.token,
            owner: ask.owner.clone(),
        });
        self.standing(now, ask.hold, settled)
    }

    /// Ends a wait that nothing would end: of an explicit owner for its own hold, or for more permits
    /// than there are.
    pub(super) fn end_wait(
        &mut self,
        hold: HoldId,
        standing: Standing,
        settle: &Settle<'_>,
        out: &mut dyn Announce,
    ) -> State {
        self.waiters.remove(hold);
        let settled = self.settle(settle, out);
        State { publish_failed: settled.publish_failed, ..self.state(standing) }
    }

    /// Only with a bug that was planted.
    fn joins_by_mistake(&self, caller: &Caller, ask: &Acquire) -> bool {
        let own = |hold: &StoredHold| hold.client == caller.client;
        planted!(ClientReenters) && ask.owner.is_some() && self.holds.iter().any(own)
            || planted!(AnybodyReenters) && ask.owner.is_some() && !self.holds.is_empty()
    }

    /// Queues; granted at once when nobody holds the lock or comes before.
    fn enqueue(
        &mut self,
        caller: &Caller,
        ask: &Acquire,
        wait: Wait,
        settle: &mut Settle<'_>,
        out: &mut dyn Announce,
    ) -> State {
        let now = settle.now;
        let shown = wait.ticket;
        let ticket = if shown > 0 { shown } else { (self.ticket + 1).max(now) };
        let first = self.waiters.listed() == 0;
        self.waiters.insert(StoredWaiter {
            hold: ask.hold,
            client: caller.client.clone(),
            polling: caller.polling,
            owner: ask.owner.clone(),
            ticket,
            heard: now,
            silent: false,
            lease: micros_up(ask.lease),
            claim: micros_up(wait.claim),
            silence: micros_up(wait.silence),
            local_waiters: ask.local_waiters,
            mode: ask.mode,
        });
        settle.caller = Some(ask.hold);
        let mut settled = self.settle(settle, out);
        if self.waiters.get(ask.hold).is_some() {
            // Without a counter there is no record, only a queue that outlived it.
            if self.last > 0 {
                self.ticket = self.ticket.max(ticket);
            }
            // Who holds the lock knows of the others.
            if first {
                settled.publish_failed |= self.tell_wanted(&ask.lock, out);
            }
        }
        self.standing(now, ask.hold, settled)
    }
}

/// Whether the request came before the instant past which it must not take effect, and that
/// instant lies no further ahead than an honest estimate of the store's clock can put it.
pub(super) fn is_timely(now: u64, not_after: u64, claim: Option<Duration>) -> bool {
    let claim = micros_up(claim.unwrap_or(DEFAULT_CLAIM));
    now <= not_after && not_after <= now.saturating_add(claim.saturating_mul(2))
}
