//! The SQLite store by its transport alone, in one process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use fencelock_engine::reply::{
    Abandoned, Body, Broken, Failure, Push, Refusal, RefusalKind, Released, Standing, State,
};
use fencelock_engine::request::{Acquire, Beat, Break, Mode, Op, Release, RequestId};
use fencelock_engine::transport::{Doubt, Transport};
use fencelock_engine::{ClientId, Error, ErrorKind, Event, Name};
use fencelock_sqlite::{Options, SqliteTransport, Synchronous, open};
use fencelock_testkit::eventually;
use fencelock_testkit::recorder::{BOUND, Client, LEASE, Recorder, fresh, hold, name};
use rusqlite::Connection;
use tempfile::TempDir;

const DOUBT: Doubt = Doubt { owed: RequestId(0), heard: None };

struct File {
    path: PathBuf,
    _directory: TempDir,
}

fn file() -> File {
    let directory = tempfile::tempdir().unwrap();
    File { path: directory.path().join("odd % name.db"), _directory: directory }
}

fn client(path: &Path) -> Client<SqliteTransport> {
    Client::open(|id, sink| open(Options::new(path), id, sink).unwrap())
}

/// What opening says.
fn refused(path: &Path) -> Error {
    let id = ClientId::new(fresh(), "").unwrap();
    let recorder = Arc::new(Recorder::default());
    match open(Options::new(path), id, recorder) {
        Ok(_) => panic!("'{}' could be opened", path.display()),
        Err(error) => error,
    }
}

fn raw(path: &Path) -> Connection {
    let conn = Connection::open(path).unwrap();
    conn.busy_timeout(BOUND).unwrap();
    conn
}

#[test]
fn a_lock_is_granted_once_and_released() {
    let (file, lock) = (file(), name("a"));
    let (one, two) = (client(&file.path), client(&file.path));
    let first = hold();
    let state = one.take(&lock, first);
    assert_eq!(state.standing, Standing::Granted);
    assert_eq!(one.take(&lock, first).token, state.token, "a repeated acquire is the same hold");
    assert_eq!(two.take(&lock, hold()).standing, Standing::Contended);
    let info = two.inspect(&lock).unwrap();
    assert_eq!((info.holds.len(), info.holds[0].label.as_str()), (1, "test's own"));
    assert_eq!(one.release(&lock, first), Released::Done);
    assert_eq!(one.release(&lock, first), Released::Done, "a repeated release is harmless");
    let second = hold();
    let next = two.take(&lock, second);
    assert_eq!((next.standing, next.abandoned), (Standing::Granted, Abandoned::No));
    assert!(next.token > state.token);
    one.release(&lock, first);
    assert_eq!(two.beat(&lock, second).standing, Standing::Granted, "the successor is untouched");
}

#[test]
fn a_release_hands_over_to_the_first_waiter_by_push() {
    let (file, lock) = (file(), name("a"));
    let (one, two, three) = (client(&file.path), client(&file.path), client(&file.path));
    let (first, second, third) = (hold(), hold(), hold());
    let state = one.take(&lock, first);
    assert_eq!(two.queue(&lock, second).standing, Standing::Queued);
    let wanted = |push: &Push| matches!(push, Push::Wanted { hold, .. } if *hold == first);
    assert!(one.push(BOUND, wanted).is_some(), "the holder hears that others wait");
    assert_eq!(three.queue(&lock, third).ahead, 1);
    one.release(&lock, first);
    let (token, end) = two.granted(BOUND, second).expect("the first waiter is told");
    assert!(token > state.token && end >= token);
    assert_eq!(two.beat(&lock, second).token, token);
    assert_eq!(three.granted(Duration::ZERO, third), None);
    assert_eq!(three.release(&lock, third), Released::Left, "a cancelled wait leaves the queue");
    assert!(three.inspect(&lock).unwrap().waiters.is_empty());
}

#[test]
fn an_expired_hold_is_told_to_the_next_as_abandoned() {
    let (file, lock) = (file(), name("a"));
    let (one, two) = (client(&file.path), client(&file.path));
    let mut ask = one.request(&lock, hold(), false);
    ask.lease = Duration::from_millis(100);
    let lost = ask.hold;
    let state = one.acquire(ask);
    let next = two.insist(&lock);
    assert!(next.1 > state.token);
    assert_eq!(two.inspect(&lock).unwrap().abandoned, Abandoned::Yes);
    assert_eq!(one.beat(&lock, lost).standing, Standing::Gone, "a late renewal revives nothing");
}

#[test]
fn break_ends_the_hold_and_tells_its_holder() {
    let (file, lock) = (file(), name("a"));
    let (one, two) = (client(&file.path), client(&file.path));
    let first = hold();
    let seen = one.take(&lock, first).token;
    assert_eq!(two.break_lock(&lock, seen - 1), Broken::ChangedHands(seen));
    assert_eq!(two.break_lock(&lock, seen), Broken::Ended(1));
    assert_eq!(two.break_lock(&lock, seen), Broken::NotHeld);
    assert_eq!(two.break_lock(&name("never used"), seen), Broken::NotHeld);
    let broken = |push: &Push| matches!(push, Push::Broken { hold, .. } if *hold == first);
    assert!(one.push(BOUND, broken).is_some());
    let next = two.take(&lock, hold());
    assert_eq!(next.abandoned, Abandoned::Yes);
    assert_eq!(two.break_lock(&lock, seen), Broken::ChangedHands(next.token));
}

#[test]
fn several_requests_share_a_transaction() {
    let (file, lock) = (file(), name("a"));
    let one = client(&file.path);
    let (first, second) = (hold(), hold());
    let acquire = one.request(&lock, first, false);
    let next = one.request(&lock, second, false);
    let release = Release::new(lock.clone(), first, 0);
    let ops = [
        Op::Acquire(acquire),
        Op::Release(release),
        Op::Acquire(next),
        Op::Inspect(lock.clone()),
        Op::List { prefix: String::new(), limit: 10 },
    ];
    let ids: Vec<_> = ops.into_iter().map(|op| one.send(op)).collect();
    one.transport.flush();
    let bodies: Vec<_> = ids.into_iter().map(|id| one.reply(id).unwrap().body).collect();

    let Body::Acquire(State { token: before, .. }) = bodies[0] else { panic!("{bodies:?}") };
    assert_eq!(bodies[1], Body::Release(Released::Done));
    assert!(matches!(bodies[2], Body::Acquire(State { token, .. }) if token > before));
    let Body::Inspect(Some(info)) = &bodies[3] else { panic!("{bodies:?}") };
    assert_eq!(info.holds[0].hold, second);
    assert_eq!(bodies[4], Body::List(vec![lock]));
}

#[test]
fn names_are_listed_by_prefix_whatever_their_characters() {
    let file = file();
    let one = client(&file.path);
    for text in ["a", "a%", "a%b", "a_b", "ab", "b", "ä", "{x}", "}x", "x'; --", "日本"] {
        assert_eq!(one.take(&name(text), hold()).standing, Standing::Granted, "{text}");
    }
    assert_eq!(one.list("a", 100), ["a", "a%", "a%b", "a_b", "ab"]);
    assert_eq!(one.list("a%", 100), ["a%", "a%b"]);
    assert_eq!(one.list("日", 100), ["日本"]);
    assert_eq!(one.list("", 3), ["a", "a%", "a%b"]);
    assert_eq!(one.list("no such", 100), [""; 0]);
    assert!(one.inspect(&name("unknown")).is_none());
    one.beat(&name("unknown"), hold());
    assert!(one.inspect(&name("unknown")).is_none(), "a beat makes no lock");
}

#[test]
fn tokens_rise_when_the_file_is_opened_again() {
    let (file, lock) = (file(), name("a"));
    let mut last = 0;
    for _ in 0..5 {
        let one = client(&file.path);
        let first = hold();
        let state = one.take(&lock, first);
        assert!(state.token > last);
        last = state.token;
        one.release(&lock, first);
        one.transport.close();
    }
}

/// Takes and gives back a lock; its record is kept for `retention`. Gives the last token.
fn use_once(client: &Client<SqliteTransport>, lock: &Name, retention: Duration) -> u64 {
    let id = hold();
    let state = client.take(lock, id);
    assert_eq!(state.standing, Standing::Granted);
    let (lock, used) = (lock.clone(), state.token);
    let release = Release { retention, ..Release::new(lock, id, used) };
    client.ask(Op::Release(release)).unwrap();
    used
}

fn number(conn: &Connection, sql: &str) -> i64 {
    conn.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn what_has_nothing_to_tell_is_forgotten_after_the_retention_and_its_tokens_are_not() {
    let file = file();
    let one = client(&file.path);
    let (short, long) = (Duration::from_millis(50), Duration::from_secs(3_600));
    let (used, kept, held, dead) = (name("used"), name("kept"), name("held"), name("dead"));
    let token = use_once(&one, &used, short);
    use_once(&one, &kept, long);
    let present = hold();
    one.take(&held, present);
    let mut ask = one.request(&dead, hold(), false);
    ask.lease = Duration::from_millis(1);
    one.acquire(ask);
    // Nobody asks for anything meanwhile.
    let edit = raw(&file.path);
    let there = |lock: &Name| {
        let sql = "SELECT 1 FROM fencelock_locks WHERE name = ?1";
        edit.prepare(sql).unwrap().exists([lock.as_str()]).unwrap()
    };
    eventually("the end of the retention", || (!there(&used)).then_some(()));
    assert!(there(&kept) && there(&held) && there(&dead));
    assert!(number(&edit, "SELECT floor FROM fencelock_meta") >= i64::try_from(token).unwrap());
    let next = one.take(&used, hold());
    assert_eq!(next.abandoned, Abandoned::Unknown, "how it ended is no longer known");
    assert!(next.token > token);
    // A minute later the one that died is found, and told of for a day.
    edit.execute("UPDATE fencelock_locks SET due = 1", []).unwrap();
    use_once(&one, &name("other"), short);
    eventually("another look", || {
        (number(&edit, "SELECT count(*) FROM fencelock_locks WHERE due = 1") == 0).then_some(())
    });
    assert_eq!(one.beat(&held, present).standing, Standing::Granted);
    assert_eq!(number(&edit, "SELECT count(*) FROM fencelock_holds WHERE name = 'dead'"), 0);
    assert_eq!(one.take(&dead, hold()).abandoned, Abandoned::Yes);
}

#[test]
fn names_that_are_used_once_leave_nothing_and_the_file_gives_its_space_back() {
    const NAMES: usize = 16_000;
    let file = file();
    let (one, edit) = (client(&file.path), raw(&file.path));
    // All of them at once, so that there is something to give back.
    let mut releases = Vec::new();
    for chunk in 0..NAMES / 64 {
        let now = one.now();
        let asks: Vec<_> = (0..64)
            .map(|at| {
                let lock = name(&format!("order-{}", chunk * 64 + at));
                let ask = one.request(&lock, hold(), false);
                Acquire { not_after: now + 3_000_000, lease: 100 * LEASE, ..ask }
            })
            .collect();
        let sent: Vec<_> = asks.iter().map(|ask| one.send(Op::Acquire(ask.clone()))).collect();
        one.transport.flush();
        for (ask, id) in asks.into_iter().zip(sent) {
            let Body::Acquire(state) = one.reply(id).unwrap().body else { panic!("no state") };
            assert_eq!(state.standing, Standing::Granted);
            let (lock, hold, used) = (ask.lock, ask.hold, state.token);
            let retention = Duration::from_millis(200);
            releases.push(Release { retention, ..Release::new(lock, hold, used) });
        }
    }
    let most = number(&edit, "PRAGMA page_count");
    for release in releases {
        one.send(Op::Release(release));
    }
    one.transport.flush();
    one.now();
    let rows = "SELECT count(*) FROM fencelock_locks";
    eventually("nothing is left", || (number(&edit, rows) == 0).then_some(()));
    for table in ["holds", "waiters", "news"] {
        assert_eq!(number(&edit, &format!("SELECT count(*) FROM fencelock_{table}")), 0, "{table}");
    }
    assert!(most > 500, "there was something to give back: {most} pages");
    eventually("the file is short again", || {
        (std::fs::metadata(&file.path).unwrap().len() < 300 * 4_096).then_some(())
    });
    eventually("the space is given back", || {
        (number(&edit, "PRAGMA page_count") < 300).then_some(())
    });
    assert_eq!(
        number(&edit, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"),
        0
    );
}

#[test]
fn never_two_holders_and_tokens_rise_under_contention() {
    const ROUNDS: usize = 100;
    let (file, lock) = (Arc::new(file()), name("hot"));
    let inside = Arc::new(AtomicUsize::new(0));
    let last = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (file, lock) = (Arc::clone(&file), lock.clone());
            let (inside, last) = (Arc::clone(&inside), Arc::clone(&last));
            thread::spawn(move || {
                let client = client(&file.path);
                for _ in 0..ROUNDS {
                    let (hold, token) = client.insist(&lock);
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                    assert!(last.swap(token, Ordering::SeqCst) < token, "a token went back");
                    inside.fetch_sub(1, Ordering::SeqCst);
                    assert_eq!(client.release(&lock, hold), Released::Done);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(last.load(Ordering::SeqCst) > 0);
}

#[test]
fn a_new_boot_ends_holds_and_tokens_go_on_rising() {
    let (file, held, free) = (file(), name("held"), name("free"));
    let one = client(&file.path);
    let old = hold();
    let state = one.take(&held, old);
    one.queue(&held, hold());
    let released = hold();
    one.take(&free, released);
    one.release(&free, released);
    one.transport.close();
    // An hour ahead of the clock that the next boot will read.
    let far = state.end + 3_600_000_000;
    let edit = raw(&file.path);
    edit.execute("UPDATE fencelock_meta SET boot = 'another boot'", []).unwrap();
    edit.execute("UPDATE fencelock_locks SET last = ?1 WHERE name = 'held'", [far as i64]).unwrap();

    // By the wall clock the hold goes on, and its holder may live on another machine.
    let error = refused(&file.path);
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    for say in ["another boot", "another machine", "UPDATE fencelock_holds SET deadline = 0"] {
        assert!(error.message().contains(say), "{error}");
    }
    let boot: String =
        edit.query_row("SELECT boot FROM fencelock_meta", [], |row| row.get(0)).unwrap();
    assert_eq!(boot, "another boot", "a refusal changes nothing");
    // As if the lease had passed, and what the noted difference may be off by.
    let passed = i64::try_from(2 * LEASE.as_micros()).unwrap();
    edit.execute("UPDATE fencelock_meta SET skew = skew + ?1", [passed]).unwrap();
    edit.close().unwrap();

    let two = client(&file.path);
    assert!(two.now() > far, "the store's time does not go back");
    let info = two.inspect(&held).unwrap();
    assert!(info.holds.is_empty() && info.waiters.iter().all(|waiter| waiter.silent));
    let next = two.take(&held, hold());
    assert_eq!((next.standing, next.abandoned), (Standing::Granted, Abandoned::Yes));
    assert!(next.token > far);
    let next = two.take(&free, hold());
    assert_eq!((next.standing, next.abandoned), (Standing::Granted, Abandoned::Unknown));
    assert_eq!(two.beat(&held, old).standing, Standing::Gone);
}

#[test]
fn a_newer_layout_is_refused_at_open_and_later() {
    let (file, lock) = (file(), name("a"));
    let one = client(&file.path);
    raw(&file.path).execute("UPDATE fencelock_meta SET layout = 99", []).unwrap();
    let Err(Failure::Refused(Refusal { kind, message })) = one.ask(Op::Acquire(untimely(&lock)))
    else {
        panic!("a newer layout was used");
    };
    assert_eq!(kind, RefusalKind::Misconfigured);
    assert!(message.contains("layout 99"), "{message}");
    let error = refused(&file.path);
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.message().contains("upgrade"), "{error}");
    raw(&file.path).execute_batch("DROP TABLE fencelock_meta; CREATE TABLE fencelock_meta (layout); INSERT INTO fencelock_meta VALUES (100)").unwrap();
    assert!(refused(&file.path).message().contains("layout 100"));
}

#[test]
fn an_older_layout_is_refused() {
    let file = file();
    drop(client(&file.path));
    raw(&file.path).execute("UPDATE fencelock_meta SET layout = 2", []).unwrap();
    let error = refused(&file.path);
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    let told = ["layout 2", "delete the file"].map(|what| error.message().contains(what));
    assert_eq!(told, [true, true], "{error}");
}

#[test]
fn a_file_of_the_layout_before_is_made_this_one() {
    let (file, lock, held) = (file(), name("a"), hold());
    {
        let one = client(&file.path);
        one.take(&lock, held);
    }
    let lacks = "ALTER TABLE fencelock_holds DROP COLUMN mode;
        ALTER TABLE fencelock_holds DROP COLUMN token;
        ALTER TABLE fencelock_holds DROP COLUMN owner;
        ALTER TABLE fencelock_waiters DROP COLUMN mode;
        UPDATE fencelock_meta SET layout = 4";
    raw(&file.path).execute_batch(lacks).unwrap();
    let two = client(&file.path);
    let info = two.inspect(&lock).unwrap();
    assert_eq!((info.holds[0].hold, info.holds[0].local_waiters), (held, Some(0)));
    assert_eq!((info.holds[0].mode, info.holds[0].token), (Mode::Exclusive, info.token));
    two.queue(&lock, hold());
    let three = client(&file.path);
    assert_eq!(three.inspect(&lock).unwrap().waiting, 1);
}

#[test]
fn who_waits_within_a_client_is_kept() {
    let (file, lock) = (file(), name("a"));
    let one = client(&file.path);
    let (first, second) = (hold(), hold());
    let ask = Acquire { local_waiters: 2, ..one.request(&lock, first, true) };
    assert!(one.ask(Op::Acquire(ask)).is_ok());
    let ask = Acquire { local_waiters: 5, ..one.request(&lock, second, true) };
    assert!(one.ask(Op::Acquire(ask)).is_ok());
    let info = client(&file.path).inspect(&lock).unwrap();
    assert_eq!((info.holds[0].local_waiters, info.waiters[0].local_waiters), (Some(2), Some(5)));
    assert_eq!(info.waiting, 8);
}

/// An acquire for which the store's time is not asked first.
fn untimely(lock: &fencelock_engine::Name) -> fencelock_engine::request::Acquire {
    fencelock_engine::request::Acquire::new(lock.clone(), hold(), LEASE, 1)
}

#[test]
fn another_machine_on_the_same_file_is_refused() {
    let (file, lock) = (file(), name("a"));
    let one = client(&file.path);
    one.take(&lock, hold());
    raw(&file.path).execute("UPDATE fencelock_meta SET boot = 'another machine'", []).unwrap();
    let Err(Failure::Refused(refusal)) = one.ask(Op::Break(Break { lock, token: 1, hold: None }))
    else {
        panic!("a foreign clock was used");
    };
    assert_eq!(refusal.kind, RefusalKind::Misconfigured);
    assert!(refusal.message.contains("another machine"), "{}", refusal.message);
}

#[cfg(unix)]
#[test]
fn the_files_are_for_their_user_alone_unless_asked_otherwise() {
    use std::os::unix::fs::PermissionsExt;
    let modes = |path: &Path| {
        ["", "-wal", "-shm"].map(|end| {
            let mut path = path.as_os_str().to_owned();
            path.push(end);
            std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
        })
    };
    let (own, group) = (file(), file());
    let one = client(&own.path);
    one.take(&name("a"), hold());
    assert_eq!(modes(&own.path), [0o600; 3]);
    // More than the umask leaves.
    let options = Options { file_mode: 0o666, ..Options::new(&group.path) };
    let two = Client::open(|id, sink| open(options, id, sink).unwrap());
    two.take(&name("a"), hold());
    assert_eq!(modes(&group.path), [0o666; 3]);
    // What is there is the operator's.
    let three = client(&group.path);
    three.take(&name("b"), hold());
    assert_eq!(modes(&group.path), [0o666; 3]);
}

#[cfg(unix)]
#[test]
fn a_link_to_nothing_is_not_followed() {
    let file = file();
    let target = file.path.with_file_name("target");
    std::os::unix::fs::symlink(&target, &file.path).unwrap();
    let error = refused(&file.path);
    assert!(error.message().contains("symbolic link to nothing"), "{error}");
    std::fs::write(&target, "").unwrap();
    assert_eq!(client(&file.path).take(&name("a"), hold()).standing, Standing::Granted);
}

#[test]
fn paths_that_cannot_work_say_what_to_do() {
    let file = file();
    let directory = file.path.parent().unwrap();
    let cases = [
        (directory.to_path_buf(), "is a directory"),
        (directory.join("missing").join("locks.db"), "create it"),
        (PathBuf::from("/proc/fencelock.db"), "cannot be created"),
    ];
    for (path, say) in cases {
        let error = refused(&path);
        assert_eq!(error.kind(), ErrorKind::Misconfigured);
        assert!(error.message().contains(say), "{error}");
    }
    std::fs::write(&file.path, "no database at all\n".repeat(100)).unwrap();
    let error = refused(&file.path);
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.message().contains("is not a SQLite database"), "{error}");
}

#[test]
fn a_damaged_row_costs_only_its_own_lock() {
    let (file, bad, good) = (file(), name("bad"), name("good"));
    let one = client(&file.path);
    one.take(&bad, hold());
    raw(&file.path).execute("UPDATE fencelock_locks SET abandoned = 7", []).unwrap();
    let beat = |lock: &fencelock_engine::Name| {
        fencelock_engine::request::Beat::new(lock.clone(), hold(), LEASE)
    };
    let reply = one.ask(Op::Beat(vec![beat(&bad), beat(&good)])).unwrap();
    let fencelock_engine::reply::Body::Beat(states) = reply.body else { panic!("{reply:?}") };
    assert_eq!(states[0].as_ref().unwrap_err().kind, RefusalKind::Misconfigured);
    assert_eq!(states[1].as_ref().unwrap().standing, Standing::Gone);
    assert_eq!(one.take(&good, hold()).standing, Standing::Granted);
}

#[test]
fn a_file_that_becomes_damaged_is_told_and_found_mended() {
    let (file, lock) = (file(), name("a"));
    let one = client(&file.path);
    one.take(&lock, hold());
    raw(&file.path).execute_batch("ALTER TABLE fencelock_meta RENAME TO hidden").unwrap();
    assert!(one.ask(Op::Time).is_err());
    let down = |event: &Event| matches!(event, Event::Down { .. }).then_some(());
    assert!(one.recorder.wait(BOUND, down).is_some());
    one.up();
    assert!(one.now() > 0, "the table was made anew");
}

#[test]
fn a_replaced_file_is_noticed() {
    let (file, lock) = (file(), name("a"));
    let one = client(&file.path);
    let (first, before) = one.insist(&lock);
    for end in ["", "-wal", "-shm"] {
        let mut path = file.path.clone().into_os_string();
        path.push(end);
        std::fs::remove_file(path).unwrap();
    }
    let down = |event: &Event| match event {
        Event::Down { reason } => Some(reason.clone()),
        _ => None,
    };
    let reason = loop {
        let _ = one.ask(Op::Time);
        if let Some(reason) = one.recorder.wait(Duration::from_millis(50), down) {
            break reason;
        }
    };
    assert!(reason.contains("deleted or replaced"), "{reason}");
    one.up();
    assert_eq!(one.beat(&lock, first).standing, Standing::Gone);
    assert!(one.insist(&lock).1 > before, "tokens rise even so");
}

/// As docs/protocol.md has it.
#[test]
fn another_program_reads_who_holds() {
    let (file, held, over) = (file(), name("held"), name("over"));
    let one = client(&file.path);
    one.take(&held, hold());
    one.take(&over, hold());
    let other = raw(&file.path);
    let end = "UPDATE fencelock_holds SET deadline = 0 WHERE name = 'over'";
    assert_eq!(other.execute(end, []).unwrap(), 1);
    let mut query = other
        .prepare(
            "SELECT name, label FROM fencelock_holds, fencelock_meta
             WHERE deadline > unixepoch('subsec') * 1000000 + skew",
        )
        .unwrap();
    let text = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
    let found: Vec<_> = query.query_map([], text).unwrap().map(Result::unwrap).collect();
    assert_eq!(found, [("held".to_owned(), "test's own".to_owned())]);
}

#[test]
fn a_file_that_stood_still_is_not_opened_again() {
    let (file, lock) = (file(), name("a"));
    let options = Options { busy_timeout: BOUND, ..Options::new(&file.path) };
    let one = Client::open(|id, sink| open(options, id, sink).unwrap());
    let first = hold();
    one.take(&lock, first);
    // Another process stands still within a transaction.
    let other = raw(&file.path);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let owed = one.send(Op::Beat(vec![Beat::new(lock.clone(), first, LEASE)]));
    one.transport.flush();
    one.transport.reconnect(Doubt { owed, heard: None });
    other.execute_batch("ROLLBACK").unwrap();
    assert!(one.reply(owed).is_ok(), "what was late is answered");
    assert_eq!(one.beat(&lock, first).standing, Standing::Granted);
    let anew = |event: &Event| matches!(event, Event::Up { .. } | Event::Down { .. }).then_some(());
    assert_eq!(one.recorder.wait(Duration::ZERO, anew), None, "the file was opened again");
}

#[test]
fn a_doubt_executes_what_nobody_flushed() {
    let file = file();
    let one = client(&file.path);
    let owed = one.send(Op::Time);
    one.transport.reconnect(Doubt { owed, heard: None });
    assert!(one.reply(owed).is_ok());
}

#[test]
fn nothing_is_heard_after_the_close() {
    let file = file();
    let one = client(&file.path);
    one.now();
    one.transport.close();
    one.transport.close();
    let delivered = one.recorder.delivered();
    one.send(Op::Time);
    one.transport.flush();
    one.transport.reconnect(DOUBT);
    assert_eq!(one.recorder.delivered(), delivered);
}

#[test]
fn urls() {
    let options = Options::from_url("sqlite:/var/lib/locks.db").unwrap();
    assert_eq!(options, Options::new("/var/lib/locks.db"));
    assert_eq!(Options::from_url("sqlite:///a%20b%3f").unwrap().path, Path::new("/a b?"));
    assert_eq!(Options::from_url("sqlite:locks.db").unwrap().path, Path::new("locks.db"));
    let options = Options::from_url("sqlite:x?busy_timeout=500ms&synchronous=full").unwrap();
    assert_eq!(options.busy_timeout, Duration::from_millis(500));
    assert_eq!(options.synchronous, Synchronous::Full);
    assert_eq!(Options::from_url("sqlite:x?file_mode=0660").unwrap().file_mode, 0o660);
    for wrong in [
        "memory:",
        "sqlite:",
        "sqlite::memory:",
        "sqlite:x?y=z",
        "sqlite:x?busy_timeout=2",
        "sqlite:x?busy_timeout=99999999999999999999s",
        "sqlite:x?busy_timeout=61s",
        "sqlite:x?synchronous=off",
        "sqlite:x?file_mode=",
        "sqlite:x?file_mode=rw",
        "sqlite:x?file_mode=0860",
        "sqlite:x?file_mode=0060",
        "sqlite:x?file_mode=0777",
        "sqlite:x?file_mode=99999999999999",
        "sqlite:%",
        "sqlite:%4",
        "sqlite:%+1",
        "sqlite:%ff",
    ] {
        let error = Options::from_url(wrong).expect_err(wrong);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}
