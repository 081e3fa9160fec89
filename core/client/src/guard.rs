//! A hold, and what its holder can learn of it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use fencelock_engine::{Ended, Grant, HoldKey, Outcome, Time};

use crate::cell::{Cell, WatchKey};
use crate::client::failed;
use crate::lock::LockRef;
use crate::shared::{Core, Shared};
use crate::ticket::Ticket;
use crate::wait::Wait;
use crate::{Abandoned, Error, ErrorKind, LossReason, OwnerId, Result, Token};

/// A held lock. Dropping it releases the lock in the background; [`Guard::release`] waits for the
/// store and tells whether the hold was still there.
///
/// A guard may be sent to another task or thread and released there: it names the hold, not the
/// holder.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
/// # let client = fencelock::Client::connect("memory:").await?;
/// # async fn charge(_token: u64) {}
/// let guard = client.lock("account/17")?.acquire().await?;
/// tokio::select! {
///     () = charge(guard.token().get()) => guard.release().await?,
///     reason = guard.lost() => eprintln!("stopped: {}", reason.describe()),
/// }
/// # Ok(()) }
/// ```
#[must_use = "dropping the guard releases the lock"]
pub struct Guard {
    lock: Arc<LockRef>,
    cell: Cell,
    owner: Option<OwnerId>,
    hold: HoldKey,
    token: Token,
    abandoned: Abandoned,
    reentry: bool,
    released: bool,
    since: Time,
}

impl Guard {
    pub(crate) fn new(
        lock: Arc<LockRef>,
        cell: Cell,
        owner: Option<OwnerId>,
        grant: Grant,
        since: Time,
    ) -> Guard {
        tracing::trace!(lock = %lock.name, token = grant.token.get(), "granted");
        let mut reentry = grant.reentry;
        if let Some(owner) = &owner {
            // Whether another client has a hold of the owner, only the store knows.
            let had = lock.shared().with(|core, now| {
                let mut holds = core.roster.holds(&lock.name, owner).iter();
                let had = holds.any(|hold| core.engine.remaining(now, *hold).is_some());
                core.roster.enter(&lock.name, owner, grant.hold);
                had
            });
            reentry |= had.unwrap_or(false);
        }
        Guard {
            lock,
            cell,
            owner,
            hold: grant.hold,
            token: grant.token,
            abandoned: grant.abandoned,
            reentry,
            released: false,
            since,
        }
    }

    /// The name of the lock.
    pub fn name(&self) -> &str {
        self.lock.name.as_str()
    }

    /// The fencing token: greater than that of every earlier hold of this lock. It stays the same
    /// number after the hold was lost, and is then refused by a resource that has seen a later
    /// one. To make sure of the hold first, use [`Guard::check`].
    pub fn token(&self) -> Token {
        self.token
    }

    /// The token, if the hold can be trusted at this moment by this machine's clock.
    ///
    /// The hold may end between this check and a write: send the token with the write.
    ///
    /// # Errors
    /// `Lost` when the hold has ended.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let guard = client.lock("checked")?.acquire().await?;
    /// assert_eq!(guard.check()?, guard.token());
    /// # Ok(()) }
    /// ```
    pub fn check(&self) -> Result<Token> {
        if self.is_valid() {
            return Ok(self.token);
        }
        let why = match self.shared().is_forked() {
            true => "it belongs to the process that forked this one",
            false => self.cell.lost().map_or("its validity ended", LossReason::describe),
        };
        Err(Error::new(
            ErrorKind::Lost,
            format!("the lock {:?} is lost: {why}; stop, and acquire it again", self.lock.name),
        ))
    }

    /// Whether the hold can be trusted at this moment. Reads the clock; asks the store nothing.
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// How long the hold can be trusted from now on if it is not renewed; zero when it has ended.
    pub fn remaining(&self) -> Duration {
        let shared = self.lock.shared();
        let left = shared.with(|core, now| core.engine.remaining(now, self.hold));
        left.ok().flatten().unwrap_or(Duration::ZERO)
    }

    /// Resolves when the hold ends before its release, with the reason. The future does not borrow
    /// the guard, and never resolves if the guard is released first.
    ///
    /// # Cancel safety
    /// Safe to drop and to call again.
    pub fn lost(&self) -> Lost {
        Lost { cell: self.cell.clone(), key: WatchKey::default() }
    }

    /// Calls `callback` once when the hold ends before its release; at once when it has. It runs
    /// on the thread that learns of it, so it must be short and must not block.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let guard = client.lock("watched")?.acquire().await?;
    /// guard.on_lost(|reason| eprintln!("lost: {}", reason.describe()));
    /// # Ok(()) }
    /// ```
    pub fn on_lost(&self, callback: impl FnOnce(LossReason) + Send + 'static) {
        self.cell.on_lost(Box::new(callback));
    }

    /// Resolves when another client waits for this lock. A holder that can pause its work may
    /// release then, and acquire again. The future does not borrow the guard.
    ///
    /// # Cancel safety
    /// Safe to drop and to call again.
    pub fn wanted(&self) -> Wanted {
        Wanted { cell: self.cell.clone(), key: WatchKey::default() }
    }

    /// Whether another client waits for this lock, as far as is known.
    pub fn is_wanted(&self) -> bool {
        self.cell.wanted()
    }

    /// Whether the previous holder was lost instead of releasing: then what the lock protects may
    /// be half done. Stays set until a hold that was told it has been released.
    pub fn previous_abandoned(&self) -> Abandoned {
        self.abandoned
    }

    /// Whether the owner had the lock already, in this client, when this hold was granted.
    pub fn is_reentry(&self) -> bool {
        self.reentry
    }

    /// Sets the hold's lease to `lease` from now on; never shortens what is left of it. A hold
    /// without an explicit lease goes on being renewed.
    ///
    /// # Errors
    /// `Lost` when the hold has ended, `InvalidArgument` for a lease outside 100 ms to 7 days,
    /// `Unavailable` when the store did not answer within the request timeout (the lease may or
    /// may not be longer then), `Closed`.
    ///
    /// # Cancel safety
    /// Once polled, the extension may happen although the future is dropped.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # use std::time::Duration;
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let guard = client.lock("extended")?.lease(Duration::from_secs(1)).acquire().await?;
    /// guard.extend(Duration::from_secs(60)).await?;
    /// assert!(guard.remaining() > Duration::from_secs(50));
    /// # Ok(()) }
    /// ```
    pub async fn extend(&self, lease: Duration) -> Result<()> {
        extended(self.start_extend(lease)?.await.0)
    }

    /// Releases the lock and waits until the store, or the next local holder, has it.
    ///
    /// # Errors
    /// `Lost` when the hold had ended before; `Unavailable` when the store did not answer within
    /// the request timeout (the release goes on in the background).
    ///
    /// # Cancel safety
    /// Once polled, the release goes on in the background.
    pub async fn release(mut self) -> Result<()> {
        match self.start_release()? {
            None => Ok(()),
            Some(wait) => released(wait.await.0),
        }
    }

    /// A short text that lets another process go on with this hold; see
    /// [`Client::attach`](crate::Client::attach). It is no secret, but whoever has it can join the
    /// hold.
    ///
    /// # Errors
    /// `InvalidArgument` unless the lock was acquired with an explicit owner.
    pub fn ticket(&self) -> Result<Ticket> {
        match &self.owner {
            Some(owner) => Ok(Ticket::new(&self.lock.name, owner, self.token)),
            None => Err(Error::new(
                ErrorKind::InvalidArgument,
                "only a hold of an explicit owner has a ticket: acquire the lock with \
                 `client.lock(name)?.owner(owner)`",
            )),
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.lock.shared()
    }

    pub(crate) fn start_extend(&self, lease: Duration) -> Result<Wait> {
        let cell = Cell::default();
        let handle = cell.clone();
        let shared = self.shared();
        let (asked, flush) =
            shared.with_unflushed(|core, now| core.engine.extend(now, self.hold, lease, handle))?;
        asked?;
        Ok(Wait::call(shared.clone(), cell, flush))
    }

    /// `None`: it is released already.
    pub(crate) fn start_release(&mut self) -> Result<Option<Wait>> {
        self.released = true;
        let cell = self.cell.clone();
        let shared = self.shared();
        let (ended, flush) = shared.with_unflushed(|core, now| {
            self.leave(core, now);
            core.engine.release(now, self.hold, Some(cell))
        })?;
        let ended = ended.inspect_err(|_| {
            if flush {
                shared.flush();
            }
        })?;
        match ended {
            Ended::Done => {
                if flush {
                    shared.flush();
                }
                Ok(None)
            }
            Ended::Pending => Ok(Some(Wait::call(shared.clone(), self.cell.clone(), flush))),
        }
    }

    fn leave(&self, core: &mut Core, now: Time) {
        core.counts.held(now.since(self.since));
        if let Some(owner) = &self.owner {
            core.roster.leave(&self.lock.name, owner, self.hold);
        }
    }

    /// Releases in the background; gives whether something is to be sent.
    pub(crate) fn abandon(&mut self) -> bool {
        if std::mem::replace(&mut self.released, true) {
            return false;
        }
        let ended = self.shared().with_unflushed(|core, now| {
            self.leave(core, now);
            // Lost before: its release has told the store already.
            let _ = core.engine.release(now, self.hold, None);
        });
        // In a forked child there is nothing to release.
        ended.is_ok_and(|((), flush)| flush)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.abandon() {
            self.shared().flush();
        }
    }
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard")
            .field("name", &self.name())
            .field("token", &self.token)
            .field("valid", &self.is_valid())
            .finish_non_exhaustive()
    }
}

pub(crate) fn extended(outcome: Outcome) -> Result<()> {
    match outcome {
        Outcome::Extended => Ok(()),
        other => Err(failed(other)),
    }
}

pub(crate) fn released(outcome: Outcome) -> Result<()> {
    match outcome {
        Outcome::Released => Ok(()),
        other => Err(failed(other)),
    }
}

/// An acquire that has begun.
pub(crate) enum Started {
    Granted(Guard),
    Pending { wait: Wait, lock: Arc<LockRef>, owner: Option<OwnerId> },
}

impl Started {
    pub(crate) async fn guard(self) -> Result<Guard> {
        match self {
            Started::Granted(guard) => Ok(guard),
            Started::Pending { mut wait, lock, owner } => {
                let (outcome, now) = wait.watched(&lock.name).await;
                Started::finish(wait, lock, owner, outcome, now)
            }
        }
    }

    /// Makes the guard of a wait that has ended.
    pub(crate) fn finish(
        wait: Wait,
        lock: Arc<LockRef>,
        owner: Option<OwnerId>,
        outcome: Outcome,
        now: Time,
    ) -> Result<Guard> {
        match outcome {
            Outcome::Granted(grant) => Ok(Guard::new(lock, wait.into_cell(), owner, grant, now)),
            other => Err(failed(other)),
        }
    }
}

/// Resolves when a hold is lost; from [`Guard::lost`].
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct Lost {
    cell: Cell,
    key: WatchKey,
}

impl Future for Lost {
    type Output = LossReason;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<LossReason> {
        let this = &mut *self;
        this.cell.poll_lost(&mut this.key, cx.waker())
    }
}

impl Drop for Lost {
    fn drop(&mut self) {
        self.cell.unwatch(&self.key);
    }
}

/// Resolves when another client waits for a hold's lock; from [`Guard::wanted`].
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct Wanted {
    cell: Cell,
    key: WatchKey,
}

impl Future for Wanted {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.cell.poll_wanted(&mut this.key, cx.waker())
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.cell.unwatch(&self.key);
    }
}
