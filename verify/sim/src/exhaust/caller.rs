//! Those who call: each follows its program.

use fencelock_engine::request::Mode;
use fencelock_engine::{Ask, CallKey, HoldKey, Owner, OwnerId, Patience};

use crate::exhaust::scope::{BRIEF, Do, Program};

/// A hold in a caller's hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Held {
    /// The handle of its acquire.
    pub tag: u32,
    pub key: HoldKey,
    pub token: u64,
    pub explicit: bool,
    pub mode: Mode,
    /// It was told that it is lost.
    pub lost: bool,
}

/// A call without its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Open {
    pub tag: u32,
    /// Of an acquire.
    pub key: Option<CallKey>,
}

/// A caller.
#[derive(Clone, Debug, Hash)]
pub(super) struct Caller {
    pub program: Program,
    pub at: usize,
    pub open: Option<Open>,
    pub holds: Vec<Held>,
}

impl Caller {
    pub fn new(program: Program) -> Caller {
        Caller { program, at: 0, open: None, holds: Vec::new() }
    }

    /// What it would do now.
    pub fn next(&self) -> Option<Do> {
        if self.open.is_some() { None } else { self.program.get(self.at).copied() }
    }

    /// An acquire has failed: only what it holds is left to be released.
    pub fn give_up(&mut self) {
        self.at = self.program.len() - self.holds.len();
    }

    /// What it asks for, as the `index`-th caller of its client.
    pub fn ask(what: Do, index: usize) -> Ask {
        let ask = Ask::local(index as u64);
        match what {
            Do::Try => Ask { patience: Patience::Try, ..ask },
            Do::Brief => Ask { lease: Some(BRIEF), ..ask },
            Do::Own => {
                let owner = OwnerId::new("trace").expect("a short owner");
                Ask { owner: Owner::Explicit(owner), ..ask }
            }
            Do::Read => Ask { mode: Mode::Shared, ..ask },
            Do::One => Ask { mode: Mode::Permits { count: 1, of: 3 }, ..ask },
            Do::Two => Ask { mode: Mode::Permits { count: 2, of: 3 }, ..ask },
            Do::Downgrade | Do::Upgrade | Do::More | Do::Fewer => ask,
            Do::Lock | Do::Extend | Do::Unlock => ask,
        }
    }
}
