//! Keeps `pthread_cancel` from unwinding through Rust.
//!
//! To cancel a thread of a program in C is to unwind its stack from where it waits, and what unwinds
//! through Rust in such a way ends the process. So the thread is not cancelled while it is in here, but
//! at the next place where it may be after the call.

/// Does `work`, in which this thread is not cancelled.
pub(crate) fn uncancelled<T>(work: impl FnOnce() -> T) -> T {
    let _disabled = disabled::Disabled::new();
    work()
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
#[allow(unsafe_code)]
mod disabled {
    use std::ffi::c_int;
    use std::ptr;

    #[cfg(target_os = "linux")]
    const PTHREAD_CANCEL_DISABLE: c_int = 1;
    #[cfg(target_os = "macos")]
    const PTHREAD_CANCEL_DISABLE: c_int = 0;

    unsafe extern "C" {
        fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    }

    /// Until the drop, which has to be in the same thread.
    pub(super) struct Disabled {
        before: c_int,
    }

    impl Disabled {
        pub(super) fn new() -> Disabled {
            let mut before = PTHREAD_CANCEL_DISABLE;
            // SAFETY: `before` lives through the call.
            unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
            Disabled { before }
        }
    }

    impl Drop for Disabled {
        fn drop(&mut self) {
            // SAFETY: the state is one that the system gave. Nobody is cancelled here: this is no
            // cancellation point.
            unsafe { pthread_setcancelstate(self.before, ptr::null_mut()) };
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod disabled {
    /// Threads are not cancelled here, or not by unwinding.
    pub(super) struct Disabled;

    impl Disabled {
        pub(super) fn new() -> Disabled {
            Disabled
        }
    }
}
