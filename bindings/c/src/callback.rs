//! Calling the host back.

#![allow(non_camel_case_types)]

use std::ffi::c_void;
use std::sync::Arc;

use fencelock_support::{Dispatcher, Error, Operation};
use std::sync::Mutex;

use crate::boundary::call;
use crate::completion::{Outcome, fencelock_completion};
use crate::failure::{Failure, invalid};
use crate::kinds::{Kind, fencelock_error, fencelock_operation};
use crate::sized::{Growing, fill};
use crate::span::limit;
use crate::status::fencelock_status;

/// Takes the end of an asynchronous call: exactly once, on the callback thread. What `completion`
/// carries is the receiver's to free; `completion` itself is gone when the function returns. It must
/// not throw.
pub type fencelock_callback =
    Option<unsafe extern "C" fn(completion: *const fencelock_completion, user_data: *mut c_void)>;

/// Frees `user_data`: once, on the callback thread, when it will not be used any more.
pub type fencelock_destroy = Option<unsafe extern "C" fn(user_data: *mut c_void)>;

/// A pointer of the host's, which only its own functions use.
#[derive(Clone, Copy)]
pub(crate) struct UserData(pub(crate) *mut c_void);

// SAFETY: it is only handed back; the header says on which thread.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}

/// Sends one completion to a callback.
pub(crate) struct Reply {
    callback: unsafe extern "C" fn(*const fencelock_completion, *mut c_void),
    user: UserData,
    dispatcher: &'static Dispatcher,
}

impl Reply {
    pub(crate) fn new(callback: fencelock_callback, user: *mut c_void) -> Result<Reply, Failure> {
        let Some(callback) = callback else { return Err(invalid("the callback is NULL").into()) };
        Ok(Reply { callback, user: UserData(user), dispatcher: Dispatcher::current()? })
    }

    pub(crate) fn send(self, result: Result<Outcome, Error>) {
        let Reply { callback, user, dispatcher } = self;
        dispatcher.post(move || {
            let user = { user };
            let completion = fencelock_completion::of(result);
            // SAFETY: the host's word that it takes this; the completion outlives the call.
            unsafe { callback(&raw const completion, user.0) };
        });
    }
}

/// Who gets the end of a call that may end at once.
struct Race {
    stage: Mutex<Stage>,
}

enum Stage {
    /// The starting call has not returned yet.
    Starting,
    /// It ended before that.
    Ended(Box<Result<Outcome, Error>>),
    /// It has returned; the end goes to the callback.
    Begun,
}

/// Starts a call. When `now` is given and the call ends before it has begun to wait, the completion
/// goes there, and otherwise to the callback.
///
/// # Safety
/// `now` and `operation` are as the header asks.
pub(crate) unsafe fn start(
    now: *mut fencelock_completion,
    callback: fencelock_callback,
    user_data: *mut c_void,
    operation: *mut *mut fencelock_operation,
    begin: impl FnOnce(
        Box<dyn FnOnce(Result<Outcome, Error>) + Send>,
    ) -> Result<Option<Operation>, Failure>,
) -> Result<(), Failure> {
    if !operation.is_null() {
        // SAFETY: the caller's word.
        unsafe { operation.write_unaligned(std::ptr::null_mut()) };
    }
    if !now.is_null() {
        // SAFETY: the caller's word. A wrong size is found before anything begins.
        unsafe { fill(now, fencelock_completion::empty())? };
    }
    let reply = Reply::new(callback, user_data)?;
    if now.is_null() {
        let begun = begin(Box::new(move |result| reply.send(result)))?;
        // SAFETY: the caller's word.
        return unsafe { hand(begun, operation) };
    }
    let race = Arc::new(Race { stage: Mutex::new(Stage::Starting) });
    let theirs = race.clone();
    let begun = begin(Box::new(move |result| {
        {
            let mut stage = lock(&theirs.stage);
            if let Stage::Starting = *stage {
                *stage = Stage::Ended(Box::new(result));
                return;
            }
        }
        reply.send(result);
    }))?;
    let stage = std::mem::replace(&mut *lock(&race.stage), Stage::Begun);
    match stage {
        Stage::Ended(result) => {
            // SAFETY: the caller's word.
            unsafe { fill(now, fencelock_completion::of(*result)) }
        }
        // SAFETY: the caller's word.
        _ => unsafe { hand(begun, operation) },
    }
}

/// # Safety
/// `operation` is NULL, or a handle may be written there.
unsafe fn hand(
    begun: Option<Operation>,
    place: *mut *mut fencelock_operation,
) -> Result<(), Failure> {
    if let Some(begun) = begun
        && !place.is_null()
        // Without room for a handle the call goes on all the same, and cannot be cancelled.
        && let Ok(handle) = fencelock_operation::make(begun)
    {
        // SAFETY: the caller's word.
        unsafe { place.write_unaligned(handle) };
    }
    Ok(())
}

/// Nothing panics under these mutexes.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits until every callback that was due when this was called has returned; for tests, and before
/// a library is unloaded. INVALID_ARGUMENT on the callback thread, TIMED_OUT after `timeout_ns`
/// (FENCELOCK_FOREVER: never).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_callbacks_wait(
    timeout_ns: i64,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let limit = limit(timeout_ns, "timeout_ns")?;
        if std::thread::current().name() == Some("fencelock-callbacks") {
            return Err(invalid("a callback cannot wait for the callbacks behind it").into());
        }
        let (told, heard) = std::sync::mpsc::channel();
        Dispatcher::current()?.post(move || {
            // Whoever waited may have given up.
            let _ = told.send(());
        });
        let done = match limit {
            Some(limit) => heard.recv_timeout(limit).is_ok(),
            None => heard.recv().is_ok(),
        };
        if !done {
            return Err(Error::new(
                fencelock_support::ErrorKind::TimedOut,
                "callbacks are still running or due",
            )
            .into());
        }
    })
}
