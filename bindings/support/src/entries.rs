//! A lock that is entered and left like a mutex, without a guard in between.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::hold::Hold;
use crate::lock::{Lock, Owner, Patience};
use crate::{CancelToken, Error, ErrorKind, Operation, Result};

/// The holds of one lock by owner, each with the number of times that it was entered: for hosts whose
/// people expect `lock()` and `unlock()`. Entering again looks whether the hold is still valid, and
/// counts; it asks neither the engine for a further hold nor the store.
///
/// A hold that was lost is not counted on: entering again acquires anew, with a new token, and what
/// was entered before is told `Lost` when it leaves.
#[derive(Debug, Default)]
pub struct Entries(Mutex<Vec<Entry>>);

/// An owner of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key(u64);

#[derive(Debug)]
struct Entry {
    key: Key,
    hold: Hold,
    count: u64,
}

impl Entries {
    /// Nobody is in.
    pub const fn new() -> Entries {
        Entries(Mutex::new(Vec::new()))
    }

    /// Enters again, when the owner is in and its hold is valid; gives the token.
    ///
    /// # Errors
    /// `InvalidArgument` for another kind of owner than a thread or a number.
    pub fn again(&self, owner: &Owner) -> Result<Option<u64>> {
        Ok(self.count(Key::of(owner)?))
    }

    /// Enters for [`Owner::Thread`] or [`Owner::Local`], and gives the token. `lock` has that owner.
    ///
    /// # Errors
    /// As [`Lock::acquire`]; `InvalidArgument` for another kind of owner.
    pub fn enter(
        &self,
        lock: &Lock,
        owner: &Owner,
        patience: Patience,
        cancel: Option<&CancelToken>,
    ) -> Result<u64> {
        let key = Key::of(owner)?;
        if let Some(token) = self.count(key) {
            return Ok(token);
        }
        let hold = lock.acquire(patience, cancel)?;
        Ok(self.first(key, hold))
    }

    /// See [`Entries::enter`]. `None`: `done` was called already, or the call could not begin.
    ///
    /// # Errors
    /// `InvalidArgument` for a kind of owner that cannot be; then `done` is not called.
    pub fn enter_async(
        self: &std::sync::Arc<Entries>,
        lock: &Lock,
        owner: &Owner,
        patience: Patience,
        done: impl FnOnce(Result<u64>) + Send + 'static,
    ) -> Result<Option<Operation>> {
        let key = Key::of(owner)?;
        if let Some(token) = self.count(key) {
            done(Ok(token));
            return Ok(None);
        }
        let entries = self.clone();
        let entered = move |hold: Result<Hold>| done(hold.map(|hold| entries.first(key, hold)));
        Ok(Some(lock.acquire_async(patience, entered)))
    }

    /// Leaves once; the last time releases.
    ///
    /// # Errors
    /// `NotHeld` when the owner is not in, `Lost` when its hold has ended, and as [`Hold::release`].
    pub fn leave(&self, owner: &Owner) -> Result<()> {
        match self.less(Key::of(owner)?)? {
            None => Ok(()),
            Some(hold) => hold.release(),
        }
    }

    /// See [`Entries::leave`].
    ///
    /// # Errors
    /// As there, when that is known at once; then `done` is not called.
    pub fn leave_async(
        &self,
        owner: &Owner,
        done: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Result<()> {
        match self.less(Key::of(owner)?)? {
            None => done(Ok(())),
            Some(hold) => {
                hold.release_async(done);
            }
        }
        Ok(())
    }

    /// How often the owner is in, holds that were lost included.
    ///
    /// # Errors
    /// `InvalidArgument` for another kind of owner.
    pub fn depth(&self, owner: &Owner) -> Result<u64> {
        let key = Key::of(owner)?;
        let entries = self.0.lock();
        Ok(entries.iter().filter(|entry| entry.key == key).map(|entry| entry.count).sum())
    }

    /// The hold that the owner entered with last.
    ///
    /// # Errors
    /// `NotHeld` when the owner is not in.
    pub fn hold(&self, owner: &Owner) -> Result<Hold> {
        let key = Key::of(owner)?;
        let entries = self.0.lock();
        let entry = entries.iter().rev().find(|entry| entry.key == key);
        entry.map(|entry| entry.hold.clone()).ok_or_else(not_in)
    }

    fn count(&self, key: Key) -> Option<u64> {
        let mut entries = self.0.lock();
        let entry = entries.iter_mut().rev().find(|entry| entry.key == key)?;
        if !entry.hold.is_valid() {
            return None;
        }
        entry.count += 1;
        Some(entry.hold.token())
    }

    fn first(&self, key: Key, hold: Hold) -> u64 {
        let token = hold.token();
        self.0.lock().push(Entry { key, hold, count: 1 });
        token
    }

    /// Counts down; gives the hold when it is to be released.
    fn less(&self, key: Key) -> Result<Option<Hold>> {
        let mut entries = self.0.lock();
        let last = entries.iter().rposition(|entry| entry.key == key).ok_or_else(not_in)?;
        let entry = &mut entries[last];
        entry.count -= 1;
        if entry.count == 0 {
            return Ok(Some(entries.remove(last).hold));
        }
        if entry.hold.is_lost() {
            return entry.hold.check().map(|_| None);
        }
        Ok(None)
    }
}

impl Key {
    fn of(owner: &Owner) -> Result<Key> {
        // As with the client's own owners, the highest bits tell these apart.
        const THREAD: u64 = 1 << 63;
        match owner {
            Owner::Thread => Ok(Key(THREAD | thread())),
            Owner::Local(number) => Ok(Key(number & ((THREAD >> 1) - 1))),
            Owner::Fresh | Owner::Explicit(_) => Err(Error::new(
                ErrorKind::InvalidArgument,
                "only a thread or a numbered owner enters a lock: acquire it for a hold instead",
            )),
        }
    }
}

fn thread() -> u64 {
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

fn not_in() -> Error {
    Error::new(ErrorKind::NotHeld, "this owner has not entered the lock, or has left it already")
}

#[cfg(test)]
mod tests;
