//! A fork in the middle of SQLite's work.
#![cfg(unix)]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use fencelock_engine::reply::{Released, Standing};
use fencelock_sqlite::{Options, SqliteTransport, open};
use fencelock_testkit::recorder::{Client, hold, name};
use fencelock_testkit::{eventually, in_child};

/// How many children there are.
const FORKS: usize = 60;
/// How many clients of the parent write meanwhile.
const WRITERS: usize = 3;

fn client(path: &Path) -> Client<SqliteTransport> {
    Client::open(|id, sink| open(Options::new(path), id, sink).unwrap())
}

/// A lock is taken and given back.
fn turn(client: &Client<SqliteTransport>, lock: &str) {
    let (lock, id) = (name(lock), hold());
    assert_eq!(client.take(&lock, id).standing, Standing::Granted);
    assert_eq!(client.release(&lock, id), Released::Done);
}

/// Ends the writers, whatever becomes of the test.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One test, because a fork concerns every thread of the process. Each child inherits what SQLite
/// knew of the file's locks at that moment: were a writer of the parent among it, the child would
/// wait for it for ever.
#[test]
fn p11_a_child_of_a_busy_process_works_on_the_same_file_and_the_parent_keeps_its_hold() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks.db");
    let (holder, kept, id) = (client(&path), name("kept"), hold());
    let token = holder.take(&kept, id).token;
    let (stop, turns) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let _stop = Stop(&stop);
        for writer in 0..WRITERS {
            let (path, stop, turns) = (&path, &stop, &turns);
            scope.spawn(move || {
                let (client, lock) = (client(path), format!("writer/{writer}"));
                while !stop.load(Ordering::Relaxed) {
                    turn(&client, &lock);
                    turns.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for child in 0..FORKS {
            let seen = turns.load(Ordering::Relaxed);
            eventually("the writers are at it", || {
                (turns.load(Ordering::Relaxed) > seen).then_some(())
            });
            let fine = in_child(|| {
                // What it inherited is not touched: this is a client of its own.
                let own = client(&path);
                turn(&own, "child");
                own.take(&kept, hold()).standing == Standing::Contended
            });
            assert!(fine, "in child {child}");
        }
    });
    let state = holder.beat(&kept, id);
    assert_eq!((state.standing, state.token), (Standing::Granted, token));
    assert_eq!(holder.release(&kept, id), Released::Done);
}
