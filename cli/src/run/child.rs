//! The command, as a child process.

use std::io::{ErrorKind, IsTerminal};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;

use fencelock::Guard;
use fencelock::text;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use tokio::sync::oneshot;

use crate::args::Run;
use crate::failure::Failure;
use crate::{exit, report};

/// In which process group the command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// In one of its own: signals reach whatever it started, too.
    Own,
    /// In ours: the terminal's signals and its job control reach it by themselves.
    Shared,
}

impl Group {
    /// A command that reads a terminal must stay in its foreground group.
    pub fn choose(foreground: bool) -> Group {
        if foreground || std::io::stdin().is_terminal() { Group::Shared } else { Group::Own }
    }
}

/// The running command.
#[derive(Debug)]
pub struct Child {
    child: std::process::Child,
    pid: Pid,
    group: Group,
    ended: oneshot::Receiver<()>,
    killed: bool,
}

impl Child {
    /// Starts the command with the lock's particulars in its environment.
    pub fn spawn(run: &Run, guard: &Guard, group: Group) -> Result<Child, Failure> {
        let (program, arguments) = match run.command.split_first() {
            Some(split) => split,
            None => return Err(Failure::own("no command was given; write it after --")),
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("FENCELOCK_LOCK", guard.name())
            .env("FENCELOCK_TOKEN", guard.token().to_string())
            .env("FENCELOCK_ABANDONED", report::abandoned(guard.previous_abandoned()))
            .env_remove("FENCELOCK_OWNER")
            .env_remove("FENCELOCK_TICKET");
        if let Some(owner) = &run.owner {
            command.env("FENCELOCK_OWNER", owner);
            // A reader has none: with the same owner, anybody reads beside it.
            if !run.shared {
                command.env("FENCELOCK_TICKET", guard.ticket()?.as_str());
            }
        }
        if group == Group::Own {
            command.process_group(0);
        }
        die_with_us(&mut command);
        let child = command.spawn().map_err(|error| {
            let shown = program.to_string_lossy();
            let shown = text::visible(&shown);
            match error.kind() {
                ErrorKind::NotFound => {
                    Failure::with(exit::NOT_FOUND, format!("command not found: {shown}"))
                }
                _ => Failure::with(exit::CANNOT_RUN, format!("cannot run {shown}: {error}")),
            }
        })?;
        let pid = Pid::from_child(&child);
        let (tell, ended) = oneshot::channel();
        std::thread::spawn(move || {
            // Not reaped here: until it is, its number cannot become another process's.
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            let _ = tell.send(());
        });
        Ok(Child { child, pid, group, ended, killed: false })
    }

    /// Resolves when the command has ended. Safe to drop and call again.
    pub async fn ended(&mut self) {
        // An error means that the sender is gone, and with it the command.
        let _ = (&mut self.ended).await;
    }

    /// Sends the command a signal.
    pub fn pass_on(&self, signal: i32) {
        if let Some(signal) = Signal::from_named_raw(signal) {
            self.send(signal);
        }
    }

    /// Asks the command to end, and lets it go on for that if it was stopped.
    pub fn end(&self) {
        self.send(Signal::TERM);
        self.send(Signal::CONT);
    }

    /// Kills the command.
    pub fn kill(&mut self) {
        self.killed = true;
        self.send(Signal::KILL);
    }

    /// Whether it was killed.
    pub fn killed(&self) -> bool {
        self.killed
    }

    /// Takes the exit code of the ended command; `clear` first kills what it left in its group.
    pub fn reap(&mut self, clear: bool) -> Result<u8, Failure> {
        if clear && self.group == Group::Own {
            self.send(Signal::KILL);
        }
        let status = self.child.wait()?;
        Ok(match (status.code(), status.signal()) {
            (Some(code), _) => u8::try_from(code).unwrap_or(exit::OWN),
            (None, Some(signal)) => exit::of_signal(signal),
            (None, None) => exit::OWN,
        })
    }

    fn send(&self, signal: Signal) {
        // It may have ended just now.
        let _ = match self.group {
            Group::Own => kill_process_group(self.pid, signal),
            Group::Shared => kill_process(self.pid, signal),
        };
    }
}

/// A command must not go on without anybody who keeps its lock: when this process is killed, the
/// command gets SIGTERM. Only Linux can do that.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn die_with_us(command: &mut Command) {
    let parent = rustix::process::getpid();
    let before_exec = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
        if rustix::process::getppid() != Some(parent) {
            return Err(rustix::io::Errno::SRCH.into());
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes two system calls; it allocates nothing
    // and takes no lock.
    unsafe {
        command.pre_exec(before_exec);
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_us(_command: &mut Command) {}
