//! A lock of one client: what its handles, waits and guards share.

use std::sync::Arc;
use std::time::Duration;

use fencelock_engine::hold::LockKey;
use fencelock_engine::request::Mode;
use fencelock_engine::{HoldKey, Name, Owner, Time};

use crate::handle::Handle;
use crate::listener::Listener;
use crate::reentry::{ReentrantHolds, Shared as Shares};
use crate::shared::{Core, Shared};
use crate::{Result, clock};

/// The engine's key of a lock, given back when the last user is gone.
pub(crate) struct LockRef {
    pub(crate) handle: Arc<Handle>,
    pub(crate) name: Name,
    pub(crate) reentrant: ReentrantHolds,
    pub(crate) key: LockKey,
}

impl LockRef {
    pub(crate) fn new(handle: Arc<Handle>, name: Name) -> Result<LockRef> {
        let key = handle.shared.with(|core, _| core.engine.lock(&name))?;
        Ok(LockRef { handle, name, reentrant: ReentrantHolds::default(), key })
    }

    /// The lock has handles that read and write.
    pub(crate) fn set_read_write(&self) -> Result<()> {
        self.shared().with(|core, _| core.engine.set_read_write(self.key))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// One more level under a hold of the watchdog's that this owner has, if it can be trusted.
    pub(crate) fn reenter(&self, owner: u64, mode: Mode) -> Option<Shares> {
        if self.shared().is_forked() {
            return None;
        }
        self.reentrant.enter(owner, mode, clock::now(), |shares| {
            self.remaining(shares.hold, Some(&shares.listener)).is_some()
        })
    }

    /// What is left of a hold, by the engine's word; noted in the listener that guards share.
    pub(crate) fn remaining(&self, hold: HoldKey, shared: Option<&Listener>) -> Option<Duration> {
        let engine = |core: &mut Core, now| {
            (now, core.engine.remaining(now, hold), core.engine.certain(now, hold))
        };
        let (now, left, certain) = self.shared().with(engine).ok()?;
        if let (Some(listener), Some(certain)) = (shared, certain) {
            listener.set_certain_until(now + certain);
        }
        left
    }

    pub(crate) fn count(&self, owner: &Owner) -> usize {
        // A forked child holds nothing.
        self.shared().with(|core, now| self.held(core, now, owner)).unwrap_or(0)
    }

    /// How many of these are in one mode.
    pub(crate) fn count_in(&self, owner: &Owner, mode: Mode) -> usize {
        let counted = self.shared().with(|core, now| match owner {
            Owner::Local(owner) => {
                let all = core.engine.count(now, self.key, *owner);
                let writes = core.engine.count_writes(now, self.key, *owner);
                match if mode == Mode::Exclusive { writes } else { all.saturating_sub(writes) } {
                    0 => 0,
                    count => count + self.reentrant.inner(*owner, |of| of == mode),
                }
            }
            Owner::Explicit(owner) => {
                let holds = core.owner_holds.holds(&self.name, owner).iter();
                let live = holds.filter(|hold| core.engine.remaining(now, **hold).is_some());
                live.filter(|hold| core.engine.mode_of(**hold) == mode).count()
            }
        });
        // A forked child holds nothing.
        counted.unwrap_or(0)
    }

    pub(crate) fn is_held(&self) -> bool {
        let held = self.shared().with(|core, now| {
            let mut explicit = core.owner_holds.of_lock(&self.name);
            core.engine.is_held(now, self.key)
                || explicit.any(|hold| core.engine.remaining(now, *hold).is_some())
        });
        // A forked child holds nothing.
        held.unwrap_or(false)
    }

    pub(crate) fn held(&self, core: &Core, now: Time, owner: &Owner) -> usize {
        match owner {
            Owner::Local(owner) => match core.engine.count(now, self.key, *owner) {
                0 => 0,
                count => count + self.reentrant.inner(*owner, |_| true),
            },
            Owner::Explicit(owner) => {
                let holds = core.owner_holds.holds(&self.name, owner).iter();
                holds.filter(|hold| core.engine.remaining(now, **hold).is_some()).count()
            }
        }
    }
}

impl Drop for LockRef {
    fn drop(&mut self) {
        // In a forked child there is nothing to give back.
        let _ = self.handle.shared.with(|core, _| core.engine.forget(self.key));
    }
}
