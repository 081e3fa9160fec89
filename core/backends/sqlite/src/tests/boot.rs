//! Two boots on one file, which stand for two machines, or for one before and after a restart.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fencelock_engine::reply::{Abandoned, Body, Standing, State};
use fencelock_engine::request::{Acquire, Beat, Mode, Op, Release, Request, RequestId};
use fencelock_engine::store::Caller;
use fencelock_engine::{ClientId, ErrorKind, HoldId, Name};
use fencelock_testkit::eventually;

use crate::clock::Clock;
use crate::fault::Fault;
use crate::options::Options;
use crate::store::{SKEW_SLACK, Store};

const LEASE: Duration = Duration::from_secs(60);
/// The longest that another boot waits for a hold of [`LEASE`].
const LONGEST: Duration = LEASE.saturating_add(Duration::from_micros(SKEW_SLACK));
const HOLD: HoldId = HoldId(1);

fn open(path: &Path, boot: &str) -> Result<Store, Fault> {
    let stop = AtomicBool::new(false);
    Store::open(path.to_owned(), &Options::new(path), Clock::of_boot(boot), &stop)
}

fn run(store: &mut Store, op: Op) -> Result<Body, Fault> {
    let caller = Caller { client: ClientId::new(1, "").unwrap(), polling: false };
    let request = Request { id: RequestId(1), op };
    let done = store.run(&caller, &[request], &mut Vec::new(), &AtomicBool::new(false))?;
    Ok(done.replies.into_iter().next().unwrap().1.unwrap().body)
}

fn lock() -> Name {
    Name::new("shared").unwrap()
}

fn acquire(store: &mut Store, lease: Duration) -> State {
    let ask = Acquire::new(lock(), HOLD, lease, store.now() + 3_000_000);
    match run(store, Op::Acquire(ask)).unwrap() {
        Body::Acquire(state) => state,
        body => panic!("{body:?}"),
    }
}

fn renew(store: &mut Store, lease: Duration) -> Result<Standing, Fault> {
    let beat = Beat::new(lock(), HOLD, lease);
    match run(store, Op::Beat(vec![beat]))? {
        Body::Beat(states) => Ok(states[0].as_ref().unwrap().standing),
        body => panic!("{body:?}"),
    }
}

#[test]
fn another_machine_is_refused_while_a_hold_lives_and_ends_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let mut one = open(&path, "one").unwrap();
    acquire(&mut one, LEASE);
    // What was renewed counts, not what was first asked for.
    for lease in [LEASE, 2 * LEASE] {
        assert_eq!(renew(&mut one, lease).unwrap(), Standing::Granted);
        match open(&path, "two").map(drop) {
            Err(fault @ Fault::OtherBoot(left)) => {
                assert!(lease - LEASE < left && left <= lease - LEASE + LONGEST, "{left:?}");
                assert_eq!(fault.error(&path).kind(), ErrorKind::Unavailable);
            }
            other => panic!("live holds were taken over: {other:?}"),
        }
    }
    assert_eq!(renew(&mut one, LEASE).unwrap(), Standing::Granted);
}

#[test]
fn once_all_holds_are_over_by_the_wall_clock_the_file_is_the_other_machines() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let mut one = open(&path, "one").unwrap();
    let token = acquire(&mut one, Duration::from_millis(200)).token;
    let mut two = eventually("the end of the hold", || match open(&path, "two") {
        Ok(two) => Some(two),
        Err(Fault::OtherBoot(_)) => None,
        Err(fault) => panic!("{fault:?}"),
    });
    assert!(acquire(&mut two, LEASE).token > token);
    // And the first is not let in any more.
    match renew(&mut one, LEASE) {
        Err(Fault::Misconfigured(why)) => assert!(why.contains("another machine"), "{why}"),
        other => panic!("two clocks on one file: {other:?}"),
    }
}

/// A power cut may have taken a writer's last transactions with it.
#[test]
fn after_a_restart_a_lock_that_readers_had_cannot_say_how_its_last_writer_ended() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let mut one = open(&path, "one").unwrap();
    let token = acquire(&mut one, LEASE).token;
    run(&mut one, Op::Release(Release::new(lock(), HOLD, token))).unwrap();
    let lease = Duration::from_millis(200);
    let read = Acquire::new(lock(), HoldId(2), lease, one.now() + 3_000_000);
    run(&mut one, Op::Acquire(Acquire { mode: Mode::Shared, ..read })).unwrap();
    let mut two = eventually("the end of the hold", || open(&path, "two").ok());
    let next = Acquire::new(lock(), HoldId(3), LEASE, two.now() + 3_000_000);
    match run(&mut two, Op::Acquire(next)).unwrap() {
        Body::Acquire(state) => assert_eq!(state.abandoned, Abandoned::Unknown),
        body => panic!("{body:?}"),
    }
}

/// The difference is noted anew only when it has changed by more than a slack: so much earlier a hold may
/// seem to be over.
#[test]
fn a_hold_that_is_over_but_for_the_slack_may_live() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let mut one = open(&path, "one").unwrap();
    acquire(&mut one, LEASE);
    let edit = rusqlite::Connection::open(&path).unwrap();
    // As it is when the wall clock was set forward by as much as need not be noted, and the hold has
    // that long to live.
    let sql = "UPDATE fencelock_meta SET skew = skew + ?1";
    edit.execute(sql, [i64::try_from(SKEW_SLACK).unwrap()]).unwrap();
    let end = one.now() + SKEW_SLACK;
    edit.execute("UPDATE fencelock_holds SET deadline = ?1", [i64::try_from(end).unwrap()])
        .unwrap();
    eventually("the end of the hold", || match open(&path, "two") {
        Ok(_) => Some(()),
        Err(Fault::OtherBoot(_)) => None,
        Err(fault) => panic!("{fault:?}"),
    });
    assert!(one.now() >= end, "taken over {} us early", end - one.now());
}

#[test]
fn without_holds_a_restart_is_nothing_to_wait_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    drop(open(&path, "one").unwrap());
    assert!(open(&path, "two").is_ok());
}

#[test]
fn a_store_whose_clock_ran_ahead_of_the_wall_counts_by_the_wall() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    drop(open(&path, "one").unwrap());
    // A token of next year: the store's time begins above it in the next boot.
    let year = 365 * 24 * 3_600_000_000_i64;
    let edit = rusqlite::Connection::open(&path).unwrap();
    edit.execute("UPDATE fencelock_meta SET floor = ?1 + 1000000 * unixepoch()", [year]).unwrap();
    edit.close().unwrap();
    let mut two = open(&path, "two").unwrap();
    acquire(&mut two, LEASE);
    match open(&path, "three").map(drop) {
        Err(Fault::OtherBoot(left)) => assert!(left <= LONGEST, "{left:?}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_boot_that_cannot_be_known_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (missing, empty) = (directory.path().join("missing"), directory.path().join("empty"));
    std::fs::write(&empty, "\n").unwrap();
    for file in [missing, empty] {
        let error = Clock::of_boot_in(&file).unwrap_err().error(Path::new("locks.db"));
        assert_eq!(error.kind(), ErrorKind::Misconfigured);
        assert!(error.message().contains("mount /proc"), "{error}");
    }
}

/// On a system without a boot id the store's time is the wall clock, which may be set back.
#[test]
fn promise_2_a_clock_that_goes_back_gives_no_token_of_a_lock_that_was_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let mut store = open(&path, "wall").unwrap();
    // As it is when a lock was forgotten an hour from now, and the clock set back since.
    let forgotten = store.now() + 3_600_000_000;
    let edit = rusqlite::Connection::open(&path).unwrap();
    let floor = i64::try_from(forgotten).unwrap();
    edit.execute("UPDATE fencelock_meta SET floor = ?1", [floor]).unwrap();
    edit.close().unwrap();
    let token = acquire(&mut store, LEASE).token;
    assert!(token > forgotten, "{token} after {forgotten}");
}

#[test]
fn a_wall_clock_that_was_set_since_the_boot_was_noted_is_noted_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let mut one = open(&path, "one").unwrap();
    let edit = rusqlite::Connection::open(&path).unwrap();
    let noted = || -> i64 {
        edit.query_row("SELECT skew FROM fencelock_meta", [], |row| row.get(0)).unwrap()
    };
    let skew = noted();
    acquire(&mut one, LEASE);
    assert_eq!(noted(), skew, "nothing to note");
    // As it is when the wall clock was set back by an hour since, or forward.
    for step in [-3_600_000_000_i64, 3_600_000_000] {
        edit.execute("UPDATE fencelock_meta SET skew = ?1", [skew + step]).unwrap();
        // What only reads leaves it alone.
        run(&mut one, Op::Time).unwrap();
        assert_eq!(noted(), skew + step);
        renew(&mut one, LEASE).unwrap();
        assert!(noted().abs_diff(skew) < 1_000_000, "{} after {skew}", noted());
        match open(&path, "two").map(drop) {
            Err(Fault::OtherBoot(left)) => assert!(left <= LONGEST, "{left:?}"),
            other => panic!("live holds were taken over: {other:?}"),
        }
    }
}
