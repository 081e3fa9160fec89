//! Readers and writers on a real server, and the nodes that they leave.

mod common;

use std::time::Duration;

use common::World;
use fencelock_engine::reply::{Abandoned, Body, Failure, RefusalKind, Standing, State};
use fencelock_engine::request::{Acquire, Convert, Mode, Op};
use fencelock_engine::{HoldId, Name};
use fencelock_testkit::modes::readers_and_a_writer;
use fencelock_testkit::recorder::{hold, name};
use fencelock_testkit::{eventually, skip_servers};

#[test]
fn readers_hold_together_and_a_writer_alone() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    readers_and_a_writer(|| world.client(""), &name("shelf"));
}

/// Through a read-write lock, and waits.
fn ask(client: &common::ZkClient, lock: &Name, id: HoldId, mode: Mode) -> State {
    let ask = client.request(lock, id, true);
    client.acquire(Acquire { mode, read_write: true, ..ask })
}

#[test]
fn the_nodes_are_those_of_curators_read_write_lock() {
    if skip_servers() {
        return;
    }
    let world = World::that_remembers();
    let (client, bare) = (world.client(""), world.bare());
    let lock = name("library/shelf");
    let [one, two, writer, late] = [hold(), hold(), hold(), hold()];
    ask(&client, &lock, one, Mode::Shared);
    ask(&client, &lock, two, Mode::Shared);
    assert_eq!(ask(&client, &lock, writer, Mode::Exclusive).standing, Standing::Queued);
    assert_eq!(ask(&client, &lock, late, Mode::Shared).standing, Standing::Queued);
    let names = bare.children("/library/shelf");
    let kinds: Vec<&str> = names.iter().map(|name| &name[40..]).collect();
    let stem = |kind: &str, number: u32| format!("__{kind}__{number:010}");
    assert_eq!(kinds, [stem("READ", 0), stem("READ", 1), stem("WRIT", 2), stem("READ", 3)]);
    assert_eq!(client.list("library", 10), ["library/shelf"]);
    client.release(&lock, two);
    client.release(&lock, one);
    assert_eq!(common::granted(&client, &lock, writer), client.beat(&lock, writer).token);
    client.release(&lock, writer);
    eventually("the reader", || {
        (client.beat(&lock, late).standing == Standing::Granted).then_some(())
    });
    client.release(&lock, late);
    assert_eq!(bare.get("/library/shelf").0, "fencelock 1 released 3 0");
}

/// A reader that waits comes in, a writer that waits does not, and the reader's end is no writer's.
#[test]
fn a_writer_reads_on_at_its_place_in_the_queue() {
    if skip_servers() {
        return;
    }
    let world = World::that_remembers();
    let (client, other, bare) = (world.client(""), world.client(""), world.bare());
    let lock = name("library/turned");
    let [first, beside, writer] = [hold(), hold(), hold()];
    let wrote = ask(&client, &lock, first, Mode::Exclusive);
    assert_eq!(ask(&other, &lock, beside, Mode::Shared).standing, Standing::Queued);
    assert_eq!(ask(&other, &lock, writer, Mode::Exclusive).standing, Standing::Queued);
    let lease = Duration::from_secs(6);
    let turn = Convert::new(lock.clone(), first, Mode::Shared, lease, u64::MAX);
    let converts = |to, used| match client
        .ask(Op::Convert(Convert { to, used, ..turn.clone() }))
        .map(|it| it.body)
    {
        Ok(Body::Convert(state)) => Ok(state),
        Err(Failure::Refused(refusal)) => Err(refusal),
        answer => panic!("{answer:?}"),
    };
    let reads = converts(Mode::Shared, wrote.token).unwrap();
    assert_eq!((reads.standing, reads.token), (Standing::Granted, wrote.token + 1));
    eventually("the reader", || {
        (other.beat(&lock, beside).standing == Standing::Granted).then_some(())
    });
    assert!(other.beat(&lock, beside).token > reads.token);
    assert_eq!(other.beat(&lock, writer).standing, Standing::Queued);
    let names = bare.children("/library/turned");
    let kinds: Vec<&str> = names.iter().map(|name| &name[40..]).collect();
    assert_eq!(kinds, ["__READ__0000000000", "__READ__0000000001", "__WRIT__0000000002"]);
    assert_eq!(bare.get("/library/turned").0, "fencelock 1 released 0 0");
    // It lasts, is renewed, and is asked for again in vain.
    assert_eq!(client.beat(&lock, first).token, reads.token);
    assert_eq!(converts(Mode::Shared, reads.token).unwrap().token, reads.token);
    assert_eq!(converts(Mode::Exclusive, reads.token).unwrap_err().kind, RefusalKind::Unsupported);
    // It dies as a reader: nothing was left half done.
    other.release(&lock, beside);
    bare.delete(&format!("/library/turned/{}", names[0]));
    common::granted(&other, &lock, writer);
    assert_eq!(other.beat(&lock, writer).abandoned, Abandoned::No);
    assert_eq!(client.beat(&lock, first).standing, Standing::Gone);
}

#[test]
fn curators_mutex_beside_readers_is_refused_and_the_reason_is_told() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let (client, bare) = (world.client(""), world.bare());
    let lock = name("mixed");
    let first = hold();
    client.take(&lock, first);
    bare.take_part("/mixed");
    client.release(&lock, first);
    let read = client.request(&lock, hold(), true);
    match client.ask(Op::Acquire(Acquire { mode: Mode::Shared, ..read })) {
        Err(Failure::Refused(refusal)) => {
            assert_eq!(refusal.kind, RefusalKind::Misconfigured);
            assert!(refusal.message.contains("InterProcessMutex"), "{refusal:?}");
        }
        other => panic!("{other:?}"),
    }
    eventually("its node's end", || (bare.children("/mixed").len() == 1).then_some(()));
}
