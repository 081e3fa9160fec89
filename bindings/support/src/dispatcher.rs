//! The thread on which hosts without a loop are called back.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::mpsc;

use parking_lot::{Condvar, Mutex};

use crate::{Error, ErrorKind, Result, fork};

type Job = Box<dyn FnOnce() + Send>;

/// The one thread of this process, `fencelock-callbacks`, that runs what is posted, in order. A job
/// may block and may call the client; the later ones wait for it.
pub struct Dispatcher {
    born: u32,
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
    pub fn current() -> Result<&'static Dispatcher> {
        Dispatcher::at(&CURRENT, |serve| {
            let thread = std::thread::Builder::new().name("fencelock-callbacks".to_owned());
            thread.spawn(serve).map(drop)
        })
    }

    /// The dispatcher that stands at `place`; `start` starts the thread of a new one.
    #[allow(unsafe_code)]
    fn at(
        place: &AtomicPtr<Dispatcher>,
        start: impl Fn(Job) -> io::Result<()>,
    ) -> Result<&'static Dispatcher> {
        let born = fork::watch();
        loop {
            let known = place.load(Ordering::Acquire);
            // SAFETY: the pointer is null or comes from `Box::into_raw` below and is never freed.
            if let Some(known) = unsafe { known.as_ref() }
                && known.born == born
            {
                return Ok(known);
            }
            // The thread comes first: nobody may find a dispatcher that has none.
            let (choose, chosen) = mpsc::channel::<&'static Dispatcher>();
            let serve = move || {
                if let Ok(dispatcher) = chosen.recv() {
                    dispatcher.serve();
                }
            };
            start(Box::new(serve)).map_err(|error| {
                Error::new(
                    ErrorKind::Unavailable,
                    format!("the operating system gives no thread for callbacks: {error}"),
                )
            })?;
            let made = Box::into_raw(Box::new(Dispatcher {
                born,
                jobs: Mutex::default(),
                posted: Condvar::new(),
            }));
            if place.compare_exchange(known, made, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                // SAFETY: as above; it has just been made, and nobody frees it.
                let made: &'static Dispatcher = unsafe { &*made };
                // The thread listens until it hears this.
                let _ = choose.send(made);
                return Ok(made);
            }
            // Another call was quicker; the thread ends, as nothing was chosen for it.
            // SAFETY: nobody has seen this one.
            drop(unsafe { Box::from_raw(made) });
        }
    }

    /// Queues a job. In a forked child its parent's dispatcher runs nothing, and drops nothing
    /// either: what a job has may belong to that thread.
    pub fn post(&self, job: impl FnOnce() + Send + 'static) {
        if self.born != fork::generation() {
            std::mem::forget(job);
            return;
        }
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
        f.debug_struct("Dispatcher").field("born", &self.born).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
