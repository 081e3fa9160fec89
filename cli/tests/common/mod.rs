//! What every test of the command needs: the real binary, a store of its own, and patience.

#![allow(dead_code)]

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a condition may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A directory with a SQLite store in it.
pub struct Place {
    pub directory: TempDir,
    pub store: String,
}

impl Place {
    pub fn new() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", directory.path().join("locks.sqlite").display());
        Place { directory, store }
    }

    /// A directory, and another store.
    pub fn on(store: &str) -> Place {
        Place { store: store.to_owned(), ..Place::new() }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// `fencelock` with these arguments on this place's store.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = fencelock();
        command.env("FENCELOCK_STORE", &self.store).args(arguments).stdin(Stdio::null());
        command
    }

    pub fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// `fencelock run` of a shell script, with these options before the name.
    pub fn run(&self, options: &[&str], name: &str, script: &str) -> Command {
        let mut arguments = vec!["run"];
        arguments.extend(options);
        arguments.extend([name, "--", "sh", "-c", script]);
        self.command(&arguments)
    }

    /// A run that has the lock and holds it until it is dropped.
    pub fn holder(&self, options: &[&str], name: &str) -> Holder {
        let word: String = name.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        let mark = self.file(&format!("held-{word}"));
        // An earlier holder of the name left one.
        let _ = std::fs::remove_file(&mark);
        let script = format!("echo $$ > {0}.tmp; mv {0}.tmp {0}; exec sleep 300", mark.display());
        let child = self.run(options, name, &script).stderr(Stdio::piped()).spawn().unwrap();
        eventually("the holder runs", || mark.exists());
        let pid = std::fs::read_to_string(&mark).unwrap().trim().to_owned();
        Holder { child: Some(child), pid }
    }
}

/// A running `fencelock run`.
pub struct Holder {
    pub child: Option<Child>,
    /// Of the command.
    pub pid: String,
}

impl Holder {
    /// Of `fencelock` itself.
    pub fn own_pid(&self) -> String {
        self.child.as_ref().unwrap().id().to_string()
    }

    /// Waits for the end.
    pub fn end(mut self) -> Output {
        output(self.child.take().unwrap())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits for a child's end, but not for ever.
pub fn output(mut child: Child) -> Output {
    let mut status: Option<ExitStatus> = None;
    let start = Instant::now();
    while status.is_none() {
        status = child.try_wait().unwrap();
        if start.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("the command did not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

/// The program, with an environment that says nothing.
pub fn fencelock() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencelock"));
    command.env_remove("FENCELOCK_STORE").env_remove("FENCELOCK_OWNER");
    command
}

/// Sends a signal, by its name, to a process, by its number.
pub fn signal(name: &str, pid: &str) {
    let done = Command::new("kill").args([&format!("-{name}"), pid]).status().unwrap();
    assert!(done.success(), "kill -{name} {pid}");
}

/// Whether a process is there, and not only waiting to be reaped.
pub fn lives(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim().starts_with('Z'))
}

/// Waits until something is so.
pub fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < PATIENCE, "still not so: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn code(output: &Output) -> i32 {
    output.status.code().expect("ended by itself")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// What was printed, as JSON.
pub fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error} in {:?} {:?}", stdout(output), stderr(output)))
}

/// One line for a person: no backtrace, no escapes.
pub fn is_one_line(text: &str) -> bool {
    text.lines().count() == 1 && !text.contains('\u{1b}') && text.starts_with("fencelock: ")
}
