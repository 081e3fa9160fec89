//! Re-entry without asking the engine.

use std::collections::VecDeque;
use std::ops::Range;

use parking_lot::Mutex;

use fencelock_engine::request::Mode;
use fencelock_engine::{HoldKey, Time};

use crate::listener::Listener;
use crate::terms::Terms;
use crate::{Abandoned, Token};

/// The holds of one lock under which their owner may acquire again.
///
/// To the engine every acquisition is a hold of its own. But one without a lease of its own, under a
/// hold that is kept by the watchdog, changes nothing there: it shares the outer one's hold, which
/// ends with the last of its levels.
///
/// In the order of their owners, since many may read; of one owner, the latest last.
#[derive(Default)]
pub(crate) struct ReentrantHolds(Mutex<VecDeque<ReentrantHold>>);

struct ReentrantHold {
    owner: u64,
    shared: Shared,
    /// It changes its mode: who comes now asks the engine.
    converting: bool,
    levels: usize,
    /// How many levels there have been besides the first.
    reentries: u64,
}

/// What leaving a level comes to.
pub(crate) enum Left {
    /// Others are left: the hold goes on.
    Inner,
    /// It was the last one.
    Last { reentries: u64 },
}

/// What the levels of a reentrant hold have in common.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) listener: Listener,
    pub(crate) hold: HoldKey,
    pub(crate) token: Token,
    pub(crate) abandoned: Abandoned,
    pub(crate) mode: Mode,
    /// When it was granted.
    pub(crate) since: Time,
}

impl ReentrantHold {
    /// Whether it covers another level in this mode: a level keeps its mode, when others of its owner end.
    fn covers(&self, mode: Mode) -> bool {
        mode == self.shared.mode && !self.converting
    }

    fn enter(&mut self) -> Shared {
        self.levels += 1;
        self.reentries += 1;
        self.shared.clone()
    }
}

impl ReentrantHolds {
    /// As another thread that enters a level.
    #[cfg(test)]
    pub(crate) fn busy(&self) -> impl Sized + '_ {
        self.0.lock()
    }

    /// Makes a hold of the watchdog's known. Others may follow while this one, though lost, has
    /// not been released.
    pub(crate) fn open(&self, owner: u64, shared: Shared) {
        let held = ReentrantHold { owner, shared, converting: false, levels: 1, reentries: 0 };
        let mut reentrant = self.0.lock();
        let after = reentrant.partition_point(|other| other.owner <= owner);
        reentrant.insert(after, held);
    }

    /// One more level, if the owner's hold can be trusted now. `ask` asks the engine.
    pub(crate) fn enter(
        &self,
        owner: u64,
        mode: Mode,
        now: Time,
        ask: impl FnOnce(&Shared) -> bool,
    ) -> Option<Shared> {
        let unsure = {
            let mut reentrant = self.0.lock();
            let held = of_owner(&mut reentrant, owner).filter(|held| held.covers(mode))?;
            if held.shared.listener.is_certain(now) {
                return Some(held.enter());
            }
            held.shared.clone()
        };
        // Not under this mutex: others take it under the engine's.
        if !ask(&unsure) {
            return None;
        }
        let mut reentrant = self.0.lock();
        let held = of_owner(&mut reentrant, owner).filter(|held| held.covers(mode))?;
        (held.shared.hold == unsure.hold).then(|| held.enter())
    }

    /// Begins to change a hold's mode; false when it has other levels, or does already.
    pub(crate) fn begin_conversion(&self, owner: u64, hold: HoldKey) -> bool {
        let mut reentrant = self.0.lock();
        let Some(held) = place(&reentrant, owner, hold).and_then(|at| reentrant.get_mut(at)) else {
            return true;
        };
        let begun = held.levels == 1 && !held.converting;
        held.converting |= begun;
        begun
    }

    /// The change has ended, with these terms.
    pub(crate) fn end_conversion(&self, owner: u64, hold: HoldKey, terms: Terms) {
        let mut reentrant = self.0.lock();
        let Some(held) = place(&reentrant, owner, hold).and_then(|at| reentrant.get_mut(at)) else {
            return;
        };
        let Terms { mode, token, abandoned } = terms;
        held.converting = false;
        held.shared = Shared { mode, token, abandoned, ..held.shared.clone() };
    }

    /// Leaves a level.
    pub(crate) fn leave(&self, owner: u64, hold: HoldKey) -> Left {
        let mut reentrant = self.0.lock();
        let Some(at) = place(&reentrant, owner, hold) else {
            return Left::Last { reentries: 0 };
        };
        reentrant[at].levels -= 1;
        if reentrant[at].levels > 0 {
            return Left::Inner;
        }
        Left::Last { reentries: reentrant.remove(at).map_or(0, |held| held.reentries) }
    }

    /// How many levels in these modes the owner has besides the first ones, which the engine knows.
    pub(crate) fn inner(&self, owner: u64, of: impl Fn(Mode) -> bool) -> usize {
        let reentrant = self.0.lock();
        let own = reentrant.range(range(&reentrant, owner));
        let own = own.filter(|held| !held.shared.listener.is_lost() && of(held.shared.mode));
        own.map(|held| held.levels - 1).sum()
    }
}

/// Where the owner's holds are.
fn range(holds: &VecDeque<ReentrantHold>, owner: u64) -> Range<usize> {
    let from = holds.partition_point(|held| held.owner < owner);
    from..from + holds.range(from..).take_while(|held| held.owner == owner).count()
}

/// The owner's latest hold, beside which others may read.
fn of_owner(holds: &mut VecDeque<ReentrantHold>, owner: u64) -> Option<&mut ReentrantHold> {
    let own = range(holds, owner);
    holds.range_mut(own).rev().find(|held| !held.shared.listener.is_lost())
}

fn place(holds: &VecDeque<ReentrantHold>, owner: u64, hold: HoldKey) -> Option<usize> {
    range(holds, owner).rev().find(|at| holds[*at].shared.hold == hold)
}
