//! A guard whose hold changes its mode.

use fencelock_engine::Outcome;
use fencelock_engine::request::Mode;

use crate::errors::forked;
use crate::guard::Guard;
use crate::listener::Listener;
use crate::outcome::failed;
use crate::terms::Terms;
use crate::wait::Wait;
use crate::{Error, ErrorKind, Result};

impl Guard {
    /// How the hold shares the lock now.
    pub fn mode(&self) -> Mode {
        self.terms().mode
    }

    /// Reads from now on instead of writing, without letting go of the lock: other readers are let in,
    /// and no writer comes between. The token becomes a reader's, above the writer's. What the holder was
    /// told of a predecessor counts as mended, as by a release. Done already when the guard only reads.
    ///
    /// Who reads inside a write and releases the write comes to the same.
    ///
    /// # Errors
    /// `Contended` when the owner writes by another guard, too, `InvalidArgument` for permits, and
    /// `Unsupported` on ZooKeeper for a guard of a plain lock: then the guard is as before. `Lost` when the hold has ended. `Unavailable` when the store did not
    /// answer within the request timeout: the guard reads, all the same, and the store is told in the
    /// background.
    ///
    /// # Cancel safety
    /// Once polled, the guard reads, and the store is told, although the future is dropped.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let prices = client.rw_lock("downgraded")?;
    /// let guard = prices.write().await?;
    /// let written = guard.token();
    /// guard.downgrade().await?;
    /// assert!(guard.token() > written);
    /// let beside = prices.non_reentrant().try_read().await?;
    /// # drop(beside); Ok(()) }
    /// ```
    pub async fn downgrade(&self) -> Result<()> {
        let Some(wait) = self.start_conversion(Mode::Shared)? else { return Ok(()) };
        let outcome = wait.await.0;
        self.finish_conversion(outcome)
    }

    /// Writes from now on instead of reading, if nobody else holds the lock; past whoever waits for it,
    /// since the guard has it already. The token becomes a writer's, and
    /// [`previous_abandoned`](Guard::previous_abandoned) tells how the writer before ended. It does not
    /// wait: two readers that waited for each other's end would do so for ever. Done already when
    /// the guard writes.
    ///
    /// # Errors
    /// `Contended` when others read, or the owner has the lock by another guard, too, or a conversion of
    /// the guard is under way; `InvalidArgument` for permits; `Unsupported` on ZooKeeper; `Unavailable` when
    /// the store did not answer within the request timeout, or may yet carry out an earlier conversion that
    /// it did not answer: then the guard goes on reading. `Lost` when the hold has ended.
    ///
    /// # Cancel safety
    /// Dropping the future undoes it: the guard goes on reading.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let guard = client.rw_lock("upgraded")?.read().await?;
    /// match guard.try_upgrade().await {
    ///     Ok(()) => println!("writing under {}", guard.token()),
    ///     Err(error) if error.kind() == fencelock::ErrorKind::Contended => {} // others read
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn try_upgrade(&self) -> Result<()> {
        let Some(wait) = self.start_conversion(Mode::Exclusive)? else { return Ok(()) };
        // Outlives the wait, which undoes what nobody waits for.
        let _open = Open(self);
        let outcome = wait.await.0;
        self.finish_conversion(outcome)
    }

    /// `None`: it is in that mode already.
    pub(crate) fn start_conversion(&self, to: Mode) -> Result<Option<Wait>> {
        self.check_released()?;
        // Before the mutex, as everywhere.
        if self.shared().is_forked() {
            return Err(forked());
        }
        if self
            .sharer()
            .is_some_and(|owner| !self.lock.reentrant.begin_conversion(owner, self.hold))
        {
            return match self.mode() == to {
                true => Ok(None),
                false => Err(other_guards()),
            };
        }
        let open = Open(self);
        let (listener, shared) = (Listener::default(), self.shared());
        let handle = listener.clone();
        let (asked, flush) = shared.with_unflushed(|core, now| match to {
            Mode::Shared => core.engine.downgrade(now, self.hold, handle),
            Mode::Exclusive | Mode::Permits { .. } => {
                core.engine.try_upgrade(now, self.hold, handle)
            }
        })?;
        let unsent = || {
            if flush {
                shared.flush();
            }
        };
        let Some(call) = asked.inspect_err(|_| unsent())? else {
            unsent();
            return Ok(None);
        };
        if to == Mode::Shared {
            self.set_terms(Terms { mode: to, ..self.terms() });
            return Ok(Some(Wait::call(shared.clone(), listener, flush)));
        }
        std::mem::forget(open);
        Ok(Some(Wait::acquire(shared.clone(), listener, call, flush)))
    }

    pub(crate) fn finish_conversion(&self, outcome: Outcome) -> Result<()> {
        let Outcome::Converted(to) = outcome else {
            self.end_conversion();
            return Err(failed(outcome));
        };
        let mut terms = Terms { mode: to.mode, token: to.token, ..self.terms() };
        if to.mode == Mode::Exclusive {
            terms.abandoned = to.abandoned;
        }
        self.set_terms(terms);
        self.end_conversion();
        Ok(())
    }

    /// The owner's next level may share the hold again, under its terms.
    fn end_conversion(&self) {
        if let Some(owner) = self.sharer() {
            self.lock.reentrant.end_conversion(owner, self.hold, self.terms());
        }
    }
}

/// Ends the conversion when it goes.
struct Open<'a>(&'a Guard);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.end_conversion();
    }
}

fn other_guards() -> Error {
    let text = "the owner has the lock by another guard, too: release that first";
    Error::new(ErrorKind::Contended, text)
}
