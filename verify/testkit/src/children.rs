//! Child processes that cannot outlive the test process.

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::wait::eventually;

type Job = (Command, Sender<io::Result<Child>>);

/// Starts `command` as a child that the kernel kills when this process ends, however it ends.
///
/// The kernel ties a child to the thread that started it, and each test has a thread of its own:
/// so one thread, which never ends, starts them all.
///
/// # Errors
/// When the command cannot be started.
pub fn spawn(command: Command) -> io::Result<Child> {
    static STARTER: OnceLock<Mutex<Sender<Job>>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (sender, jobs) = channel::<Job>();
        std::thread::spawn(move || {
            for (mut command, answer) in jobs {
                tie(&mut command);
                // Nobody waits for the answer only when the test has panicked.
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(sender)
    });
    let (answer, started) = channel();
    let gone = || io::Error::other("the thread that starts children is gone");
    starter
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .send((command, answer))
        .map_err(|_| gone())?;
    started.recv().map_err(|_| gone())?
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn tie(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    // SAFETY: the closure runs between fork and exec and makes one system call.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn tie(_: &mut Command) {}

/// Sends a signal to a child that was started here and is not yet waited for.
///
/// # Errors
/// What the system says.
#[allow(unsafe_code)]
pub fn signal(child: &Child, signal: i32) -> io::Result<()> {
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    // SAFETY: a plain system call; the pid is that of our own child, which is not yet reaped.
    match unsafe { libc::kill(pid, signal) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Stops a child (SIGSTOP): none of its threads does anything more when this returns. The signal
/// reaches them one after the other.
///
/// # Errors
/// When it has ended.
pub fn stop(child: &Child) -> io::Result<()> {
    signal(child, libc::SIGSTOP)?;
    eventually("the process stops", || match is_stopped(child.id()) {
        Ok(stopped) => stopped.then_some(Ok(())),
        Err(error) => Some(Err(error)),
    })
}

/// Whether all threads of a process are stopped.
#[cfg(target_os = "linux")]
fn is_stopped(pid: u32) -> io::Result<bool> {
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // One that has ended meanwhile does nothing either.
        let text = std::fs::read_to_string(thread?.path().join("stat")).unwrap_or_default();
        // The state stands behind the name, which is in brackets.
        match text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()) {
            Some('T') | None => {}
            Some('Z') => return Err(io::Error::other("the process has ended")),
            Some(_) => return Ok(false),
        }
    }
    Ok(true)
}

#[cfg(not(target_os = "linux"))]
fn is_stopped(_: u32) -> io::Result<bool> {
    Ok(true)
}

/// Whether a process with this id exists.
#[allow(unsafe_code)]
pub(crate) fn exists(pid: i32) -> bool {
    // SAFETY: a plain system call; signal 0 is never delivered.
    let sent = unsafe { libc::kill(pid, 0) };
    sent == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}
