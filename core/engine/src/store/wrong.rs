//! What those who hold together would do wrong: only with bugs that were planted.

use crate::id::HoldId;
use crate::request::Mode;
use crate::store::record::{Record, StoredHold};

impl Record {
    /// A writer does not see readers.
    pub(super) fn planted_writer(&self) -> bool {
        planted!(WriterBesideReaders) && !self.is_exclusive()
    }

    /// Who finds a permit left takes what it wants.
    pub(super) fn planted_permit(&self, of: u32) -> bool {
        planted!(PermitsOverdrawn) && self.in_use() < u64::from(of)
    }

    /// The first who fits beside those who hold, whoever stands before it.
    pub(super) fn planted_passer(&self, now: u64) -> Option<HoldId> {
        let fits = |mode| mode != Mode::Exclusive && self.fits(mode);
        let waiter = self.waiters.iter().find(|it| it.is_live(now) && fits(it.mode));
        waiter.map(|waiter| waiter.hold)
    }

    /// Readers stay until the time of all of them is over.
    pub(super) fn keep_readers(&mut self, now: u64) {
        if self.holds.iter().any(|hold| now < hold.deadline) {
            for hold in self.holds.iter_mut().filter(|hold| !hold.is_exclusive()) {
                hold.deadline = hold.deadline.max(now + 1);
            }
        }
    }

    /// The renewal of one reader sets the end of the others, too.
    pub(super) fn spread(&mut self, at: usize) {
        let StoredHold { deadline, lease, .. } = self.holds[at];
        let longer = planted!(ReaderRenewsOthers);
        for hold in self.holds.iter_mut().filter(|hold| !hold.is_exclusive()) {
            if longer == (hold.deadline < deadline) {
                (hold.deadline, hold.lease) = (deadline, lease);
            }
        }
    }
}
