//! Shared holds and permits in a SQLite file.

use std::path::{Path, PathBuf};

use fencelock_engine::request::{Acquire, Mode};
use fencelock_sqlite::{Options, SqliteTransport, open};
use fencelock_testkit::modes::{
    permits_of_a_semaphore, readers_and_a_writer, tokens_of_a_hand_off,
};
use fencelock_testkit::recorder::{Client, hold, name};
use tempfile::TempDir;

fn file() -> (PathBuf, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    (directory.path().join("locks.db"), directory)
}

fn client(path: &Path) -> Client<SqliteTransport> {
    Client::open(|id, sink| open(Options::new(path), id, sink).unwrap())
}

#[test]
fn readers_hold_together_and_a_writer_alone() {
    let (path, _directory) = file();
    readers_and_a_writer(|| client(&path), &name("a"));
}

#[test]
fn permits_are_counted() {
    let (path, _directory) = file();
    permits_of_a_semaphore(|| client(&path), &name("a"));
}

#[test]
fn those_let_in_together_are_told_their_own_tokens() {
    let (path, _directory) = file();
    tokens_of_a_hand_off(|| client(&path), &name("a"));
}

#[test]
fn a_reader_keeps_its_token_when_the_file_is_opened_again() {
    let (path, _directory) = file();
    let (one, lock) = (client(&path), name("a"));
    let (first, second) = (hold(), hold());
    let read = |id| {
        let ask = one.request(&lock, id, true);
        one.acquire(Acquire { mode: Mode::Shared, ..ask })
    };
    let (earlier, later) = (read(first), read(second));
    let two = client(&path);
    let info = two.inspect(&lock).unwrap();
    let tokens: Vec<u64> = info.holds.iter().map(|hold| hold.token).collect();
    assert!(tokens.contains(&earlier.token) && tokens.contains(&later.token), "{tokens:?}");
    assert_eq!(one.beat(&lock, first).token, earlier.token);
}
