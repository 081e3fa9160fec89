//! Local readers of one client, under one hold at the store.

mod world;

use std::time::Duration;

use fencelock_engine::reply::{Abandoned, Push};
use fencelock_engine::request::{Break, Mode};
use fencelock_engine::{
    Acquired, Ask, CallKey, ErrorKind, Grant, How, LossReason, Name, Options, Outcome, Owner,
    OwnerId, Patience,
};
use world::World;

const SECOND: Duration = Duration::from_secs(1);

fn reads(owner: u64) -> Ask {
    Ask { mode: Mode::Shared, ..Ask::local(owner) }
}

fn leased(ask: Ask, seconds: u32) -> Ask {
    Ask { lease: Some(SECOND * seconds), ..ask }
}

fn tries(ask: Ask) -> Ask {
    Ask { patience: Patience::Try, ..ask }
}

/// How fresh the store's word must be for a reader to join without asking.
fn heartbeat() -> Duration {
    Options::default().heartbeat()
}

impl World {
    fn read(&mut self, client: usize, owner: u64) -> Grant {
        self.take_with(client, reads(owner))
    }

    /// Begins to wait; must not get it at once.
    fn wait_with(&mut self, client: usize, ask: Ask) -> (u32, CallKey) {
        let (call, acquired) = self.acquire(client, ask);
        assert!(self.is_pending(client, call), "ended at once");
        let Ok(Acquired::Pending(key)) = acquired else { panic!("{acquired:?}") };
        (call, key)
    }

    fn give_all(&mut self, client: usize, grants: &[Grant]) {
        for grant in grants {
            self.release(client, grant.hold).unwrap();
        }
    }

    fn sent(&self, client: usize) -> usize {
        self.clients[client].sent
    }

    fn holds(&self) -> usize {
        self.record().holds.len()
    }

    fn waiters(&self) -> usize {
        self.record().waiters.len()
    }

    fn lost(&self, client: usize, call: u32) -> Option<LossReason> {
        self.clients[client].lost.get(&call).copied()
    }

    /// Nobody holds or waits, at the store and in the clients.
    fn is_clean(&mut self) {
        self.pass(SECOND * 10);
        let record = self.record();
        assert!(record.holds.is_empty() && record.waiters.is_empty(), "{record:?}");
        for client in &mut self.clients {
            assert!(client.engine.is_idle() && client.engine.is_settled());
            assert!(client.engine.has_left_nothing());
            assert_eq!(client.engine.next_wake(), None);
        }
    }
}

#[test]
fn who_reads_while_others_do_joins_them_without_a_round_trip() {
    let mut world = World::new(2);
    let first = world.read(0, 1);
    let sent = world.sent(0);
    let grants: Vec<Grant> = (2..18).map(|owner| world.read(0, owner)).collect();
    assert!(grants.iter().all(|it| it.token == first.token && it.how == How::Local));
    assert!(grants.iter().all(|it| !it.reentry && it.abandoned == first.abandoned));
    let tried = world.take_with(0, tries(reads(20)));
    assert_eq!((world.sent(0), world.holds()), (sent, 1));
    let lock = world.clients[0].lock;
    assert_eq!(world.clients[0].engine.count(world.time(), lock, 5), 1);
    assert_eq!(world.clients[0].engine.count(world.time(), lock, 19), 0);
    // Each leaves by itself; the last one tells the store.
    world.give_all(0, &[first, tried]);
    world.give_all(0, &grants[1..]);
    assert_eq!((world.sent(0), world.holds()), (sent, 1));
    assert_eq!(world.try_take(1, 1), Err(ErrorKind::Contended));
    assert!(world.remaining(0, grants[0].hold).is_some());
    world.release(0, grants[0].hold).unwrap();
    assert_eq!((world.sent(0), world.holds()), (sent + 1, 0));
    assert_eq!(world.release(0, grants[0].hold), Err(ErrorKind::NotHeld));
    world.is_clean();
}

#[test]
fn readers_that_wait_stand_in_the_queue_once_and_come_in_together() {
    let mut world = World::new(2);
    let writer = world.take(1, 1);
    let sent = world.sent(0);
    let waiting: Vec<u32> = (1..17).map(|owner| world.wait_with(0, reads(owner)).0).collect();
    assert_eq!((world.sent(0), world.waiters()), (sent + 1, 1));
    let (call, _) = world.acquire(0, tries(reads(20)));
    assert_eq!(world.failed(0, call), ErrorKind::Contended);
    assert_eq!(world.sent(0), sent + 1, "nor is one that does not wait sent");
    world.release(1, writer.hold).unwrap();
    let grants: Vec<Grant> = waiting.iter().map(|call| world.granted(0, *call)).collect();
    assert!(grants.iter().all(|it| it.token == grants[0].token && it.how == How::Push));
    assert!(grants[0].token > writer.token && world.holds() == 1);
    world.give_all(0, &grants);
    world.is_clean();
}

#[test]
fn bug_101_readers_that_overlap_let_a_writer_in_whose_coming_nobody_heard_of() {
    let mut world = World::new(2);
    let mut reader = world.read(0, 1);
    world.clients[0].deaf = true;
    let (writer, _) = world.wait_with(1, Ask::local(1));
    world.clients[0].deaf = false;
    let mut waiting = None;
    for owner in 2..100 {
        world.pass(heartbeat() / 4);
        let (call, _) = world.acquire(0, reads(owner));
        if world.is_pending(0, call) {
            waiting = Some(call);
            break;
        }
        let next = world.granted(0, call);
        world.release(0, reader.hold).unwrap();
        reader = next;
    }
    let waiting = waiting.expect("readers overlapped for ever");
    world.release(0, reader.hold).unwrap();
    let writer = world.granted(1, writer);
    assert!(world.is_pending(0, waiting));
    world.release(1, writer.hold).unwrap();
    let last = world.granted(0, waiting);
    assert!(last.token > writer.token);
    world.release(0, last.hold).unwrap();
    world.is_clean();
}

#[test]
fn a_reader_asks_first_when_the_stores_word_is_old_and_joins_when_nobody_waits() {
    let mut world = World::new(2);
    let first = world.take_with(0, leased(reads(1), 25));
    world.pass(heartbeat() + SECOND / 10);
    let sent = world.sent(0);
    let second = world.take_with(0, leased(reads(2), 5));
    assert_eq!(second.token, first.token);
    assert_eq!((world.sent(0), world.holds()), (sent + 1, 1));
    let third = world.take_with(0, tries(leased(reads(3), 5)));
    assert_eq!(world.sent(0), sent + 1, "its word is fresh now");
    world.give_all(0, &[first, second, third]);
    world.is_clean();
}

#[test]
fn one_that_does_not_wait_is_refused_where_the_store_says_that_others_do() {
    let mut world = World::new(2);
    let first = world.read(0, 1);
    world.pass(heartbeat() + SECOND / 10);
    world.clients[0].deaf = true;
    let (writer, _) = world.wait_with(1, Ask::local(1));
    world.clients[0].deaf = false;
    let (call, _) = world.acquire(0, tries(reads(2)));
    assert_eq!(world.failed(0, call), ErrorKind::Contended);
    world.release(0, first.hold).unwrap();
    let writer = world.granted(1, writer);
    world.release(1, writer.hold).unwrap();
    world.is_clean();
}

#[test]
fn nobody_joins_past_a_writer_that_waits_elsewhere_and_all_join_again_when_it_gave_up() {
    let mut world = World::new(2);
    let first = world.read(0, 1);
    let (_, writer) = world.wait_with(1, Ask::local(1));
    assert_eq!(world.clients[0].wanted.len(), 1);
    let late = [2, 3, 4].map(|owner| world.wait_with(0, reads(owner)).0);
    assert_eq!(world.waiters(), 2, "the writer, and one for the three");
    world.cancel(1, writer);
    let grants = late.map(|call| world.granted(0, call));
    assert!(grants.iter().all(|it| it.token == grants[0].token && it.token > first.token));
    let sent = world.sent(0);
    let last = world.read(0, 5);
    assert_eq!((last.token, world.sent(0)), (grants[0].token, sent));
    world.give_all(0, &[first, last]);
    world.give_all(0, &grants);
    world.is_clean();
}

#[test]
fn nobody_joins_past_a_local_writer() {
    let mut world = World::new(1);
    let first = world.read(0, 1);
    let (writer, _) = world.wait_with(0, Ask::local(2));
    let late = [3, 4].map(|owner| world.wait_with(0, reads(owner)).0);
    world.release(0, first.hold).unwrap();
    let writer = world.granted(0, writer);
    assert!(late.iter().all(|call| world.is_pending(0, *call)));
    world.release(0, writer.hold).unwrap();
    let grants = late.map(|call| world.granted(0, call));
    assert!(grants.iter().all(|it| it.token == grants[0].token && it.token > writer.token));
    world.give_all(0, &grants);
    world.is_clean();
}

#[test]
fn readers_behind_a_local_writer_do_not_stand_with_those_before_it() {
    let mut world = World::new(2);
    let stranger = world.take(1, 1);
    let (before, _) = world.wait_with(0, reads(1));
    let (writer, _) = world.wait_with(0, Ask::local(2));
    let behind = [3, 4].map(|owner| world.wait_with(0, reads(owner)).0);
    assert_eq!(world.waiters(), 3, "readers, the writer, readers");
    world.release(1, stranger.hold).unwrap();
    let before = world.granted(0, before);
    assert!(world.is_pending(0, writer) && world.is_pending(0, behind[0]));
    world.release(0, before.hold).unwrap();
    let writer = world.granted(0, writer);
    world.release(0, writer.hold).unwrap();
    let grants = behind.map(|call| world.granted(0, call));
    assert_eq!(grants[0].token, grants[1].token);
    world.give_all(0, &grants);
    world.is_clean();
}

#[test]
fn bug_125_the_first_of_those_that_wait_may_go_and_the_others_wait_on() {
    let mut world = World::new(2);
    let writer = world.take(1, 1);
    let (_, first) = world.wait_with(0, reads(1));
    let (second, _) = world.wait_with(0, reads(2));
    let until = Patience::Until(world.time() + SECOND * 5);
    let (third, _) = world.wait_with(0, Ask { patience: until, ..reads(3) });
    assert!(world.cancel(0, first));
    assert_eq!(world.waiters(), 1);
    world.pass(SECOND * 6);
    assert_eq!(world.failed(0, third), ErrorKind::TimedOut);
    assert_eq!(world.waiters(), 1);
    world.release(1, writer.hold).unwrap();
    let second = world.granted(0, second);
    world.release(0, second.hold).unwrap();
    // With the last of them the place is given up.
    let writer = world.take(1, 1);
    let keys = [4, 5].map(|owner| world.wait_with(0, reads(owner)).1);
    for key in keys {
        assert_eq!(world.waiters(), 1);
        world.cancel(0, key);
    }
    assert_eq!(world.waiters(), 0);
    world.release(1, writer.hold).unwrap();
    world.is_clean();
}

#[test]
fn the_loss_of_a_hold_is_told_to_all_who_read_by_it() {
    let mut world = World::new(2);
    let calls = [1, 2, 3].map(|owner| world.acquire(0, reads(owner)).0);
    let again = world.acquire(0, reads(2)).0;
    let grants = calls.map(|call| world.granted(0, call));
    let what = Break {
        lock: Name::new("stock").unwrap(),
        token: grants[0].token.get(),
        hold: world.record().holds.first().map(|hold| hold.hold),
    };
    let now = world.time();
    world.clients[1].engine.break_lock(now, what, 1_000);
    world.run();
    for call in calls.into_iter().chain([again]) {
        assert_eq!(world.lost(0, call), Some(LossReason::Broken));
    }
    for grant in &grants {
        assert_eq!(world.remaining(0, grant.hold), None);
        assert_eq!(world.release(0, grant.hold), Err(ErrorKind::Lost));
    }
    let again = world.granted(0, again);
    assert_eq!(world.release(0, again.hold), Err(ErrorKind::Lost));
    let writer = world.take(1, 1);
    assert_ne!(writer.abandoned, Abandoned::Yes, "readers leave nothing half done");
    world.release(1, writer.hold).unwrap();
    world.is_clean();
}

#[test]
fn a_client_that_breaks_its_own_readers_and_writes_tells_them_that_they_were_broken() {
    let mut world = World::new(1);
    let call = world.acquire(0, reads(1)).0;
    let reader = world.granted(0, call);
    let token = reader.token.get();
    // The store's word to the readers comes later than the answers, as where it is polled for.
    world.clients[0].deaf = true;
    let now = world.time();
    let what = Break { lock: Name::new("stock").unwrap(), token, hold: None };
    world.clients[0].engine.break_lock(now, what, 1_000);
    world.run();
    let writer = world.take(0, 2);
    assert_eq!(world.lost(0, call), Some(LossReason::Broken));
    assert_eq!(world.release(0, reader.hold), Err(ErrorKind::Lost));
    world.release(0, writer.hold).unwrap();
    world.is_clean();
}

#[test]
fn who_cannot_renew_is_told_in_time_and_so_are_all() {
    let mut world = World::new(2);
    let calls = [1, 2].map(|owner| world.acquire(0, reads(owner)).0);
    world.disconnect(0);
    world.pass(SECOND * 31);
    assert!(calls.iter().all(|call| world.lost(0, *call) == Some(LossReason::NotRenewed)));
    world.connect(0);
    for call in calls {
        let hold = world.granted(0, call).hold;
        assert_eq!(world.release(0, hold), Err(ErrorKind::Lost));
    }
    world.is_clean();
}

#[test]
fn a_lease_or_a_ceiling_ends_the_hold_of_its_reader_alone() {
    let brief = |ask| Ask { max_hold: Some(SECOND * 2), ..ask };
    for ask in [leased(reads(2), 2), brief(reads(2))] {
        for first_is_brief in [true, false] {
            let mut world = World::new(2);
            let other = if first_is_brief { None } else { Some(world.read(0, 1)) };
            let (call, _) = world.acquire(0, ask.clone());
            let short = world.granted(0, call);
            let other = other.unwrap_or_else(|| world.read(0, 1));
            assert_eq!((short.token, world.holds()), (other.token, 1));
            assert!(world.remaining(0, short.hold).unwrap() <= SECOND * 2);
            world.pass(SECOND * 3);
            assert_eq!(world.lost(0, call), Some(LossReason::Ended));
            assert_eq!(world.release(0, short.hold), Err(ErrorKind::Lost));
            world.pass(SECOND * 60);
            assert!(world.remaining(0, other.hold).is_some());
            assert_eq!(world.clients[0].lost.len(), 1);
            // Its owner may write in due course: it reads no more.
            let (writer, _) = world.wait_with(0, Ask::local(2));
            world.release(0, other.hold).unwrap();
            let writer = world.granted(0, writer);
            world.release(0, writer.hold).unwrap();
            world.is_clean();
        }
    }
}

#[test]
fn when_the_last_lease_ends_the_store_is_told() {
    let mut world = World::new(2);
    let calls =
        [2, 4].map(|seconds| world.acquire(0, leased(reads(u64::from(seconds)), seconds)).0);
    assert_eq!(world.holds(), 1);
    world.pass(SECOND * 3);
    assert_eq!((world.clients[0].lost.len(), world.holds()), (1, 1));
    world.pass(SECOND * 2);
    assert_eq!((world.clients[0].lost.len(), world.holds()), (2, 0));
    for call in calls {
        let hold = world.granted(0, call).hold;
        assert_eq!(world.release(0, hold), Err(ErrorKind::Lost));
    }
    world.is_clean();
}

#[test]
fn a_reader_that_asks_for_longer_than_the_others_has_a_hold_of_its_own() {
    let mut world = World::new(2);
    let first = world.read(0, 1);
    let long = world.take_with(0, leased(reads(2), 300));
    assert_eq!(world.holds(), 2);
    let third = world.read(0, 3);
    assert_eq!((third.token, world.holds()), (first.token, 2));
    world.give_all(0, &[first, third]);
    assert_eq!(world.holds(), 1);
    world.release(0, long.hold).unwrap();
    // Nor do others join the one that came first.
    let long = world.take_with(0, leased(reads(2), 300));
    let other = world.read(0, 1);
    assert_eq!(world.holds(), 2);
    world.give_all(0, &[long, other]);
    world.is_clean();
}

#[test]
fn one_that_needs_more_time_than_is_left_gets_it_first() {
    let mut world = World::new(2);
    let brief = world.take_with(0, leased(reads(1), 2));
    let sent = world.sent(0);
    let other = world.read(0, 2);
    assert_eq!((other.token, world.sent(0), world.holds()), (brief.token, sent + 1, 1));
    assert!(world.remaining(0, other.hold).unwrap() > SECOND * 9);
    assert!(world.remaining(0, brief.hold).unwrap() <= SECOND * 2);
    world.give_all(0, &[brief, other]);
    world.is_clean();
}

#[test]
fn a_longer_lease_reaches_only_the_hold_that_asked_for_it() {
    let mut world = World::new(2);
    let (brief, _) = world.acquire(0, leased(reads(1), 5));
    let kept = world.take_with(0, leased(reads(2), 5));
    let call = world.extend(0, kept.hold, SECOND * 20);
    assert_eq!(world.clients[0].outcomes.get(&call), Some(&Outcome::Extended));
    world.pass(SECOND * 6);
    assert_eq!(world.lost(0, brief), Some(LossReason::Ended));
    assert!(world.remaining(0, kept.hold).unwrap() > SECOND * 10);
    let brief = world.granted(0, brief);
    assert_eq!(world.release(0, brief.hold), Err(ErrorKind::Lost));
    world.release(0, kept.hold).unwrap();
    world.is_clean();
}

#[test]
fn an_owner_re_enters_beside_others_and_never_waits_for_itself() {
    let mut world = World::new(2);
    let (one, other) = (world.read(0, 1), world.read(0, 2));
    let (writer, _) = world.wait_with(1, Ask::local(1));
    let again = world.read(0, 2);
    assert!(again.reentry && again.token == one.token);
    for owner in [1, 2] {
        let (call, _) = world.acquire(0, Ask::local(owner));
        assert_eq!(world.failed(0, call), ErrorKind::WouldDeadlock);
    }
    world.give_all(0, &[one, other]);
    assert!(world.is_pending(1, writer), "a level is left");
    world.release(0, again.hold).unwrap();
    let writer = world.granted(1, writer);
    world.release(1, writer.hold).unwrap();
    world.is_clean();
}

#[test]
fn a_write_that_waits_is_refused_when_its_owner_joins_readers() {
    let mut world = World::new(2);
    let stranger = world.take(1, 1);
    let reading = [1, 2].map(|owner| world.wait_with(0, reads(owner)).0);
    let (writer, _) = world.wait_with(0, Ask::local(2));
    world.release(1, stranger.hold).unwrap();
    assert_eq!(world.failed(0, writer), ErrorKind::WouldDeadlock);
    let grants = reading.map(|call| world.granted(0, call));
    world.give_all(0, &grants);
    world.is_clean();
}

#[test]
fn reads_of_one_owner_among_those_that_wait_are_levels_of_one() {
    let mut world = World::new(2);
    let writer = world.take(1, 1);
    let reading = [1, 2, 2, 1].map(|owner| world.wait_with(0, reads(owner)).0);
    assert_eq!(world.waiters(), 1);
    world.release(1, writer.hold).unwrap();
    let grants = reading.map(|call| world.granted(0, call));
    assert_eq!(grants.each_ref().map(|it| it.reentry), [false, false, true, true]);
    world.give_all(0, &grants);
    world.is_clean();
}

#[test]
fn a_joiner_whose_readers_leave_meanwhile_goes_to_the_store() {
    for patience in [Patience::Forever, Patience::Try] {
        let mut world = World::new(1);
        let first = world.take_with(0, leased(reads(1), 25));
        world.pass(heartbeat() * 2);
        world.clients[0].slow = true;
        let (call, _) = world.wait_with(0, Ask { patience, ..reads(2) });
        world.begin_release(0, first.hold).unwrap();
        world.clients[0].slow = false;
        world.arrive();
        world.pass(SECOND);
        let second = world.granted(0, call);
        assert!(second.token > first.token);
        world.release(0, second.hold).unwrap();
        world.is_clean();
    }
}

#[test]
fn a_joiner_gives_up_or_is_bounded_and_the_others_read_on() {
    let mut world = World::new(1);
    let first = world.read(0, 1);
    world.pass(heartbeat() * 2);
    world.clients[0].slow = true;
    let (_, key) = world.wait_with(0, reads(2));
    assert!(world.cancel(0, key));
    let until = Patience::Until(world.time() + SECOND);
    let (bounded, _) = world.wait_with(0, Ask { patience: until, ..reads(3) });
    world.pass(SECOND + SECOND / 10);
    assert_eq!(world.failed(0, bounded), ErrorKind::TimedOut);
    world.clients[0].slow = false;
    world.arrive();
    world.pass(SECOND);
    assert!(world.remaining(0, first.hold).is_some());
    world.release(0, first.hold).unwrap();
    world.is_clean();
}

#[test]
fn all_are_told_that_somebody_waits() {
    let mut world = World::new(2);
    let calls = [1, 2, 3].map(|owner| world.acquire(0, reads(owner)).0);
    let (writer, _) = world.wait_with(1, Ask::local(1));
    assert!(calls.iter().all(|call| world.clients[0].wanted.contains(call)));
    for call in calls {
        let hold = world.granted(0, call).hold;
        world.release(0, hold).unwrap();
    }
    let writer = world.granted(1, writer);
    world.release(1, writer.hold).unwrap();
    world.is_clean();
}

#[test]
fn an_explicit_owner_reads_beside_and_does_not_join() {
    let mut world = World::new(1);
    let local = world.read(0, 1);
    let owner = Owner::Explicit(OwnerId::new("a").unwrap());
    let explicit = world.take_with(0, Ask { owner, ..reads(0) });
    assert_eq!(world.holds(), 2);
    assert!(explicit.token > local.token);
    world.give_all(0, &[local, explicit]);
    world.is_clean();
}

#[test]
fn a_close_tells_all_who_read_and_all_who_wait_to() {
    let mut world = World::new(2);
    let calls = [1, 2].map(|owner| world.acquire(0, reads(owner)).0);
    let (writer, _) = world.wait_with(1, Ask::local(1));
    let waiting = [3, 4].map(|owner| world.wait_with(0, reads(owner)).0);
    let now = world.time();
    world.clients[0].engine.close(now, 1_000);
    world.run();
    assert!(calls.iter().all(|call| world.lost(0, *call) == Some(LossReason::Closed)));
    assert!(waiting.iter().all(|call| world.failed(0, *call) == ErrorKind::Closed));
    assert!(world.clients[0].engine.has_left_nothing());
    let writer = world.granted(1, writer);
    world.release(1, writer.hold).unwrap();
}

#[test]
fn a_wait_of_unknown_outcome_serves_all_who_stand_behind_it() {
    let mut world = World::new(1);
    world.clients[0].swallow_replies = true;
    let calls = [1, 2, 3].map(|owner| world.wait_with(0, reads(owner)).0);
    assert_eq!(world.holds(), 1);
    world.clients[0].swallow_replies = false;
    world.pass(SECOND);
    let grants = calls.map(|call| world.granted(0, call));
    assert_eq!(world.holds(), 1);
    world.give_all(0, &grants);
    world.is_clean();
}

#[test]
fn those_who_wait_stay_together_when_the_store_lost_its_queue() {
    let mut world = World::new(2);
    let writer = world.take(1, 1);
    let calls = [1, 2].map(|owner| world.wait_with(0, reads(owner)).0);
    world.records.clear();
    world.pass(SECOND * 20);
    assert_eq!(world.release(1, writer.hold), Err(ErrorKind::Lost));
    world.pass(SECOND * 5);
    let grants = calls.map(|call| world.granted(0, call));
    assert_eq!(grants[0].token, grants[1].token);
    world.give_all(0, &grants);
    world.is_clean();
}

#[test]
fn what_one_says_of_waiters_while_another_asks_is_not_forgotten() {
    let mut world = World::new(2);
    let first = world.take_with(0, leased(reads(1), 25));
    world.pass(heartbeat() * 2);
    world.clients[0].slow = true;
    // Its question is answered before the writer comes, and the answer is late.
    let (joiner, _) = world.wait_with(0, reads(2));
    let (writer, _) = world.wait_with(1, Ask::local(1));
    let hold = world.record().holds.first().map(|hold| hold.hold).unwrap();
    world.push(0, Push::Wanted { lock: Name::new("stock").unwrap(), hold });
    world.clients[0].slow = false;
    world.arrive();
    assert!(world.is_pending(0, joiner), "it would pass the writer");
    world.release(0, first.hold).unwrap();
    let writer = world.granted(1, writer);
    world.release(1, writer.hold).unwrap();
    let joiner = world.granted(0, joiner);
    world.release(0, joiner.hold).unwrap();
    world.is_clean();
}

#[test]
fn an_owner_that_is_let_in_elsewhere_while_it_asks_to_join_reads_there() {
    for patience in [Patience::Forever, Patience::Try] {
        let mut world = World::new(1);
        let other = world.read(0, 1);
        world.pass(heartbeat() * 2);
        world.clients[0].slow = true;
        // Asks for longer than the others, and so for itself; and then once more.
        let (long, _) = world.wait_with(0, leased(reads(2), 300));
        let (joins, _) = world.wait_with(0, Ask { patience, ..reads(2) });
        world.clients[0].slow = false;
        world.arrive();
        world.pass(SECOND);
        let (long, joins) = (world.granted(0, long), world.granted(0, joins));
        assert!(joins.reentry && joins.token == long.token && long.token > other.token);
        let lock = world.clients[0].lock;
        assert_eq!(world.clients[0].engine.count(world.time(), lock, 2), 2);
        world.give_all(0, &[other, long, joins]);
        world.is_clean();
    }
}
