//! A hold.

use std::sync::Arc;
use std::time::Duration;

use crate::ending::call;
use crate::error::Result;
use crate::info::HoldMode;
use crate::listener::{LossListener, LossReason, Told, WantedListener};
use crate::wake::News;

/// A held lock: renewed in the background until it is released. When it is dropped unreleased, it is
/// released in the background.
#[derive(uniffi::Object)]
pub struct Hold(fencelock_support::Hold);

impl Hold {
    pub(crate) fn new(hold: fencelock_support::Hold) -> Arc<Hold> {
        Arc::new(Hold(hold))
    }
}

#[uniffi::export]
impl Hold {
    /// The name of the lock.
    pub fn name(&self) -> String {
        self.0.name().to_owned()
    }

    /// The fencing token: greater than that of every earlier hold of this lock. Send it with every
    /// write, and let the resource refuse a smaller one than it has seen. A conversion changes it.
    pub fn token(&self) -> u64 {
        self.0.token()
    }

    /// The token, if the hold can be trusted at this moment.
    ///
    /// Errors: `Lost` when the hold has ended.
    pub fn check(&self) -> Result<u64> {
        Ok(self.0.check()?)
    }

    /// Whether the hold can be trusted at this moment, by this machine's clock; asks the store nothing.
    pub fn is_valid(&self) -> bool {
        self.0.is_valid()
    }

    /// How long the hold can be trusted from now on if it is not renewed; zero when it has ended.
    pub fn remaining(&self) -> Duration {
        self.0.remaining()
    }

    /// Whether the owner had the lock already when this hold was granted.
    pub fn is_reentry(&self) -> bool {
        self.0.is_reentry()
    }

    /// Whether the previous holder was lost instead of releasing. If so, what the lock protects may be
    /// half done.
    pub fn previous_abandoned(&self) -> Abandoned {
        self.0.previous_abandoned().into()
    }

    /// Whether another client waits for the lock, as far as is known.
    pub fn is_wanted(&self) -> bool {
        self.0.is_wanted()
    }

    /// Tells `listener` once when the hold is lost; at once when it is already.
    ///
    /// Errors: `Unavailable` when the operating system gives no thread.
    pub fn on_lost(&self, listener: Box<dyn LossListener>) -> Result<()> {
        let told = Told::new(listener)?;
        self.0.on_lost(move |reason| told.tell(move |listener| listener.lost(reason.into())));
        Ok(())
    }

    /// Tells `listener` once when another client waits for the lock.
    ///
    /// Errors: `Unavailable` when the operating system gives no thread.
    pub fn on_wanted(&self, listener: Box<dyn WantedListener>) -> Result<()> {
        let told = Told::new(listener)?;
        self.0.on_wanted(move || told.tell(|listener| listener.wanted()));
        Ok(())
    }

    /// As `on_lost`, through a pipe: writes 16 bytes to `descriptor`, `number` and what has happened, as two
    /// little-endian numbers. That is 0 when the hold has gone without it, and otherwise 1 for the first reason
    /// of `LossReason`, and so on. The descriptor stays open for as long as the process.
    ///
    /// Errors: `Unavailable` when the operating system gives no thread.
    pub fn lost_to_pipe(&self, descriptor: u64, number: u64) -> Result<()> {
        let news = News::new(descriptor, number)?;
        self.0.on_lost(move |reason| news.tell(1 + LossReason::from(reason) as u64));
        Ok(())
    }

    /// As `on_wanted`, through a pipe, as `lost_to_pipe`: 1 when another client waits.
    ///
    /// Errors: `Unavailable` when the operating system gives no thread.
    pub fn wanted_to_pipe(&self, descriptor: u64, number: u64) -> Result<()> {
        let news = News::new(descriptor, number)?;
        self.0.on_wanted(move || news.tell(1));
        Ok(())
    }

    /// A short text with which another thread, process or language goes on with this hold. It is no
    /// secret, but whoever has it can join the hold.
    ///
    /// Errors: `InvalidArgument` unless the lock was acquired for an explicit owner.
    pub fn ticket(&self) -> Result<String> {
        Ok(self.0.ticket()?)
    }

    /// Sets the lease from now on; never shortens it. Blocks until the store has answered.
    ///
    /// Errors: `Lost`; `InvalidArgument` for a lease outside 0.1 s to 7 days; `Unavailable` when the
    /// store did not answer: the lease may or may not be longer.
    pub fn extend(&self, lease: Duration) -> Result<()> {
        Ok(self.0.extend(lease)?)
    }

    /// As `extend`, without blocking.
    pub async fn extend_async(&self, lease: Duration) -> Result<()> {
        Ok(call(|done| Ok(Some(self.0.extend_async(lease, done)))).await?)
    }

    /// What the hold lets beside it now.
    pub fn mode(&self) -> HoldMode {
        self.0.mode().into()
    }

    /// Reads from now on instead of writing: other readers are let in, and no writer comes between. Done
    /// already when the hold reads. Blocks until the store has answered.
    ///
    /// Errors: `Contended` when the owner writes by another hold, too; `InvalidArgument` for permits; `Lost`;
    /// `Unsupported`; `Unavailable` when the store did not answer: the hold reads all the same.
    pub fn downgrade(&self) -> Result<()> {
        Ok(self.0.downgrade()?)
    }

    /// As `downgrade`, without blocking. It begins at once, and to cancel it does not undo it.
    pub async fn downgrade_async(&self) -> Result<()> {
        Ok(call(|done| Ok(Some(self.0.downgrade_async(done)))).await?)
    }

    /// Writes from now on instead of reading, if nobody else has the lock, past whoever waits. It does not
    /// wait: two readers that waited for each other's end would do so for ever. Done already when the hold
    /// writes. Blocks until the store has answered.
    ///
    /// Errors: `Contended` when others read, or the owner by another hold; `InvalidArgument` for permits;
    /// `Lost`; `Unsupported`; `Unavailable` when the store did not answer: the hold goes on reading.
    pub fn try_upgrade(&self) -> Result<()> {
        Ok(self.0.try_upgrade()?)
    }

    /// As `try_upgrade`, without blocking. To cancel undoes it, unless it has been answered: `mode` tells.
    pub async fn try_upgrade_async(&self) -> Result<()> {
        Ok(call(|done| Ok(Some(self.0.try_upgrade_async(done)))).await?)
    }

    /// Releases the lock, and blocks until the store or the next local holder has it.
    ///
    /// Errors: `Lost` when the hold had ended before; `NotHeld` when it was released before;
    /// `Unavailable` when the store did not answer: the release goes on in the background.
    pub fn release(&self) -> Result<()> {
        Ok(self.0.release()?)
    }

    /// As `release`, without blocking. It begins at once, and to cancel it does not undo it.
    pub async fn release_async(&self) -> Result<()> {
        Ok(call(|done| Ok(Some(self.0.release_async(done)))).await?)
    }

    /// Begins the release and waits for nobody: it goes on in the background.
    ///
    /// Errors: `Lost` when the hold had ended before; `NotHeld` when it was released before.
    pub fn begin_release(&self) -> Result<()> {
        drop(self.0.begin_release()?);
        Ok(())
    }
}

/// Whether the previous holder of a lock was lost instead of releasing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum Abandoned {
    /// It released.
    No,
    /// It was lost: what the lock protects may be half done.
    Yes,
    /// Nobody knows, as with the first grant of a lock that the store has never seen.
    Unknown,
}

impl From<fencelock_support::Abandoned> for Abandoned {
    fn from(abandoned: fencelock_support::Abandoned) -> Abandoned {
        match abandoned {
            fencelock_support::Abandoned::No => Abandoned::No,
            fencelock_support::Abandoned::Yes => Abandoned::Yes,
            fencelock_support::Abandoned::Unknown => Abandoned::Unknown,
        }
    }
}
