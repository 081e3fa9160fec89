//! A client in a process of its own.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use fencelock_history::Record;
use fencelock_testkit::{children, eventually};

use crate::clock;
use crate::history::{History, LIMIT};
use crate::role::Role;

/// A client in a process of its own, which does what it is told, line by line. Killed on drop, and
/// by the kernel when the test process ends.
#[derive(Debug)]
pub struct Actor {
    name: Arc<str>,
    child: Child,
    input: ChildStdin,
    history: History,
    reader: Option<JoinHandle<()>>,
}

impl Actor {
    /// Starts one. What it says goes into `history`, under `name`.
    pub fn start(history: &History, name: &str) -> Actor {
        Actor::start_behind(history, name, &[])
    }

    /// Starts one by the words of `prefix`, such as `ip netns exec NAME`, which put it elsewhere.
    pub fn start_behind(history: &History, name: &str, prefix: &[String]) -> Actor {
        let nothing: [(&str, &str); 0] = [];
        Actor::launch(history, name, &Role::own(), prefix, nothing)
    }

    /// Starts one that runs `role`, with more in its environment.
    pub fn start_as(
        history: &History,
        name: &str,
        role: &Role,
        environment: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
    ) -> Actor {
        Actor::launch(history, name, role, &[], environment)
    }

    fn launch(
        history: &History,
        name: &str,
        role: &Role,
        prefix: &[String],
        environment: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
    ) -> Actor {
        let mut command = role.command(prefix);
        command.envs(environment).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = match children::spawn(command) {
            Ok(child) => child,
            Err(error) if role.own => panic!(
                "{} cannot be started ({error}): build it with `cargo build -p fencelock-nemesis`",
                role.program()
            ),
            Err(error) => panic!("{} cannot be started: {error}", role.program()),
        };
        let name: Arc<str> = name.into();
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            panic!("{name} has no pipes");
        };
        let reader = thread::spawn({
            let (history, name, own) = (history.clone(), name.clone(), role.own);
            move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if let Some(record) = Record::from_words(&name, &line) {
                        history.push(if own { record } else { clock::by_boot(record) });
                    }
                }
            }
        });
        Actor { name, child, input, history: history.clone(), reader: Some(reader) }
    }

    /// Its name in the history.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tells it to do something. What it said before is not waited for.
    pub fn tell(&mut self, line: &str) {
        // One that has died shows in what is awaited from it.
        let _ = writeln!(self.input, "{line}");
    }

    /// Waits until it says `event` about `tag`, or has said so.
    ///
    /// # Panics
    /// After 30 seconds, with all that it said.
    pub fn wait_for(&self, event: &str, tag: &str) -> Record {
        self.await_from(0, event, tag)
    }

    /// Tells it to do something, and waits until it says `event` about `tag` from then on.
    pub fn ask(&mut self, line: &str, event: &str, tag: &str) -> Record {
        let from = self.history.len();
        self.tell(line);
        self.await_from(from, event, tag)
    }

    /// Whether it has said `event` about `tag`.
    pub fn said(&self, event: &str, tag: &str) -> Option<Record> {
        self.said_since(0, event, tag)
    }

    /// Whether it has said so since its history was so long.
    pub fn said_since(&self, from: usize, event: &str, tag: &str) -> Option<Record> {
        let wanted = |it: &Record| it.who == self.name && it.is(event) && it.tag == tag;
        self.history.find(from, std::time::Duration::ZERO, wanted)
    }

    /// The history that it speaks into.
    pub fn history(&self) -> &History {
        &self.history
    }

    fn await_from(&self, from: usize, event: &str, tag: &str) -> Record {
        let wanted = |it: &Record| it.who == self.name && it.is(event) && it.tag == tag;
        let Some(found) = self.history.find(from, LIMIT, wanted) else {
            let mut said = self.history.since(0);
            said.retain(|it| it.who == self.name);
            let said: Vec<String> = said.iter().map(Record::to_string).collect();
            panic!(
                "{} did not say `{event} {tag}` in 30 s. It said:\n{}",
                self.name,
                said.join("\n")
            );
        };
        found
    }

    /// Kills it as `kill -9` does. All that it said is in the history afterwards.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        self.history.note("killed", &self.name, &[]);
    }

    /// Stops it (SIGSTOP); it does nothing more when this returns.
    ///
    /// # Panics
    /// When it has ended.
    pub fn stop(&mut self) {
        self.history.note("stopping", &self.name, &[]);
        if children::stop(&self.child).is_err() {
            panic!("{} has ended by itself: {:?}", self.name, self.child.wait());
        }
        self.history.note("stopped", &self.name, &[]);
    }

    /// Lets a stopped one go on.
    ///
    /// # Panics
    /// When it has ended.
    pub fn cont(&self) {
        self.history.note("continued", &self.name, &[]);
        self.signal(libc::SIGCONT);
    }

    /// Asks it to end (SIGTERM).
    ///
    /// # Panics
    /// When it has ended.
    pub fn terminate(&self) {
        self.history.note("terminated", &self.name, &[]);
        self.signal(libc::SIGTERM);
    }

    /// Waits until it has ended by itself; gives whether it was content.
    ///
    /// # Panics
    /// After 30 seconds.
    pub fn ended(&mut self) -> bool {
        let child = &mut self.child;
        eventually("the process ends", || child.try_wait().ok().flatten()).success()
    }

    fn signal(&self, signal: i32) {
        if let Err(error) = children::signal(&self.child, signal) {
            panic!("{} cannot be signalled: {error}", self.name);
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
