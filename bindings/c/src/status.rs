//! The numbers that calls return.

#![allow(non_camel_case_types)]

use fencelock_support::{Abandoned, LossReason, Mode};

/// What a call returns. 1 to 11 are the numbers of the errors in every language; none is ever
/// reused. fencelock_status_name() gives the name.
pub type fencelock_status = i32;

/// Done.
pub const FENCELOCK_OK: fencelock_status = 0;
/// Another holder has the lock, or waits for it, and the caller did not want to wait.
pub const FENCELOCK_CONTENDED: fencelock_status = 1;
/// The wait's bound passed while others held the lock.
pub const FENCELOCK_TIMED_OUT: fencelock_status = 2;
/// The wait was cancelled by its caller.
pub const FENCELOCK_CANCELLED: fencelock_status = 3;
/// The store could not be reached, or did not answer, within the call's bound.
pub const FENCELOCK_UNAVAILABLE: fencelock_status = 4;
/// The hold ended before its release: its lease ran out, or it was broken.
pub const FENCELOCK_LOST: fencelock_status = 5;
/// The caller does not hold the lock, or released it before.
pub const FENCELOCK_NOT_HELD: fencelock_status = 6;
/// The store refuses for a reason that only an operator can mend.
pub const FENCELOCK_MISCONFIGURED: fencelock_status = 7;
/// An argument is out of its range. Also: NULL where something is needed, a handle that was freed or
/// is of another kind, text that is not UTF-8, a structure without its size.
pub const FENCELOCK_INVALID_ARGUMENT: fencelock_status = 8;
/// The store, or this version, cannot do what was asked.
pub const FENCELOCK_UNSUPPORTED: fencelock_status = 9;
/// The client is closed, or belongs to the process that forked this one.
pub const FENCELOCK_CLOSED: fencelock_status = 10;
/// The owner has the lock shared already and wants it for itself: it would wait for its own hold.
pub const FENCELOCK_WOULD_DEADLOCK: fencelock_status = 11;
/// A bug in this library, stopped at its boundary. Please report it.
pub const FENCELOCK_INTERNAL: fencelock_status = 100;

/// Why a hold ended before its release.
pub type fencelock_loss = i32;

/// Its explicit lease, or max_hold_ns, ended.
pub const FENCELOCK_LOSS_ENDED: fencelock_loss = 1;
/// It could not be renewed in time.
pub const FENCELOCK_LOSS_NOT_RENEWED: fencelock_loss = 2;
/// The store no longer knows it: the store lost its memory, or gave the lock away.
pub const FENCELOCK_LOSS_GONE: fencelock_loss = 3;
/// An operator broke it.
pub const FENCELOCK_LOSS_BROKEN: fencelock_loss = 4;
/// The client was closed.
pub const FENCELOCK_LOSS_CLOSED: fencelock_loss = 5;

/// Whether the previous holder was lost instead of releasing: what the lock protects may then be
/// half done.
pub type fencelock_abandoned = i32;

/// It released.
pub const FENCELOCK_ABANDONED_NO: fencelock_abandoned = 0;
/// It was lost.
pub const FENCELOCK_ABANDONED_YES: fencelock_abandoned = 1;
/// The store cannot tell; also the first grant of a lock that it has never seen.
pub const FENCELOCK_ABANDONED_UNKNOWN: fencelock_abandoned = 2;

/// How a hold shares the lock with others.
pub type fencelock_mode = i32;

/// It has the lock for itself: a writer, and every hold of a plain lock.
pub const FENCELOCK_MODE_EXCLUSIVE: fencelock_mode = 0;
/// A reader, beside others.
pub const FENCELOCK_MODE_SHARED: fencelock_mode = 1;
/// It has permits of a semaphore.
pub const FENCELOCK_MODE_PERMITS: fencelock_mode = 2;

pub(crate) fn mode(mode: Mode) -> fencelock_mode {
    match mode {
        Mode::Exclusive => FENCELOCK_MODE_EXCLUSIVE,
        Mode::Shared => FENCELOCK_MODE_SHARED,
        Mode::Permits { .. } => FENCELOCK_MODE_PERMITS,
    }
}

pub(crate) fn loss(reason: LossReason) -> fencelock_loss {
    match reason {
        LossReason::Ended => FENCELOCK_LOSS_ENDED,
        LossReason::NotRenewed => FENCELOCK_LOSS_NOT_RENEWED,
        LossReason::Gone => FENCELOCK_LOSS_GONE,
        LossReason::Broken => FENCELOCK_LOSS_BROKEN,
        LossReason::Closed => FENCELOCK_LOSS_CLOSED,
    }
}

pub(crate) fn abandoned(abandoned: Abandoned) -> fencelock_abandoned {
    match abandoned {
        Abandoned::No => FENCELOCK_ABANDONED_NO,
        Abandoned::Yes => FENCELOCK_ABANDONED_YES,
        Abandoned::Unknown => FENCELOCK_ABANDONED_UNKNOWN,
    }
}
