//! Running something in a forked child.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A child that hangs must not outlive its test.
const SECONDS: u32 = 60;

/// Runs `child` in a child made by `fork`; gives whether it returned true there. The child then ends
/// at once: no destructor of the parent's things runs in it.
///
/// # Panics
/// When there can be no child.
#[allow(unsafe_code)]
pub fn in_child(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: plain system calls. The child runs on a copy of this thread alone; it only allocates
    // (which the C library allows after a fork) and calls what is under test, then exits at once.
    unsafe {
        match libc::fork() {
            0 => {
                libc::alarm(SECONDS);
                let fine = catch_unwind(AssertUnwindSafe(child));
                libc::_exit(i32::from(!fine.unwrap_or(false)))
            }
            child => {
                assert!(child > 0, "fork failed");
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &mut status, 0), child);
                libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
            }
        }
    }
}
