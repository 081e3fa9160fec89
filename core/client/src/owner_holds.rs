//! The holds that explicit owners have in this client, to be counted.

use std::collections::BTreeMap;

use fencelock_engine::{HoldKey, Name, OwnerId};

#[derive(Debug, Default)]
pub(crate) struct OwnerHolds(BTreeMap<Name, BTreeMap<OwnerId, Vec<HoldKey>>>);

impl OwnerHolds {
    pub(crate) fn enter(&mut self, lock: &Name, owner: &OwnerId, hold: HoldKey) {
        let owners = self.0.entry(lock.clone()).or_default();
        owners.entry(owner.clone()).or_default().push(hold);
    }

    pub(crate) fn leave(&mut self, lock: &Name, owner: &OwnerId, hold: HoldKey) {
        let Some(owners) = self.0.get_mut(lock) else { return };
        let Some(holds) = owners.get_mut(owner) else { return };
        holds.retain(|other| *other != hold);
        if holds.is_empty() {
            owners.remove(owner);
        }
        if owners.is_empty() {
            self.0.remove(lock);
        }
    }

    /// The owner's holds, those that ended but were not released yet among them.
    pub(crate) fn holds(&self, lock: &Name, owner: &OwnerId) -> &[HoldKey] {
        let holds = self.0.get(lock).and_then(|owners| owners.get(owner));
        holds.map_or(&[], Vec::as_slice)
    }

    /// The same of all owners.
    pub(crate) fn of_lock(&self, lock: &Name) -> impl Iterator<Item = &HoldKey> {
        self.0.get(lock).into_iter().flat_map(BTreeMap::values).flatten()
    }
}
