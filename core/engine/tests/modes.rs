//! Readers, writers and permits, as clients' state machines play them.

mod world;

use std::time::Duration;

use fencelock_engine::reply::Abandoned;
use fencelock_engine::request::{Break, Mode};
use fencelock_engine::{
    Acquired, Ask, CallKey, ErrorKind, Grant, HoldKey, How, LossReason, Name, Outcome, Owner,
    OwnerId, Patience, Token,
};
use world::World;

const SECOND: Duration = Duration::from_secs(1);

fn reads(owner: u64) -> Ask {
    Ask { mode: Mode::Shared, ..Ask::local(owner) }
}

fn permits(count: u32, of: u32) -> Ask {
    Ask { mode: Mode::Permits { count, of }, ..Ask::local(1) }
}

fn explicit(owner: &str, mode: Mode) -> Ask {
    Ask { owner: Owner::Explicit(OwnerId::new(owner).unwrap()), mode, ..Ask::local(0) }
}

fn leased(ask: Ask, seconds: u32) -> Ask {
    Ask { lease: Some(SECOND * seconds), ..ask }
}

fn tries(ask: Ask) -> Ask {
    Ask { patience: Patience::Try, ..ask }
}

impl World {
    fn read(&mut self, client: usize, owner: u64) -> Grant {
        self.take_with(client, reads(owner))
    }

    /// Asks, and is told no.
    fn refused(&mut self, client: usize, ask: Ask) -> ErrorKind {
        let (call, _) = self.acquire(client, ask);
        self.failed(client, call)
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

    /// Nobody holds or waits, at the store and in the clients, once the lock's keys are given back.
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
fn readers_of_one_client_and_of_others_hold_together_and_a_writer_alone() {
    let mut world = World::new(3);
    let readers = [world.read(0, 1), world.read(0, 2), world.read(1, 1)];
    assert!(readers[0].token == readers[1].token && readers[1].token < readers[2].token);
    assert_eq!(world.record().holds.len(), 2, "one for each client");
    for client in 0..3 {
        assert_eq!(world.try_take(client, 9), Err(ErrorKind::Contended));
    }
    let (writer, _) = world.queue(2, 1);
    for client in 0..3 {
        assert_eq!(world.refused(client, tries(reads(7))), ErrorKind::Contended, "a writer waits");
    }
    let (late, _) = world.wait_with(0, reads(3));
    world.give_all(0, &readers[..2]);
    assert!(world.is_pending(2, writer));
    world.release(1, readers[2].hold).unwrap();
    let writer = world.granted(2, writer);
    assert!(writer.token > readers[2].token && writer.abandoned != Abandoned::Yes);
    assert!(world.is_pending(0, late));
    world.release(2, writer.hold).unwrap();
    let late = world.granted(0, late);
    assert!(late.token > writer.token && late.how == How::Push);
    world.release(0, late.hold).unwrap();
    world.is_clean();
}

#[test]
fn readers_that_wait_in_one_client_come_in_together() {
    let mut world = World::new(2);
    let writer = world.take(1, 1);
    let waiting = [1, 2, 3].map(|owner| world.wait_with(0, reads(owner)).0);
    world.release(1, writer.hold).unwrap();
    let grants = waiting.map(|call| world.granted(0, call));
    assert_eq!(world.record().holds.len(), 1);
    world.give_all(0, &grants);
    world.is_clean();
}

#[test]
fn readers_wait_behind_a_local_writer_and_it_is_not_handed_to_them() {
    let mut world = World::new(1);
    let writer = world.take(0, 1);
    assert_eq!(world.refused(0, tries(reads(2))), ErrorKind::Contended);
    let (reader, _) = world.wait_with(0, reads(2));
    let (next, _) = world.queue(0, 3);
    world.release(0, writer.hold).unwrap();
    world.pass(SECOND / 10);
    // The reader came first, and the store knows of it.
    let mut order = [reader, next];
    if world.is_pending(0, reader) {
        order.reverse();
    }
    let first = world.granted(0, order[0]);
    assert!(world.is_pending(0, order[1]));
    world.release(0, first.hold).unwrap();
    let second = world.granted(0, order[1]);
    assert!(second.token > first.token);
    world.release(0, second.hold).unwrap();
    world.is_clean();
}

#[test]
fn a_try_to_read_asks_the_store_when_the_local_writer_only_waits_or_is_over() {
    let mut world = World::new(2);
    let stranger = world.read(1, 1);
    let (writer, key) = world.queue(0, 1);
    assert_eq!(world.refused(0, tries(reads(2))), ErrorKind::Contended);
    assert!(world.is_pending(0, writer) && world.cancel(0, key));
    let reader = world.take_with(0, tries(reads(2)));
    world.release(0, reader.hold).unwrap();
    world.release(1, stranger.hold).unwrap();
    // One whose lease has ended is told so, and is in nobody's way.
    let over = world.take_with(0, leased(Ask::local(1), 5));
    world.now += SECOND * 6;
    let reader = world.take_with(0, tries(reads(2)));
    assert_eq!(world.release(0, over.hold), Err(ErrorKind::Lost));
    world.release(0, reader.hold).unwrap();
    world.is_clean();
}

#[test]
fn an_owner_re_enters_in_every_way_but_from_reading_to_writing() {
    let mut world = World::new(2);
    let lock = world.clients[0].lock;
    // Write, read in it, write in that.
    let writer = world.take(0, 1);
    let sent = world.sent(0);
    let inner = [world.read(0, 1), world.take(0, 1), world.take_with(0, tries(reads(1)))];
    assert!(inner.iter().all(|grant| grant.reentry && grant.token == writer.token));
    assert_eq!(world.sent(0), sent, "without asking the store");
    assert_eq!(world.clients[0].engine.count(world.time(), lock, 1), 4);
    // It stays exclusive until the last of them that writes has ended.
    world.release(0, writer.hold).unwrap();
    assert_eq!(world.refused(1, tries(reads(1))), ErrorKind::Contended);
    world.release(0, inner[1].hold).unwrap();
    let beside = world.take_with(1, tries(reads(1)));
    world.release(1, beside.hold).unwrap();
    world.give_all(0, &[inner[0].clone(), inner[2].clone()]);
    // Read, read in it.
    let reader = world.read(0, 1);
    let sent = world.sent(0);
    let again = world.read(0, 1);
    assert!(again.reentry && again.token == reader.token);
    assert_eq!(world.sent(0), sent);
    assert_eq!(world.record().holds.len(), 1);
    // Write in it.
    assert_eq!(world.refused(0, Ask::local(1)), ErrorKind::WouldDeadlock);
    assert_eq!(world.refused(0, tries(Ask::local(1))), ErrorKind::WouldDeadlock);
    assert_eq!(world.sent(0), sent, "nothing is queued");
    assert!(world.record().waiters.is_empty());
    world.release(0, reader.hold).unwrap();
    assert_eq!(world.refused(0, Ask::local(1)), ErrorKind::WouldDeadlock, "a level is left");
    assert_eq!(world.clients[0].engine.count(world.time(), lock, 1), 1);
    world.release(0, again.hold).unwrap();
    let writer = world.take(0, 1);
    world.release(0, writer.hold).unwrap();
    world.is_clean();
}

#[test]
fn bug_096_an_owner_reads_again_past_a_writer_that_waits_for_it() {
    let mut world = World::new(2);
    let reader = world.read(0, 1);
    let (writer, _) = world.queue(1, 1);
    let again = world.read(0, 1);
    assert_eq!(again.token, reader.token);
    world.give_all(0, &[reader, again]);
    world.granted(1, writer);
}

#[test]
fn bug_096_waiting_reads_of_one_owner_come_in_together_past_a_writer_between_them() {
    let mut world = World::new(3);
    let held = world.take(2, 1);
    let (first, _) = world.wait_with(0, reads(1));
    let (writer, _) = world.queue(1, 1);
    let (second, _) = world.wait_with(0, reads(1));
    let (long, _) = world.wait_with(0, leased(reads(1), 60));
    let (other, _) = world.wait_with(0, reads(2));
    world.release(2, held.hold).unwrap();
    world.pass(SECOND / 10);
    let grants = [first, second, long].map(|call| world.granted(0, call));
    assert!(grants.iter().all(|grant| grant.token == grants[0].token));
    assert_eq!(grants.each_ref().map(|grant| grant.reentry), [false, true, true]);
    // Their own places in the queue are given up: what is left is the writer. The other owner stood
    // with the first of them.
    assert_eq!((world.record().holds.len(), world.record().waiters.len()), (1, 1));
    let other = world.granted(0, other);
    assert!(!other.reentry && other.token == grants[0].token && world.is_pending(1, writer));
    world.give_all(0, &grants);
    world.release(0, other.hold).unwrap();
    let writer = world.granted(1, writer);
    world.release(1, writer.hold).unwrap();
    world.is_clean();
}

#[test]
fn a_grant_to_write_serves_the_same_owners_reads() {
    let mut world = World::new(2);
    let held = world.take(1, 1);
    let (writer, _) = world.queue(0, 1);
    let (reader, _) = world.wait_with(0, reads(1));
    let (other, _) = world.wait_with(0, reads(2));
    world.release(1, held.hold).unwrap();
    let (writer, reader) = (world.granted(0, writer), world.granted(0, reader));
    assert!(reader.reentry && reader.token == writer.token);
    assert!(world.is_pending(0, other));
    assert_eq!(world.record().waiters.len(), 1);
    world.give_all(0, &[writer, reader]);
    let other = world.granted(0, other);
    world.release(0, other.hold).unwrap();
    world.is_clean();
}

#[test]
fn bug_121_a_wait_to_write_ends_when_its_owner_reads() {
    let mut world = World::new(2);
    let held = world.take(1, 1);
    let (reader, _) = world.wait_with(0, reads(1));
    let (writer, _) = world.queue(0, 1);
    let (bounded, _) = world.queue(0, 1);
    let (stranger, _) = world.queue(0, 2);
    world.release(1, held.hold).unwrap();
    let reader = world.granted(0, reader);
    assert_eq!(world.failed(0, writer), ErrorKind::WouldDeadlock);
    assert_eq!(world.failed(0, bounded), ErrorKind::WouldDeadlock);
    assert!(world.is_pending(0, stranger), "another owner's waits on");
    world.release(0, reader.hold).unwrap();
    let stranger = world.granted(0, stranger);
    world.release(0, stranger.hold).unwrap();
    world.is_clean();
}

#[test]
fn bug_121_with_nobody_else_the_clients_place_is_given_up() {
    let mut world = World::new(2);
    let held = world.take(1, 1);
    let (reader, _) = world.wait_with(0, reads(1));
    let (writer, _) = world.queue(0, 1);
    world.release(1, held.hold).unwrap();
    let reader = world.granted(0, reader);
    assert_eq!(world.failed(0, writer), ErrorKind::WouldDeadlock);
    assert!(world.record().waiters.is_empty(), "the place of the writer is given up");
    world.release(0, reader.hold).unwrap();
    world.is_clean();
}

#[test]
fn permits_are_counted_and_never_re_entered() {
    let mut world = World::new(2);
    let first = world.take_with(0, permits(2, 3));
    let second = world.take_with(0, permits(1, 3));
    assert!(!second.reentry && second.token > first.token);
    assert_eq!(first.abandoned, Abandoned::No);
    let (large, _) = world.wait_with(1, permits(3, 3));
    assert_eq!(world.refused(0, tries(permits(1, 3))), ErrorKind::Contended);
    let (small, _) = world.wait_with(0, permits(1, 3));
    world.release(0, first.hold).unwrap();
    assert!(world.is_pending(1, large) && world.is_pending(0, small), "nobody passes");
    world.release(0, second.hold).unwrap();
    let large = world.granted(1, large);
    assert!(world.is_pending(0, small));
    world.release(1, large.hold).unwrap();
    let small = world.granted(0, small);
    let held = |world: &World, client: usize| {
        let client = &world.clients[client];
        client.engine.is_held(world.time(), client.lock)
    };
    assert!(held(&world, 0) && !held(&world, 1));
    world.release(0, small.hold).unwrap();
    assert!(!held(&world, 0));
    world.is_clean();
}

#[test]
fn what_cannot_be_asked_of_permits_is_refused_with_what_to_do() {
    let mut world = World::new(1);
    let attach = Some(Token(1));
    let owned = explicit("a", permits(1, 2).mode);
    for (ask, text) in [
        (permits(0, 3), "1 to 3"),
        (permits(4, 3), "1 to 3"),
        (permits(1, 0), "1000000"),
        (permits(1, 1_000_001), "1000000"),
        (owned.clone(), "leave the owner out"),
        (Ask { attach, ..owned }, "leave the owner out"),
        (Ask { attach, ..permits(1, 2) }, "explicit owner"),
    ] {
        let (call, acquired) = world.acquire(0, ask);
        assert_eq!(world.failed(0, call), ErrorKind::InvalidArgument);
        let message = acquired.unwrap_err().message().to_owned();
        assert!(message.contains(text), "{message}");
    }
    assert_eq!(world.sent(0), 0);
    let most = world.take_with(0, permits(1_000_000, 1_000_000));
    world.release(0, most.hold).unwrap();
}

#[test]
fn another_kind_or_number_is_refused_to_the_caller() {
    let mut world = World::new(2);
    let held = world.take_with(0, permits(1, 3));
    for ask in [permits(1, 4), reads(1), Ask::local(1)] {
        assert_eq!(world.refused(1, ask), ErrorKind::Misconfigured);
    }
    world.release(0, held.hold).unwrap();
    let reader = world.read(1, 1);
    assert_eq!(world.refused(0, permits(1, 3)), ErrorKind::Misconfigured);
    world.release(1, reader.hold).unwrap();
    world.is_clean();
}

#[test]
fn cancelled_waits_leave_nothing_and_let_others_in() {
    let mut world = World::new(2);
    let reader = world.read(0, 1);
    let (_, writer) = world.queue(1, 1);
    let (late, late_key) = world.wait_with(0, reads(2));
    let (later, _) = world.wait_with(0, reads(3));
    assert!(world.cancel(1, writer));
    let late = world.granted(0, late);
    let later = world.granted(0, later);
    assert!(!world.cancel(0, late_key), "it has ended");
    world.give_all(0, &[reader, late, later]);
    world.is_clean();

    let writer = world.take(1, 1);
    let (_, key) = world.wait_with(0, reads(1));
    let (_, again) = world.wait_with(0, reads(1));
    assert!(world.cancel(0, key) && world.cancel(0, again));
    assert!(world.record().waiters.is_empty());
    world.release(1, writer.hold).unwrap();
    world.is_clean();

    let held = world.take_with(1, permits(1, 3));
    let (_, key) = world.wait_with(0, permits(3, 3));
    let (small, _) = world.wait_with(0, permits(1, 3));
    assert!(world.cancel(0, key));
    let small = world.granted(0, small);
    world.release(0, small.hold).unwrap();
    world.release(1, held.hold).unwrap();
    world.is_clean();
}

#[test]
fn a_bounded_wait_to_read_ends_in_time() {
    let mut world = World::new(2);
    let writer = world.take(1, 1);
    let until = Patience::Until(world.time() + SECOND * 5);
    let (reader, _) = world.wait_with(0, Ask { patience: until, ..reads(1) });
    world.pass(SECOND * 6);
    assert_eq!(world.failed(0, reader), ErrorKind::TimedOut);
    assert!(world.record().waiters.is_empty());
    world.release(1, writer.hold).unwrap();
    world.is_clean();
}

#[test]
fn readers_and_permits_are_renewed_each_by_itself() {
    let mut world = World::new(2);
    let readers = [world.read(0, 1), world.read(0, 2), world.read(1, 1)];
    world.pass(SECOND * 300);
    assert!(world.clients.iter().all(|client| client.lost.is_empty()));
    assert_eq!(world.record().holds.len(), 2);
    world.give_all(0, &readers[..2]);
    world.release(1, readers[2].hold).unwrap();
    let permit = world.take_with(0, permits(2, 2));
    world.pass(SECOND * 300);
    assert_eq!(world.refused(1, tries(permits(1, 2))), ErrorKind::Contended);
    world.release(0, permit.hold).unwrap();
    world.is_clean();
}

#[test]
fn the_loss_of_one_reader_is_its_own() {
    let mut world = World::new(3);
    let (lost, _) = world.acquire(0, reads(1));
    let lost = (lost, world.granted(0, lost));
    let other = world.read(1, 1);
    let what = Break {
        lock: Name::new("stock").unwrap(),
        token: lost.1.token.get(),
        hold: world.record().holds.first().map(|hold| hold.hold),
    };
    let now = world.time();
    world.clients[2].engine.break_lock(now, what, 1_000);
    world.run();
    assert_eq!(world.clients[0].lost.get(&lost.0), Some(&LossReason::Broken));
    assert!(world.clients[1].lost.is_empty());
    assert_eq!(world.release(0, lost.1.hold), Err(ErrorKind::Lost));
    // It may read again, and write once the other one has gone; no reader's loss is 'abandoned'.
    let again = world.read(0, 1);
    assert!(!again.reentry && again.token > lost.1.token);
    world.release(0, again.hold).unwrap();
    let (writer, _) = world.queue(0, 1);
    world.release(1, other.hold).unwrap();
    let writer = world.granted(0, writer);
    assert_ne!(writer.abandoned, Abandoned::Yes);
    world.release(0, writer.hold).unwrap();
    world.is_clean();
}

#[test]
fn who_reads_no_more_by_its_own_clock_may_write() {
    let mut world = World::new(1);
    let (call, _) = world.acquire(0, leased(reads(1), 5));
    let reader = world.granted(0, call);
    world.now += SECOND * 6;
    let writer = world.take(0, 1);
    assert_eq!(world.clients[0].lost.get(&call), Some(&LossReason::Ended));
    assert_eq!(world.release(0, reader.hold), Err(ErrorKind::Lost));
    world.release(0, writer.hold).unwrap();
    let (call, _) = world.acquire(0, leased(reads(1), 5));
    world.now += SECOND * 6;
    let again = world.read(0, 1);
    assert!(!again.reentry && world.clients[0].lost.contains_key(&call));
    let over = world.granted(0, call);
    assert_eq!(world.release(0, over.hold), Err(ErrorKind::Lost));
    world.release(0, again.hold).unwrap();
    world.is_clean();
}

#[test]
fn an_acquire_whose_reply_was_lost_is_repeated_and_counts_once() {
    for ask in [reads(1), permits(2, 3), explicit("a", Mode::Shared)] {
        let mut world = World::new(1);
        world.clients[0].swallow_replies = true;
        let (call, _) = world.acquire(0, ask.clone());
        assert_eq!(world.record().holds.len(), 1);
        world.clients[0].swallow_replies = false;
        world.pass(SECOND);
        let grant = world.granted(0, call);
        assert_eq!(world.record().holds.len(), 1);
        world.clients[0].swallow_replies = true;
        let now = world.time();
        world.clients[0].engine.release(now, grant.hold, Some(99)).unwrap();
        world.run();
        world.clients[0].swallow_replies = false;
        world.pass(SECOND);
        assert_eq!(world.clients[0].outcomes.get(&99), Some(&Outcome::Released), "{ask:?}");
        world.is_clean();
    }
}

#[test]
fn a_cancelled_acquire_of_unknown_outcome_is_given_back() {
    for ask in [reads(1), permits(2, 3)] {
        let mut world = World::new(1);
        world.clients[0].swallow_replies = true;
        let (_, key) = world.wait_with(0, ask);
        world.clients[0].swallow_replies = false;
        assert!(world.cancel(0, key));
        world.is_clean();
    }
}

#[test]
fn a_push_that_nobody_heard_is_found_by_the_next_look() {
    for ask in [reads(1), permits(1, 1)] {
        let mut world = World::new(2);
        let first = if ask.mode == Mode::Shared { Ask::local(1) } else { ask.clone() };
        let held = world.take_with(1, first);
        let (waits, _) = world.wait_with(0, ask);
        world.clients[0].deaf = true;
        world.release(1, held.hold).unwrap();
        assert!(world.is_pending(0, waits));
        world.pass(SECOND * 2);
        let grant = world.granted(0, waits);
        world.clients[0].deaf = false;
        world.release(0, grant.hold).unwrap();
        world.is_clean();
    }
}

#[test]
fn explicit_owners_read_and_write_from_two_clients() {
    let mut world = World::new(3);
    let one = world.take_with(0, explicit("a", Mode::Shared));
    let (writer, _) = world.queue(2, 1);
    let two = world.take_with(1, explicit("a", Mode::Shared));
    assert_eq!(one.token, two.token, "past the writer");
    assert_eq!(world.refused(1, explicit("a", Mode::Exclusive)), ErrorKind::WouldDeadlock);
    let (other, _) = world.wait_with(1, explicit("b", Mode::Shared));
    let attach = Ask { attach: Some(one.token), ..explicit("a", Mode::Shared) };
    let attached = world.take_with(2, attach.clone());
    world.release(2, attached.hold).unwrap();
    world.release(0, one.hold).unwrap();
    assert!(world.is_pending(2, writer));
    world.release(1, two.hold).unwrap();
    let writer = world.granted(2, writer);
    assert_eq!(world.refused(0, attach), ErrorKind::NotHeld);
    world.release(2, writer.hold).unwrap();
    let other = world.granted(1, other);
    world.release(1, other.hold).unwrap();

    let writer = world.take_with(0, explicit("a", Mode::Exclusive));
    let reader = world.take_with(1, explicit("a", Mode::Shared));
    assert_eq!(reader.token, writer.token);
    world.release(0, writer.hold).unwrap();
    let stranger = world.read(2, 1);
    world.release(2, stranger.hold).unwrap();
    world.release(1, reader.hold).unwrap();
    world.is_clean();
}

#[test]
fn bug_121_an_explicit_owners_wait_to_write_ends_at_its_next_contact() {
    let mut world = World::new(3);
    let held = world.take(2, 1);
    let (reader, _) = world.wait_with(0, explicit("a", Mode::Shared));
    let (writer, _) = world.wait_with(1, explicit("a", Mode::Exclusive));
    world.release(2, held.hold).unwrap();
    let reader = world.granted(0, reader);
    let sent = world.sent(1);
    world.pass(SECOND * 2);
    assert_eq!(world.failed(1, writer), ErrorKind::WouldDeadlock);
    assert_eq!(world.sent(1), sent + 1, "with that contact alone");
    world.release(0, reader.hold).unwrap();
    world.is_clean();
}

#[test]
fn a_longer_read_within_one_that_ends_sooner_is_renewed_first() {
    let mut world = World::new(2);
    let outer = world.take_with(0, leased(reads(1), 5));
    let inner = world.take_with(0, leased(reads(1), 60));
    assert!(inner.reentry && inner.token == outer.token);
    world.release(0, outer.hold).unwrap();
    world.pass(SECOND * 50);
    assert!(world.remaining(0, inner.hold).is_some());
    let call = world.extend(0, inner.hold, SECOND * 100);
    assert_eq!(world.clients[0].outcomes.get(&call), Some(&Outcome::Extended));
    world.pass(SECOND * 90);
    assert!(world.remaining(0, inner.hold).is_some());
    world.release(0, inner.hold).unwrap();
    world.is_clean();
}

/// A reader whose owner asks for a longer one in it; the renewal is not answered.
fn pending_join(world: &mut World, outer: Ask, inner: Ask) -> (HoldKey, u32, CallKey) {
    let outer = world.take_with(0, outer);
    world.pass(SECOND / 10);
    world.clients[0].swallow_replies = true;
    let (call, key) = world.wait_with(0, inner);
    world.clients[0].swallow_replies = false;
    (outer.hold, call, key)
}

#[test]
fn a_re_entry_whose_outer_hold_is_released_reads_with_a_hold_of_its_own() {
    for outer in [leased(reads(1), 5), leased(Ask::local(1), 5)] {
        for patience in [Patience::Forever, Patience::Try] {
            let mut world = World::new(1);
            let inner = Ask { patience, ..leased(reads(1), 30) };
            let (outer, call, _) = pending_join(&mut world, outer.clone(), inner);
            world.begin_release(0, outer).unwrap();
            world.pass(SECOND * 2);
            if patience == Patience::Forever {
                let inner = world.granted(0, call);
                assert!(!inner.reentry);
                world.release(0, inner.hold).unwrap();
            } else if let Some(Outcome::Granted(inner)) = world.clients[0].outcomes.get(&call) {
                let hold = inner.hold;
                world.release(0, hold).unwrap();
            } else {
                assert_eq!(world.failed(0, call), ErrorKind::Contended);
            }
            world.is_clean();
        }
    }
}

#[test]
fn a_re_entry_whose_outer_hold_is_lost_waits_like_any_other_and_can_be_cancelled() {
    for cancelled in [false, true] {
        let mut world = World::new(2);
        let outer = leased(reads(1), 5);
        let (_, call, key) = pending_join(&mut world, outer, leased(reads(1), 30));
        world.disconnect(0);
        // The store was asked for the longer lease.
        world.pass(SECOND * 31);
        let writer = world.take(1, 1);
        world.connect(0);
        assert!(world.is_pending(0, call));
        if cancelled {
            assert!(world.cancel(0, key));
            world.release(1, writer.hold).unwrap();
        } else {
            world.release(1, writer.hold).unwrap();
            world.pass(SECOND);
            let grant = world.granted(0, call);
            assert!(!grant.reentry && grant.token > writer.token);
            world.release(0, grant.hold).unwrap();
        }
        let lost: Vec<u32> = world.clients[0].lost.keys().copied().collect();
        assert_eq!(lost.len(), 1);
        let hold = world.granted(0, lost[0]).hold;
        assert_eq!(world.release(0, hold), Err(ErrorKind::Lost));
        world.is_clean();
    }
}

#[test]
fn reads_that_wait_while_the_store_is_away_come_in_once_it_is_there() {
    let mut world = World::new(1);
    world.disconnect(0);
    let waiting = [1, 1, 2].map(|owner| world.wait_with(0, reads(owner)).0);
    let (writer, _) = world.queue(0, 3);
    world.connect(0);
    world.pass(SECOND);
    let grants = waiting.map(|call| world.granted(0, call));
    assert_eq!(grants[0].token, grants[1].token);
    assert!(world.is_pending(0, writer));
    world.give_all(0, &grants);
    let writer = world.granted(0, writer);
    world.release(0, writer.hold).unwrap();
    world.is_clean();
}

#[test]
fn a_close_ends_reads_permits_and_waits() {
    let mut world = World::new(2);
    let (reader, _) = world.acquire(0, reads(1));
    let (again, _) = world.acquire(0, reads(1));
    let (writer, _) = world.queue(1, 1);
    let (waits, _) = world.wait_with(0, reads(2));
    let now = world.time();
    world.clients[0].engine.close(now, 1_000);
    world.run();
    for call in [reader, again] {
        assert_eq!(world.clients[0].lost.get(&call), Some(&LossReason::Closed));
    }
    assert_eq!(world.failed(0, waits), ErrorKind::Closed);
    assert_eq!(world.clients[0].outcomes.get(&1_000), Some(&Outcome::Closed));
    assert!(world.clients[0].engine.has_left_nothing());
    let writer = world.granted(1, writer);
    world.release(1, writer.hold).unwrap();
    assert_eq!(world.refused(0, reads(1)), ErrorKind::Closed);

    let permit = world.acquire(1, permits(1, 2)).0;
    let now = world.time();
    world.clients[1].engine.close(now, 1_000);
    world.run();
    assert_eq!(world.clients[1].lost.get(&permit), Some(&LossReason::Closed));
    assert!(world.record().holds.is_empty());
}

#[test]
fn a_lock_that_was_read_and_whose_key_was_given_back_is_forgotten() {
    let mut world = World::new(1);
    let (now, name) = (world.time(), Name::new("once").unwrap());
    let engine = &mut world.clients[0].engine;
    let mut pending = Vec::new();
    for (call, ask) in [(101, reads(1)), (102, reads(1)), (103, reads(2))] {
        let lock = engine.lock(&name);
        pending.push((call, lock, engine.acquire(now, lock, ask, call).unwrap()));
    }
    world.run();
    for (call, lock, _) in pending {
        let hold = world.granted(0, call).hold;
        world.clients[0].engine.forget(lock);
        world.release(0, hold).unwrap();
    }
    world.pass(SECOND * 10);
    // Nothing is left under the name: its place is taken by the next one that is asked for.
    let other = world.clients[0].engine.lock(&Name::new("other").unwrap());
    let again = world.clients[0].engine.lock(&name);
    assert!(other < again, "{other:?} {again:?}");
}
