//! Another number of permits, while some are out.

use crate::reply::{Refusal, Standing};
use crate::request::{Mode, Resize};
use crate::store::mode::other_kind;
use crate::store::record::{Announce, Record, StoredWaiter};
use crate::store::settle::Settle;

impl StoredWaiter {
    /// It wants more permits than there are: it would wait for ever.
    pub(super) fn is_doomed(&self) -> Option<Standing> {
        match self.mode {
            Mode::Permits { count, of } if count > of && !planted!(DoomedWaits) => {
                Some(Standing::Doomed { of })
            }
            _ => None,
        }
    }
}

impl Record {
    /// Sets how many permits there are for those who hold or wait, and lets in who fits now. Nobody is
    /// ended: of fewer than are out, none is free until so many have come back. `false` when nobody
    /// holds or waits, of whom any number would be true.
    ///
    /// # Errors
    /// When the name is a lock's.
    pub fn resize(
        &mut self,
        now: u64,
        ask: &Resize,
        out: &mut dyn Announce,
    ) -> Result<bool, Refusal> {
        self.tick(now);
        let held = self.holds.first().map(|hold| hold.mode);
        let present = held.or_else(|| self.waiters.iter().next().map(|waiter| waiter.mode));
        match present {
            None => return Ok(false),
            Some(Mode::Permits { .. }) => {}
            Some(Mode::Exclusive | Mode::Shared) => {
                return Err(other_kind(0, Mode::Permits { count: 1, of: ask.of }));
            }
        }
        let more = if planted!(ResizeAdds) { self.in_use() } else { 0 };
        let size = ask.of.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
        let set = |mode: &mut Mode| {
            if let Mode::Permits { of, .. } = mode {
                *of = size;
            }
        };
        self.holds.iter_mut().for_each(|hold| set(&mut hold.mode));
        self.waiters.change_modes(set);
        if !planted!(ResizeWakesNobody) {
            self.settle(&Settle { now, lock: &ask.lock, caller: None, floor: 0 }, out);
        }
        Ok(true)
    }
}
