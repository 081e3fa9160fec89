//! What the store keeps the lock for, where that is longer than the present holds ask.

use std::time::Duration;

use crate::engine::Engine;
use crate::engine::call::CallKind;
use crate::engine::entry::At;
use crate::engine::slab::Key;
use crate::options::{Keeping, MIN_LEASE};
use crate::request::Mode;
use crate::time::Time;
use crate::validity::DRIFT_FIXED;

/// Which of the calls that wait for a renewal count: what a call waits for in vain is never given.
#[derive(Clone, Copy)]
pub(super) enum Awaited {
    No,
    All,
    /// Those that the answer to a request serves, which left then and asked this lease.
    Answered(Time, Duration),
}

impl<C: Clone> Engine<C> {
    /// Until when the lock is asked for by the present holds, and by those of the calls for their
    /// renewal that `counts` names; what the store keeps for longer was asked for holds that are over.
    pub(super) fn asked_until(&self, now: Time, key: Key, counts: Awaited) -> Option<Time> {
        let drift = self.options.drift();
        let entry = self.entries.get(key)?;
        let leases = self.options.keeping == Keeping::Leases && !planted!(HandOffUntold);
        // What is shared is never shortened: a store takes all that is said for one holder's word.
        let exclusive = entry.mode == Mode::Exclusive;
        let holder = entry.tenants.first().filter(|_| leases && exclusive)?;
        let lasts = |from: Time, lease: Duration| drift.until(from, lease.max(MIN_LEASE));
        let holds = holder.holds.iter().filter_map(|hold| self.holds.get(hold.key()));
        let held = holds.map(|hold| {
            let rest = |_| drift.lease_for(hold.end.since(now));
            lasts(now, hold.lease.map_or(self.options.lease, rest)).max(hold.extended)
        });
        let calls = entry.companions.iter().filter_map(|call| self.calls.get(call.key()));
        let awaited = calls.filter_map(|call| {
            let (asked, most) = match &call.kind {
                CallKind::Extend { lease, .. } => (*lease, Duration::MAX),
                // A ceiling ends it before its lease would.
                CallKind::Join(ask) => (
                    ask.lease.unwrap_or(self.options.lease),
                    ask.max_hold.map_or(Duration::MAX, |most| drift.lease_for(most)),
                ),
                CallKind::Acquire(_) | CallKind::Convert { .. } => return None,
            };
            let from = match counts {
                Awaited::No => return None,
                Awaited::All => call.since,
                Awaited::Answered(sent, lease) if call.since <= sent && asked <= lease => sent,
                Awaited::Answered(..) => return None,
            };
            Some(lasts(from, asked.min(most)))
        });
        held.chain(awaited).max()
    }

    /// The same, where the store may keep the lock for longer; by less than a clock may be wrong it
    /// is not worth a request.
    pub(super) fn lent_beyond(&self, now: Time, key: Key, counts: Awaited) -> Option<Time> {
        let lent = self.entries.get(key)?.lent;
        self.asked_until(now, key, counts).filter(|until| lent > *until + DRIFT_FIXED)
    }

    /// Trusts the lock no longer than its present holds ask, when one before them, or beside them,
    /// had asked for more, and tells the store so at once. It shortens a lease only at the first word
    /// of another holder, which late copies of what was said before cannot be. So the holder speaks
    /// as another one, under a token that nobody is given. Another hold of an explicit owner may have
    /// shown that token: then the answer tells, and the next one is tried.
    pub(super) fn shorten(&mut self, now: Time, key: Key) {
        // At once, although a call waits for more: if that fails, nothing changes any more. And all of
        // it, although it may not be worth a request: a later answer must take nothing back.
        let Some(until) = self.asked_until(now, key, Awaited::No) else { return };
        let told = self.lent_beyond(now, key, Awaited::All).is_some();
        let Some(entry) = self.entries.get_mut(key) else { return };
        debug_assert!(entry.at == At::Held && entry.parting.is_none(), "it has a holder");
        let spoken = entry.shown >= entry.used;
        if spoken && planted!(NestedLeaseKept) {
            return;
        }
        entry.valid_until = entry.valid_until.min(until);
        if told {
            // Without a token left the beat brings more, and its answer leads here again.
            if spoken && entry.used < entry.end {
                entry.used += 1;
            }
            self.beat_by(key, now);
        }
        self.arm(key);
    }
}
