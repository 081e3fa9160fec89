//! Re-entry without asking the engine.

use parking_lot::Mutex;

use fencelock_engine::{HoldKey, Time};

use crate::cell::Cell;
use crate::{Abandoned, Token};

/// The holds of one lock under which their owner may acquire again.
///
/// To the engine every acquisition is a hold of its own. But one without a lease of its own, under a
/// hold that is kept by the watchdog, changes nothing there: it shares the outer one's hold, which
/// ends with the last of its levels.
#[derive(Default)]
pub(crate) struct Nests(Mutex<Vec<Nest>>);

struct Nest {
    owner: u64,
    shared: Shared,
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

/// What the levels of a nest have in common.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) cell: Cell,
    pub(crate) hold: HoldKey,
    pub(crate) token: Token,
    pub(crate) abandoned: Abandoned,
    /// When it was granted.
    pub(crate) since: Time,
}

impl Nest {
    fn is_of(&self, owner: u64) -> bool {
        self.owner == owner && !self.shared.cell.is_lost()
    }

    fn enter(&mut self) -> Shared {
        self.levels += 1;
        self.reentries += 1;
        self.shared.clone()
    }
}

impl Nests {
    /// Makes a hold of the watchdog's known. Others may follow while this one, though lost, has
    /// not been released.
    pub(crate) fn open(&self, owner: u64, shared: Shared) {
        let nest = Nest { owner, shared, levels: 1, reentries: 0 };
        self.0.lock().push(nest);
    }

    /// One more level, if the owner's hold can be trusted now. `ask` asks the engine.
    pub(crate) fn enter(
        &self,
        owner: u64,
        now: Time,
        ask: impl FnOnce(&Shared) -> bool,
    ) -> Option<Shared> {
        let unsure = {
            let mut nests = self.0.lock();
            let nest = nests.last_mut().filter(|nest| nest.is_of(owner))?;
            if nest.shared.cell.is_certain(now) {
                return Some(nest.enter());
            }
            nest.shared.clone()
        };
        // Not under this mutex: others take it under the engine's.
        if !ask(&unsure) {
            return None;
        }
        let mut nests = self.0.lock();
        let nest = nests.last_mut().filter(|nest| nest.is_of(owner))?;
        (nest.shared.hold == unsure.hold).then(|| nest.enter())
    }

    /// Leaves a level.
    pub(crate) fn leave(&self, hold: HoldKey) -> Left {
        let mut nests = self.0.lock();
        let Some(at) = nests.iter().rposition(|nest| nest.shared.hold == hold) else {
            return Left::Last { reentries: 0 };
        };
        nests[at].levels -= 1;
        if nests[at].levels > 0 {
            return Left::Inner;
        }
        Left::Last { reentries: nests.remove(at).reentries }
    }

    /// How many levels the owner has besides the first, which the engine knows.
    pub(crate) fn inner(&self, owner: u64) -> usize {
        let nests = self.0.lock();
        nests.last().filter(|nest| nest.is_of(owner)).map_or(0, |nest| nest.levels - 1)
    }
}
