//! The thread on which hosts without a loop are called back.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, Ordering};

use parking_lot::{Condvar, Mutex};

use crate::{Error, ErrorKind, Result};

type Job = Box<dyn FnOnce() + Send>;

/// The one thread of this process, `fencelock-callbacks`, that runs what is posted, in order. A job
/// may block and may call the client; the later ones wait for it.
pub struct Dispatcher {
    process: u32,
    jobs: Mutex<VecDeque<Job>>,
    posted: Condvar,
}

/// Leaked on purpose: the thread lasts as long as the process, and a forked child, which has no such
/// thread, must not touch the mutex of its parent's.
static CURRENT: AtomicPtr<Dispatcher> = AtomicPtr::new(std::ptr::null_mut());

impl Dispatcher {
    /// This process' dispatcher; its thread starts with the first call.
    ///
    /// # Errors
    /// `Unavailable` when the operating system gives no thread.
    #[allow(unsafe_code)]
    pub fn current() -> Result<&'static Dispatcher> {
        let process = std::process::id();
        let known = CURRENT.load(Ordering::Acquire);
        // SAFETY: the pointer is null or comes from `Box::into_raw` below and is never freed.
        if let Some(known) = unsafe { known.as_ref() }
            && known.process == process
        {
            return Ok(known);
        }
        let made = Box::into_raw(Box::new(Dispatcher {
            process,
            jobs: Mutex::default(),
            posted: Condvar::new(),
        }));
        match CURRENT.compare_exchange(known, made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                // SAFETY: as above; it has just been made, and nobody frees it.
                let made: &'static Dispatcher = unsafe { &*made };
                let started = std::thread::Builder::new()
                    .name("fencelock-callbacks".to_owned())
                    .spawn(move || made.serve());
                if let Err(error) = started {
                    CURRENT.store(std::ptr::null_mut(), Ordering::Release);
                    return Err(Error::new(
                        ErrorKind::Unavailable,
                        format!("the operating system gives no thread for callbacks: {error}"),
                    ));
                }
                Ok(made)
            }
            Err(other) => {
                // SAFETY: it lost the race, so nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: as above.
                Ok(unsafe { &*other })
            }
        }
    }

    /// Queues a job.
    pub fn post(&self, job: impl FnOnce() + Send + 'static) {
        self.jobs.lock().push_back(Box::new(job));
        self.posted.notify_one();
    }

    fn serve(&self) {
        loop {
            let job = {
                let mut jobs = self.jobs.lock();
                loop {
                    match jobs.pop_front() {
                        Some(job) => break job,
                        None => self.posted.wait(&mut jobs),
                    }
                }
            };
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                tracing::error!("a callback panicked");
            }
        }
    }
}

impl std::fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatcher").field("process", &self.process).finish_non_exhaustive()
    }
}
