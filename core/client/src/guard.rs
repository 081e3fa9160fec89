//! A hold, and what its holder can learn of it.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;

use fencelock_engine::request::Mode;
use fencelock_engine::{Ended, Grant, HoldKey, Time};

use crate::clock;
use crate::errors::forked;
use crate::hold_events::{Lost, Wanted};
use crate::listener::{Listener, Over};
use crate::lock_ref::LockRef;
use crate::outcome::extended;
use crate::owner::By;
use crate::reentry::{Left, Shared as Shares};
use crate::releasing::Releasing;
use crate::shared::{Core, Shared};
use crate::terms::Terms;
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
    pub(crate) lock: Arc<LockRef>,
    listener: Listener,
    owner: Option<OwnerId>,
    terms: Mutex<Terms>,
    pub(crate) hold: HoldKey,
    reentry: bool,
    /// The local owner whose other guards may share the hold.
    shares: Option<u64>,
    released: AtomicBool,
    /// Told to what listens for this guard alone, once anything does.
    over: OnceLock<Over>,
    since: Time,
}

impl Guard {
    pub(crate) fn new(
        lock: Arc<LockRef>,
        listener: Listener,
        by: By,
        grant: Grant,
        since: Time,
    ) -> Guard {
        let By { explicit: owner, nested, mode } = by;
        tracing::trace!(lock = ?lock.name.as_str(), token = grant.token.get(), "granted");
        let mut reentry = grant.reentry;
        if let Some(owner) = &owner {
            // Whether another client has a hold of the owner, only the store knows.
            let had = lock.shared().with(|core, now| {
                let mut holds = core.owner_holds.holds(&lock.name, owner).iter();
                let had = holds.any(|hold| core.engine.remaining(now, *hold).is_some());
                core.owner_holds.enter(&lock.name, owner, grant.hold);
                had
            });
            reentry |= had.unwrap_or(false);
        }
        // Under a re-entry that has a hold of its own, another has one, too.
        let nested = nested.filter(|_| !reentry);
        if let Some(owner) = nested {
            let (hold, token, abandoned) = (grant.hold, grant.token, grant.abandoned);
            let listener = listener.clone();
            let shares = Shares { listener, hold, token, abandoned, mode, since };
            lock.reentrant.open(owner, shares);
        }
        Guard {
            lock,
            listener,
            owner,
            terms: Mutex::new(Terms { mode, token: grant.token, abandoned: grant.abandoned }),
            hold: grant.hold,
            reentry,
            shares: nested,
            released: AtomicBool::new(false),
            over: OnceLock::new(),
            since,
        }
    }

    /// One more level of a hold.
    pub(crate) fn nested(lock: Arc<LockRef>, owner: u64, shared: Shares) -> Guard {
        let Shares { listener, hold, token, abandoned, mode, since } = shared;
        Guard {
            lock,
            listener,
            owner: None,
            terms: Mutex::new(Terms { mode, token, abandoned }),
            hold,
            reentry: true,
            shares: Some(owner),
            released: AtomicBool::new(false),
            over: OnceLock::new(),
            since,
        }
    }

    /// The name of the lock.
    pub fn name(&self) -> &str {
        self.lock.name.as_str()
    }

    /// The fencing token: greater than that of every earlier hold of this lock; for readers and
    /// permits see [`RwLock`](crate::RwLock#fencing) and [`Semaphore`](crate::Semaphore). It stays the same
    /// number after the hold was lost, and is then refused by a resource that has seen a later
    /// one. To make sure of the hold first, use [`Guard::check`].
    /// [`Guard::downgrade`] and [`Guard::try_upgrade`] change it.
    pub fn token(&self) -> Token {
        self.terms().token
    }

    /// The token, if the hold can be trusted at this moment by this machine's clock.
    ///
    /// The hold may end between this check and a write: send the token with the write.
    ///
    /// # Errors
    /// `Lost` when the hold has ended, `NotHeld` when it was released.
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
            return Ok(self.token());
        }
        Err(match self.released.load(Ordering::Acquire) {
            true => self.released_before(),
            false => self.lost_before(),
        })
    }

    /// Whether the hold can be trusted at this moment. Reads the clock; asks the store nothing.
    pub fn is_valid(&self) -> bool {
        // Without the engine's mutex, as this is asked often.
        let known = self.listener.is_certain(clock::now())
            && !self.released.load(Ordering::Acquire)
            && !self.shared().is_forked();
        known || !self.remaining().is_zero()
    }

    /// Whether the holder was told that the hold is lost. Cheaper than [`Guard::is_valid`], which
    /// also looks at the clock.
    pub fn is_lost(&self) -> bool {
        self.listener.is_lost()
    }

    /// How long the hold can be trusted from now on if it is not renewed; zero when it has ended.
    pub fn remaining(&self) -> Duration {
        if self.released.load(Ordering::Acquire) {
            return Duration::ZERO;
        }
        let shared = self.shares.map(|_| &self.listener);
        self.lock.remaining(self.hold, shared).unwrap_or(Duration::ZERO)
    }

    /// Resolves when the hold ends before its release, with the reason; also when it is the release
    /// that finds out. The future does not borrow the guard, and never resolves if the guard is
    /// released in time.
    ///
    /// # Cancel safety
    /// Safe to drop and to call again.
    pub fn lost(&self) -> Lost {
        Lost::new(self.listener.clone(), self.over())
    }

    /// Calls `callback` once when the hold ends before its release, also when it is the release that
    /// finds out; at once when it has. It runs on the thread that learns of it, so it must be short
    /// and must not block.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let guard = client.lock("watched")?.acquire().await?;
    /// guard.on_lost(|reason| eprintln!("lost: {}", reason.describe()));
    /// # Ok(()) }
    /// ```
    pub fn on_lost(&self, callback: impl FnOnce(LossReason) + Send + 'static) {
        self.listener.on_lost(self.over(), Box::new(callback));
    }

    /// Resolves when another client waits for this lock. A holder that can pause its work may
    /// release then, and acquire again. The future does not borrow the guard.
    ///
    /// # Cancel safety
    /// Safe to drop and to call again.
    pub fn wanted(&self) -> Wanted {
        Wanted::new(self.listener.clone(), self.over())
    }

    /// Calls `callback` once when another client waits for this lock; at once when one does. As
    /// with [`Guard::on_lost`], it must be short.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let guard = client.lock("wished for")?.acquire().await?;
    /// guard.on_wanted(|| eprintln!("somebody waits"));
    /// # Ok(()) }
    /// ```
    pub fn on_wanted(&self, callback: impl FnOnce() + Send + 'static) {
        self.listener.on_wanted(self.over(), Box::new(callback));
    }

    /// Whether another client waits for this lock, as far as is known.
    pub fn is_wanted(&self) -> bool {
        self.listener.wanted()
    }

    /// Whether the previous holder was lost instead of releasing: then what the lock protects may
    /// be half done. Stays set until an exclusive hold that was told it has been released. A reader is told,
    /// and clears nothing; the loss of readers and of permits is never told, and permits are told `No`.
    pub fn previous_abandoned(&self) -> Abandoned {
        self.terms().abandoned
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
    /// `Unavailable` when the store did not answer within the request timeout, `Closed`. The store may
    /// have heard of an extend that failed, and then keeps the lock for so long until it hears from this
    /// client again, which takes it back; if the process dies before, others wait for that lease.
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
    pub async fn release(self) -> Result<()> {
        self.release_ref().await
    }

    /// As [`Guard::release`], for a guard that is shared: between tasks, or with another language.
    /// The future does not borrow the guard.
    ///
    /// # Errors
    /// As there; `NotHeld` when it was released before.
    ///
    /// # Cancel safety
    /// The release begins with the call and goes on in the background.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # use fencelock::ErrorKind;
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let guard = std::sync::Arc::new(client.lock("shared guard")?.acquire().await?);
    /// guard.release_ref().await?;
    /// assert!(!guard.is_valid());
    /// assert_eq!(guard.release_ref().await.unwrap_err().kind(), ErrorKind::NotHeld);
    /// # Ok(()) }
    /// ```
    pub fn release_ref(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        Releasing::new(self.start_release())
    }

    /// A short text that lets another process go on with this hold; see
    /// [`Client::attach`](crate::Client::attach). It is no secret, but whoever has it can join the
    /// hold.
    ///
    /// # Errors
    /// `InvalidArgument` unless the lock was acquired with an explicit owner, to write.
    pub fn ticket(&self) -> Result<Ticket> {
        let text = match (self.mode(), &self.owner) {
            (Mode::Exclusive, Some(owner)) => {
                return Ok(Ticket::new(&self.lock.name, owner, self.token()));
            }
            (Mode::Permits { .. }, _) => {
                "permits have no owner, and so no ticket: acquire some where they are needed"
            }
            (Mode::Shared, Some(_)) => {
                "only a hold to write has a ticket: read there with the same owner"
            }
            (_, None) => "only a hold of an explicit owner has a ticket: give the lock an owner",
        };
        Err(Error::new(ErrorKind::InvalidArgument, text))
    }

    pub(crate) fn terms(&self) -> Terms {
        *self.terms.lock()
    }

    pub(crate) fn set_terms(&self, terms: Terms) {
        *self.terms.lock() = terms;
    }

    /// The local owner whose other guards may share the hold, without the engine's knowing.
    pub(crate) fn sharer(&self) -> Option<u64> {
        self.shares
    }

    pub(crate) fn check_released(&self) -> Result<()> {
        match self.released.load(Ordering::Acquire) {
            true => Err(self.released_before()),
            false => Ok(()),
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.lock.shared()
    }

    fn kind(&self) -> &'static str {
        if self.mode().permits().is_some() { "semaphore" } else { "lock" }
    }

    fn lost_before(&self) -> Error {
        let why = match self.shared().is_forked() {
            true => "it belongs to the process that forked this one",
            false => self.listener.lost().map_or("its validity ended", LossReason::describe),
        };
        Error::new(
            ErrorKind::Lost,
            match self.mode().permits() {
                None => {
                    format!(
                        "the lock {:?} is lost: {why}; stop, and acquire it again",
                        self.lock.name
                    )
                }
                Some(count) => format!(
                    "{count} permit{} of the semaphore {:?} {} lost: {why}; stop, and acquire again",
                    if count == 1 { "" } else { "s" },
                    self.lock.name,
                    if count == 1 { "is" } else { "are" },
                ),
            },
        )
    }

    fn released_before(&self) -> Error {
        Error::new(
            ErrorKind::NotHeld,
            format!("this hold of the {} {:?} was released before", self.kind(), self.lock.name),
        )
    }

    /// Set when this guard is released and others go on with the hold.
    fn over(&self) -> Over {
        let over = self.over.get_or_init(Arc::default);
        // After it can be seen: a release at the same time sees it, or is seen here.
        if self.released.load(Ordering::SeqCst) && !self.listener.is_lost() {
            over.store(true, Ordering::Release);
        }
        over.clone()
    }

    /// Marks the guard as released; gives whether it was already.
    fn end(&self) -> bool {
        self.released.swap(true, Ordering::SeqCst)
    }

    /// Whether the hold goes on under other guards. Otherwise who listens still hears of a loss, which
    /// the release itself may bring to light.
    fn goes_on(&self) -> bool {
        let Some(owner) = self.shares else { return false };
        match self.lock.reentrant.leave(owner, self.hold) {
            Left::Inner => {
                if let Some(over) = self.over.get() {
                    self.listener.forget(over);
                }
                true
            }
            Left::Last { reentries } => {
                self.shared().reentries.fetch_add(reentries, Ordering::Relaxed);
                false
            }
        }
    }

    pub(crate) fn start_extend(&self, lease: Duration) -> Result<Wait> {
        let listener = Listener::default();
        let handle = listener.clone();
        let shared = self.shared();
        let (asked, flush) =
            shared.with_unflushed(|core, now| core.engine.extend(now, self.hold, lease, handle))?;
        // Sends a hold's end that the engine noticed on the way.
        asked.inspect_err(|_| {
            if flush {
                shared.flush();
            }
        })?;
        Ok(Wait::call(shared.clone(), listener, flush))
    }

    /// `None`: it is done already.
    pub(crate) fn start_release(&self) -> Result<Option<Wait>> {
        if self.end() {
            return Err(self.released_before());
        }
        if self.shared().is_forked() {
            return Err(forked());
        }
        if self.goes_on() {
            return match self.listener.lost() {
                Some(_) => Err(self.lost_before()),
                None => Ok(None),
            };
        }
        let listener = self.listener.clone();
        let shared = self.shared();
        let (ended, flush) = shared.with_unflushed(|core, now| {
            self.leave(core, now);
            core.engine.release(now, self.hold, Some(listener))
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
            Ended::Pending => Ok(Some(Wait::call(shared.clone(), self.listener.clone(), flush))),
        }
    }

    fn leave(&self, core: &mut Core, now: Time) {
        if self.shares.is_some() || !self.reentry {
            core.counts.held(now.since(self.since));
        }
        if let Some(owner) = &self.owner {
            core.owner_holds.leave(&self.lock.name, owner, self.hold);
        }
    }

    /// Releases in the background; gives whether something is to be sent.
    pub(crate) fn abandon(&mut self) -> bool {
        if *self.released.get_mut() || self.end() || self.shared().is_forked() || self.goes_on() {
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
            .field("token", &self.token())
            .field("valid", &self.is_valid())
            .finish_non_exhaustive()
    }
}
