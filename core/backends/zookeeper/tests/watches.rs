//! The watches that clients keep at a real server.

mod common;

use common::World;
use fencelock_engine::reply::{Released, Standing};
use fencelock_testkit::recorder::{hold, name};
use fencelock_testkit::{Proxy, eventually, skip_servers};

/// How many sessions watch a node.
fn watchers(world: &World, path: &str) -> Option<usize> {
    // A path, and below it a line for each session.
    let text = world.server.four_letters(0, "wchp").ok()?;
    let below = text.lines().skip_while(|line| *line != path).skip(1);
    Some(below.take_while(|line| line.starts_with('\t')).count())
}

fn await_watchers(world: &World, path: &str, count: usize) {
    eventually(&format!("{count} sessions that watch"), || {
        (watchers(world, path) == Some(count)).then_some(())
    });
}

#[test]
fn whoever_gives_up_waiting_leaves_no_watch() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let proxy = Proxy::start(&world.server.address(0)).unwrap();
    let other = world.client_at(&format!("zk://{}", proxy.address()));
    let (client, bare) = (world.client(""), world.bare());
    let lock = name("patient");
    let id = hold();
    client.take(&lock, id);
    let node = format!("/patient/{}", bare.children("/patient")[0]);
    // The holder's own, when it has settled.
    await_watchers(&world, &node, 1);
    for round in 0..5 {
        let waiter = hold();
        assert_eq!(other.queue(&lock, waiter).standing, Standing::Queued);
        await_watchers(&world, &node, 2);
        if round == 3 {
            // The crate sets all of its watches again, and the waiter looks again.
            proxy.cut();
            other.up();
            await_watchers(&world, &node, 2);
        }
        assert_eq!(other.release(&lock, waiter), Released::Left);
        await_watchers(&world, &node, 1);
    }
    // What is set after that fires as ever.
    let waiter = hold();
    other.queue(&lock, waiter);
    await_watchers(&world, &node, 2);
    client.release(&lock, id);
    common::granted(&other, &lock, waiter);
}
