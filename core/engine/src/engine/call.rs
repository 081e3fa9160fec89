//! Calls that wait, and holds that callers have.

use std::time::Duration;

use crate::engine::slab::Key;
use crate::hold::{Ask, CallKey, HoldKey, LossReason, Owner};
use crate::request::Mode;
use crate::time::Time;

impl CallKey {
    pub(crate) fn key(self) -> Key {
        Key { index: self.index, serial: self.serial }
    }
    pub(crate) fn of(key: Key) -> CallKey {
        CallKey { index: key.index, serial: key.serial }
    }
}

impl HoldKey {
    pub(crate) fn key(self) -> Key {
        Key { index: self.index, serial: self.serial }
    }
    pub(crate) fn of(key: Key) -> HoldKey {
        HoldKey { index: key.index, serial: key.serial }
    }
}

/// What a pending call waits for.
#[derive(Clone, Debug, Hash)]
pub(crate) enum CallKind {
    /// The lock, in the local queue or by an entry of its own.
    Acquire(Ask),
    /// A re-entry whose longer lease must be renewed first.
    Join(Ask),
    /// A longer lease for a hold.
    Extend { hold: HoldKey, lease: Duration },
    /// Another mode for a hold.
    Convert { hold: HoldKey, to: Mode },
}

/// A call whose completion is still to come.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Call<C> {
    pub call: C,
    pub kind: CallKind,
    pub lock: u32,
    pub entry: Option<Key>,
    pub since: Time,
    /// How many came before it at the same instant.
    pub nth: u32,
    pub deadline: Option<Time>,
}

impl<C> Call<C> {
    /// Which of two calls came first.
    pub fn age(&self) -> (Time, u32) {
        (self.since, if planted!(TiesByChance) { 0 } else { self.nth })
    }

    /// The local owner for whom it is made.
    pub fn local_owner(&self) -> Option<u64> {
        match self.ask()?.owner {
            Owner::Local(owner) => Some(owner),
            Owner::Explicit(_) => None,
        }
    }

    /// Whether it waits for a place at the store.
    pub fn waits(&self) -> bool {
        matches!(self.kind, CallKind::Acquire(_))
    }

    /// The local owner for whom it waits to read.
    pub fn reader(&self) -> Option<u64> {
        match &self.kind {
            CallKind::Acquire(ask) if ask.mode == Mode::Shared => self.local_owner(),
            _ => None,
        }
    }

    pub fn ask(&self) -> Option<&Ask> {
        match &self.kind {
            CallKind::Acquire(ask) | CallKind::Join(ask) => Some(ask),
            CallKind::Extend { .. } | CallKind::Convert { .. } => None,
        }
    }
}

/// A caller's hold. It stays here, once lost, until its holder releases it.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Hold<C> {
    pub call: C,
    pub entry: Key,
    /// How it shares the lock: it keeps that within others of its owner.
    pub mode: Mode,
    /// Which of the entry's holders has it.
    pub owner: Option<u64>,
    /// An explicit lease.
    pub lease: Option<Duration>,
    /// When it ends by itself; `Time::MAX` when the watchdog keeps it.
    pub end: Time,
    /// Until when an extend promised it, though the watchdog keeps it.
    pub extended: Time,
    pub wanted: bool,
    pub lost: Option<LossReason>,
}
