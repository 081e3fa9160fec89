//! A lock that is entered and left like a mutex, without a guard in between.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::hold::Hold;
use crate::lock::{Lock, Owner, Patience};
use crate::{CancelToken, Error, ErrorKind, Operation, Result, fork};

/// The holds of one lock by owner, each with the number of times that it was entered: for hosts whose
/// people expect `lock()` and `unlock()`. Entering again looks whether the hold is still valid, and
/// counts; it asks neither the engine for a further hold nor the store.
///
/// A hold that was lost is not counted on: entering again acquires anew, with a new token, and what
/// was entered before is told `Lost` when it leaves.
///
/// `H` is what the host keeps of a hold.
#[derive(Debug)]
pub struct Entries<H = Hold> {
    /// `None` after the end.
    entered: Mutex<Option<Vec<Entry<H>>>>,
    /// Cancels who waits to enter, at the end.
    over: CancelToken,
    born: u32,
}

/// An owner of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryKey(u64);

#[derive(Debug)]
struct Entry<H> {
    key: EntryKey,
    hold: H,
    depth: Depth,
}

/// How an owner is in with one hold.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    /// How often; at least once.
    pub count: u64,
    /// Whether it may enter again under this hold.
    pub shared: bool,
}

impl<H> Default for Entries<H> {
    fn default() -> Entries<H> {
        Entries::new()
    }
}

impl<H> Entries<H> {
    /// Nobody is in.
    pub fn new() -> Entries<H> {
        Entries {
            entered: Mutex::new(Some(Vec::new())),
            over: CancelToken::new(),
            born: fork::watch(),
        }
    }

    /// How often anybody is in.
    pub fn total(&self) -> u64 {
        self.entered.lock().iter().flatten().map(|entry| entry.depth.count).sum()
    }

    /// How often the owner is in, holds that were lost included.
    pub fn depth(&self, key: EntryKey) -> u64 {
        let entered = self.entered.lock();
        let own = entered.iter().flatten().filter(|entry| entry.key == key);
        own.map(|entry| entry.depth.count).sum()
    }

    /// Takes the owner out altogether, for a host whose conditions let go of a lock and come back;
    /// gives its holds, the first entered first.
    pub fn take(&self, key: EntryKey) -> Vec<(H, Depth)> {
        let mut entered = self.entered.lock();
        let Some(entries) = &mut *entered else { return Vec::new() };
        let (own, others): (Vec<_>, Vec<_>) =
            std::mem::take(entries).into_iter().partition(|entry| entry.key == key);
        *entries = others;
        own.into_iter().map(|entry| (entry.hold, entry.depth)).collect()
    }

    /// Takes those out whose hold the host has ended by itself: they are not there to be left.
    pub fn retain(&self, mut stays: impl FnMut(&H) -> bool) {
        let mut gone = Vec::new();
        if let Some(entries) = &mut *self.entered.lock() {
            let mut at = 0;
            while at < entries.len() {
                if stays(&entries[at].hold) {
                    at += 1;
                } else {
                    gone.push(entries.remove(at));
                }
            }
        }
        // Dropped when the mutex is free.
        drop(gone);
    }

    /// Gives up what was entered and not left, for a host that lets go of the lock: nobody could
    /// leave any more. Who waits to enter ends with `Cancelled` at once, holding nothing.
    pub fn end(&self) {
        // Nobody waits in a forked child, and a thread that is not there may have the mutexes.
        if self.born != fork::generation() {
            return;
        }
        let entered = self.entered.lock().take();
        // First, so that nothing that is released is granted to who waits here.
        self.over.cancel();
        // Not under the mutex, which who was granted it already asks for.
        drop(entered);
    }

    /// Why nobody entered: a wait that the end cancelled does not know the reason.
    fn reason(&self, error: Error) -> Error {
        let cancelled = error.kind() == ErrorKind::Cancelled;
        if cancelled && self.entered.lock().is_none() { ended() } else { error }
    }
}

impl<H: AsRef<Hold> + Clone> Entries<H> {
    /// Enters with a new hold, under which the owner may enter again.
    ///
    /// # Errors
    /// `Cancelled` after [`Entries::end`]; then the hold is dropped.
    pub fn first(&self, key: EntryKey, hold: H) -> Result<()> {
        self.restore(key, hold, Depth { count: 1, shared: true })
    }

    /// Enters with a new hold that is the host's to end: entering again takes another.
    ///
    /// # Errors
    /// As [`Entries::first`].
    pub fn apart(&self, key: EntryKey, hold: H) -> Result<()> {
        self.restore(key, hold, Depth { count: 1, shared: false })
    }

    /// Enters with a new hold as deeply as with one that [`Entries::take`] gave.
    ///
    /// # Errors
    /// As [`Entries::first`].
    pub fn restore(&self, key: EntryKey, hold: H, depth: Depth) -> Result<()> {
        hold.as_ref().enter(depth.count.saturating_sub(1));
        let entry = Entry { key, hold, depth };
        let mut entered = self.entered.lock();
        match &mut *entered {
            Some(entries) => {
                entries.push(entry);
                Ok(())
            }
            None => {
                drop(entered);
                drop(entry);
                Err(ended())
            }
        }
    }

    /// Enters again, when the owner is in and its hold is valid, and in the mode in which it was granted;
    /// gives the token.
    pub fn again(&self, key: EntryKey) -> Option<u64> {
        let mut entered = self.entered.lock();
        let entry = entered.iter_mut().flatten().rfind(|entry| entry.key == key)?;
        let hold = entry.hold.as_ref();
        if !entry.depth.shared || !hold.is_valid() || !hold.is_as_granted() {
            return None;
        }
        entry.depth.count += 1;
        hold.enter(1);
        Some(hold.token())
    }

    /// Leaves once; the last time gives the hold, to be released.
    ///
    /// # Errors
    /// `NotHeld` when the owner is not in, `Lost` when its hold has ended.
    pub fn less(&self, key: EntryKey) -> Result<Option<H>> {
        let mut entered = self.entered.lock();
        let entries = entered.as_mut().ok_or_else(not_in)?;
        let last = entries.iter().rposition(|entry| entry.key == key).ok_or_else(not_in)?;
        let entry = &mut entries[last];
        entry.depth.count -= 1;
        if entry.depth.count == 0 {
            return Ok(Some(entries.remove(last).hold));
        }
        let hold = entry.hold.as_ref();
        hold.leave();
        if hold.is_lost() {
            return hold.check().map(|_| None);
        }
        Ok(None)
    }

    /// Takes the owner's latest hold out, or else anybody's, however often it was entered: for what has no owner,
    /// such as permits.
    pub fn latest(&self, key: EntryKey) -> Option<H> {
        let mut entered = self.entered.lock();
        let entries = entered.as_mut()?;
        let own = entries.iter().rposition(|entry| entry.key == key);
        let last = own.or_else(|| entries.len().checked_sub(1))?;
        Some(entries.remove(last).hold)
    }

    /// The hold that the owner entered with last.
    ///
    /// # Errors
    /// `NotHeld` when the owner is not in.
    pub fn hold(&self, key: EntryKey) -> Result<H> {
        let entered = self.entered.lock();
        let entry = entered.iter().flatten().rfind(|entry| entry.key == key);
        entry.map(|entry| entry.hold.clone()).ok_or_else(not_in)
    }
}

impl Entries {
    /// Enters. `lock` has the key's owner.
    ///
    /// # Errors
    /// As [`Lock::acquire`]; `Cancelled` also by [`Entries::end`].
    pub fn enter(
        &self,
        lock: &Lock,
        key: EntryKey,
        patience: Patience,
        cancel: Option<&CancelToken>,
    ) -> Result<u64> {
        if let Some(token) = self.again(key) {
            return Ok(token);
        }
        let hold = self.wait(lock, patience, cancel).map_err(|error| self.reason(error))?;
        let token = hold.token();
        self.first(key, hold)?;
        Ok(token)
    }

    fn wait(&self, lock: &Lock, patience: Patience, cancel: Option<&CancelToken>) -> Result<Hold> {
        let Some(cancel) = cancel else { return lock.acquire(patience, Some(&self.over)) };
        let either = fencelock::CancelToken::new();
        let told = [cancel, &self.over].map(|token| {
            let either = either.clone();
            (token, token.tell(move || either.cancel()))
        });
        let hold = lock.acquire_with(patience, Some(&either));
        for (token, key) in told {
            token.forget(key);
        }
        hold
    }

    /// See [`Entries::enter`]. `None`: `done` was called already.
    pub fn enter_async(
        self: &Arc<Entries>,
        lock: &Lock,
        key: EntryKey,
        patience: Patience,
        done: impl FnOnce(Result<u64>) + Send + 'static,
    ) -> Option<Operation> {
        if let Some(token) = self.again(key) {
            done(Ok(token));
            return None;
        }
        let waiting = Arc::new(Waiting { entries: self.clone(), told: OnceLock::new() });
        let mine = waiting.clone();
        let entered = move |hold: Result<Hold>| {
            let entries = &mine.entries;
            done(hold.map_err(|error| entries.reason(error)).and_then(|hold| {
                let token = hold.token();
                entries.first(key, hold)?;
                Ok(token)
            }));
        };
        let operation = lock.acquire_async(patience, entered);
        // Unless it has ended already.
        if Arc::strong_count(&waiting) > 1 {
            let cancelled = operation.clone();
            waiting.told.get_or_init(|| self.over.tell(move || cancelled.cancel()));
        }
        Some(operation)
    }

    /// Leaves once; the last time releases.
    ///
    /// # Errors
    /// As [`Entries::less`] and [`Hold::release`].
    pub fn leave(&self, key: EntryKey) -> Result<()> {
        match self.less(key)? {
            None => Ok(()),
            Some(hold) => hold.release(),
        }
    }

    /// See [`Entries::leave`].
    ///
    /// # Errors
    /// `NotHeld` when the owner is not in: then nothing was left, and `done` is not called.
    pub fn leave_async(
        &self,
        key: EntryKey,
        done: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Result<()> {
        match self.less(key) {
            Ok(Some(hold)) => {
                hold.release_async(done);
            }
            Ok(None) => done(Ok(())),
            Err(error) if error.kind() == ErrorKind::NotHeld => return Err(error),
            // It was left all the same.
            Err(error) => done(Err(error)),
        }
        Ok(())
    }
}

/// A call that waits to enter; kept by its completion.
struct Waiting {
    entries: Arc<Entries>,
    /// The key under which the end tells it.
    told: OnceLock<u64>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(key) = self.told.get() {
            self.entries.over.forget(*key);
        }
    }
}

/// As with the client's own owners, the highest bits tell threads and numbers apart.
const THREAD: u64 = 1 << 63;

impl EntryKey {
    /// For a host that does not ask who leaves.
    pub const ANYBODY: EntryKey = EntryKey(0);

    /// The calling thread.
    pub fn thread() -> EntryKey {
        EntryKey(THREAD | fencelock::blocking::thread_number())
    }
}

impl TryFrom<&Owner> for EntryKey {
    type Error = Error;
    fn try_from(owner: &Owner) -> Result<EntryKey> {
        match owner {
            Owner::Thread => Ok(EntryKey::thread()),
            Owner::Local(number) => Ok(EntryKey(number & ((THREAD >> 1) - 1))),
            Owner::Fresh | Owner::Explicit(_) => Err(Error::new(
                ErrorKind::InvalidArgument,
                "only a thread or a numbered owner enters a lock: acquire it for a hold instead",
            )),
        }
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Cancelled, "the lock was freed while this waited to enter it")
}

fn not_in() -> Error {
    Error::new(ErrorKind::NotHeld, "this owner has not entered the lock, or has left it already")
}

#[cfg(test)]
mod tests;
