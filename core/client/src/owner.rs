//! Who acquires.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use fencelock_engine::request::Mode;
use fencelock_engine::{Owner, OwnerId};

/// Who a lock acquires for.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    /// The task, or outside a task the thread.
    Ambient,
    /// Whoever shows the id.
    Explicit(OwnerId),
    /// Whoever shows the number, within this client.
    Local(u64),
    /// Each acquisition is its own.
    Fresh,
}

/// Who acquired: what a guard needs to know of it.
pub(crate) struct By {
    /// The explicit owner.
    pub(crate) explicit: Option<OwnerId>,
    /// The local owner of a hold that others may share.
    pub(crate) nested: Option<u64>,
    pub(crate) mode: Mode,
}

/// Tasks, threads, single acquisitions and the caller's own numbers: the two highest bits say
/// which.
const TASK: u64 = 1 << 63;
const FRESH: u64 = 1 << 62;
const LOCAL: u64 = TASK | FRESH;

impl Identity {
    pub(crate) fn owner(&self) -> Owner {
        static NEXT: AtomicU64 = AtomicU64::new(FRESH);
        match self {
            Identity::Ambient => Owner::Local(ambient()),
            Identity::Explicit(owner) => Owner::Explicit(owner.clone()),
            Identity::Local(number) => Owner::Local(local(*number)),
            Identity::Fresh => Owner::Local(NEXT.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

/// A number of the caller's, which has 62 bits.
fn local(number: u64) -> u64 {
    LOCAL | number
}

/// The task's number, or the thread's.
pub(crate) fn ambient() -> u64 {
    match tokio::task::try_id() {
        Some(id) => TASK | number(id),
        None => thread_number(),
    }
}

/// A number of the calling thread's own, which no other thread of this process ever has: for hosts
/// that keep a thread's holds by themselves. It is above zero and has less than 62 bits.
pub fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

/// The number in a task id, which tokio shows only to hashers.
fn number(id: tokio::task::Id) -> u64 {
    struct Take(u64);
    impl Hasher for Take {
        fn finish(&self) -> u64 {
            self.0
        }
        fn write(&mut self, bytes: &[u8]) {
            for byte in bytes {
                self.0 = self.0.wrapping_mul(31).wrapping_add(u64::from(*byte));
            }
        }
        fn write_u64(&mut self, number: u64) {
            self.0 = number;
        }
    }
    let mut take = Take(0);
    id.hash(&mut take);
    take.finish() & !LOCAL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tasks_and_threads_have_numbers_of_their_own() {
        let here = ambient();
        assert_eq!(here, ambient());
        let first = tokio::spawn(async { (ambient(), ambient()) }).await.unwrap();
        let second = tokio::spawn(async { ambient() }).await.unwrap();
        assert_eq!(first.0, first.1);
        assert_ne!(first.0, second);
        assert_ne!(first.0, here);
        let thread = std::thread::spawn(ambient).join().unwrap();
        assert_ne!(thread, here);
    }
}
