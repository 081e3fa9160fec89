//! Several processes on one file, some of which are stopped or killed. The children are this test
//! program again, run with one of the ignored tests.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fencelock_engine::reply::{Abandoned, Failure, Push, RefusalKind, Standing};
use fencelock_engine::request::Op;
use fencelock_engine::{ClientId, HoldId, Name};
use fencelock_sqlite::{Options, SqliteTransport, open};
use fencelock_testkit::leave_out;
use fencelock_testkit::recorder::{BOUND, Client, Recorder, fresh, hold, name};
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};

const FILE: &str = "FENCELOCK_TEST_FILE";

fn client(path: &Path) -> Client<SqliteTransport> {
    Client::open(|id, sink| open(Options::new(path), id, sink).unwrap())
}

fn lock() -> Name {
    name("shared")
}

/// A child that runs one of the ignored tests, and is killed when dropped.
struct Other {
    process: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    _input: ChildStdin,
}

impl Other {
    fn start(test: &str, path: &Path) -> Other {
        Other::start_by(Command::new(std::env::current_exe().unwrap()), test, path)
    }

    /// By a command that takes the arguments of this test program.
    fn start_by(mut command: Command, test: &str, path: &Path) -> Other {
        let mut process = command
            .args(["--ignored", "--exact", "--nocapture", "--test-threads=1", test])
            .env(FILE, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let _input = process.stdin.take().unwrap();
        Other { process, lines, _input }
    }

    /// What it says next under this word.
    fn hear(&mut self, word: &str) -> String {
        loop {
            let line = self.lines.next().expect("the child goes on").unwrap();
            // The test harness may have begun the line.
            if let Some((_, said)) = line.split_once(&format!("<{word}>")) {
                return said.to_owned();
            }
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// In the child: the file; `None` when the test was not started by another.
fn given() -> Option<PathBuf> {
    std::env::var_os(FILE).map(PathBuf::from)
}

fn say(word: &str, what: impl std::fmt::Display) {
    println!("<{word}>{what}");
    std::io::stdout().flush().unwrap();
}

/// In the child: until the parent kills it, or ends.
fn stay() {
    let _ = std::io::stdin().lock().lines().next();
}

#[test]
#[ignore = "the child of other tests"]
fn child_takes_the_lock_and_stays() {
    let Some(path) = given() else { return };
    let client = client(&path);
    let mut ask = client.request(&lock(), hold(), false);
    ask.lease = Duration::from_millis(500);
    let hold = ask.hold;
    let state = client.acquire(ask);
    assert_eq!(state.standing, Standing::Granted);
    say("token", state.token);
    say("hold", hold);
    stay();
}

#[test]
#[ignore = "the child of other tests"]
fn child_waits_for_the_lock() {
    let Some(path) = given() else { return };
    let client = client(&path);
    let hold = hold();
    assert_eq!(client.queue(&lock(), hold).standing, Standing::Queued);
    say("queued", hold);
    let (token, _) = client.granted(BOUND, hold).expect("the release is seen");
    say("token", token);
    stay();
}

#[test]
#[ignore = "the child of other tests"]
fn child_writes_without_end() {
    let Some(path) = given() else { return };
    let client = client(&path);
    loop {
        let (hold, token) = client.insist(&lock());
        say("token", token);
        client.release(&lock(), hold);
    }
}

#[test]
#[ignore = "the child of other tests"]
fn child_stays_in_a_transaction() {
    let Some(path) = given() else { return };
    let conn = Connection::open(path).unwrap();
    conn.execute_batch("BEGIN IMMEDIATE; UPDATE fencelock_meta SET floor = floor").unwrap();
    say("writing", "");
    stay();
}

#[test]
#[ignore = "the child of other tests"]
fn child_says_what_opening_says() {
    let Some(path) = given() else { return };
    let id = ClientId::new(fresh(), "").unwrap();
    match open(Options::new(path), id, Arc::new(Recorder::default())) {
        Ok(_) => say("opened", ""),
        Err(error) => say("opened", format!("{:?}: {error}", error.kind())),
    }
    stay();
}

/// This test program in a sandbox that this command has changed; `None` where nobody may do that.
fn sandbox(change: &str) -> Option<Command> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c"]);
    command.arg(format!("{change} && exec \"$@\"")).arg("sh");
    let mut attempt = Command::new("unshare");
    attempt.args(["--mount", "--map-root-user", "sh", "-c", change]).stderr(Stdio::null());
    let able = cfg!(target_os = "linux") && attempt.status().is_ok_and(|status| status.success());
    able.then(|| {
        command.arg(std::env::current_exe().unwrap());
        command
    })
}

#[test]
fn a_process_with_another_boot_id_or_none_ends_no_hold() {
    let directory = tempfile::tempdir().unwrap();
    let (path, boot) = (directory.path().join("locks.db"), directory.path().join("boot_id"));
    std::fs::write(&boot, "00000000-1111-2222-3333-444444444444\n").unwrap();
    let client = client(&path);
    let mine = hold();
    client.take(&lock(), mine);
    let id = "/proc/sys/kernel/random/boot_id";
    let another = format!("mount --bind '{}' {id}", boot.display());
    let none = "mount -t tmpfs none /proc".to_owned();
    let cases = [
        (another, "Unavailable", "give each its own"),
        (none, "Misconfigured", "mount /proc into this container"),
    ];
    for (change, kind, advice) in cases {
        let Some(command) = sandbox(&change) else {
            let why = "no mount namespace can be made here";
            return leave_out("a_process_with_another_boot_id_or_none_ends_no_hold", &why);
        };
        let mut other = Other::start_by(command, "child_says_what_opening_says", &path);
        let said = other.hear("opened");
        assert!(said.starts_with(kind) && said.contains(advice), "{said}");
        assert_eq!(client.beat(&lock(), mine).standing, Standing::Granted);
    }
}

#[test]
fn a_killed_holder_is_told_to_the_next_as_abandoned() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let client = client(&path);
    let mut other = Other::start("child_takes_the_lock_and_stays", &path);
    let token: u64 = other.hear("token").parse().unwrap();
    let theirs = HoldId::parse(&other.hear("hold")).unwrap();
    other.kill();
    let before = client.inspect(&lock()).unwrap();
    if let Some(held) = before.holds.first() {
        assert_eq!(held.hold, theirs);
    }
    let (_, next) = client.insist(&lock());
    assert!(next > token);
    assert_eq!(client.inspect(&lock()).unwrap().abandoned, Abandoned::Yes);
}

#[test]
fn a_waiter_of_another_process_sees_the_release_and_the_holder_hears_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let client = client(&path);
    let (mine, token) = client.insist(&lock());
    let mut other = Other::start("child_waits_for_the_lock", &path);
    let theirs = HoldId::parse(&other.hear("queued")).unwrap();
    let wanted = |push: &Push| matches!(push, Push::Wanted { hold, .. } if *hold == mine);
    assert!(client.push(BOUND, wanted).is_some());
    client.release(&lock(), mine);
    let next: u64 = other.hear("token").parse().unwrap();
    assert!(next > token);
    assert_eq!(client.inspect(&lock()).unwrap().holds[0].hold, theirs);
}

#[test]
fn a_process_killed_at_any_point_leaves_a_usable_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let mut last = 0;
    for round in 1..5 {
        let mut others = [
            Other::start("child_writes_without_end", &path),
            Other::start("child_writes_without_end", &path),
        ];
        for other in &mut others {
            for _ in 0..round * 3 {
                last = last.max(other.hear("token").parse().unwrap());
            }
        }
        for other in &mut others {
            other.kill();
        }
        let client = client(&path);
        // What a killed child holds would last for half a minute.
        client.break_lock(&lock(), u64::MAX);
        let (mine, token) = client.insist(&lock());
        assert!(token > last, "tokens rise over the deaths");
        last = token;
        client.release(&lock(), mine);
        let sound: String = Connection::open(&path)
            .unwrap()
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(sound, "ok");
    }
}

#[test]
fn a_process_stopped_while_writing_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let options = Options { busy_timeout: Duration::from_millis(100), ..Options::new(&path) };
    let client = Client::open(|id, sink| open(options.clone(), id, sink).unwrap());
    let mut other = Other::start("child_stays_in_a_transaction", &path);
    other.hear("writing");
    other.signal(Signal::STOP);
    let ask = client.request(&lock(), hold(), false);
    // Until the kernel has stopped it, it is not called stopped.
    let stopped = loop {
        match client.ask(Op::Acquire(ask.clone())) {
            Err(Failure::Refused(refusal)) => {
                assert_eq!(refusal.kind, RefusalKind::Retry);
                if !cfg!(target_os = "linux") || refusal.message.contains("stopped") {
                    break refusal.message;
                }
            }
            result => panic!("a second writer was let in: {result:?}"),
        }
    };
    if cfg!(target_os = "linux") {
        let pid = format!("process {}", other.process.id());
        assert!(stopped.contains(&pid), "{stopped}");
    }
    assert!(client.inspect(&lock()).is_none(), "reading goes on");
    other.kill();
    assert_eq!(client.take(&lock(), hold()).standing, Standing::Granted);
}
