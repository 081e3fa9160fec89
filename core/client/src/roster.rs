//! The holds that explicit owners have in this client, to be counted.

use std::collections::BTreeMap;

use fencelock_engine::{HoldKey, Name, OwnerId};

#[derive(Debug, Default)]
pub(crate) struct Roster(BTreeMap<(Name, OwnerId), Vec<HoldKey>>);

impl Roster {
    pub(crate) fn enter(&mut self, lock: &Name, owner: &OwnerId, hold: HoldKey) {
        self.0.entry((lock.clone(), owner.clone())).or_default().push(hold);
    }

    pub(crate) fn leave(&mut self, lock: &Name, owner: &OwnerId, hold: HoldKey) {
        let key = (lock.clone(), owner.clone());
        if let Some(holds) = self.0.get_mut(&key) {
            holds.retain(|other| *other != hold);
            if holds.is_empty() {
                self.0.remove(&key);
            }
        }
    }

    /// The owner's holds, those that ended but were not released yet among them.
    pub(crate) fn holds(&self, lock: &Name, owner: &OwnerId) -> &[HoldKey] {
        self.0.get(&(lock.clone(), owner.clone())).map_or(&[], Vec::as_slice)
    }
}
