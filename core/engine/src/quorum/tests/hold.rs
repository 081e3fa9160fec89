//! What is held: its votes, its end, and how it is given back.

use super::*;

#[test]
fn a_hold_lasts_as_long_as_the_second_latest_of_its_votes() {
    let mut talk = Talk::new();
    let state = talk.held(1);
    talk.wait(Duration::from_secs(3));
    let id = talk.beat(1, state.token);
    // One server renews; the second latest is as old as the hold.
    talk.serve(0);
    talk.servers[1].arrived.clear();
    talk.servers[2].arrived.clear();
    talk.wait(Duration::from_secs(2));
    let renewed = talk.granted(id);
    let left = LEASE - Duration::from_secs(3);
    assert!(
        renewed.lease <= left && renewed.lease > left - Duration::from_millis(50),
        "{renewed:?}"
    );
}

#[test]
fn a_missing_vote_is_asked_for_with_the_next_renewal() {
    let mut talk = Talk::new();
    talk.taken(2, 9);
    let state = talk.held(1);
    talk.freed(2, 9);
    talk.beat(1, state.token);
    match talk.serve(2) {
        Op::Acquire(ask) => assert!(ask.wait.is_none() && ask.floor >= state.token),
        other => panic!("{other:?}"),
    }
    assert_eq!(talk.servers[2].record.holds.len(), 1);
}

/// The queue is at one server: the others, whose answers may come later, know of nobody.
#[test]
fn who_holds_hears_of_those_who_wait_whichever_answer_comes_last() {
    let mut talk = Talk::new();
    let state = talk.held(1);
    let mut ask = Acquire::new(name(), hold(9), LEASE, talk.read(0) + 1_000_000);
    ask.wait = Some(Wait { ticket: 0, claim: LEASE, silence: LEASE });
    let (queued, _) = talk.apply(0, &client(2), &Op::Acquire(ask));
    assert_eq!(acquired(queued).standing, Standing::Queued);
    talk.wait(MS);
    let id = talk.beat(1, state.token);
    talk.serve(0);
    talk.serve(1);
    assert_eq!(talk.granted(id).others_waiting, 1);
    talk.serve(2);
}

#[test]
fn votes_that_most_servers_have_forgotten_end_the_hold_and_come_back_for_nobody() {
    let mut talk = Talk::new();
    let state = talk.held(1);
    talk.servers[0].record = Record::default();
    talk.servers[1].record = Record::default();
    talk.wait(MS);
    let id = talk.beat(1, state.token);
    talk.serve_all();
    assert_eq!(talk.state(id).standing, Standing::Gone);
    let id = talk.beat(1, state.token);
    assert_eq!(talk.state(id).standing, Standing::Gone);
    talk.serve_all();
    talk.nothing_is_left();
    // The next holder hears of it.
    assert_eq!(talk.servers[2].record.abandoned, crate::reply::Abandoned::Yes);
}

#[test]
fn one_server_that_forgot_costs_nothing() {
    let mut talk = Talk::new();
    let state = talk.held(1);
    talk.servers[0].record = Record::default();
    talk.wait(MS);
    let id = talk.beat(1, state.token);
    talk.serve_all();
    assert_eq!(talk.granted(id).token, state.token);
}

#[test]
fn a_release_goes_to_all_and_counts_when_nobody_is_kept_from_the_lock() {
    let mut talk = Talk::new();
    talk.servers[2].ahead = 2_000_000;
    let id = talk.acquire(1, true);
    talk.serve(0);
    talk.serve(1);
    let state = talk.granted(id);
    talk.serve(2);
    let late = talk.servers[2].record.token;
    assert!(late > state.token);
    let id = talk.release(1, state.token);
    // Every server hears of at least its own token, or it would not be told.
    let used: Vec<u64> = (0..3)
        .map(|server| match &talk.servers[server].arrived[0].op {
            Op::Release(release) => release.used,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(used, [state.token, state.token, late]);
    talk.serve(2);
    talk.serve(1);
    // Two servers are free, and nobody gets the lock without the arbiter.
    assert_eq!(talk.reply(id), None);
    talk.serve(0);
    assert_eq!(talk.reply(id), Some(Ok(Body::Release(Released::Done))));
    talk.nothing_is_left();
}

#[test]
fn a_release_does_not_wait_for_an_arbiter_that_is_gone() {
    let mut talk = Talk::new();
    let state = talk.held(1);
    let id = talk.release(1, state.token);
    talk.serve(1);
    talk.serve(2);
    assert_eq!(talk.reply(id), None);
    talk.down(0);
    assert_eq!(talk.reply(id), Some(Ok(Body::Release(Released::Done))));
}

#[test]
fn a_vote_of_unknown_fate_is_given_back_until_no_copy_of_it_can_come() {
    let mut talk = Talk::new();
    let id = talk.acquire(1, true);
    talk.serve(0);
    talk.serve(1);
    talk.granted(id);
    let request = talk.servers[2].arrived.pop_front().unwrap();
    let lost = Event::Reply { request: request.id, result: Err(Failure::Unknown) };
    talk.tell(2, Input::Event(lost));
    let id = talk.release(1, 0);
    talk.serve_all();
    assert!(matches!(talk.reply(id), Some(Ok(Body::Release(_)))));
    // The copy comes after all, by the connection that is gone.
    let (copy, _) = talk.apply(2, &client(1), &request.op);
    assert_eq!(acquired(copy).standing, Standing::Granted);
    talk.wait(Duration::from_secs(4));
    talk.serve_all();
    talk.nothing_is_left();
}

#[test]
fn a_vote_that_is_asked_for_anew_has_another_id() {
    let mut talk = Talk::new();
    talk.taken(0, 9);
    talk.acquire(1, true);
    let vote = |op: &Op| match op {
        Op::Acquire(ask) => ask.hold,
        other => panic!("{other:?}"),
    };
    let first = vote(&talk.servers[1].arrived[0].op);
    talk.serve_all();
    talk.freed(0, 9);
    let second = vote(&talk.servers[1].arrived[0].op);
    assert_ne!(first.0 >> 64, second.0 >> 64, "a server remembers the upper half");
    assert_eq!(first.0 as u64, second.0 as u64, "both are of one hold");
}

#[test]
fn a_stray_grant_is_given_back() {
    let mut talk = Talk::new();
    let vote = HoldId(0xabc << 64 | 0xdef);
    let (lock, abandoned) = (name(), crate::reply::Abandoned::No);
    let push = Push::Granted {
        lock,
        hold: vote,
        token: 5,
        end: 9,
        abandoned,
        losses: 0,
        others_waiting: 0,
    };
    talk.tell(1, Input::Event(Event::Push(push)));
    match talk.serve(1) {
        Op::Release(release) => assert_eq!(release.hold, vote),
        other => panic!("{other:?}"),
    }
    talk.nothing_is_left();
}
