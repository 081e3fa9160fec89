//! A store of two servers: names that begin with `b` are at the second, until they move.

use std::time::Duration;

use fencelock_engine::reply::{Body, Failure, Push, Refusal, RefusalKind, Reply, Standing, State};
use fencelock_engine::request::{Acquire, Op, Request};
use fencelock_engine::{
    Ask, Effect, Engine, Event, HoldKey, LaneId, LossReason, Name, Options, Outcome, Place, Time,
};

const A: LaneId = LaneId(0);
const B: LaneId = LaneId(1);
const SECOND: Duration = Duration::from_secs(1);
/// How far the second server's clock is ahead of the first one's, in microseconds.
const AHEAD: u64 = 3_600_000_000;
const BEGIN: Time = Time::from_nanos(1_000_000_000);

/// A client, and what it did.
struct Two {
    engine: Engine<u32>,
    now: Time,
    /// Requests that nobody has answered.
    open: Vec<Request>,
    granted: Vec<u32>,
    holds: Vec<HoldKey>,
    failed: Vec<u32>,
    lost: Vec<(u32, LossReason)>,
    doubted: Vec<LaneId>,
}

impl Two {
    fn new() -> Two {
        let mut engine = Engine::new(Options::default(), [7; 32]).unwrap();
        engine.set_places(|name| Place(u16::from(name.as_str().starts_with('b'))));
        engine.assign(BEGIN, 1..=1, B);
        let (granted, holds, failed, lost) = Default::default();
        let (open, doubted) = Default::default();
        let mut two = Two { engine, now: BEGIN, open, granted, holds, failed, lost, doubted };
        two.up(A);
        two.up(B);
        two
    }

    fn store(&self, lane: LaneId) -> u64 {
        1_800_000_000_000_000 + self.now.as_nanos() / 1_000 + u64::from(lane.0) * AHEAD
    }

    fn up(&mut self, lane: LaneId) {
        let now = self.store(lane);
        self.hear(lane, Event::Up { now });
    }

    fn hear(&mut self, lane: LaneId, event: Event) {
        self.engine.handle_on(self.now, lane, event);
        self.drain();
    }

    fn acquire(&mut self, name: &str, call: u32) {
        let lock = self.engine.lock(&Name::new(name).unwrap());
        self.engine.acquire(self.now, lock, Ask::local(1), call).unwrap();
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(effect) = self.engine.poll_effect() {
            match effect {
                Effect::Send(request) => self.open.push(request),
                Effect::Reconnect(doubt) => self.doubted.push(doubt.owed.lane()),
                Effect::Complete(call, Outcome::Granted(grant)) => {
                    self.granted.push(call);
                    self.holds.push(grant.hold);
                }
                Effect::Complete(call, _) => self.failed.push(call),
                Effect::Lost(call, reason) => self.lost.push((call, reason)),
                Effect::Wanted(_) | Effect::Note(_) => {}
            }
        }
    }

    /// One server answers all that it has: yes.
    fn answer(&mut self, lane: LaneId) {
        let mut answered = 0;
        while let Some(at) = self.open.iter().position(|request| request.id.lane() == lane) {
            let request = self.open.remove(at);
            answered += 1;
            assert!(answered < 1_000, "it never comes to rest: {request:?}");
            let lease = SECOND * 30;
            let state = State { token: 5, end: 1_028, lease, ..State::bare(Standing::Granted) };
            let body = match request.op {
                Op::Acquire(_) => Body::Acquire(state),
                Op::Beat(beats) => Body::Beat(beats.iter().map(|_| Ok(state)).collect()),
                op => panic!("{op:?}"),
            };
            let reply = Reply { now: self.store(lane), body };
            self.hear(lane, Event::Reply { request: request.id, result: Ok(reply) });
        }
    }

    /// Time passes while only these servers answer.
    fn pass(&mut self, span: Duration, answering: &[LaneId]) {
        let until = self.now + span;
        while let Some(next) = self.engine.next_wake().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.engine.wake(self.now);
            self.drain();
            for lane in answering {
                self.answer(*lane);
            }
        }
        self.now = until;
    }

    fn acquires(&self) -> Vec<(LaneId, Acquire)> {
        let of = |request: &Request| match &request.op {
            Op::Acquire(ask) => Some((request.id.lane(), ask.clone())),
            _ => None,
        };
        self.open.iter().filter_map(of).collect()
    }
}

#[test]
fn a_silent_server_costs_its_own_holds_alone() {
    let mut two = Two::new();
    two.acquire("a", 1);
    two.acquire("b", 2);
    two.answer(A);
    two.answer(B);
    assert_eq!(two.granted, [1, 2]);
    two.pass(SECOND * 120, &[A]);
    assert_eq!(two.lost, [(2, LossReason::NotRenewed)]);
    assert_eq!(two.doubted, [B], "only the silent connection is doubted");
    // The other one takes new work all the while.
    two.acquire("a2", 3);
    two.answer(A);
    assert_eq!(two.granted, [1, 2, 3]);
}

#[test]
fn a_lost_connection_resets_no_other() {
    let mut two = Two::new();
    two.acquire("a", 1);
    assert_eq!(two.acquires().len(), 1);
    two.hear(B, Event::Down { reason: "cut".to_owned() });
    two.acquire("b", 2);
    assert_eq!(two.acquires().len(), 1, "nothing is sent to the one that is away");
    two.answer(A);
    assert_eq!(two.granted, [1]);
    two.up(B);
    let lanes: Vec<LaneId> = two.open.iter().map(|request| request.id.lane()).collect();
    assert_eq!(lanes, [B], "what is at the other server does not show itself again");
    two.answer(B);
    assert_eq!(two.granted, [1, 2]);
}

#[test]
fn a_batch_goes_to_one_server() {
    let mut two = Two::new();
    for (call, name) in ["a1", "b1", "a2", "b2"].into_iter().enumerate() {
        two.acquire(name, call as u32);
    }
    two.answer(A);
    two.answer(B);
    two.pass(SECOND * 12, &[]);
    let mut batches = Vec::new();
    for request in &two.open {
        let Op::Beat(beats) = &request.op else { panic!("{request:?}") };
        let names: Vec<&str> = beats.iter().map(|beat| beat.lock.as_str()).collect();
        batches.push((request.id.lane(), names));
    }
    assert_eq!(batches, [(A, vec!["a1", "a2"]), (B, vec!["b1", "b2"])]);
}

#[test]
fn a_request_is_bounded_by_the_clock_of_its_server() {
    let mut two = Two::new();
    two.acquire("a", 1);
    two.acquire("b", 2);
    for (lane, ask) in two.acquires() {
        let ahead = ask.not_after - two.store(lane);
        assert!(ahead <= 60_000_000, "{lane:?}: {ahead} µs");
    }
    assert_eq!(two.acquires().len(), 2);
}

#[test]
fn a_name_that_moved_is_asked_for_at_its_new_server() {
    let mut two = Two::new();
    two.acquire("b", 1);
    let (lane, before) = two.acquires().remove(0);
    assert_eq!(lane, B);
    let request = two.open.remove(0).id;
    two.engine.assign(two.now, 1..=1, A);
    two.drain();
    assert_eq!(two.open, [], "it is out still, and may have been done");
    let message = "MOVED 1".to_owned();
    let moved = Failure::Refused(Refusal { kind: RefusalKind::Again, message });
    two.hear(B, Event::Reply { request, result: Err(moved) });
    let (lane, after) = two.acquires().remove(0);
    assert_eq!((lane, after.hold), (A, before.hold));
    assert!(after.not_after < two.store(B), "by the new server's clock");
    two.answer(A);
    assert_eq!(two.granted, [1]);
}

#[test]
fn a_hold_that_moved_is_renewed_at_its_new_server() {
    let mut two = Two::new();
    two.acquire("a", 1);
    two.acquire("b", 2);
    two.answer(A);
    two.answer(B);
    two.engine.assign(two.now, 1..=1, A);
    two.drain();
    let beats = |request: &Request| matches!(&request.op, Op::Beat(beats) if beats.len() == 1);
    assert!(two.open.iter().all(|request| request.id.lane() == A && beats(request)));
    assert_eq!(two.open.len(), 1, "it shows itself there at once, and it alone");
    two.answer(A);
    two.pass(SECOND * 120, &[A]);
    assert_eq!((two.lost, two.doubted), (Vec::new(), Vec::new()));
}

#[test]
fn a_server_that_needs_an_operator_fails_its_own_waits_alone() {
    let mut two = Two::new();
    two.acquire("a", 1);
    two.acquire("b", 2);
    let error =
        fencelock_engine::Error::new(fencelock_engine::ErrorKind::Misconfigured, "no scripts");
    two.hear(B, Event::Misconfigured(error));
    assert_eq!(two.failed, [2]);
    let b = two.engine.lock(&Name::new("b2").unwrap());
    assert!(two.engine.acquire(two.now, b, Ask::local(1), 3).is_err());
    two.answer(A);
    assert_eq!(two.granted, [1]);
}

fn refused(kind: RefusalKind) -> Result<Reply, Failure> {
    Err(Failure::Refused(Refusal { kind, message: "elsewhere".to_owned() }))
}

#[test]
fn a_lock_on_a_detour_is_asked_for_there_until_its_place_is_in_a_map() {
    let mut two = Two::new();
    two.acquire("a", 1);
    let request = two.open.remove(0).id;
    two.hear(A, Event::Detour(Name::new("a").unwrap(), B));
    two.hear(A, Event::Reply { request, result: refused(RefusalKind::Again) });
    let (lane, ask) = two.acquires().remove(0);
    assert_eq!(lane, B);
    assert!(ask.not_after > two.store(B), "by the clock of the server that is asked");
    two.answer(B);
    two.acquire("a2", 2);
    assert_eq!(two.acquires()[0].0, A, "others of its place stay");
    two.answer(A);
    assert_eq!(two.granted, [1, 2]);
    two.hear(A, Event::Map(vec![(0..=0, A)]));
    let lanes: Vec<LaneId> = two.open.iter().map(|request| request.id.lane()).collect();
    assert_eq!(lanes, [A], "it shows itself where its place is");
    two.answer(A);
    two.pass(SECOND * 120, &[A]);
    assert_eq!(two.lost, []);
}

#[test]
fn a_message_by_another_server_than_the_locks_is_not_heard() {
    let mut two = Two::new();
    two.acquire("b", 1);
    let (_, ask) = two.acquires().remove(0);
    two.answer(B);
    let wanted = Event::Push(Push::Wanted { lock: ask.lock, hold: ask.hold });
    two.engine.handle_on(two.now, A, wanted.clone());
    assert_eq!(two.engine.poll_effect(), None);
    two.engine.handle_on(two.now, B, wanted);
    assert_eq!(two.engine.poll_effect(), Some(Effect::Wanted(1)));
}

#[test]
fn a_batch_is_of_one_place_and_of_one_lock_while_that_moves() {
    let mut two = Two::new();
    two.hear(A, Event::Map(vec![(1..=1, A)]));
    for (call, name) in ["a1", "b", "a2"].into_iter().enumerate() {
        two.acquire(name, call as u32);
    }
    two.answer(A);
    let batches = |two: &Two| -> Vec<Vec<(String, bool)>> {
        let of = |request: &Request| match &request.op {
            Op::Beat(beats) => {
                beats.iter().map(|beat| (beat.lock.as_str().to_owned(), beat.apart)).collect()
            }
            op => panic!("{op:?}"),
        };
        two.open.iter().map(of).collect()
    };
    let (a1, a2) = (|apart| ("a1".to_owned(), apart), |apart| ("a2".to_owned(), apart));
    let b = || vec![("b".to_owned(), false)];
    two.pass(SECOND * 11, &[]);
    assert_eq!(batches(&two), [vec![a1(false), a2(false)], b()]);
    let request = two.open.remove(0).id;
    two.hear(A, Event::Reply { request, result: refused(RefusalKind::Apart) });
    assert_eq!(batches(&two), [b(), vec![a1(true)], vec![a2(true)]]);
    two.answer(A);
    two.pass(SECOND * 11, &[]);
    assert_eq!(batches(&two), [b(), vec![a1(false), a2(false)]], "all is asked for again");
}

#[test]
fn a_question_whose_server_went_away_is_put_to_the_one_that_has_the_name_now() {
    let mut two = Two::new();
    two.engine.inspect(two.now, &Name::new("b").unwrap(), 1);
    two.drain();
    let request = two.open.remove(0).id;
    assert_eq!(request.lane(), B);
    two.hear(A, Event::Map(vec![(1..=1, A)]));
    assert_eq!(two.open, [], "it is out still");
    two.hear(B, Event::Reply { request, result: Err(Failure::Unknown) });
    two.hear(B, Event::Down { reason: "it has no slots any more".to_owned() });
    let asked: Vec<LaneId> = two.open.iter().map(|request| request.id.lane()).collect();
    assert_eq!(asked, [A], "nobody else would ask it again");
}

#[test]
fn what_any_server_answers_does_not_wait_for_one_that_is_gone() {
    let mut two = Two::new();
    two.engine.ping(two.now, 1);
    two.drain();
    let request = two.open.remove(0).id;
    let (asked, other) = if request.lane() == A { (A, B) } else { (B, A) };
    two.hear(asked, Event::Reply { request, result: Err(Failure::Unknown) });
    two.hear(asked, Event::Down { reason: "cut".to_owned() });
    let lanes: Vec<LaneId> = two.open.iter().map(|request| request.id.lane()).collect();
    assert_eq!(lanes, [other]);
}

/// Each of two servers says of all that it is asked that the other one has it, as in the moment between
/// the two halves of a SETSLOT. Gives how many requests they answer before there is a pause.
fn sent_to_and_fro(two: &mut Two) -> usize {
    let mut answered = 0;
    while let Some(request) = two.open.first().map(|request| request.id) {
        two.open.remove(0);
        answered += 1;
        if answered > 500 {
            break;
        }
        let (said, other) = if request.lane() == A { (A, B) } else { (B, A) };
        two.hear(A, Event::Map(vec![(1..=1, other)]));
        two.hear(said, Event::Reply { request, result: refused(RefusalKind::Again) });
    }
    answered
}

#[test]
fn servers_that_name_each_other_are_not_asked_without_a_pause() {
    let mut two = Two::new();
    two.acquire("b1", 1);
    two.acquire("b2", 2);
    let waiting = sent_to_and_fro(&mut two);
    assert!(waiting < 40, "{waiting} acquires");

    let mut two = Two::new();
    for (call, name) in ["b1", "b2", "b3"].into_iter().enumerate() {
        two.acquire(name, call as u32);
    }
    two.answer(B);
    two.pass(SECOND * 11, &[]);
    let renewing = sent_to_and_fro(&mut two);
    assert!(renewing > 0 && renewing < 60, "{renewing} renewals");
    let mut more = 0;
    for _ in 0..1_000 {
        two.now = two.now + Duration::from_millis(5);
        two.engine.wake(two.now);
        two.drain();
        more += sent_to_and_fro(&mut two);
    }
    assert!(more < 200, "{more} renewals within 5 s");

    let mut two = Two::new();
    two.engine.inspect(two.now, &Name::new("b").unwrap(), 1);
    two.drain();
    let asking = sent_to_and_fro(&mut two);
    assert!(asking < 40, "{asking} questions");
}

/// A slot that is moving has not all keys of a lock: what names them all is refused as long as that takes.
#[test]
fn a_release_that_is_sent_on_still_names_the_record_alone() {
    let mut two = Two::new();
    two.acquire("b", 1);
    two.answer(B);
    let hold = two.holds[0];
    two.engine.release(two.now, hold, None).unwrap();
    two.drain();
    let releases = |two: &Two| -> Vec<(LaneId, bool)> {
        let of = |request: &Request| match &request.op {
            Op::Release(release) => (request.id.lane(), release.alone),
            op => panic!("{op:?}"),
        };
        two.open.iter().map(of).collect()
    };
    assert_eq!(releases(&two), [(B, true)]);
    let request = two.open.remove(0).id;
    two.hear(A, Event::Detour(Name::new("b").unwrap(), A));
    two.hear(B, Event::Reply { request, result: refused(RefusalKind::Again) });
    assert_eq!(releases(&two), [(A, true)]);
    let request = two.open.remove(0).id;
    two.hear(A, Event::Reply { request, result: refused(RefusalKind::Again) });
    assert_eq!(releases(&two), [(A, true)], "if that one wants more, its codec remembers");
}

#[test]
fn what_moves_is_looked_for_without_reckoning_where_all_else_is() {
    use std::cell::Cell;
    thread_local!(static RECKONED: Cell<usize> = const { Cell::new(0) });
    fn reckon(name: &Name) -> Place {
        RECKONED.with(|it| it.set(it.get() + 1));
        Place(name.as_str()[1..].parse().unwrap())
    }
    let mut two = Two::new();
    two.engine.set_places(reckon);
    two.engine.assign(two.now, 0..=999, B);
    for number in 0..200 {
        two.acquire(&format!("n{number}"), number);
    }
    two.answer(B);
    let before = RECKONED.get();
    two.hear(A, Event::Map(vec![(7..=7, A)]));
    two.hear(A, Event::Detour(Name::new("n8").unwrap(), A));
    assert_eq!(two.open.len(), 2, "both show themselves there");
    assert!(two.open.iter().all(|request| request.id.lane() == A));
    let reckoned = RECKONED.get() - before;
    assert!(reckoned < 20, "{reckoned} times");
}
