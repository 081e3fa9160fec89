//! A lock and how to acquire it.

use std::time::Duration;

use fencelock::blocking;

use crate::client::Client;
use crate::hold::Hold;
use crate::operation::Operation;
use crate::{CancelToken, Mode, OwnerId, Result};

/// Who acquires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The calling thread. For blocking calls.
    Thread,
    /// The host's own number of a task or thread (62 bits); means nothing outside this client.
    Local(u64),
    /// Nobody else: acquiring again waits.
    Fresh,
    /// Whoever shows the id, in any process and language.
    Explicit(OwnerId),
}

/// How long an acquire waits for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Not at all.
    Try,
    /// At most so long.
    For(Duration),
    /// As long as it takes.
    Forever,
}

/// An acquire that has begun; from [`Lock::begin`].
#[must_use = "dropping it gives up the lock, or the place in the queue"]
#[derive(Debug)]
pub enum Begun {
    /// It has ended already.
    Granted(Hold),
    /// It waits.
    Waiting(Acquiring),
}

impl From<blocking::Begun> for Begun {
    fn from(begun: blocking::Begun) -> Begun {
        match begun {
            blocking::Begun::Granted(guard) => Begun::Granted(Hold::new(guard)),
            blocking::Begun::Waiting(acquiring) => Begun::Waiting(Acquiring(acquiring)),
        }
    }
}

/// An acquire that waits; dropping it leaves the queue.
#[must_use = "dropping it leaves the queue"]
#[derive(Debug)]
pub struct Acquiring(blocking::Acquiring);

impl Acquiring {
    /// Waits for the end.
    ///
    /// # Errors
    /// As [`Lock::acquire`].
    pub fn wait(self) -> Result<Hold> {
        self.0.wait().map(Hold::new)
    }

    /// As [`Acquiring::wait`], asking `stop` on this thread each `every` whether to give up.
    ///
    /// # Errors
    /// As [`Lock::acquire_unless`].
    pub fn wait_unless(self, every: Duration, stop: impl FnMut() -> bool) -> Result<Hold> {
        self.0.wait_unless(every, stop).map(Hold::new)
    }
}

/// A lock with the options of its acquisitions. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Lock {
    inner: blocking::Lock,
    client: Client,
}

impl Client {
    /// The lock `name`. Asks the store nothing.
    ///
    /// # Errors
    /// `InvalidArgument` for the name; `Closed` in a forked child.
    pub fn lock(&self, name: &str) -> Result<Lock> {
        Ok(Lock::new(self.0.lock(name)?, self.clone()))
    }

    /// The lock `name` as one whose acquires are of this mode: a side of a read-write lock, or so many
    /// permits of a semaphore.
    ///
    /// # Errors
    /// As [`Client::lock`], [`Client::rw_lock`] and [`Client::semaphore`]; `InvalidArgument` for a number
    /// of permits that cannot be taken.
    pub fn lock_in(&self, name: &str, mode: Mode) -> Result<Lock> {
        match mode {
            Mode::Exclusive => self.lock(name),
            Mode::Shared => Ok(self.rw_lock(name)?.reader()),
            Mode::Permits { count, of } => {
                mode.check()?;
                Ok(self.semaphore(name, of)?.taking(count))
            }
        }
    }
}

impl Lock {
    pub(crate) fn new(inner: blocking::Lock, client: Client) -> Lock {
        Lock { inner, client }
    }

    /// The lock's name.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// The lock's client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Acquires for this owner; without it, for the calling thread.
    #[must_use]
    pub fn owner(mut self, owner: Owner) -> Lock {
        self.inner = match owner {
            Owner::Thread => return self,
            Owner::Local(number) => self.inner.local_owner(number),
            Owner::Fresh => self.inner.non_reentrant(),
            Owner::Explicit(owner) => self.inner.owner(owner),
        };
        self
    }

    /// Gives holds an explicit lease; see [`fencelock::Lock::lease`].
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Lock {
        self.inner = self.inner.lease(lease);
        self
    }

    /// Puts a ceiling over the renewal; see [`fencelock::Lock::max_hold`].
    #[must_use]
    pub fn max_hold(mut self, ceiling: Duration) -> Lock {
        self.inner = self.inner.max_hold(ceiling);
        self
    }

    /// Acquires; the calling thread drives the connection when nobody else does. `cancel` ends the
    /// wait from another thread, also that of a try for the store's answer.
    ///
    /// # Errors
    /// As [`fencelock::Lock::acquire`], `try_acquire` and `acquire_timeout`; `Cancelled`.
    pub fn acquire(&self, patience: Patience, cancel: Option<&CancelToken>) -> Result<Hold> {
        self.acquire_with(patience, cancel.map(CancelToken::waits))
    }

    /// As [`Lock::acquire`], with a token of the client's.
    pub(crate) fn acquire_with(
        &self,
        patience: Patience,
        cancel: Option<&fencelock::CancelToken>,
    ) -> Result<Hold> {
        let guard = match (patience, cancel) {
            (Patience::Try, None) => self.inner.try_acquire(),
            // A bound of zero is a try.
            (Patience::Try, Some(cancel)) => {
                self.inner.acquire_timeout_cancellable(Duration::ZERO, cancel)
            }
            (Patience::For(limit), None) => self.inner.acquire_timeout(limit),
            (Patience::For(limit), Some(cancel)) => {
                self.inner.acquire_timeout_cancellable(limit, cancel)
            }
            (Patience::Forever, None) => self.inner.acquire(),
            (Patience::Forever, Some(cancel)) => self.inner.acquire_cancellable(cancel),
        };
        guard.map(Hold::new)
    }

    /// As [`Lock::acquire`], asking `stop` on this thread each `every` whether to give up.
    ///
    /// # Errors
    /// `Cancelled` when `stop` said so; otherwise as [`Lock::acquire`].
    pub fn acquire_unless(
        &self,
        patience: Patience,
        every: Duration,
        stop: impl FnMut() -> bool,
    ) -> Result<Hold> {
        let limit = match patience {
            Patience::Try => Some(Duration::ZERO),
            Patience::For(limit) => Some(limit),
            Patience::Forever => None,
        };
        self.inner.acquire_unless(limit, every, stop).map(Hold::new)
    }

    /// Begins to acquire: gives the hold when nothing has to be waited for, so that a host need not
    /// give its own lock up.
    ///
    /// # Errors
    /// As [`Lock::acquire`].
    pub fn begin(&self, patience: Patience) -> Result<Begun> {
        let limit = match patience {
            Patience::Try => Some(Duration::ZERO),
            Patience::For(limit) => Some(limit),
            Patience::Forever => None,
        };
        self.inner.begin(limit).map(Begun::from)
    }

    /// Acquires without blocking; [`Operation::cancel`] ends the wait. With [`Owner::Thread`], the
    /// owner is the thread that calls this.
    pub fn acquire_async(
        &self,
        patience: Patience,
        done: impl FnOnce(Result<Hold>) + Send + 'static,
    ) -> Operation {
        let lock = self.inner.asynchronous().clone();
        let client = self.client.blocking().clone();
        let acquire = async move {
            let guard = match patience {
                Patience::Try => lock.try_acquire().await?,
                Patience::For(limit) => lock.acquire_timeout(limit).await?,
                Patience::Forever => lock.acquire().await?,
            };
            Ok(Hold::new(client.adopt(guard)))
        };
        Operation::start(acquire, done)
    }

    /// As [`Lock::acquire_async`], but the calling thread waits for at most `block` first, and drives
    /// the connection meanwhile when nobody else does: what ends soon costs no switch of threads.
    pub fn acquire_after(
        &self,
        patience: Patience,
        block: Duration,
        done: impl FnOnce(Result<Hold>) + Send + 'static,
    ) -> Operation {
        let begun = self.begin(patience).and_then(|begun| match begun {
            Begun::Waiting(Acquiring(waiting)) => waiting.wait_for(block).map(Begun::from),
            granted @ Begun::Granted(_) => Ok(granted),
        });
        let acquire = async move {
            match begun? {
                Begun::Granted(hold) => Ok(hold),
                Begun::Waiting(Acquiring(waiting)) => waiting.asynchronous().await.map(Hold::new),
            }
        };
        Operation::start(acquire, done)
    }

    /// Whether anybody holds the lock, by the store's word at the time of asking.
    ///
    /// # Errors
    /// As [`fencelock::Lock::is_locked`].
    pub fn is_locked(&self) -> Result<bool> {
        self.inner.is_locked()
    }

    /// See [`Lock::is_locked`].
    pub fn is_locked_async(&self, done: impl FnOnce(Result<bool>) + Send + 'static) -> Operation {
        let lock = self.inner.asynchronous().clone();
        Operation::start(async move { lock.is_locked().await }, done)
    }

    /// How many holds the owner has on the lock in this client.
    pub fn hold_count(&self) -> usize {
        self.inner.hold_count()
    }

    /// How many of these are in this lock's mode: of the side of a read-write lock.
    pub fn side_count(&self) -> usize {
        self.inner.side_count()
    }

    /// Whether anybody holds the lock through this client, asking the store nothing.
    pub fn is_held(&self) -> bool {
        self.inner.is_held()
    }
}
