//! Another program's client in a process of its own, which does what it is told, line by line.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::children;

/// Longer than for others: a Java process starts slowly on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Another program's client in a process of its own, which does what it is told, line by line: its
/// standard input has orders, its standard output answers. Killed on drop, and by the kernel when
/// the test process ends.
#[derive(Debug)]
pub struct Driver {
    child: Child,
    input: ChildStdin,
    said: Arc<Said>,
}

#[derive(Debug, Default)]
struct Said {
    lines: Mutex<Vec<String>>,
    grown: Condvar,
}

impl Driver {
    /// Starts one.
    ///
    /// # Errors
    /// When the command cannot be started.
    pub fn start(mut command: Command) -> io::Result<Driver> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = children::spawn(command)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the driver has no pipes"));
        };
        let said = Arc::new(Said::default());
        let heard = Arc::clone(&said);
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                heard.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
                heard.grown.notify_all();
            }
        });
        Ok(Driver { child, input, said })
    }

    /// Tells it to do something.
    pub fn tell(&mut self, line: &str) {
        // One that has died shows in what is awaited from it.
        let _ = writeln!(self.input, "{line}");
    }

    /// Waits until it says something that begins with `words`, or has said so; gives the rest of
    /// that line, and forgets it.
    ///
    /// # Panics
    /// After 60 seconds, with what it said instead.
    pub fn wait_for(&self, words: &str) -> String {
        self.wait_for_any([words]).1
    }

    /// As [`Driver::wait_for`], for whichever it says; gives which.
    ///
    /// # Panics
    /// After 60 seconds, with what it said instead.
    pub fn wait_for_any<const N: usize>(&self, words: [&str; N]) -> (usize, String) {
        let end = Instant::now() + PATIENCE;
        let mut lines = self.said.lines.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let found = lines.iter().enumerate().find_map(|(at, line)| {
                let mut words = words.iter().enumerate();
                words.find_map(|(which, words)| Some((at, which, rest(line, words)?)))
            });
            if let Some((at, which, said)) = found {
                let said = said.to_owned();
                lines.remove(at);
                return (which, said);
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the driver did not say any of {words:?}, but: {lines:#?}");
            let waited = self.said.grown.wait_timeout(lines, left);
            lines = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Tells it to do something and waits for the answer.
    pub fn ask(&mut self, line: &str, answer: &str) -> String {
        self.tell(line);
        self.wait_for(answer)
    }

    /// Whether it has said something that begins with `words`.
    pub fn has_said(&self, words: &str) -> bool {
        let lines = self.said.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().any(|line| rest(line, words).is_some())
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Stops its process (SIGSTOP).
    ///
    /// # Errors
    /// When it has ended.
    pub fn stop(&self) -> io::Result<()> {
        children::stop(&self.child)
    }

    /// Lets a stopped process go on.
    ///
    /// # Errors
    /// When it has ended.
    pub fn cont(&self) -> io::Result<()> {
        children::signal(&self.child, libc::SIGCONT)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What follows `words` in `line`, when it begins with just those.
fn rest<'a>(line: &'a str, words: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(words)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ') }
}

/// The value of `key=…` in what a driver said.
pub fn value<'a>(said: &'a str, key: &str) -> Option<&'a str> {
    said.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}
