//! Where one thing ends and the next begins: what the conversations of the other tests do not meet.

use std::time::Duration;

use super::call::{Call, CallKind};
use super::clock::StoreClock;
use super::entry::{At, Entry, Holder, Parting};
use super::flight::{Asked, Flight, Flights, Purpose};
use super::lock::Lock;
use super::tenants::Tenants;
use super::*;
use crate::hold::LossReason;
use crate::id::HoldId;
use crate::options::Keeping;
use crate::reply::Abandoned;
use crate::request::{MAX_BEATS, Op, Request, RequestId};
use crate::validity::{Drift, margin};

const MS: Duration = Duration::from_millis(1);
const NANO: Duration = Duration::from_nanos(1);
const BEGIN: Time = Time::from_nanos(1_000_000_000);
const KEY: Key = Key { index: 0, serial: 0 };

fn engine(options: Options) -> (Engine<u32>, LockKey) {
    let mut engine = Engine::new(options, [7; 32]).unwrap();
    let lock = engine.lock(&Name::new("x").unwrap());
    (engine, lock)
}

fn entry() -> Entry<u32> {
    Entry::new(HoldId(1), 0, Name::new("x").unwrap(), None, Mode::Exclusive)
}

fn tenants(end: Time) -> Tenants {
    let (owner, holds, abandoned) = (Some(1), Vec::new(), Abandoned::No);
    let mut tenants = Tenants::default();
    tenants.add(Holder { owner, holds, token: 1, abandoned, since: BEGIN, end });
    tenants.set_end(owner, end);
    tenants
}

#[test]
fn a_run_is_over_after_its_grants_or_its_time() {
    let options = Options { local_run_grants: 4, local_run_time: MS * 10, ..Options::default() };
    let (engine, _) = engine(options);
    let now = BEGIN + MS * 20;
    // Others who wait; grants of the run; how long ago it began.
    for (others, run, ago, over) in [
        (1, 3, Some(MS), false),
        (1, 4, Some(MS), true),
        (0, 4, Some(MS), false),
        (1, 0, None, false),
        (1, 1, Some(MS * 10 - NANO), false),
        (1, 1, Some(MS * 10), true),
    ] {
        let run_since = ago.map(|ago| now - ago);
        let entry = Entry { others, run, run_since, ..entry() };
        assert_eq!(engine.is_run_over(now, &entry, Time::ZERO), over, "{others} {run} {ago:?}");
    }
    let without = Options { local_run_grants: 0, ..Options::default() };
    let (engine, _) = self::engine(without);
    assert!(!engine.is_run_over(BEGIN, &Entry { others: 1, ..entry() }, Time::ZERO));
}

#[test]
fn a_latecomer_runs_while_the_time_covers_what_tenures_last() {
    let options = Options { local_run_time: MS * 10, ..Options::default() };
    let (mut engine, lock) = engine(options);
    engine.lock_mut(lock.0).unwrap().lasted(MS * 4);
    let entry = Entry { others: 1, run_since: Some(BEGIN), ..entry() };
    for (now, came, over) in [(6, 1, false), (7, 1, true), (7, 0, false)] {
        let (now, came) = (BEGIN + MS * now, Time::ZERO + MS * came);
        assert_eq!(engine.is_run_over(now, &entry, came), over, "{now:?} {came:?}");
    }
    // A session is not told of waiters: since the last look one may have come.
    engine.options.keeping = Keeping::Session;
    let entry = Entry { others: 0, run_since: None, alone: BEGIN, ..entry };
    for (now, over) in [(6, false), (7, true)] {
        let now = BEGIN + MS * now;
        assert_eq!(engine.is_run_over(now, &entry, BEGIN + NANO), over, "{now:?}");
    }
}

#[test]
fn a_re_entry_outlasts_a_hold_by_the_smallest_span() {
    let (engine, _) = engine(Options::default());
    let entry = Entry { valid_until: BEGIN + MS * 10_000, tenants: tenants(BEGIN), ..entry() };
    let third = Options::default().lease / 3;
    let leased = |lease| Ask { lease: Some(lease), ..Ask::local(1) };
    let now = BEGIN + MS * 10_000 - margin(MS * 5_000);
    assert!(!engine.outlasts(now, &entry, &leased(MS * 5_000)));
    assert!(engine.outlasts(now + NANO, &entry, &leased(MS * 5_000)));
    let now = BEGIN + MS * 10_000 - third;
    assert!(!engine.outlasts(now, &entry, &Ask::local(1)));
    assert!(engine.outlasts(now + NANO, &entry, &Ask::local(1)));
    let kept = Entry { tenants: tenants(Time::MAX), ..entry };
    assert!(!engine.outlasts(now + MS, &kept, &Ask::local(1)), "the watchdog keeps it");
}

#[test]
fn waiters_that_went_are_swept_out_of_a_long_queue() {
    let (mut engine, lock) = engine(Options::default());
    let calls: Vec<CallKey> = (0..80)
        .map(|owner| match engine.acquire(BEGIN, lock, Ask::local(owner), owner as u32) {
            Ok(Acquired::Pending(call)) => call,
            other => panic!("{other:?}"),
        })
        .collect();
    let length = |engine: &Engine<u32>| engine.lock_ref(lock.0).unwrap().waiting.len();
    for (gone, call) in calls[..39].iter().enumerate() {
        engine.cancel(BEGIN, *call);
        assert_eq!(length(&engine), 80, "{gone}");
    }
    engine.cancel(BEGIN, calls[39]);
    assert_eq!(length(&engine), 80, "half of them wait still");
    engine.cancel(BEGIN, calls[40]);
    assert_eq!(length(&engine), 39);
    // A short queue is left alone.
    for call in &calls[41..70] {
        engine.cancel(BEGIN, *call);
    }
    assert!((10..=32).contains(&length(&engine)), "{}", length(&engine));
}

#[test]
fn a_lock_that_nobody_uses_gives_its_place_to_the_next() {
    let (mut engine, x) = engine(Options::default());
    let (y, z) = (Name::new("y").unwrap(), Name::new("z").unwrap());
    assert_eq!(engine.lock(&Name::new("x").unwrap()), x);
    engine.forget(x);
    assert_ne!(engine.lock(&y), x, "it has another handle");
    engine.forget(x);
    assert_eq!(engine.lock(&z), x);
    let call = engine.acquire(BEGIN, x, Ask::local(1), 1).unwrap();
    engine.forget(x);
    let w = engine.lock(&Name::new("w").unwrap());
    assert_ne!(w, x, "somebody waits for it");
    let Acquired::Pending(call) = call else { panic!("{call:?}") };
    engine.cancel(BEGIN, call);
    assert_eq!(engine.lock(&Name::new("v").unwrap()), x);
    for (pins, entries, live) in [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)] {
        let mut lock = Lock::new(y.clone());
        (lock.pins, lock.entries, lock.live) = (pins, entries, live);
        assert_eq!(lock.is_unused(), pins + entries + live as u32 == 0);
    }
}

#[test]
fn an_id_is_random_but_for_the_place_of_its_entry() {
    let (mut engine, _) = engine(Options::default());
    let place = Key { index: 7, serial: 1 };
    let ids: Vec<u128> = (0..64).map(|_| engine.mint(place).0).collect();
    assert!(ids.iter().all(|id| *id as u32 == 7));
    // Of 64 flips of a coin, that all fall alike is not seen.
    for bit in 32..128 {
        let ones = ids.iter().filter(|id| **id >> bit & 1 == 1).count();
        assert!((1..64).contains(&ones), "bit {bit}");
    }
}

#[test]
fn an_entry_that_leaves_is_not_settled() {
    let parting = || Parting {
        call: None,
        deadline: BEGIN,
        told: true,
        lost: false,
        tries: 0,
        in_time: true,
    };
    let (mut engine, _) = engine(Options::default());
    assert!(engine.is_settled());
    let key = engine.entries.insert(Entry { parting: Some(parting()), ..entry() });
    assert!(!engine.is_settled());
    let release = entry().release(true, false, MS);
    let after = Some(super::entry::After { release, parting: parting() });
    *engine.entries.get_mut(key).unwrap() = Entry { after, ..entry() };
    assert!(!engine.is_settled());
    *engine.entries.get_mut(key).unwrap() = entry();
    assert!(engine.is_settled());
}

#[test]
fn a_lost_hold_is_followed_by_a_wait_only_where_somebody_waits() {
    for waits in [false, true] {
        let (mut engine, lock) = engine(Options::default());
        let key = engine.entries.insert(Entry { at: At::Held, ..entry() });
        let locked = engine.lock_mut(lock.0).unwrap();
        (locked.entry, locked.entries) = (Some(key), 1);
        if waits {
            engine.acquire(BEGIN, lock, Ask::local(1), 1).unwrap();
        }
        engine.lose(BEGIN, key, LossReason::Gone);
        assert_eq!(engine.lock_ref(lock.0).unwrap().entry.is_some(), waits);
        assert_eq!(engine.entries.keys().len(), 1 + usize::from(waits));
    }
}

#[test]
fn a_release_is_alone_only_when_nobody_is_known_to_wait() {
    for (told, lost, others, tries, alone) in [
        (true, false, 0, 0, true),
        (false, false, 0, 0, false),
        (true, true, 0, 0, false),
        (true, false, 1, 0, false),
        (true, false, 0, 1, false),
    ] {
        let release = Entry { others, tries, ..entry() }.release(told, lost, MS);
        assert_eq!(release.alone, alone, "{told} {lost} {others} {tries}");
    }
}

#[test]
fn answers_say_how_many_others_wait_and_since_when_nobody_did() {
    // Known before, and up to when alone; as of which request, so many; known and alone then.
    for (others, alone, sent, heard, known, until) in [
        (0, 5, 7, 0, 0, 7),
        (0, 7, 5, 0, 0, 7),
        (2, 5, 7, 0, 0, 7),
        (2, 5, 5, 0, 0, 5),
        (2, 6, 5, 0, 0, 6),
        (2, 6, 5, 1, 1, 6),
        (0, 6, 7, 3, 3, 6),
    ] {
        let at = |span| BEGIN + MS * span;
        let mut entry = Entry { others, alone: at(alone), ..entry() };
        entry.hear_others(heard, at(sent));
        assert_eq!((entry.others, entry.alone), (known, at(until)), "{others} {alone} {sent}");
    }
}

#[test]
fn an_acquire_is_exposed_until_the_stores_time_or_its_patience_ends() {
    let mut entry = Entry { patience: MS * 6, ..entry() };
    entry.expose(100, BEGIN);
    for (store, span, exposed) in [
        (99, Duration::ZERO, true),
        (100, Duration::ZERO, false),
        (99, MS * 6 - NANO, true),
        (99, MS * 6, false),
    ] {
        assert_eq!(entry.is_exposed(store, BEGIN + span), exposed, "{store} {span:?}");
    }
    entry.expose(90, BEGIN + MS);
    assert_eq!((entry.exposed_until, entry.exposed_at), (100, BEGIN + MS));
}

#[test]
fn a_hold_ends_by_itself_or_for_want_of_a_renewal() {
    let at = |span| BEGIN + MS * span;
    for (valid, end, now, ended) in [
        (5, 9, 4, None),
        (5, 9, 5, Some(LossReason::NotRenewed)),
        (9, 5, 4, None),
        (9, 5, 5, Some(LossReason::Ended)),
        (5, 5, 5, Some(LossReason::Ended)),
    ] {
        let entry = Entry { valid_until: at(valid), tenants: tenants(at(end)), ..entry() };
        assert_eq!(entry.ended(at(now)), ended, "{valid} {end} {now}");
        assert_eq!(entry.ends_at(), at(valid.min(end)));
    }
    assert_eq!(entry().group_end(), Time::MAX);
}

#[test]
fn the_stores_clock_is_estimated_and_never_read_too_fast() {
    let mut clock = StoreClock::default();
    clock.learn(1_000, BEGIN);
    assert_eq!(clock.estimate(BEGIN + MS * 10), 11_000);
    assert_eq!(clock.at_least(BEGIN + MS * 10), 10_900);
    assert_eq!(clock.estimate(Time::ZERO), 1_000);
    clock.learn(u64::MAX, BEGIN);
    assert_eq!(clock.at_least(BEGIN + MS), u64::MAX);
}

#[test]
fn a_connection_is_doubted_after_its_timeout_or_four_times_what_answers_took() {
    let (mut engine, _) = engine(Options::default());
    let second = MS * 1_000;
    for (latency, patience) in [(0, 3_000), (750, 3_000), (751, 3_004), (15_001, 60_000)] {
        engine.lanes[LaneId::FIRST].link.latency = MS * latency;
        assert_eq!(
            engine.lanes[LaneId::FIRST].link.doubt_at(BEGIN, second * 3),
            BEGIN + MS * patience
        );
        assert_eq!(engine.claim(LaneId::FIRST), MS * patience, "a claim is as long");
    }
    engine.heard(BEGIN + MS, LaneId::FIRST, None);
    assert_eq!(
        engine.lanes[LaneId::FIRST].link.doubt_at(BEGIN, second * 90),
        BEGIN + MS + second * 90
    );
    // What answers take is halved by one that comes sooner.
    engine.lanes[LaneId::FIRST].link.latency = MS * 8;
    for (took, latency) in [(3, 4), (4, 4), (6, 6), (0, 3)] {
        let now = BEGIN + MS * 10;
        engine.heard(now, LaneId::FIRST, Some(now - MS * took));
        assert_eq!(engine.lanes[LaneId::FIRST].link.latency, MS * latency, "{took}");
    }
}

#[test]
fn flights_are_found_by_their_number_and_the_oldest_leads() {
    let mut flights = Flights::on(LaneId::FIRST);
    let flight = |at: u32, purpose| Flight { sent: BEGIN + MS * at, purpose };
    let plain = || Purpose::Query(Asked::Question(KEY));
    assert_eq!(flights.oldest(), None);
    let ids: Vec<RequestId> = vec![
        flights.push(flight(1, Purpose::Query(Asked::Listing(KEY)))),
        flights.push(flight(2, plain())),
        flights.push(flight(3, plain())),
        flights.push(flight(4, Purpose::Query(Asked::Listing(KEY)))),
        flights.push(flight(5, plain())),
    ];
    assert_eq!(ids.iter().map(|id| id.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(flights.oldest(), Some(BEGIN + MS * 2));
    assert_eq!(flights.take(ids[2]).unwrap().sent, BEGIN + MS * 3);
    assert!(flights.take(ids[2]).is_none());
    assert_eq!(flights.take(ids[3]).unwrap().sent, BEGIN + MS * 4);
    assert_eq!(flights.take(ids[1]).unwrap().sent, BEGIN + MS * 2);
    assert_eq!(flights.oldest(), Some(BEGIN + MS * 5));
    assert_eq!(flights.take(ids[4]).unwrap().sent, BEGIN + MS * 5);
    assert_eq!(flights.take(ids[0]).unwrap().sent, BEGIN + MS);
    assert!(flights.take(RequestId(0)).is_none() && flights.take(RequestId(9)).is_none());
    assert_eq!(flights.push(flight(6, plain())), RequestId(6));
}

#[test]
fn a_lease_covers_the_span_that_it_is_worked_out_for() {
    for span in [0, 1, 10, 99, 100, 1_000, 29_690, 604_800_000] {
        let span = MS * span;
        for slack in [0, 100] {
            let drift = Drift { slack: MS * slack };
            let lease = drift.lease_for(span);
            assert!(drift.margin(lease) >= span, "{span:?}");
            let less = drift.margin(lease - Duration::from_micros(2));
            assert!(less < span.max(NANO), "{span:?}: no more");
        }
    }
}

#[test]
fn pauses_double_from_ten_milliseconds_to_a_second() {
    let (mut engine, _) = engine(Options::default());
    for (tries, most) in [(0, 10), (1, 20), (6, 640), (7, 1_000), (8, 1_000), (90, 1_000)] {
        let pauses: Vec<Duration> = (0..400).map(|_| engine.backoff(tries)).collect();
        let most = MS * most;
        assert!(pauses.iter().all(|it| (most / 2..most).contains(it)), "{tries}");
        assert!(
            pauses.iter().any(|it| *it < most * 6 / 10)
                && pauses.iter().any(|it| *it > most * 9 / 10)
        );
    }
}

#[test]
fn a_beat_is_planned_no_later_than_it_was() {
    let (mut engine, _) = engine(Options::default());
    let key = engine.entries.insert(Entry { at: At::Queued, ..entry() });
    for (at, planned) in [(9, 9), (10, 9), (8, 8)] {
        engine.beat_by(key, BEGIN + MS * at);
        assert_eq!(engine.entries.get(key).unwrap().beat_at, Some(BEGIN + MS * planned));
        assert_eq!(engine.lanes[LaneId::FIRST].beats.len(), 1);
    }
    engine.no_beat(key);
    assert!(engine.lanes[LaneId::FIRST].beats.is_empty());
}

#[test]
fn beats_leave_a_hundred_at_a_time() {
    let (mut engine, _) = engine(Options::default());
    for _ in 0..MAX_BEATS + 1 {
        let key = engine.entries.insert(Entry { at: At::Queued, ..entry() });
        engine.beat_by(key, BEGIN);
    }
    engine.send_beats(BEGIN, LaneId::FIRST);
    let mut sizes = Vec::new();
    while let Some(effect) = engine.poll_effect() {
        if let Effect::Send(Request { op: Op::Beat(beats), .. }) = effect {
            sizes.push(beats.len());
        }
    }
    assert_eq!(sizes, [MAX_BEATS, 1]);
}

#[test]
fn a_lock_is_held_until_its_holder_is_at_its_end() {
    let (mut engine, lock) = engine(Options::default());
    assert!(!engine.is_held(BEGIN, lock));
    let tenants = tenants(BEGIN + MS * 9);
    let key = engine.entries.insert(Entry { valid_until: Time::MAX, tenants, ..entry() });
    engine.lock_mut(lock.0).unwrap().entry = Some(key);
    for (at, held) in [(0, true), (8, true), (9, false)] {
        assert_eq!(engine.is_held(BEGIN + MS * at, lock), held, "{at}");
    }
}

#[test]
fn pace_is_the_longest_of_late() {
    let mut lock = Lock::new(Name::new("x").unwrap());
    for (span, pace) in [(8, 8), (4, 4), (1, 2), (9, 9)] {
        lock.lasted(MS * span);
        assert_eq!(lock.pace, MS * pace);
    }
}

#[test]
fn calls_are_told_apart_by_when_they_came() {
    let (mut engine, lock) = engine(Options::default());
    let ages: Vec<(Time, u32)> = [0, 0, 1]
        .into_iter()
        .map(|at| {
            engine.at(BEGIN + MS * at);
            let kind = CallKind::Acquire(Ask::local(1));
            let key = engine.add_call(1, kind, lock.0, None, None);
            engine.calls.get(key.key()).map(Call::age).unwrap()
        })
        .collect();
    assert_eq!(ages, [(BEGIN, 0), (BEGIN, 1), (BEGIN + MS, 0)]);
}
