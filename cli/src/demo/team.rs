//! The demo's processes, as their parent sees them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::demo::wire::{Order, Report, Setup};
use crate::failure::Failure;

/// How long nothing at all may happen.
const SILENCE: Duration = Duration::from_secs(60);

/// What comes from a process.
#[derive(Debug)]
pub enum Message {
    /// It told something.
    Report(Report),
    /// It is gone, or closed its output.
    Gone,
}

/// Child processes that sell. They are killed when this is dropped.
#[derive(Debug)]
pub struct Team {
    members: Vec<Member>,
    inbox: Receiver<(u32, Message)>,
}

#[derive(Debug)]
struct Member {
    child: Child,
    stdin: ChildStdin,
}

impl Team {
    /// Starts one process for each setup.
    pub fn start(setups: &[Setup]) -> Result<Team, Failure> {
        let (sender, inbox) = channel();
        let mut team = Team { members: Vec::new(), inbox };
        for setup in setups {
            team.members.push(Member::start(setup.process, sender.clone())?);
            team.tell(setup.process, &Order::Setup(setup.clone()))?;
        }
        Ok(team)
    }

    /// Tells a process something.
    pub fn tell(&mut self, process: u32, order: &Order) -> Result<(), Failure> {
        let mut line = serde_json::to_string(order)?;
        line.push('\n');
        let stdin = &mut self.members[process as usize].stdin;
        stdin.write_all(line.as_bytes()).map_err(|error| {
            Failure::own(format!("process {} of the demo ended early ({error})", process + 1))
        })
    }

    /// What comes next, from whichever process.
    pub fn next(&self) -> Result<(u32, Message), Failure> {
        match self.inbox.recv_timeout(SILENCE) {
            Ok((process, Message::Report(Report::Failed(why)))) => {
                Err(Failure::own(format!("process {} of the demo failed: {why}", process + 1)))
            }
            Ok(told) => Ok(told),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                Err(Failure::own(format!(
                    "the demo's processes have been silent for {} s; is the store still there? \
                     (fencelock doctor)",
                    SILENCE.as_secs()
                )))
            }
        }
    }

    /// Stops a process, and returns when it stands still.
    pub fn stop(&self, process: u32) -> Result<(), Failure> {
        let pid = self.signal(process, Signal::STOP)?;
        waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED).map_err(std::io::Error::from)?;
        Ok(())
    }

    /// Lets a stopped process go on.
    pub fn resume(&self, process: u32) -> Result<(), Failure> {
        self.signal(process, Signal::CONT).map(drop)
    }

    /// Kills a process, and returns when it is gone.
    pub fn kill(&mut self, process: u32) -> Result<(), Failure> {
        let child = &mut self.members[process as usize].child;
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    fn signal(&self, process: u32, signal: Signal) -> Result<Pid, Failure> {
        let pid = Pid::from_child(&self.members[process as usize].child);
        kill_process(pid, signal).map_err(std::io::Error::from)?;
        Ok(pid)
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        for member in &mut self.members {
            // A process that has ended already is no trouble; a stopped one dies by this too.
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
    }
}

impl Member {
    fn start(process: u32, sender: Sender<(u32, Message)>) -> Result<Member, Failure> {
        let program = std::env::current_exe()?;
        let mut child = Command::new(program)
            .arg("demo-worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| Failure::own(format!("cannot start a process: {error}")))?;
        let stdin = child.stdin.take().ok_or_else(|| Failure::own("no pipe to the process"))?;
        let stdout = child.stdout.take().ok_or_else(|| Failure::own("no pipe to the process"))?;
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { break };
                let report = serde_json::from_str(&line)
                    .unwrap_or_else(|error| Report::Failed(format!("{error} in {line:?}")));
                if sender.send((process, Message::Report(report))).is_err() {
                    return;
                }
            }
            // Nobody listens any more when the scene is over.
            let _ = sender.send((process, Message::Gone));
        });
        Ok(Member { child, stdin })
    }
}
