//! Who has an entry in this client: one holder, or several local readers.

use std::collections::{BTreeSet, VecDeque};

use crate::engine::entry::Holder;
use crate::time::Time;

/// The holders of an entry, each local owner once.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Tenants {
    /// By owner. Of many the first to come is mostly the first to go.
    list: VecDeque<Holder>,
    /// When those end that end by themselves.
    ends: BTreeSet<(Time, Option<u64>)>,
}

impl Tenants {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Holder> {
        self.list.iter()
    }

    /// The only one, of an entry that is not shared.
    pub fn first(&self) -> Option<&Holder> {
        self.list.front()
    }

    pub fn get(&self, owner: Option<u64>) -> Option<&Holder> {
        self.place(owner).ok().map(|at| &self.list[at])
    }

    /// The same, where there are no others.
    pub fn only_mut(&mut self) -> Option<&mut Holder> {
        if self.list.len() == 1 { self.list.front_mut() } else { None }
    }

    pub fn get_mut(&mut self, owner: Option<u64>) -> Option<&mut Holder> {
        self.place(owner).ok().map(|at| &mut self.list[at])
    }

    /// One more, whose owner is not among them. Its end is to be set.
    pub fn add(&mut self, holder: Holder) {
        if let Err(at) = self.place(holder.owner) {
            self.list.insert(at, Holder { end: Time::MAX, ..holder });
        }
    }

    pub fn remove(&mut self, owner: Option<u64>) -> Option<Holder> {
        let holder = self.list.remove(self.place(owner).ok()?)?;
        self.ends.remove(&(holder.end, owner));
        Some(holder)
    }

    /// When an owner's holds end by themselves; `Time::MAX` when the watchdog keeps one of them.
    pub fn set_end(&mut self, owner: Option<u64>, end: Time) {
        let Ok(at) = self.place(owner) else { return };
        let before = std::mem::replace(&mut self.list[at].end, end);
        self.ends.remove(&(before, owner));
        if end != Time::MAX {
            self.ends.insert((end, owner));
        }
    }

    /// When the first of them ends by itself.
    pub fn first_end(&self) -> Time {
        self.ends.first().map_or(Time::MAX, |&(end, _)| end)
    }

    /// Whose holds have ended by themselves.
    pub fn over(&self, now: Time) -> Vec<Option<u64>> {
        let over = self.ends.iter().take_while(|(end, _)| *end <= now);
        over.map(|&(_, owner)| owner).collect()
    }

    /// When the last of them has ended by itself.
    pub fn last_end(&self) -> Time {
        let all = self.ends.len() == self.list.len();
        self.ends.last().filter(|_| all).map_or(Time::MAX, |&(end, _)| end)
    }

    fn place(&self, owner: Option<u64>) -> Result<usize, usize> {
        self.list.binary_search_by_key(&owner, |holder| holder.owner)
    }
}
