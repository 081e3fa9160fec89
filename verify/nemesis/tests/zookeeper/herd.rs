//! How many watch events a release costs, as the server counts them.

use fencelock::blocking::Client;
use fencelock_testkit::{ZooKeeper, eventually, skip_servers};

const LOCK: &str = "herd/lock";

fn events(servers: &ZooKeeper) -> f64 {
    let counted = servers.counters(0).unwrap();
    ["created", "deleted", "changed", "children"]
        .map(|kind| counted[&format!("zk_sum_node_{kind}_watch_count")])
        .iter()
        .sum()
}

/// How many watches are left at the server, and how many nodes of sessions are there.
fn there(servers: &ZooKeeper) -> (f64, f64) {
    let counted = servers.counters(0).unwrap();
    (counted["zk_watch_count"], counted["zk_ephemerals_count"])
}

/// Releases a lock for which so many clients wait, once; gives the events that the server delivers.
fn release(recipe: &str, waiters: usize) -> f64 {
    let servers = ZooKeeper::start().unwrap();
    // Sessions so long that their own traffic does not show.
    let url = format!("{}?recipe={recipe}&lease=60s", servers.url());
    let connect = || Client::connect(&url).unwrap();
    let holder = connect();
    let guard = holder.lock(LOCK).unwrap().acquire().unwrap();
    let clients: Vec<Client> = (0..waiters).map(|_| connect()).collect();
    let (sender, grants) = std::sync::mpsc::channel();
    for (index, client) in clients.iter().enumerate() {
        let (lock, sender) = (client.lock(LOCK).unwrap(), sender.clone());
        // Those who are not served hear that their client is closed.
        std::thread::spawn(move || lock.acquire().map(|guard| sender.send((index, guard)).is_ok()));
    }
    // Each waiter has a watch, and with the queue a node.
    let wait_for = |waiters: usize| {
        let nodes = if recipe == "queue" { waiters + 1 } else { 1 };
        eventually("all wait", || {
            let (watches, found) = there(&servers);
            (watches >= waiters as f64 && found == nodes as f64).then_some(())
        });
    };
    wait_for(waiters);
    let before = events(&servers);
    guard.release().unwrap();
    let (next, _guard) = grants.recv().unwrap();
    // Those who did not get it watch again.
    wait_for(waiters - 1);
    let after = events(&servers);
    // The holder goes last: nobody is to be woken any more.
    for (_, client) in clients.iter().enumerate().filter(|it| it.0 != next) {
        client.close();
    }
    clients[next].close();
    after - before
}

#[test]
fn a_release_wakes_one_of_a_hundred_waiters_and_with_the_simple_recipe_all() {
    if skip_servers() {
        return;
    }
    let [few, many] = [10, 100].map(|waiters| release("queue", waiters));
    let herd = release("simple", 100);
    println!("watch events of a release: {few} of 10 waiters, {many} of 100, {herd} simple");
    // One goes to the next waiter, and one or two to the holders, of before and of now.
    assert!(few <= 4.0 && many <= 4.0, "{few} events with 10 waiters, {many} with 100");
    assert!(herd >= 100.0, "{herd} events with the simple recipe");
}
