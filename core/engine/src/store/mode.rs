//! Who may hold a lock together.

use crate::id::OwnerId;
use crate::options::TOKEN_BLOCK;
use crate::reply::{Abandoned, Refusal, RefusalKind};
use crate::request::Mode;
use crate::store::record::{Record, StoredHold};

/// The most holds of one name. One more waits.
pub const MAX_HOLDS: usize = 10_000;

/// How a request stands to what its explicit owner holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tie {
    /// The owner holds nothing.
    Stranger,
    /// It is let in past whoever waits, under this token.
    Joins(u64),
    /// It would wait for its own hold.
    Deadlock,
}

/// What a new hold is told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Admission {
    pub token: u64,
    pub end: u64,
    pub abandoned: Abandoned,
    pub losses: u32,
}

impl StoredHold {
    pub(super) fn is_exclusive(&self) -> bool {
        self.mode == Mode::Exclusive
    }
}

impl Record {
    /// Whether anybody holds the lock for itself.
    pub(super) fn is_exclusive(&self) -> bool {
        self.holds.iter().any(StoredHold::is_exclusive)
    }

    /// How many permits are out.
    pub(super) fn in_use(&self) -> u64 {
        self.holds.iter().filter_map(|hold| hold.mode.permits()).map(u64::from).sum()
    }

    /// Whether one more hold may stand beside the present ones.
    pub(super) fn fits(&self, mode: Mode) -> bool {
        let room = self.holds.len() < MAX_HOLDS;
        match mode {
            Mode::Exclusive => self.holds.is_empty() || self.planted_writer(),
            Mode::Shared => room && !self.is_exclusive(),
            Mode::Permits { count, of } => {
                let after = self.in_use() + u64::from(count);
                room && (after <= u64::from(of) || self.planted_permit(of))
            }
        }
    }

    /// How a request of an explicit owner stands to its present holds.
    pub(super) fn tie(&self, owner: Option<&OwnerId>, mode: Mode) -> Tie {
        let Some(owner) = owner else { return Tie::Stranger };
        if matches!(mode, Mode::Permits { .. }) {
            return Tie::Stranger;
        }
        if self.is_held_by(Some(owner)) {
            return Tie::Joins(self.token);
        }
        let own = |hold: &&StoredHold| !hold.is_exclusive() && hold.owner.as_ref() == Some(owner);
        match (self.holds.iter().filter(own).map(|hold| hold.token).max(), mode) {
            (None, _) => Tie::Stranger,
            (Some(_), Mode::Shared) if planted!(ReaderQueuesAgain) => Tie::Stranger,
            (Some(token), Mode::Shared) => Tie::Joins(token),
            (Some(_), _) if planted!(ReaderAsksToWrite) => Tie::Stranger,
            (Some(_), _) => Tie::Deadlock,
        }
    }

    /// Refuses a hold of another kind than those that hold or wait, and another number of permits.
    /// Entries of another kind that are silent go.
    pub(super) fn check_kind(&mut self, now: u64, mode: Mode) -> Result<(), Refusal> {
        let held = self.holds.first().map(|hold| hold.mode);
        let other = held.or_else(|| self.waiters.iter().next().map(|waiter| waiter.mode));
        let Some(other) = other.filter(|other| !agree(*other, mode)) else { return Ok(()) };
        if held.is_none() && !self.waiters.iter().any(|waiter| waiter.is_live(now)) {
            self.waiters.clear();
            return Ok(());
        }
        let of = match other {
            Mode::Permits { of, .. } => of,
            Mode::Exclusive | Mode::Shared => 0,
        };
        Err(other_kind(of, mode))
    }

    /// Numbers a hold that is let in, and says what it is told.
    pub(super) fn admit(
        &mut self,
        now: u64,
        floor: u64,
        mode: Mode,
        owner: Option<&OwnerId>,
    ) -> Admission {
        if mode == Mode::Exclusive {
            if self.holds.is_empty() {
                self.abandoned = self.abandoned_now();
                self.reserve(self.first_token(now, floor));
            }
            let (token, end, abandoned) = (self.token, self.last, self.abandoned);
            return Admission { token, end, abandoned, losses: self.losses };
        }
        let shared = mode == Mode::Shared;
        if shared {
            // Told, and not cleared: a reader mends nothing.
            self.abandoned = self.abandoned_now();
        }
        let mut end = 0;
        let token = match self.tie(owner, mode) {
            Tie::Joins(token) => token,
            Tie::Stranger | Tie::Deadlock => {
                // Permits are handed on within their client, and may be followed by others within
                // the same instant: they take a block where that does not outrun the clock.
                let block = !shared && self.last != 0 && self.last < now && floor < now;
                self.token = self.first_token(now, floor);
                self.last = if block || planted!(ReadersTakeBlocks) {
                    self.token + TOKEN_BLOCK - 1
                } else {
                    self.token
                };
                end = self.last;
                self.token
            }
        };
        let abandoned = if shared { self.abandoned } else { Abandoned::No };
        Admission { token, end: end.max(token), abandoned, losses: 0 }
    }
}

/// The name is another kind's: a semaphore's of so many permits, or, with 0, a lock's.
pub(crate) fn other_kind(of: u32, asked: Mode) -> Refusal {
    let kind = match (of, asked) {
        (1.., Mode::Permits { .. }) => RefusalKind::OtherPermits { of },
        _ => RefusalKind::Misconfigured,
    };
    let message = match (of, asked) {
        (0, _) => "the name is a lock's: choose another name for the semaphore".to_owned(),
        (of, Mode::Permits { of: asked, .. }) => format!(
            "the semaphore has {of} permits for those who hold or wait now, and this request says \
             {asked}: let all of them say the same"
        ),
        (of, _) => {
            format!("the name is a semaphore's, of {of} permits: choose another name for the lock")
        }
    };
    Refusal { kind, message }
}

/// Whether holds of the two modes may belong to one name.
fn agree(one: Mode, other: Mode) -> bool {
    match (one, other) {
        (Mode::Permits { of, .. }, Mode::Permits { of: other, .. }) => {
            of == other || planted!(AnyNumberOfPermits)
        }
        _ => one.is_of_kind(other),
    }
}
