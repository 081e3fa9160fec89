//! A process that does not ignore SIGPIPE, as one in C, C++ or Swift does not, whose connection goes
//! while it writes, also while it is stopped. Rust's own programs ignore the signal, so the child
//! takes that back first.
#![allow(unsafe_code)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fencelock::blocking::Client;
use fencelock_testkit::children;

const URL: &str = "FENCELOCK_TEST_PIPED";
const LIMIT: Duration = Duration::from_secs(30);

/// How often the connection goes, in one go and while the child is stopped.
const ROUNDS: usize = 8;

struct Writer {
    child: Child,
    orders: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Writer {
    fn start(url: &str) -> Writer {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "writer", "--nocapture"]).env(URL, url);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = children::spawn(command).unwrap();
        let orders = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Writer { child, orders, lines }
    }

    /// The client works: it was connected again since.
    fn is_alive(&mut self) {
        let sent = self.orders.write_all(b"lock\n").and_then(|()| self.orders.flush());
        let mut line = String::new();
        while sent.is_ok() && !line.contains("<locked>") {
            line.clear();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                break;
            }
        }
        if !line.contains("<locked>") {
            panic!("the process ended: {:?}", self.child.wait().unwrap());
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process with this store writes all the time, and survives that `cut` ends its connections.
pub fn survives(url: &str, cut: impl Fn()) {
    let mut writer = Writer::start(url);
    writer.is_alive();
    for _ in 0..ROUNDS {
        cut();
        writer.is_alive();
        children::stop(&writer.child).unwrap();
        cut();
        children::signal(&writer.child, libc::SIGCONT).unwrap();
        writer.is_alive();
    }
    writer.orders.write_all(b"end\n").unwrap();
    assert!(writer.child.wait().unwrap().success());
}

fn disposition(signal: libc::c_int) -> libc::sighandler_t {
    // SAFETY: `action` is written by the call and read afterwards; nothing is changed.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        assert_eq!(libc::sigaction(signal, std::ptr::null(), &raw mut action), 0);
        action.sa_sigaction
    }
}

/// What the child does. An ordinary test run has no URL and does nothing here.
pub fn writer() {
    let Ok(url) = std::env::var(URL) else { return };
    // SAFETY: no handler of ours is installed, only the default restored.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let client = Client::connect(url).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..8 {
            let lock = client.lock(format!("sigpipe-{thread}")).unwrap();
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    // What comes of it is not the point.
                    if let Ok(guard) = lock.acquire_timeout(Duration::from_millis(200)) {
                        drop(guard);
                    }
                }
            });
        }
        for order in std::io::stdin().lines() {
            if order.unwrap() == "end" {
                break;
            }
            let lock = client.lock("alive").unwrap();
            lock.acquire_timeout(LIMIT).unwrap().release().unwrap();
            println!("<locked>");
        }
        done.store(true, Ordering::Relaxed);
    });
    // The library left the process' own choice as it was.
    assert_eq!(disposition(libc::SIGPIPE), libc::SIG_DFL);
}
