//! Keeps a connection that breaks from ending the process.
//!
//! A program in Rust ignores SIGPIPE from its start; one in C, C++ or Swift that has loaded this
//! library may not, and what it chose is not ours to change. So the signal is held back in the
//! thread that writes, and one that came meanwhile is taken out before it is let through again; as
//! PostgreSQL's libpq does it (`pq_block_sigpipe`).

/// Does `work`, during which no write of this thread raises SIGPIPE.
pub(crate) fn held_back<T>(work: impl FnOnce() -> T) -> T {
    let _held = held::Held::new();
    work()
}

#[cfg(unix)]
#[allow(unsafe_code)]
mod held {
    use std::mem::MaybeUninit;
    use std::ptr;

    /// SIGPIPE is blocked in this thread until the drop, which has to be in the same thread.
    pub(super) struct Held {
        /// What was blocked before, if that was not SIGPIPE too.
        before: Option<libc::sigset_t>,
    }

    impl Held {
        pub(super) fn new() -> Held {
            let mut before = MaybeUninit::uninit();
            // SAFETY: both sets live through the calls, and the second is written by one that
            // succeeded before it is read.
            unsafe {
                let pipe = pipe();
                if libc::pthread_sigmask(libc::SIG_BLOCK, &raw const pipe, before.as_mut_ptr()) != 0
                {
                    return Held { before: None };
                }
                let before = before.assume_init();
                let blocked = libc::sigismember(&raw const before, libc::SIGPIPE) == 1;
                Held { before: (!blocked).then_some(before) }
            }
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            let Some(before) = self.before else { return };
            // SAFETY: all sets live through the calls. One that is pending cannot be from before,
            // when it would have been delivered, so waiting for it takes what was raised here.
            unsafe {
                let mut pending = MaybeUninit::uninit();
                if libc::sigpending(pending.as_mut_ptr()) == 0
                    && libc::sigismember(pending.as_ptr(), libc::SIGPIPE) == 1
                {
                    let (pipe, mut taken) = (pipe(), 0);
                    libc::sigwait(&raw const pipe, &raw mut taken);
                }
                libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
            }
        }
    }

    /// The set of this one signal.
    fn pipe() -> libc::sigset_t {
        let mut set = MaybeUninit::uninit();
        // SAFETY: the first call makes the set that the second one adds to.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGPIPE);
            set.assume_init()
        }
    }
}

#[cfg(not(unix))]
mod held {
    /// There is no such signal here.
    pub(super) struct Held;

    impl Held {
        pub(super) fn new() -> Held {
            Held
        }
    }
}
