//! Cancelling blocking waits, also from a signal handler.

use std::sync::atomic::{AtomicBool, Ordering};

use fencelock_support::CancelToken;

use crate::boundary::{call, give, want};
use crate::failure::Failure;
use crate::kinds::{Kind, Number, fencelock_cancel, fencelock_error, kind};
use crate::status::fencelock_status;

mod signal;

/// What a handle of a cancel token names.
pub struct Cancel {
    token: CancelToken,
    /// A signal handler has asked. That and whether there is a bell are written and read in one
    /// order by all: a handler that finds no bell has asked before who makes one looks.
    asked: AtomicBool,
}

impl Cancel {
    pub(crate) fn token(&self) -> &CancelToken {
        &self.token
    }

    /// Before a wait that this is to end: a forked child has nobody yet who hears its handlers.
    pub(crate) fn attend(&self) -> Result<(), Failure> {
        signal::prepare(heed_all)?;
        self.heed();
        Ok(())
    }

    /// Does what a handler has asked for.
    fn heed(&self) {
        if self.asked.load(Ordering::SeqCst) && !self.token.is_cancelled() {
            self.token.cancel();
        }
    }

    fn triggered(&self) -> bool {
        self.asked.load(Ordering::Acquire) || self.token.is_cancelled()
    }
}

kind!(fencelock_cancel: Number::Cancel, "cancel token", Cancel);

fn heed_all() {
    fencelock_cancel::table().each(Cancel::heed);
}

/// A token that is not triggered. It may be given to any number of calls. In a forked child it is one
/// of the child's own from then on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_cancel_new(
    cancel: *mut *mut fencelock_cancel,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        want(cancel, "cancel")?;
        signal::prepare(heed_all)?;
        let made = Cancel { token: CancelToken::new(), asked: AtomicBool::new(false) };
        give(cancel, "cancel", fencelock_cancel::make(made)?)?;
    })
}

/// Ends the waits that were given this token, and those that will be, with CANCELLED: once and for
/// good. A wait that has its lock already keeps it. From any thread; in a signal handler use
/// fencelock_cancel_signal().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_cancel_trigger(
    cancel: *mut fencelock_cancel,
) -> fencelock_status {
    call!({
        fencelock_cancel::get(cancel)?.token.cancel();
    })
}

/// As fencelock_cancel_trigger(), and safe in a signal handler: it takes no mutex and allocates
/// nothing; a thread of the library does the rest at once. The token must not be freed before the
/// handler has returned. On Windows, which has no such handlers, it is fencelock_cancel_trigger().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_cancel_signal(
    cancel: *mut fencelock_cancel,
) -> fencelock_status {
    // No message is made here, as that would allocate.
    match fencelock_cancel::table().pin(cancel.addr() as u64) {
        Some(token) => {
            token.asked.store(true, Ordering::SeqCst);
            if !signal::ring() {
                token.token.cancel();
            }
            crate::status::FENCELOCK_OK
        }
        None => crate::status::FENCELOCK_INVALID_ARGUMENT,
    }
}

/// Whether a token was triggered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_cancel_is_triggered(
    cancel: *const fencelock_cancel,
    triggered: *mut bool,
) -> fencelock_status {
    call!({
        give(triggered, "triggered", fencelock_cancel::get(cancel)?.triggered())?;
    })
}

/// Frees a token's handle. Waits that it was given to go on. NULL is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_cancel_free(cancel: *mut fencelock_cancel) -> fencelock_status {
    call!({
        fencelock_cancel::free(cancel)?;
    })
}
