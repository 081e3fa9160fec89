//! Acquiring.

#![allow(non_camel_case_types)]

use std::borrow::Cow;
use std::ffi::{c_char, c_void};
use std::time::Duration;

use fencelock_support::{EntryKey, Error, Lock, Owner, OwnerId, Patience};

use crate::boundary::{call, give, want};
use crate::callback::{fencelock_callback, start};
use crate::cancel::Cancel;
use crate::completion::{Outcome, fencelock_completion};
use crate::failure::{Failure, invalid};
use crate::handle::Pin;
use crate::hold_object::HoldObject;
use crate::kinds::{
    Kind, fencelock_cancel, fencelock_client, fencelock_error, fencelock_hold, fencelock_lock,
    fencelock_operation,
};
use crate::sized::{Growing, read};
use crate::span::{limit, span};
use crate::status::fencelock_status;
use crate::text;

/// The calling thread owns the hold, and re-enters.
pub const FENCELOCK_OWNER_THREAD: u32 = 0;
/// A thread or task of the program, known by owner_number (62 bits), owns the hold, and re-enters.
/// The number means nothing outside the client.
pub const FENCELOCK_OWNER_LOCAL: u32 = 1;
/// Every acquisition is its own: acquiring again waits, also in the same thread.
pub const FENCELOCK_OWNER_FRESH: u32 = 2;
/// Whoever shows the text in `owner` re-enters, from any process or language.
pub const FENCELOCK_OWNER_EXPLICIT: u32 = 3;

/// How to acquire, to be initialised with FENCELOCK_ACQUIRE_OPTIONS_INIT: for the calling thread,
/// waiting as long as it takes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fencelock_acquire_options {
    /// sizeof(fencelock_acquire_options).
    pub size: usize,
    /// How long to wait for others: FENCELOCK_TRY, FENCELOCK_FOREVER, or a bound.
    pub timeout_ns: i64,
    /// 0: the client's lease, renewed until the release. Otherwise the hold ends after so long and
    /// is not renewed: 100 ms to 7 days.
    pub lease_ns: i64,
    /// A ceiling over the renewal, counted from the grant: guards against a holder that hangs. 0:
    /// none.
    pub max_hold_ns: i64,
    /// With FENCELOCK_OWNER_LOCAL.
    pub owner_number: u64,
    /// FENCELOCK_OWNER_THREAD, _LOCAL, _FRESH or _EXPLICIT.
    pub owner_kind: u32,
    /// 0.
    pub reserved: u32,
    /// With FENCELOCK_OWNER_EXPLICIT: 1 to 256 bytes of UTF-8.
    pub owner: *const c_char,
    /// Its length in bytes, or FENCELOCK_NTS.
    pub owner_length: usize,
    /// What cancels the wait, or NULL; for calls that block.
    pub cancel: *mut fencelock_cancel,
    /// With fencelock_lock_acquire_async(): for how long the calling thread may wait, and drive the
    /// connection, before the call goes on without it; what ends in that time ends in `now`. 0: it does
    /// not wait.
    pub block_ns: i64,
}

// SAFETY: it begins with its size, and all zeros are a value of it.
unsafe impl Growing for fencelock_acquire_options {}

/// The same, read.
pub(crate) struct Request {
    pub(crate) patience: Patience,
    pub(crate) owner: Owner,
    lease: Option<Duration>,
    max_hold: Option<Duration>,
    cancel: *mut fencelock_cancel,
    /// For how long the calling thread may wait before an asynchronous call goes on without it.
    block: Option<Duration>,
}

impl Request {
    /// # Safety
    /// As the header asks.
    pub(crate) unsafe fn read(from: *const fencelock_acquire_options) -> Result<Request, Failure> {
        // SAFETY: the caller's word.
        let Some(from) = (unsafe { read(from)? }) else {
            return Ok(Request {
                patience: Patience::Forever,
                owner: Owner::Thread,
                lease: None,
                max_hold: None,
                cancel: std::ptr::null_mut(),
                block: None,
            });
        };
        if from.reserved != 0 {
            return Err(invalid("the reserved field of the options is not 0").into());
        }
        let owner = match from.owner_kind {
            FENCELOCK_OWNER_THREAD => Owner::Thread,
            FENCELOCK_OWNER_LOCAL if from.owner_number >> 62 != 0 => {
                return Err(invalid("owner_number has more than 62 bits").into());
            }
            FENCELOCK_OWNER_LOCAL => Owner::Local(from.owner_number),
            FENCELOCK_OWNER_FRESH => Owner::Fresh,
            FENCELOCK_OWNER_EXPLICIT => {
                // SAFETY: the caller's word.
                let owner = unsafe { text::need(from.owner, from.owner_length, "owner")? };
                Owner::Explicit(OwnerId::new(owner)?)
            }
            kind => return Err(invalid(format!("there is no owner_kind {kind}")).into()),
        };
        let patience = match limit(from.timeout_ns, "timeout_ns")? {
            None => Patience::Forever,
            Some(Duration::ZERO) => Patience::Try,
            Some(limit) => Patience::For(limit),
        };
        Ok(Request {
            patience,
            owner,
            lease: span(from.lease_ns, "lease_ns")?,
            max_hold: span(from.max_hold_ns, "max_hold_ns")?,
            cancel: from.cancel,
            block: span(from.block_ns, "block_ns")?,
        })
    }

    /// The lock with these options.
    pub(crate) fn on<'a>(&self, lock: &'a Lock) -> Cow<'a, Lock> {
        if self.owner == Owner::Thread && self.lease.is_none() && self.max_hold.is_none() {
            return Cow::Borrowed(lock);
        }
        let mut lock = lock.clone().owner(self.owner.clone());
        if let Some(lease) = self.lease {
            lock = lock.lease(lease);
        }
        if let Some(ceiling) = self.max_hold {
            lock = lock.max_hold(ceiling);
        }
        Cow::Owned(lock)
    }

    /// Whose entries are meant.
    pub(crate) fn key(&self) -> Result<EntryKey, Failure> {
        Ok(EntryKey::try_from(&self.owner)?)
    }

    /// The token that cancels the wait, if one was given.
    pub(crate) fn cancel(&self) -> Result<Option<Pin<'static, Cancel>>, Failure> {
        if self.cancel.is_null() {
            return Ok(None);
        }
        let cancel = fencelock_cancel::get(self.cancel)?;
        cancel.attend()?;
        Ok(Some(cancel))
    }

    /// Only calls that block can be cancelled by a token.
    pub(crate) fn refuse_cancel(&self) -> Result<(), Failure> {
        match self.cancel.is_null() {
            true => Ok(()),
            false => Err(invalid(
                "a call that does not block is cancelled through its operation: leave cancel NULL",
            )
            .into()),
        }
    }
}

/// Acquires a lock; `options` may be NULL. The calling thread waits, first come, first served.
///
/// CONTENDED when it did not want to wait, TIMED_OUT when others held the lock all the while,
/// CANCELLED, UNAVAILABLE when the store could not be reached, MISCONFIGURED (also while the name is a
/// semaphore's), INVALID_ARGUMENT, CLOSED; WOULD_DEADLOCK, at once, when the owner has the lock to read
/// only (see fencelock_client_rwlock()).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_lock_acquire(
    lock: *mut fencelock_lock,
    options: *const fencelock_acquire_options,
    hold: *mut *mut fencelock_hold,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        want(hold, "hold")?;
        acquire(&fencelock_lock::get(lock)?.lock, options, hold)?;
    })
}

/// What every blocking acquire does.
///
/// # Safety
/// As the header asks.
pub(crate) unsafe fn acquire(
    lock: &Lock,
    options: *const fencelock_acquire_options,
    hold: *mut *mut fencelock_hold,
) -> Result<(), Failure> {
    // SAFETY: the caller's word.
    let request = unsafe { Request::read(options)? };
    let cancel = request.cancel()?;
    let cancel = cancel.as_ref().map(|cancel| cancel.token());
    let granted = request.on(lock).acquire(request.patience, cancel)?;
    // SAFETY: as above.
    unsafe { give(hold, "hold", fencelock_hold::make(HoldObject::new(granted))?) }
}

/// As fencelock_lock_acquire(), without blocking for longer than block_ns says. The completion has the
/// hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_lock_acquire_async(
    lock: *mut fencelock_lock,
    options: *const fencelock_acquire_options,
    now: *mut fencelock_completion,
    callback: fencelock_callback,
    user_data: *mut c_void,
    operation: *mut *mut fencelock_operation,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let lock = &fencelock_lock::get(lock)?.lock;
        acquire_async(lock, options, now, callback, user_data, operation)?;
    })
}

/// What every asynchronous acquire does.
///
/// # Safety
/// As the header asks.
pub(crate) unsafe fn acquire_async(
    lock: &Lock,
    options: *const fencelock_acquire_options,
    now: *mut fencelock_completion,
    callback: fencelock_callback,
    user_data: *mut c_void,
    operation: *mut *mut fencelock_operation,
) -> Result<(), Failure> {
    // SAFETY: the caller's word.
    let request = unsafe { Request::read(options)? };
    request.refuse_cancel()?;
    let begin = |done: Box<dyn FnOnce(Result<Outcome, Error>) + Send>| {
        let lock = request.on(lock);
        let granted = move |hold: Result<_, _>| done(hold.map(Outcome::Hold));
        Ok(Some(match request.block {
            Some(block) => lock.acquire_after(request.patience, block, granted),
            None => lock.acquire_async(request.patience, granted),
        }))
    };
    // SAFETY: as above.
    unsafe { start(now, callback, user_data, operation, begin) }
}

/// How many holds an owner has on a lock in this client: the owner of `options`, or the calling
/// thread. Of a lock, and of the side of a read-write lock that writes, those to write; of the side that
/// reads, those to read. Asks the store nothing. For holds that were acquired; fencelock_lock_depth() is for
/// entering.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_lock_hold_count(
    lock: *mut fencelock_lock,
    options: *const fencelock_acquire_options,
    count: *mut u64,
) -> fencelock_status {
    call!({
        let lock = fencelock_lock::get(lock)?;
        let request = Request::read(options)?;
        give(count, "count", request.on(&lock.lock).side_count() as u64)?;
    })
}

/// Goes on with a hold of an explicit owner that another thread, process or language has, by its
/// ticket (see fencelock_hold_ticket()): joins it under the same token. The hold is this client's
/// own, with its own lease; the lock is free when all of the owner's holds are released.
///
/// INVALID_ARGUMENT for a ticket that cannot be read, NOT_HELD when the owner's hold is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_attach(
    client: *mut fencelock_client,
    ticket: *const c_char,
    ticket_length: usize,
    hold: *mut *mut fencelock_hold,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        want(hold, "hold")?;
        let client = fencelock_client::get(client)?;
        let joined = client.attach(text::need(ticket, ticket_length, "ticket")?)?;
        give(hold, "hold", fencelock_hold::make(HoldObject::new(joined))?)?;
    })
}

/// As fencelock_client_attach(), without blocking. The completion has the hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_attach_async(
    client: *mut fencelock_client,
    ticket: *const c_char,
    ticket_length: usize,
    now: *mut fencelock_completion,
    callback: fencelock_callback,
    user_data: *mut c_void,
    operation: *mut *mut fencelock_operation,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let client = fencelock_client::get(client)?;
        let ticket = text::need(ticket, ticket_length, "ticket")?.to_owned();
        start(now, callback, user_data, operation, |done| {
            Ok(Some(client.attach_async(ticket, move |hold| done(hold.map(Outcome::Hold)))))
        })?;
    })
}
