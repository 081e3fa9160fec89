//! Holding the lock in another mode from now on.

use crate::reply::{Abandoned, Refusal, Standing, State};
use crate::request::{Convert, Mode};
use crate::store::acquire::is_timely;
use crate::store::mode::other_kind;
use crate::store::record::{Announce, Caller, Record};
use crate::store::refusal::check_clock;
use crate::store::settle::{Reach, Settle};
use crate::time::micros_up;

impl Record {
    /// Makes a hold shared, or, while nobody else holds the lock, exclusive. One that is in that mode
    /// already is renewed.
    ///
    /// # Errors
    /// When the name is a semaphore's, or the store's clock leaves no room for tokens.
    pub fn convert(
        &mut self,
        now: u64,
        caller: &Caller,
        ask: &Convert,
        out: &mut dyn Announce,
    ) -> Result<State, Refusal> {
        check_clock(now)?;
        if self.released == Some(ask.hold) {
            return Ok(self.state(Standing::Released));
        }
        if !is_timely(now, ask.not_after, None) {
            return Ok(self.state(Standing::Late));
        }
        self.tick(now);
        let at = self.holds.iter().position(|hold| hold.hold == ask.hold);
        let mut converted = false;
        if let Some(at) = at {
            if let Mode::Permits { of, .. } = self.holds[at].mode {
                return Err(other_kind(of, ask.to));
            }
            if planted!(DowngradeFreesTwice) && self.holds[at].mode == Mode::Shared {
                self.holds.remove(at);
                return Ok(self.state(Standing::Gone));
            }
            converted = self.holds[at].mode == ask.to || self.change(now, at, ask);
        }
        if let Some(at) = at.filter(|_| converted) {
            self.holds[at].renew(now, micros_up(ask.lease), caller.polling, Reach::Lengthen);
        }
        let settle = Settle { now, lock: &ask.lock, caller: None, floor: ask.floor };
        let away =
            if planted!(DowngradeLetsWriterIn) { at.map(|at| self.holds.remove(at)) } else { None };
        let settled = self.settle(&settle, out);
        self.holds.extend(away);
        if converted {
            return Ok(self.standing(now, ask.hold, settled));
        }
        let standing = if at.is_some() { Standing::Contended } else { Standing::Gone };
        let (publish_failed, others_waiting) =
            (settled.publish_failed, self.others_waiting(ask.hold));
        Ok(State { publish_failed, others_waiting, ..self.state(standing) })
    }

    /// Whether the hold is in the other mode now.
    fn change(&mut self, now: u64, at: usize, ask: &Convert) -> bool {
        if ask.to == Mode::Shared {
            self.make_shared(at, ask);
            return true;
        }
        if self.holds.len() > 1 {
            return false;
        }
        self.abandoned = self.abandoned_now();
        self.reserve(self.first_token(now, ask.floor));
        self.owner.clone_from(&self.holds[at].owner);
        (self.holds[at].mode, self.holds[at].token) = (Mode::Exclusive, self.token);
        true
    }

    /// As a release of what was exclusive of the hold: the end of its block goes back, and who was
    /// told of a predecessor has mended what that left.
    fn make_shared(&mut self, at: usize, ask: &Convert) {
        // The undoing of a conversion whose answer nobody heard tells nothing.
        let heard = ask.told && ask.used >= self.token && ask.losses == self.losses;
        if heard {
            self.abandoned = Abandoned::No;
        }
        self.holds[at].mode = Mode::Shared;
        self.holds[at].token = self.token;
        if self.is_exclusive() {
            // Of an explicit owner, who has the lock for itself by another hold.
            return;
        }
        // Above whatever a writer was given, below whoever comes next.
        let used = ask.used.max(self.used);
        let same = used < self.token || planted!(DowngradeKeepsToken);
        let token = if same { self.token } else { used + 1 };
        self.vacate();
        self.give_back(token);
        self.holds[at].token = self.token;
    }
}
