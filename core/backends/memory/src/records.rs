//! The records of a store, until they have nothing more to tell.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fencelock_engine::Name;
use fencelock_engine::store::{Announce, Keep, Record};

/// How many records are looked at in one go for whether they may be forgotten.
const SWEEP: usize = 32;

/// The records by name.
#[derive(Default)]
pub(crate) struct Records {
    records: BTreeMap<Name, Kept>,
    /// Each name once, by when it is looked at.
    due: BTreeSet<(u64, Name)>,
}

struct Kept {
    record: Record,
    keep: Keep,
}

impl Records {
    pub(crate) fn get(&self, name: &Name) -> Option<&Record> {
        self.records.get(name).map(|kept| &kept.record)
    }

    /// Runs `change` on a lock's record; a lock of which nothing is worth keeping is not kept.
    pub(crate) fn touch<T>(
        &mut self,
        now: u64,
        name: &Name,
        retention: Duration,
        change: impl FnOnce(&mut Record) -> T,
    ) -> T {
        let Some(kept) = self.records.get_mut(name) else {
            let mut record = Record::default();
            let result = change(&mut record);
            if record != Record::default() {
                let mut keep = Keep::new(now);
                keep.used(&record, now, retention);
                self.due.insert((keep.due, name.clone()));
                self.records.insert(name.clone(), Kept { record, keep });
            }
            return result;
        };
        let result = change(&mut kept.record);
        let due = kept.keep.due;
        kept.keep.used(&kept.record, now, retention);
        if kept.keep.due != due {
            self.due.remove(&(due, name.clone()));
            self.due.insert((kept.keep.due, name.clone()));
        }
        result
    }

    /// Looks at some of the records whose time has come, and forgets those that may be.
    pub(crate) fn sweep(&mut self, now: u64, out: &mut dyn Announce) {
        for _ in 0..SWEEP {
            if self.due.first().is_none_or(|(due, _)| *due > now) {
                return;
            }
            let Some((_, name)) = self.due.pop_first() else { return };
            let Some(kept) = self.records.get_mut(&name) else { continue };
            if kept.keep.is_over(&mut kept.record, now, &name, out) {
                self.records.remove(&name);
            } else {
                self.due.insert((kept.keep.due, name));
            }
        }
    }

    /// Forgets all that have nothing to tell, or whose time is over: nobody is there to be told.
    pub(crate) fn forget_idle(&mut self, now: u64) {
        let kept = |kept: &Kept| {
            let until = kept.record.kept_until(now, Duration::ZERO);
            until.is_none_or(|until| until > now) && kept.keep.until.is_none_or(|until| until > now)
        };
        self.records.retain(|_, record| kept(record));
        self.due = self.records.iter().map(|(name, kept)| (kept.keep.due, name.clone())).collect();
    }

    /// The first names with this prefix, in the order of their bytes.
    pub(crate) fn list(&self, prefix: &str, limit: usize) -> Vec<Name> {
        if prefix.is_empty() {
            return self.records.keys().take(limit).cloned().collect();
        }
        // What is no name cannot begin one either.
        let Ok(first) = Name::new(prefix) else { return Vec::new() };
        let from_there = self.records.range(first..).map(|(name, _)| name);
        let named = from_there.take_while(|name| name.as_str().starts_with(prefix));
        named.take(limit).cloned().collect()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        assert_eq!(self.records.len(), self.due.len(), "each has its time");
        self.records.len()
    }
}
