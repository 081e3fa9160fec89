//! Holds that change their mode, as clients' state machines play them.

mod world;

use std::time::Duration;

use fencelock_engine::reply::Abandoned;
use fencelock_engine::request::{Convert, Mode};
use fencelock_engine::store::{Announce, Caller, Delivery};
use fencelock_engine::{
    Ask, CallKey, Converted, ErrorKind, Grant, HoldKey, LossReason, Name, Options, Outcome, Owner,
    OwnerId, Patience,
};
use world::World;

const SECOND: Duration = Duration::from_secs(1);

fn reads(owner: u64) -> Ask {
    Ask { mode: Mode::Shared, ..Ask::local(owner) }
}

fn explicit(mode: Mode) -> Ask {
    Ask { owner: Owner::Explicit(OwnerId::new("o").unwrap()), mode, ..Ask::local(0) }
}

/// What a conversion began with: its number, its key where it waits, or its error.
type Begun = (u32, Result<Option<CallKey>, ErrorKind>);

impl World {
    fn convert(&mut self, client: usize, hold: HoldKey, to: Mode) -> Begun {
        let now = self.time();
        let c = &mut self.clients[client];
        c.next += 1;
        let call = c.next;
        let begun = match to {
            Mode::Shared => c.engine.downgrade(now, hold, call),
            _ => c.engine.try_upgrade(now, hold, call),
        };
        self.run();
        (call, begun.map_err(|error| error.kind()))
    }

    fn downgrade(&mut self, client: usize, hold: HoldKey) -> Converted {
        let (call, _) = self.convert(client, hold, Mode::Shared);
        self.converted(client, call)
    }

    fn upgrade(&mut self, client: usize, hold: HoldKey) -> Converted {
        let (call, _) = self.convert(client, hold, Mode::Exclusive);
        self.converted(client, call)
    }

    /// The kind of error that an upgrade came to, at once or by its answer.
    fn no_upgrade(&mut self, client: usize, hold: HoldKey) -> ErrorKind {
        let (call, begun) = self.convert(client, hold, Mode::Exclusive);
        begun.err().unwrap_or_else(|| self.failed(client, call))
    }

    fn converted(&self, client: usize, call: u32) -> Converted {
        match self.clients[client].outcomes.get(&call) {
            Some(Outcome::Converted(converted)) => *converted,
            other => panic!("not converted: {other:?}"),
        }
    }

    fn read(&mut self, client: usize, owner: u64) -> Grant {
        self.take_with(client, reads(owner))
    }

    fn waits(&mut self, client: usize, ask: Ask) -> u32 {
        let (call, _) = self.acquire(client, ask);
        assert!(self.is_pending(client, call), "ended at once");
        call
    }

    fn refused(&mut self, client: usize, ask: Ask) -> ErrorKind {
        let ask = Ask { patience: Patience::Try, ..ask };
        let (call, _) = self.acquire(client, ask);
        self.failed(client, call)
    }

    fn modes(&self) -> Vec<Mode> {
        self.record().holds.iter().map(|hold| hold.mode).collect()
    }

    /// A copy of a conversion of the first hold arrives, wherever it has been for so long.
    fn late_copy(&mut self, to: Mode, sent: u64) {
        struct Nobody;
        impl Announce for Nobody {
            fn announce(&mut self, _: &str, _: fencelock_engine::reply::Push) -> Delivery {
                Delivery::Nobody
            }
        }
        let (now, id) = (self.store_time(), self.clients[0].id.clone());
        let lock = Name::new("stock").unwrap();
        let record = self.records.get_mut(&lock).unwrap();
        let hold = record.holds[0].hold;
        let ask = Convert::new(lock, hold, to, SECOND * 30, sent + 3_000_000);
        let caller = Caller { client: id, polling: false };
        record.convert(now, &caller, &ask, &mut Nobody).unwrap();
    }

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
fn who_is_downgraded_reads_with_others_and_writers_wait_for_it() {
    let mut world = World::new(3);
    let writer = world.take(0, 1);
    let reader = world.waits(1, reads(1));
    let (next, _) = world.queue(2, 1);
    let read = world.downgrade(0, writer.hold);
    assert!(read.token > writer.token && read.mode == Mode::Shared);
    let reader = world.granted(1, reader);
    assert!(reader.token > read.token);
    assert_eq!(world.modes(), [Mode::Shared; 2]);
    world.release(1, reader.hold).unwrap();
    world.pass(SECOND * 40);
    assert!(world.is_pending(2, next), "its watchdog keeps it");
    world.release(0, writer.hold).unwrap();
    assert!(world.granted(2, next).token > reader.token);
    let hold = world.granted(2, next).hold;
    world.release(2, hold).unwrap();
    world.is_clean();
}

#[test]
fn local_writers_wait_at_the_store_for_who_was_downgraded() {
    let mut world = World::new(1);
    let writer = world.take(0, 1);
    let (next, _) = world.queue(0, 2);
    world.downgrade(0, writer.hold);
    assert!(world.is_pending(0, next), "it is not handed on while somebody reads");
    assert_eq!(world.record().waiters.len(), 1);
    let again = world.read(0, 1);
    assert!(again.reentry);
    let (own, _) = world.acquire(0, Ask::local(1));
    assert_eq!(world.failed(0, own), ErrorKind::WouldDeadlock, "it only reads now");
    world.release(0, writer.hold).unwrap();
    assert!(world.is_pending(0, next));
    world.release(0, again.hold).unwrap();
    let next = world.granted(0, next);
    world.release(0, next.hold).unwrap();
    world.is_clean();
}

#[test]
fn bug_122_an_owner_that_reads_inside_a_write_and_ends_the_write_only_reads() {
    let mut world = World::new(2);
    let write = world.take(0, 1);
    let read = world.read(0, 1);
    assert_eq!(read.token, write.token, "taken inside the write");
    let other = world.waits(1, reads(1));
    world.release(0, write.hold).unwrap();
    let other = world.granted(1, other);
    assert_eq!(world.modes(), [Mode::Shared; 2]);
    assert!(world.read(0, 1).token > write.token);
    assert!(other.token > write.token);
    assert_eq!(world.refused(0, Ask::local(2)), ErrorKind::Contended);
}

#[test]
fn bug_091_the_end_of_the_read_leaves_the_write() {
    let mut world = World::new(2);
    let write = world.take(0, 1);
    let read = world.read(0, 1);
    let other = world.waits(1, reads(1));
    world.release(0, read.hold).unwrap();
    assert!(world.is_pending(1, other));
    assert_eq!(world.modes(), [Mode::Exclusive]);
    world.release(0, write.hold).unwrap();
    world.granted(1, other);
}

#[test]
fn who_writes_by_two_holds_is_not_downgraded_by_one() {
    let mut world = World::new(1);
    let outer = world.take(0, 1);
    let inner = world.take(0, 1);
    let (_, begun) = world.convert(0, outer.hold, Mode::Shared);
    assert_eq!(begun, Err(ErrorKind::Contended));
    world.release(0, inner.hold).unwrap();
    world.downgrade(0, outer.hold);
    let (_, again) = world.convert(0, outer.hold, Mode::Shared);
    assert_eq!(again, Ok(None), "it is so already");
    world.release(0, outer.hold).unwrap();
    world.is_clean();
}

#[test]
fn a_lone_reader_writes_past_who_waits_and_reads_again() {
    let mut world = World::new(2);
    let read = world.read(0, 1);
    let (local, _) = world.queue(0, 2);
    let (other, _) = world.queue(1, 1);
    let write = world.upgrade(0, read.hold);
    assert!(write.token > read.token && write.mode == Mode::Exclusive);
    let inner = world.take(0, 1);
    assert!(inner.reentry && inner.token == write.token);
    world.release(0, inner.hold).unwrap();
    world.pass(SECOND * 40);
    let less = world.downgrade(0, read.hold);
    assert!(less.token > write.token);
    let more = world.upgrade(0, read.hold);
    assert!(more.token > less.token);
    assert!(world.is_pending(0, local) && world.is_pending(1, other));
    world.release(0, read.hold).unwrap();
    let first = world.granted(0, local);
    assert!(first.token > more.token);
    world.release(0, first.hold).unwrap();
    let second = world.granted(1, other);
    world.release(1, second.hold).unwrap();
    world.is_clean();
}

#[test]
fn who_reads_with_others_is_not_upgraded_and_two_that_ask_are_both_told() {
    let mut world = World::new(2);
    let holds = [world.read(0, 1).hold, world.read(1, 1).hold];
    for client in [0, 1] {
        assert_eq!(world.no_upgrade(client, holds[client]), ErrorKind::Contended);
    }
    assert_eq!(world.modes(), [Mode::Shared; 2]);
    world.release(1, holds[1]).unwrap();
    let inner = world.read(0, 1);
    assert_eq!(world.no_upgrade(0, holds[0]), ErrorKind::Contended, "it has two holds");
    world.release(0, inner.hold).unwrap();
    world.upgrade(0, holds[0]);
    world.release(0, holds[0]).unwrap();
    world.is_clean();
}

#[test]
fn permits_are_not_converted() {
    let mut world = World::new(1);
    let mode = Mode::Permits { count: 1, of: 2 };
    let hold = world.take_with(0, Ask { mode, ..Ask::local(1) }).hold;
    for to in [Mode::Shared, Mode::Exclusive] {
        assert_eq!(world.convert(0, hold, to).1, Err(ErrorKind::InvalidArgument));
    }
}

#[test]
fn what_was_lost_or_released_is_not_converted() {
    let mut world = World::new(1);
    let lost = world.take(0, 1);
    world.pass_without(SECOND * 40, &[0]);
    assert_eq!(world.convert(0, lost.hold, Mode::Shared).1, Err(ErrorKind::Lost));
    let over = world.take(0, 2);
    world.release(0, over.hold).unwrap();
    for to in [Mode::Shared, Mode::Exclusive] {
        assert_eq!(world.convert(0, over.hold, to).1, Err(ErrorKind::NotHeld));
    }
}

#[test]
fn a_downgrade_whose_answer_is_lost_is_repeated_and_goes_on_without_its_caller() {
    let mut world = World::new(2);
    let writer = world.take(0, 1);
    let reader = world.waits(1, reads(1));
    world.clients[0].swallow_replies = true;
    let (call, _) = world.convert(0, writer.hold, Mode::Shared);
    world.granted(1, reader);
    world.pass(SECOND * 4);
    assert_eq!(world.failed(0, call), ErrorKind::Unavailable);
    world.clients[0].swallow_replies = false;
    world.pass(SECOND * 40);
    assert!(world.remaining(0, writer.hold).is_some(), "it is kept");
    let (_, again) = world.convert(0, writer.hold, Mode::Shared);
    assert_eq!(again, Ok(None));
}

#[test]
fn while_a_downgrade_may_yet_take_effect_nothing_is_made_exclusive() {
    let mut world = World::new(1);
    let writer = world.take(0, 1);
    world.clients[0].swallow_replies = true;
    let _ = world.convert(0, writer.hold, Mode::Shared);
    world.clients[0].swallow_replies = false;
    let sent = world.store_time();
    world.pass(SECOND);
    assert_eq!(world.no_upgrade(0, writer.hold), ErrorKind::Unavailable);
    world.pass(SECOND * 3);
    world.upgrade(0, writer.hold);
    world.late_copy(Mode::Shared, sent);
    assert_eq!(world.modes(), [Mode::Exclusive], "the copy comes too late");
}

#[test]
fn an_upgrade_that_nobody_waits_for_is_undone() {
    let mut world = World::new(2);
    let read = world.read(0, 1);
    world.clients[0].slow = true;
    let (call, begun) = world.convert(0, read.hold, Mode::Exclusive);
    assert_eq!(world.modes(), [Mode::Exclusive], "the store has done it");
    assert!(world.cancel(0, begun.unwrap().unwrap()));
    world.clients[0].slow = false;
    world.arrive();
    assert!(world.is_pending(0, call), "nothing is delivered any more");
    assert_eq!(world.modes(), [Mode::Shared]);
    let other = world.read(1, 1);
    assert!(other.token > read.token);
    world.pass(SECOND * 40);
    assert!(world.remaining(0, read.hold).is_some());
    world.release(0, read.hold).unwrap();
    world.release(1, other.hold).unwrap();
    world.is_clean();
}

#[test]
fn bug_120_a_late_copy_of_an_upgrade_that_was_undone_is_undone_as_well() {
    let mut world = World::new(2);
    let read = world.read(0, 1);
    world.clients[0].swallow_replies = true;
    let (call, _) = world.convert(0, read.hold, Mode::Exclusive);
    let sent = world.store_time();
    world.pass(SECOND * 7 / 2);
    assert_eq!(world.failed(0, call), ErrorKind::Unavailable, "its bound has passed");
    world.clients[0].swallow_replies = false;
    world.pass(SECOND);
    assert_eq!(world.modes(), [Mode::Shared]);
    // The latest copy was sent just before the bound.
    world.late_copy(Mode::Exclusive, sent + 3_000_000);
    assert_eq!(world.modes(), [Mode::Exclusive]);
    world.pass(SECOND * 4);
    assert_eq!(world.modes(), [Mode::Shared]);
    assert!(world.remaining(0, read.hold).is_some(), "and its holder reads on");
    let other = world.read(1, 1);
    world.release(0, read.hold).unwrap();
    world.release(1, other.hold).unwrap();
    world.is_clean();
}

#[test]
fn an_upgrade_that_was_not_sent_is_forgotten() {
    let mut world = World::new(1);
    let read = world.read(0, 1);
    world.disconnect(0);
    let (call, begun) = world.convert(0, read.hold, Mode::Exclusive);
    assert!(world.cancel(0, begun.unwrap().unwrap()));
    world.connect(0);
    assert!(world.is_pending(0, call));
    assert_eq!(world.modes(), [Mode::Shared]);
    let token = world.record().token;
    assert_eq!(token, read.token.get(), "nothing was asked");
}

#[test]
fn one_conversion_of_a_hold_is_under_way_at_a_time() {
    let mut world = World::new(1);
    let read = world.read(0, 1);
    world.clients[0].slow = true;
    let (call, _) = world.convert(0, read.hold, Mode::Exclusive);
    assert_eq!(world.convert(0, read.hold, Mode::Exclusive).1, Err(ErrorKind::Contended));
    assert_eq!(world.convert(0, read.hold, Mode::Shared).1, Ok(None), "it is shared as yet");
    world.clients[0].slow = false;
    world.arrive();
    world.converted(0, call);
}

#[test]
fn bug_131_an_owner_that_reads_on_while_it_is_upgraded_has_the_token_of_the_upgrade() {
    let mut world = World::new(1);
    let read = world.read(0, 1);
    world.clients[0].slow = true;
    let (call, _) = world.convert(0, read.hold, Mode::Exclusive);
    let inner = world.waits(0, reads(1));
    world.clients[0].slow = false;
    world.arrive();
    let upgraded = world.converted(0, call);
    let inner = world.granted(0, inner);
    assert_eq!((inner.token, inner.reentry), (upgraded.token, true));
    world.release(0, inner.hold).unwrap();
    world.release(0, read.hold).unwrap();
    world.is_clean();
}

#[test]
fn an_owner_that_reads_on_while_its_upgrade_is_refused_reads_on() {
    let mut world = World::new(2);
    let read = world.read(0, 1);
    let other = world.read(1, 1);
    world.clients[0].slow = true;
    let (call, _) = world.convert(0, read.hold, Mode::Exclusive);
    let inner = world.waits(0, reads(1));
    world.clients[0].slow = false;
    world.arrive();
    assert_eq!(world.failed(0, call), ErrorKind::Contended);
    let inner = world.granted(0, inner);
    assert_eq!(inner.token, read.token);
    world.release(1, other.hold).unwrap();
    world.release(0, inner.hold).unwrap();
    world.release(0, read.hold).unwrap();
    world.is_clean();
}

#[test]
fn bug_132_what_the_store_forgot_ends_when_its_client_is_granted_the_lock_again() {
    let mut world = World::new(1);
    let read = world.read(0, 1);
    world.upgrade(0, read.hold);
    let writer = world.waits(0, Ask::local(2));
    world.records.clear();
    world.pass(SECOND * 12);
    let grant = world.granted(0, writer);
    assert_eq!(world.clients[0].lost.values().collect::<Vec<_>>(), [&LossReason::Gone]);
    assert_eq!(world.remaining(0, read.hold), None);
    world.release(0, grant.hold).unwrap();
    assert_eq!(world.release(0, read.hold), Err(ErrorKind::Lost));
    world.is_clean();
}

#[test]
fn a_release_while_converting_ends_the_hold_once() {
    for to in [Mode::Shared, Mode::Exclusive] {
        let mut world = World::new(2);
        let ask = if to == Mode::Shared { Ask::local(1) } else { reads(1) };
        let hold = world.take_with(0, ask).hold;
        world.clients[0].slow = true;
        let (call, _) = world.convert(0, hold, to);
        world.begin_release(0, hold).unwrap();
        assert_eq!(world.failed(0, call), ErrorKind::NotHeld);
        world.clients[0].slow = false;
        world.arrive();
        let next = world.take(1, 1);
        world.release(1, next.hold).unwrap();
        world.is_clean();
    }
}

#[test]
fn a_hold_that_is_lost_while_converting_fails_the_conversion() {
    for to in [Mode::Shared, Mode::Exclusive] {
        let mut world = World::new(1);
        let ask = if to == Mode::Shared { Ask::local(1) } else { reads(1) };
        let grant = world.take_with(0, ask);
        world.disconnect(0);
        world.pass(SECOND * 29);
        let (call, _) = world.convert(0, grant.hold, to);
        world.pass(SECOND * 2);
        assert_eq!(world.failed(0, call), ErrorKind::Lost);
        assert_eq!(world.clients[0].lost.values().next(), Some(&LossReason::NotRenewed));
        world.connect(0);
        assert_eq!(world.release(0, grant.hold), Err(ErrorKind::Lost));
        world.is_clean();
    }
}

#[test]
fn a_store_that_forgot_the_hold_says_so_to_a_conversion() {
    for to in [Mode::Shared, Mode::Exclusive] {
        let mut world = World::new(1);
        let ask = if to == Mode::Shared { Ask::local(1) } else { reads(1) };
        let grant = world.take_with(0, ask);
        world.records.clear();
        let (call, _) = world.convert(0, grant.hold, to);
        assert_eq!(world.failed(0, call), ErrorKind::Lost);
        assert_eq!(world.release(0, grant.hold), Err(ErrorKind::Lost));
        world.is_clean();
    }
}

#[test]
fn a_client_that_closes_while_converting_leaves_nothing() {
    for to in [Mode::Shared, Mode::Exclusive] {
        let mut world = World::new(1);
        let ask = if to == Mode::Shared { Ask::local(1) } else { reads(1) };
        let hold = world.take_with(0, ask).hold;
        world.clients[0].slow = true;
        let (call, _) = world.convert(0, hold, to);
        let now = world.time();
        world.clients[0].engine.close(now, 99);
        world.run();
        assert_eq!(world.failed(0, call), ErrorKind::Closed);
        world.clients[0].slow = false;
        world.arrive();
        assert!(world.record().holds.is_empty());
        assert_eq!(world.clients[0].outcomes.get(&99), Some(&Outcome::Closed));
    }
}

#[test]
fn a_conversion_waits_for_the_request_that_is_under_way() {
    let mut world = World::new(2);
    let writer = world.take(0, 1);
    let reader = world.waits(1, reads(1));
    world.clients[0].slow = true;
    let extend = world.extend(0, writer.hold, SECOND * 60);
    let (call, _) = world.convert(0, writer.hold, Mode::Shared);
    assert_eq!(world.modes(), [Mode::Exclusive], "one request for a hold at a time");
    world.clients[0].slow = false;
    world.arrive();
    world.converted(0, call);
    assert_eq!(world.clients[0].outcomes.get(&extend), Some(&Outcome::Extended));
    assert!(world.remaining(0, writer.hold).unwrap() > SECOND * 50);
    world.granted(1, reader);
}

#[test]
fn a_conversion_goes_on_when_the_connection_is_back() {
    let mut world = World::new(2);
    let writer = world.take(0, 1);
    let reader = world.waits(1, reads(1));
    world.disconnect(0);
    let (call, _) = world.convert(0, writer.hold, Mode::Shared);
    assert!(world.is_pending(0, call));
    world.connect(0);
    world.converted(0, call);
    world.granted(1, reader);
}

#[test]
fn an_upgrade_is_told_how_the_writer_before_ended() {
    let mut world = World::new(2);
    world.take(1, 1);
    world.pass_without(SECOND * 40, &[1]);
    let read = world.read(0, 1);
    assert_eq!(read.abandoned, Abandoned::Yes);
    let write = world.upgrade(0, read.hold);
    assert_eq!(write.abandoned, Abandoned::Yes);
    assert_eq!(world.downgrade(0, read.hold).abandoned, Abandoned::No, "it mended that");
}

#[test]
fn an_upgrade_that_nobody_took_delivery_of_mends_nothing() {
    let mut world = World::new(2);
    world.take(1, 1);
    world.pass_without(SECOND * 40, &[1]);
    let read = world.read(0, 1);
    world.upgrade(0, read.hold);
    let now = world.time();
    world.clients[0].engine.undo_upgrade(now, read.hold);
    world.run();
    assert_eq!(world.modes(), [Mode::Shared]);
    world.release(0, read.hold).unwrap();
    let next = world.take(0, 2);
    assert_eq!(next.abandoned, Abandoned::Yes, "nobody was told of it but who reads");
    world.release(0, next.hold).unwrap();
}

#[test]
fn an_explicit_owners_holds_are_converted_each_for_itself() {
    let mut world = World::new(3);
    let write = world.take_with(0, explicit(Mode::Exclusive));
    let inner = world.take_with(1, explicit(Mode::Shared));
    let other = world.waits(2, reads(1));
    let read = world.downgrade(0, write.hold);
    assert!(read.token > inner.token);
    let other = world.granted(2, other);
    world.release(2, other.hold).unwrap();
    assert_eq!(world.no_upgrade(1, inner.hold), ErrorKind::Contended);
    world.pass(SECOND * 40);
    world.release(0, write.hold).unwrap();
    let write = world.upgrade(1, inner.hold);
    assert!(write.token > other.token);
    let again = world.take_with(0, explicit(Mode::Exclusive));
    assert_eq!(again.token, write.token);
    world.release(0, again.hold).unwrap();
    world.release(1, inner.hold).unwrap();
    world.is_clean();
}

#[test]
fn a_conversion_keeps_no_place_of_the_local_queue() {
    let mut world = World::new(1);
    let writer = world.take(0, 1);
    world.downgrade(0, writer.hold);
    let writer_again = world.upgrade(0, writer.hold);
    let (next, _) = world.queue(0, 2);
    let read = world.waits(0, reads(3));
    assert_eq!(world.record().waiters.len(), 2, "they wait at the store");
    world.release(0, writer.hold).unwrap();
    let next = world.granted(0, next);
    assert!(next.token > writer_again.token);
    world.release(0, next.hold).unwrap();
    let read = world.granted(0, read);
    world.release(0, read.hold).unwrap();
    world.is_clean();
}

#[test]
fn while_an_upgrade_that_was_undone_may_yet_take_effect_a_short_lease_is_renewed() {
    let lease = SECOND * 6 / 5;
    let mut world = World::with(2, Options { lease, ..Options::default() });
    let read = world.read(0, 1);
    world.clients[0].swallow_replies = true;
    let (_, begun) = world.convert(0, read.hold, Mode::Exclusive);
    assert!(world.cancel(0, begun.unwrap().unwrap()));
    world.clients[0].swallow_replies = false;
    world.pass(SECOND * 10);
    assert!(world.remaining(0, read.hold).is_some(), "{:?}", world.clients[0].lost);
    assert_eq!(world.modes(), [Mode::Shared]);
    world.release(0, read.hold).unwrap();
    world.is_clean();
}
