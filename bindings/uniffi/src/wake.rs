//! Telling the host something without running its code: through a pipe.
//!
//! A host whose code runs under one lock, as Ruby's does, can be called only while it lives and lends that
//! lock. At the end of such a process nobody does any more, and what waits then for its wake-up, be it to
//! release a lock, would keep the process for ever. Nor does a forked child have the thread that would run
//! the code.

use std::sync::atomic::{AtomicBool, Ordering};

use fencelock_support::Dispatcher;

/// Whoever awaits is woken by [`wake`], which any thread may do.
static BY_PIPE: AtomicBool = AtomicBool::new(false);

/// From now on all who await are woken by a byte in a pipe. Gives the address of what does it, a function
/// for the place of UniFFI's continuation: the descriptor to write to is its data, the byte the result of
/// the poll. 0 where there are no such pipes.
#[uniffi::export]
pub fn wake_by_pipe() -> u64 {
    BY_PIPE.store(cfg!(unix), Ordering::Release);
    address()
}

/// Whether waking runs none of the host's code.
pub(crate) fn is_by_pipe() -> bool {
    BY_PIPE.load(Ordering::Acquire)
}

#[cfg(unix)]
fn address() -> u64 {
    wake as *const () as usize as u64
}

#[cfg(not(unix))]
fn address() -> u64 {
    0
}

/// One byte for each poll, which its caller keeps the pipe open for: it neither blocks nor fails.
#[cfg(unix)]
extern "C" fn wake(descriptor: u64, code: i8) {
    write(descriptor, &code.to_ne_bytes());
}

/// What a hold is to tell through a pipe, once: 16 bytes, the caller's number and what has happened, each
/// little-endian. 0 when nothing will happen any more.
pub(crate) struct News {
    descriptor: u64,
    number: u64,
    told: bool,
    /// Writes: a pipe that nobody reads is full some day, and the connection must not wait for it.
    dispatcher: &'static Dispatcher,
}

impl News {
    pub(crate) fn new(descriptor: u64, number: u64) -> fencelock_support::Result<News> {
        Ok(News { descriptor, number, told: false, dispatcher: Dispatcher::current()? })
    }

    pub(crate) fn tell(mut self, what: u64) {
        self.told = true;
        self.send(what);
    }

    fn send(&self, what: u64) {
        let (descriptor, number) = (self.descriptor, self.number);
        self.dispatcher.post(move || {
            let mut record = [0; 16];
            record[..8].copy_from_slice(&number.to_le_bytes());
            record[8..].copy_from_slice(&what.to_le_bytes());
            write(descriptor, &record);
        });
    }
}

impl Drop for News {
    fn drop(&mut self) {
        if !self.told {
            self.send(0);
        }
    }
}

/// So few bytes are written together or not at all.
#[cfg(unix)]
fn write(descriptor: u64, bytes: &[u8]) {
    let Ok(descriptor) = libc::c_int::try_from(descriptor) else { return };
    loop {
        // SAFETY: the bytes live through the call.
        let written = unsafe { libc::write(descriptor, bytes.as_ptr().cast(), bytes.len()) };
        let interrupted = written < 0
            && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted;
        if !interrupted {
            return;
        }
    }
}

#[cfg(not(unix))]
fn write(_: u64, _: &[u8]) {}

#[cfg(all(test, unix))]
mod tests;
