//! Signals to this process, which the command is to get.

use rustix::process::Signal;
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::failure::Failure;
use crate::run::child::Group;

const PASSED_ON: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Signals that have come in.
#[derive(Debug)]
pub struct Signals {
    caught: UnboundedReceiver<Caught>,
    group: Group,
}

#[derive(Debug)]
struct Caught {
    signal: i32,
    by_terminal: bool,
}

impl Signals {
    /// Catches signals from now on, but for those that were ignored before (`nohup`).
    pub fn catch(group: Group) -> Result<Signals, Failure> {
        let ignored = ignored();
        let wanted = PASSED_ON.iter().filter(|&&signal| ignored & (1 << (signal - 1)) == 0);
        let mut signals = SignalsInfo::<WithOrigin>::new(wanted)?;
        let (sender, caught) = unbounded_channel();
        std::thread::spawn(move || {
            for origin in &mut signals {
                let by_terminal = matches!(origin.cause, Cause::Kernel);
                if sender.send(Caught { signal: origin.signal, by_terminal }).is_err() {
                    return;
                }
            }
        });
        Ok(Signals { caught, group })
    }

    /// The next signal for the command. What the terminal sent to a group that the command shares
    /// has reached it already.
    pub async fn next(&mut self) -> i32 {
        loop {
            let caught = self.receive().await;
            if !(caught.by_terminal && self.group == Group::Shared) {
                return caught.signal;
            }
        }
    }

    /// The next signal that ends a process which has no command yet.
    pub async fn fatal(&mut self) -> i32 {
        self.receive().await.signal
    }

    async fn receive(&mut self) -> Caught {
        match self.caught.recv().await {
            Some(caught) => caught,
            None => std::future::pending().await,
        }
    }
}

/// The signals that this process was told to ignore, as a bit mask; on other systems than Linux
/// nobody says.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// That the numbers of both libraries mean the same signals.
const _: () = assert!(Signal::TERM.as_raw() == SIGTERM && Signal::INT.as_raw() == SIGINT);
