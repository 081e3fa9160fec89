//! The model stores: the same rules in Rust, or the shipped scripts over a modelled Redis.

mod record;
mod redis;

use fencelock_engine::Name;
use fencelock_engine::reply::{Failure, Push, Reply};
use fencelock_engine::request::Op;
use fencelock_engine::store::{Announce, Delivery};

use crate::fault::Refusing;

pub use record::RecordStore;
pub use redis::RedisStore;

/// Who listens, while one request is executed, and what was published.
#[derive(Debug, Default)]
pub struct Reach {
    /// Which incarnations have an open inbox.
    pub listening: Vec<bool>,
    /// The store may not publish.
    pub muted: bool,
    /// What was published, and to which incarnation.
    pub sent: Vec<(usize, Push)>,
}

impl Announce for Reach {
    fn announce(&mut self, client: &str, push: Push) -> Delivery {
        if self.muted {
            return Delivery::Failed;
        }
        match incarnation_of(client) {
            Some(incarnation) if self.listening.get(incarnation) == Some(&true) => {
                self.sent.push((incarnation, push));
                Delivery::Delivered
            }
            _ => Delivery::Nobody,
        }
    }
}

/// The number that makes up the id of the `incarnation`-th client of a run.
pub fn client_number(incarnation: usize, random: u64) -> u64 {
    random << 16 | incarnation as u64
}

/// Which client of the run has this id.
pub fn incarnation_of(client: &str) -> Option<usize> {
    let number = u64::from_str_radix(client, 16).ok()?;
    Some((number & 0xffff) as usize)
}

/// A store in the simulated world. Times are its own, in microseconds.
pub trait Store {
    /// Begins a run: empty, all well.
    fn reset(&mut self);

    /// A new incarnation of a client; they come in order, from 0.
    fn enrol(&mut self, number: u64, polling: bool);

    /// Executes a request of an incarnation.
    ///
    /// # Errors
    /// What the store's answer to a client would be.
    fn execute(
        &mut self,
        now: u64,
        incarnation: usize,
        op: &Op,
        reach: &mut Reach,
    ) -> Result<Reply, Failure>;

    /// How much was read and written since this was asked last: fields, entries, messages.
    fn work(&mut self) -> u64;

    /// The locks that it has forgotten since this was asked last, since they rested for so long.
    fn forgotten(&mut self) -> Vec<Name>;

    /// Loses everything.
    fn wipe(&mut self);

    /// Loses one lock.
    fn evict(&mut self, lock: &Name);

    /// Remembers the present state, as a replica does.
    fn snapshot(&mut self);

    /// Returns to what was remembered.
    fn rollback(&mut self);

    /// Puts another program's value in the place of a lock's record (false) or queue (true), or
    /// takes it away again. What was there is lost.
    fn foreign(&mut self, lock: &Name, queue: Option<bool>);

    /// Refuses from now on, or no longer.
    fn refuse(&mut self, how: Option<Refusing>);

    /// Forgets its scripts, if it has some.
    fn forget_scripts(&mut self) {}
}
