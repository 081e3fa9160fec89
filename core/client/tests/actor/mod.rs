//! A process that plays a role on a store: the test's own program again, which runs its test `role` alone.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use fencelock_testkit::children;

/// The role's name, and the store's URL.
const ROLE: &str = "FENCELOCK_TEST_ROLE";
const URL: &str = "FENCELOCK_TEST_URL";

/// A child that plays a role. It says `<word> …` in lines of its own.
pub struct Actor {
    pub child: Child,
    lines: BufReader<ChildStdout>,
}

impl Actor {
    pub fn start(role: &str, url: &str) -> Actor {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "role", "--nocapture"]).env(ROLE, role).env(URL, url);
        command.stdout(Stdio::piped());
        let mut child = children::spawn(command).unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Actor { child, lines }
    }

    /// Reads until the child says `word`; gives what follows it on the line.
    pub fn says(&mut self, word: &str) -> String {
        let mark = format!("<{word}>");
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the child ended before {mark}");
            if let Some((_, rest)) = line.split_once(&mark) {
                return rest.trim().to_owned();
            }
        }
    }

    pub fn signal(&self, signal: i32) {
        children::signal(&self.child, signal).unwrap();
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What this process is to play, and where. An ordinary test run has no role.
pub fn cast() -> Option<(String, String)> {
    Some((std::env::var(ROLE).ok()?, std::env::var(URL).ok()?))
}
