//! From an acquire to enough votes, or to none.

use super::*;
use crate::reply::RefusalKind;

fn waits(op: &Op) -> Option<bool> {
    match op {
        Op::Acquire(ask) => Some(ask.wait.is_some()),
        _ => None,
    }
}

#[test]
fn a_free_lock_takes_one_round_trip_and_two_answers() {
    let mut talk = Talk::new();
    let id = talk.acquire(1, true);
    // The first of the list has the queue; the others are tries.
    assert_eq!(waits(&talk.serve(0)), Some(true));
    assert_eq!(talk.reply(id), None);
    assert_eq!(waits(&talk.serve(2)), Some(false));
    let state = talk.granted(id);
    assert_eq!((state.lease, state.others_waiting), (LEASE, 0));
    // The third vote is taken along.
    assert_eq!(waits(&talk.serve(1)), Some(false));
    assert_eq!(talk.servers[1].record.holds.len(), 1);
}

#[test]
fn the_largest_token_is_shown_to_enough_servers_first() {
    let mut talk = Talk::new();
    talk.servers[1].ahead = 1_000_000;
    talk.servers[2].ahead = 2_000_000;
    let id = talk.acquire(1, true);
    talk.serve(0);
    talk.serve(1);
    assert_eq!(talk.reply(id), None, "only one server knows of the token");
    let token = talk.read(1) + 1024;
    match talk.serve(0) {
        Op::Beat(beats) => assert_eq!(beats[0].used, token),
        other => panic!("{other:?}"),
    }
    let state = talk.granted(id);
    assert_eq!(state.token, token);
    // The second largest end.
    assert_eq!(state.end, token + 1023);
}

#[test]
fn who_is_queued_at_the_arbiter_keeps_nothing_elsewhere() {
    let mut talk = Talk::new();
    talk.taken(0, 9);
    let id = talk.acquire(1, true);
    talk.serve(1);
    talk.serve(2);
    assert_eq!(talk.servers[1].record.holds.len(), 1);
    talk.serve(0);
    assert_eq!(talk.state(id).standing, Standing::Queued);
    talk.serve_all();
    assert!(talk.servers[1].record.holds.is_empty() && talk.servers[2].record.holds.is_empty());
    assert_eq!(talk.servers[0].record.waiters.len(), 1);
}

#[test]
fn a_hand_off_is_one_vote_and_the_others_are_asked() {
    let mut talk = Talk::new();
    talk.taken(0, 9);
    let id = talk.acquire(1, true);
    talk.serve_all();
    assert_eq!(talk.state(id).standing, Standing::Queued);
    talk.freed(0, 9);
    assert_eq!(talk.events(), []);
    // Its word alone is no vote: it is renewed there.
    talk.serve(1);
    talk.serve(2);
    assert_eq!(talk.events(), []);
    assert!(matches!(talk.serve(0), Op::Beat(_)));
    talk.serve_all();
    let (lock, hold) = (name(), hold(1));
    assert_eq!(talk.events(), [Event::Push(Push::Changed { lock, hold })]);
    let id = talk.beat(1, 0);
    talk.serve_all();
    assert!(talk.granted(id).lease <= LEASE);
}

#[test]
fn one_with_the_arbiters_vote_alone_asks_again_and_leaves_no_other_behind() {
    let mut talk = Talk::new();
    talk.taken(1, 9);
    talk.taken(2, 9);
    let id = talk.acquire(1, true);
    talk.serve_all();
    assert_eq!(talk.state(id).standing, Standing::Queued);
    assert_eq!(talk.servers[0].record.holds.len(), 1);
    talk.freed(1, 9);
    talk.wait(3 * MS);
    talk.serve_all();
    let changed = Event::Push(Push::Changed { lock: name(), hold: hold(1) });
    assert!(talk.events().contains(&changed));
}

#[test]
fn a_try_that_others_stop_is_contended_and_gives_all_back() {
    let mut talk = Talk::new();
    talk.taken(1, 9);
    talk.taken(2, 9);
    let id = talk.acquire(1, false);
    talk.serve_all();
    assert_eq!(talk.state(id).standing, Standing::Contended);
    assert!(talk.servers[0].record.holds.is_empty());
}

#[test]
fn a_try_that_silence_stops_is_refused_for_now() {
    let mut talk = Talk::new();
    let id = talk.acquire(1, false);
    talk.serve(0);
    talk.wait(Duration::from_secs(3));
    let refusal = talk.refused(id);
    assert_eq!(refusal.kind, RefusalKind::Retry);
    // What is still out is given back when it has been answered, and not before.
    talk.serve_all();
    talk.nothing_is_left();
}

#[test]
fn servers_whose_memory_is_new_give_no_votes_and_are_named() {
    let mut talk = Talk::idle();
    talk.up(0, Duration::ZERO);
    talk.up(1, Duration::from_secs(42));
    talk.up(2, Duration::from_secs(5));
    talk.events();
    let id = talk.acquire(1, true);
    let refusal = talk.refused(id);
    assert_eq!(refusal.kind, RefusalKind::Retry);
    assert!(refusal.message.contains("1 of 3 servers give votes"), "{}", refusal.message);
    assert!(refusal.message.contains("b: its memory is new"), "{}", refusal.message);
    talk.wait(Duration::from_secs(6));
    talk.held(2);
    assert!(talk.servers[1].record.holds.is_empty());
}

#[test]
fn a_server_that_stands_still_is_waited_for_by_nobody() {
    let mut talk = Talk::new();
    let id = talk.acquire(1, true);
    talk.serve(0);
    talk.serve(1);
    let state = talk.granted(id);
    talk.wait(MS);
    let id = talk.beat(1, state.token);
    talk.serve(0);
    assert_eq!(talk.reply(id), None);
    talk.serve(1);
    talk.granted(id);
    let id = talk.release(1, state.token);
    talk.serve(0);
    talk.serve(1);
    assert_eq!(talk.reply(id), Some(Ok(Body::Release(Released::Done))));
    // It is doubted, in time.
    talk.wait(Duration::from_secs(4));
    assert_eq!(talk.doubts, [2]);
}

#[test]
fn a_new_arbiter_has_the_queue_and_the_ticket_is_kept() {
    let mut talk = Talk::new();
    for server in 0..3 {
        talk.taken(server, 9);
    }
    let id = talk.acquire(1, true);
    talk.serve_all();
    let ticket = talk.state(id).ticket;
    assert!(ticket > 0);
    talk.down(0);
    match talk.serve(1) {
        Op::Acquire(ask) => assert_eq!(ask.wait.map(|wait| wait.ticket), Some(ticket)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn there_are_exclusive_locks_alone_and_no_leases_that_outlive_a_memory() {
    let mut talk = Talk::new();
    let ask = || Acquire::new(name(), hold(1), LEASE, u64::MAX);
    let owner = Some(crate::id::OwnerId::new("me").unwrap());
    let shared = crate::request::Mode::Shared;
    for ask in [Acquire { owner, ..ask() }, Acquire { mode: shared, ..ask() }] {
        let id = talk.ask(Op::Acquire(ask));
        assert_eq!(talk.refused(id).kind, RefusalKind::Unsupported);
    }
    let lease = Duration::from_secs(61);
    let id = talk.ask(Op::Acquire(Acquire { lease, ..ask() }));
    assert!(talk.refused(id).message.contains("max_lease"));
    talk.nothing_is_left();
}
