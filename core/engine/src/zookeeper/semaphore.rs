//! A semaphore as it is shown to who asks about it.

use crate::request::Mode;
use crate::zookeeper::name::{Kind, LEASES, LOCKS, Participant};
use crate::zookeeper::note::Badge;
use crate::zookeeper::permits::lent;

/// What is out of a semaphore; of a lock nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Semaphore {
    /// How many permits there are, where that is known.
    pub of: Option<u32>,
    holders: Option<Vec<Participant>>,
    /// Of each holder, the names of its leases.
    leases: Vec<Vec<String>>,
}

impl Semaphore {
    /// These leases are out. A holder stands for all of its own, under the name of the first.
    pub fn lent(&mut self, names: &[String]) {
        let lent = lent(names);
        let holder = |(hold, names): &(_, Vec<String>)| {
            let name = format!("{LEASES}/{}", names[0]);
            // It leaves nothing half done, as a reader.
            Participant { name, hold: *hold, sequence: 0, kind: Kind::Read }
        };
        self.holders = Some(lent.iter().map(holder).collect());
        self.leases = lent.into_iter().map(|(_, names)| names).collect();
    }

    /// Who has permits, and then who queues for some.
    pub fn with_waiters(&self, queue: &[Participant]) -> Vec<Participant> {
        let mut all = self.holders.clone().unwrap_or_default();
        all.extend(queue.iter().map(|one| {
            let name = format!("{LOCKS}/{}", one.name);
            Participant { name, ..one.clone() }
        }));
        all
    }

    /// How many have permits; `None` for a lock.
    pub fn holders(&self) -> Option<usize> {
        self.holders.as_ref().map(Vec::len)
    }

    /// A holder's leases beside the first.
    pub fn others(&self, holder: &str) -> Vec<String> {
        let holders = self.holders.iter().flatten();
        let mut of_all = holders.zip(&self.leases);
        let own = of_all.find(|(one, _)| one.name == holder).map(|(_, names)| names.as_slice());
        own.unwrap_or_default().iter().skip(1).cloned().collect()
    }

    /// What the one at this place has or wants.
    pub fn mode(&self, at: usize, badge: &Badge) -> Option<Mode> {
        self.holders.as_ref()?;
        let own = self.leases.get(at).map(|names| u32::try_from(names.len()).unwrap_or(u32::MAX));
        let count = own.unwrap_or(badge.permits);
        Some(Mode::Permits { count, of: self.of.unwrap_or(count) })
    }
}
