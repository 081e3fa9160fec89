//! Locks shared with Apache Curator: the real one, in a Java process, on the same ensemble.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use fencelock::blocking::{Client, Lock};
use fencelock::{Abandoned, ErrorKind};
use fencelock_testkit::driver::value;
use fencelock_testkit::{Driver, ZooKeeper, eventually, skip_servers};

const SESSION: &str = "lease=4s&request_timeout=10s&connect_timeout=30s";

struct World {
    servers: ZooKeeper,
    curator: Driver,
}

impl World {
    /// An ensemble and Curator with two clients, `c` and `d`.
    fn new() -> Option<World> {
        if skip_servers() {
            return None;
        }
        let servers = ZooKeeper::ensemble(3).unwrap();
        let mut world = World { curator: fencelock_testkit::curator().unwrap(), servers };
        world.open("c");
        world.open("d");
        Some(world)
    }

    fn open(&mut self, client: &str) {
        let servers = self.servers.connect_string();
        self.curator.ask(&format!("open {client} {servers} 4000"), &format!("opened {client}"));
    }

    fn client(&self) -> Client {
        Client::connect(format!("{}?{SESSION}", self.servers.url())).unwrap()
    }
}

/// Waits until so many wait for the lock, by our `show`.
fn queued(client: &Client, lock: &str, count: usize) {
    eventually("waiters", || {
        let info = client.inspect(lock).unwrap()?;
        (info.waiters.len() == count).then_some(())
    });
}

/// One world for all of these: an ensemble and a Java process take their time to start.
#[test]
fn curator_and_fencelock_share_locks() {
    let Some(mut world) = World::new() else { return };
    each_sees_the_other(&mut world);
    served_in_the_order_of_arrival(&mut world);
    either_asks_the_other_to_give_way(&mut world);
    both_contend(&mut world);
    readers_and_writers_share_one_queue(&mut world);
    a_writer_of_ours_reads_on(&mut world);
    who_is_killed_reads_or_writes(&mut world);
    one_path_is_one_recipes(&mut world);
    a_dead_reader_lets_the_other_sides_writer_in(&mut world);
    permits_of_both_are_counted_together(&mut world);
    a_dead_holders_permits_come_back(&mut world);
    either_may_be_killed(&mut world);
}

fn each_sees_the_other(world: &mut World) {
    // A path, as services on Curator have it.
    let (client, name) = (world.client(), "distributed/myLock");
    let lock = client.lock(name).unwrap();
    let guard = lock.acquire().unwrap();
    let seen = world.curator.ask("participants c /distributed/myLock", "participants c");
    assert_eq!(seen.split(',').count(), 1, "{seen}");
    assert!(seen.starts_with("/distributed/myLock/_c_") && seen.contains("-lock-"), "{seen}");
    world.curator.tell("acquire waits c /distributed/myLock");
    world.curator.wait_for("asked waits");
    queued(&client, name, 1);
    let seen = world.curator.ask("participants d /distributed/myLock", "participants d");
    assert_eq!(seen.split(',').count(), 2, "{seen}");
    assert!(!world.curator.has_said("granted waits"));
    let ours = guard.token().get();
    guard.release().unwrap();
    let granted = world.curator.wait_for("granted waits");
    // Where Curator's services fence, by the node's transaction as we do, the order is one.
    let theirs: u64 = value(&granted, "token").unwrap().parse().unwrap();
    assert!(theirs > ours);

    // `show` sees the holder, and a try finds the lock taken.
    let info = client.inspect(name).unwrap().unwrap();
    assert_eq!((info.holds.len(), info.waiters.len()), (1, 0), "{info:?}");
    assert!(client.list("distributed/", 100).unwrap().iter().any(|it| it.as_str() == name));
    assert_eq!(lock.try_acquire().unwrap_err().kind(), ErrorKind::Contended);
    world.curator.ask("release waits", "released waits");
    let guard = lock.acquire().unwrap();
    assert!(guard.token().get() > theirs);
    // Curator leaves no word of how its holds end.
    assert_ne!(guard.previous_abandoned(), Abandoned::Yes);
    guard.release().unwrap();
}

fn served_in_the_order_of_arrival(world: &mut World) {
    let (name, path) = ("distributed/order", "/distributed/order");
    let clients: Vec<Client> = (0..3).map(|_| world.client()).collect();
    let watcher = world.client();
    let first = watcher.lock(name).unwrap().acquire().unwrap();
    let (sender, grants) = std::sync::mpsc::channel();
    // Ours and theirs in turn; each is in line before the next comes.
    for (index, client) in clients.iter().enumerate() {
        let (lock, sender) = (client.lock(name).unwrap(), sender.clone());
        thread::spawn(move || drop(sender.send((index, lock.acquire().unwrap()))));
        queued(&watcher, name, 2 * index + 1);
        world.curator.tell(&format!("acquire order{index} c {path}"));
        queued(&watcher, name, 2 * index + 2);
    }
    first.release().unwrap();
    for expected in 0..3 {
        let (index, guard) = grants.recv_timeout(Duration::from_secs(30)).unwrap();
        assert_eq!(index, expected);
        assert!(!world.curator.has_said(&format!("granted order{expected}")));
        guard.release().unwrap();
        world.curator.wait_for(&format!("granted order{expected}"));
        assert!(grants.try_recv().is_err(), "the next of ours has it while Curator has");
        world
            .curator
            .ask(&format!("release order{expected}"), &format!("released order{expected}"));
    }
}

fn either_asks_the_other_to_give_way(world: &mut World) {
    let (name, path) = ("distributed/revoked", "/distributed/revoked");
    let client = world.client();
    // Theirs asks ours.
    let guard = client.lock(name).unwrap().acquire().unwrap();
    let node = world.curator.ask(&format!("participants c {path}"), "participants c");
    assert!(!guard.is_wanted());
    world.curator.ask(&format!("revoke c {node}"), "revoking c");
    eventually("ours is told", || guard.is_wanted().then_some(()));
    guard.release().unwrap();
    // Ours asks theirs.
    world.curator.ask(&format!("revocable theirs c {path}"), "granted theirs");
    assert!(!world.curator.has_said("wanted theirs"));
    assert!(client.request_revoke(name).unwrap());
    world.curator.wait_for("wanted theirs");
    world.curator.ask("release theirs", "released theirs");
    eventually("nobody holds it", || (!client.request_revoke(name).unwrap()).then_some(()));
}

/// `InterProcessReadWriteLock` and `rw_lock`: readers of both sides together, writers of either alone, in
/// the order in which they came.
fn readers_and_writers_share_one_queue(world: &mut World) {
    let (name, path) = ("library/shelf", "/library/shelf");
    let (client, other, watcher) = (world.client(), world.client(), world.client());
    let shelf = client.rw_lock(name).unwrap();
    let reader = shelf.read().unwrap();
    world.curator.tell(&format!("read theirs c {path}"));
    let theirs = world.curator.wait_for("granted theirs");
    let their_token: u64 = value(&theirs, "token").unwrap().parse().unwrap();
    assert!(their_token > reader.token().get());
    // Their writer waits for both; ours behind it for the writer.
    world.curator.tell(&format!("write writer d {path}"));
    queued(&watcher, name, 1);
    let (sender, grants) = std::sync::mpsc::channel();
    let late = other.rw_lock(name).unwrap();
    let (also, sending) = (late.clone(), sender.clone());
    thread::spawn(move || sending.send(("read", also.read().unwrap())).unwrap());
    queued(&watcher, name, 2);
    thread::spawn(move || sender.send(("write", late.non_reentrant().write().unwrap())).unwrap());
    queued(&watcher, name, 3);
    world.curator.tell(&format!("read last c {path}"));
    queued(&watcher, name, 4);
    let info = watcher.inspect(name).unwrap().unwrap();
    assert_eq!(info.holds.len(), 2, "{info:?}");
    assert!(shelf.clone().non_reentrant().try_read().is_err(), "a try passes nobody");
    reader.release().unwrap();
    assert!(!world.curator.has_said("granted writer"), "their reader is still there");
    world.curator.ask("release theirs", "released theirs");
    let written = world.curator.wait_for("granted writer");
    let written: u64 = value(&written, "token").unwrap().parse().unwrap();
    assert!(written > their_token && grants.try_recv().is_err());
    world.curator.ask("release writer", "released writer");
    let (what, ours) = grants.recv_timeout(Duration::from_secs(30)).unwrap();
    assert!(what == "read" && ours.token().get() > written);
    assert!(grants.try_recv().is_err(), "our writer waits for our reader");
    ours.release().unwrap();
    let (what, ours) = grants.recv_timeout(Duration::from_secs(30)).unwrap();
    assert!(what == "write" && !world.curator.has_said("granted last"));
    ours.release().unwrap();
    world.curator.wait_for("granted last");
    assert_eq!(shelf.clone().non_reentrant().try_write().unwrap_err().kind(), ErrorKind::Contended);
    shelf.try_read().unwrap().release().unwrap();
    world.curator.ask("release last", "released last");
}

/// Their reader that waits comes in beside it, and their writer does not.
fn a_writer_of_ours_reads_on(world: &mut World) {
    let (name, path) = ("library/turned", "/library/turned");
    let (client, watcher) = (world.client(), world.client());
    let ours = client.rw_lock(name).unwrap().write().unwrap();
    let wrote = ours.token().get();
    world.curator.tell(&format!("read beside c {path}"));
    queued(&watcher, name, 1);
    world.curator.tell(&format!("write late d {path}"));
    queued(&watcher, name, 2);
    ours.downgrade().unwrap();
    let granted = world.curator.wait_for("granted beside");
    let token = |line: &str| value(line, "token").unwrap().parse::<u64>().unwrap();
    assert!(ours.token().get() > wrote && token(&granted) > ours.token().get());
    queued(&watcher, name, 1);
    world.curator.ask("release beside", "released beside");
    assert!(!world.curator.has_said("granted late") && ours.is_valid());
    let node = world.curator.ask(&format!("participants c {path}"), "participants c");
    assert!(node.contains("-__READ__"), "{node}");
    let read = ours.token().get();
    ours.release().unwrap();
    assert!(token(&world.curator.wait_for("granted late")) > read);
    world.curator.ask("release late", "released late");
}

/// Of either side. Only a writer that was killed leaves anything half done.
fn who_is_killed_reads_or_writes(world: &mut World) {
    let client = world.client();
    let heir = |name: &'static str| {
        let client = world.client();
        thread::spawn(move || {
            let guard = client.rw_lock(name).unwrap().write().unwrap();
            let told = guard.previous_abandoned();
            guard.release().unwrap();
            told
        })
    };
    let proxy = fencelock_testkit::Proxy::start(&world.servers.address(0)).unwrap();
    let dying = Client::connect(format!("zk://{}?{SESSION}", proxy.address())).unwrap();
    let mut process = fencelock_testkit::curator().unwrap();
    let servers = world.servers.connect_string();
    process.ask(&format!("open k {servers} 4000"), "opened k");
    let names = ["library/k1", "library/k2", "library/k3", "library/k4", "library/k5"];
    let [theirs_read, theirs_wrote, ours_read, ours_wrote, ours_turned] = names;
    // Each was given up by a writer before, who said so.
    for name in names {
        client.rw_lock(name).unwrap().write().unwrap().release().unwrap();
    }
    process.tell(&format!("read one k /{theirs_read}"));
    process.wait_for("granted one");
    process.tell(&format!("write two k /{theirs_wrote}"));
    process.wait_for("granted two");
    let _reads = dying.rw_lock(ours_read).unwrap().read().unwrap();
    let _writes = dying.rw_lock(ours_wrote).unwrap().write().unwrap();
    let turned = dying.rw_lock(ours_turned).unwrap().write().unwrap();
    turned.downgrade().unwrap();
    let heirs = names.map(heir);
    names.iter().for_each(|name| queued(&client, name, 1));
    process.kill();
    proxy.set(fencelock_testkit::Fault::SwallowRequests);
    let told = heirs.map(|heir| heir.join().unwrap());
    // Nobody of theirs says how it ended.
    assert_eq!([told[0], told[1]].map(|it| it == Abandoned::Yes), [false; 2], "{told:?}");
    assert_ne!(told[1], Abandoned::No, "a writer of theirs was killed");
    assert_ne!(told[2], Abandoned::Yes, "a reader of ours was cut off");
    assert_eq!(told[3], Abandoned::Yes, "a writer of ours was cut off");
    assert_eq!(told[4], Abandoned::No, "one that wrote, and read on, was cut off");
}

/// Curator's mutex does not look at who reads, nor its read-write lock at who has a mutex.
fn one_path_is_one_recipes(world: &mut World) {
    let (name, path) = ("library/mixed", "/library/mixed");
    let client = world.client();
    world.curator.tell(&format!("acquire mutex c {path}"));
    world.curator.wait_for("granted mutex");
    let error = client.rw_lock(name).unwrap().read().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.message().contains("InterProcessMutex"), "{error}");
    world.curator.ask("release mutex", "released mutex");
    world.curator.tell(&format!("read reader c {path}"));
    world.curator.wait_for("granted reader");
    let plain = world.client().lock(name).unwrap();
    let error = plain.acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.message().contains("InterProcessReadWriteLock"), "{error}");
    world.curator.ask("release reader", "released reader");
}

/// A reader of ours is cut off, and their writer gets in; what nobody wrote nobody left half done.
fn a_dead_reader_lets_the_other_sides_writer_in(world: &mut World) {
    let (name, path) = ("library/dead", "/library/dead");
    let client = world.client();
    let shelf = client.rw_lock(name).unwrap().non_reentrant();
    shelf.write().unwrap().release().unwrap();
    let staying = shelf.read().unwrap();
    let proxy = fencelock_testkit::Proxy::start(&world.servers.address(0)).unwrap();
    let dying = Client::connect(format!("zk://{}?{SESSION}", proxy.address())).unwrap();
    let dead = dying.rw_lock(name).unwrap().read().unwrap();
    let waiter = thread::spawn({
        let client = world.client();
        move || client.rw_lock(name).unwrap().write().unwrap()
    });
    queued(&client, name, 1);
    world.curator.tell(&format!("write heir d {path}"));
    queued(&client, name, 2);
    proxy.set(fencelock_testkit::Fault::SwallowRequests);
    staying.release().unwrap();
    let ours = waiter.join().unwrap();
    assert!(!dead.is_valid(), "a writer is in, and the reader still trusts its hold");
    assert_ne!(ours.previous_abandoned(), Abandoned::Yes, "readers leave nothing half done");
    ours.release().unwrap();
    world.curator.wait_for("granted heir");
    world.curator.ask("release heir", "released heir");
}

/// `InterProcessSemaphoreV2` and `semaphore`: one queue, and never more out than there are.
fn permits_of_both_are_counted_together(world: &mut World) {
    let (name, path) = ("pool/seats", "/pool/seats");
    let (client, watcher) = (world.client(), world.client());
    let seats = client.semaphore(name, 3).unwrap();
    let two = seats.acquire_many(2).unwrap();
    world.curator.ask(&format!("take one c {path} 3"), "granted one");
    assert_eq!(seats.try_acquire().unwrap_err().kind(), ErrorKind::Contended);
    assert_eq!(watcher.semaphore(name, 3).unwrap().available_permits().unwrap(), 0);
    // Ours wants two and came first; theirs waits behind it for one.
    let (sender, grants) = std::sync::mpsc::channel();
    let more = world.client().semaphore(name, 3).unwrap();
    thread::spawn(move || sender.send(more.acquire_many(2).unwrap()).unwrap());
    queued(&watcher, name, 1);
    world.curator.tell(&format!("take late d {path} 3"));
    queued(&watcher, name, 2);
    world.curator.ask("back one", "returned one");
    assert!(grants.try_recv().is_err() && !world.curator.has_said("granted late"));
    two.release().unwrap();
    let more = grants.recv_timeout(Duration::from_secs(30)).unwrap();
    world.curator.wait_for("granted late");
    assert_eq!(seats.available_permits().unwrap(), 0);
    more.release().unwrap();
    world.curator.ask("back late", "returned late");

    const TURNS: usize = 40;
    let (name, path, folder) = ("pool/crowd", "/pool/crowd", tempfile::tempdir().unwrap());
    for (tag, client) in [("left", "c"), ("right", "d")] {
        let place = folder.path().display();
        world.curator.tell(&format!("crowd {tag} {client} {path} 3 {TURNS} {place}"));
    }
    let over = AtomicUsize::new(0);
    thread::scope(|scope| {
        for nth in 0..4 {
            let (seats, over) = (world.client().semaphore(name, 3).unwrap(), &over);
            let folder = folder.path();
            scope.spawn(move || {
                for turn in 0..TURNS {
                    let permit = seats.acquire().unwrap();
                    let mark = folder.join(format!("ours{nth}-{turn}"));
                    fs::File::create_new(&mark).unwrap();
                    let out = fs::read_dir(folder).unwrap().count();
                    over.fetch_add(usize::from(out > 3), Ordering::SeqCst);
                    fs::remove_file(&mark).unwrap();
                    permit.release().unwrap();
                }
            });
        }
    });
    for tag in ["left", "right"] {
        assert_eq!(world.curator.wait_for(&format!("crowded {tag}")), "over=0");
    }
    assert_eq!(over.load(Ordering::SeqCst), 0);
}

/// One of ours is cut off, and theirs gets what it had; a client of theirs is closed, and ours does.
fn a_dead_holders_permits_come_back(world: &mut World) {
    let (name, path) = ("pool/dead", "/pool/dead");
    let client = world.client();
    let proxy = fencelock_testkit::Proxy::start(&world.servers.address(0)).unwrap();
    let dying = Client::connect(format!("zk://{}?{SESSION}", proxy.address())).unwrap();
    let dead = dying.semaphore(name, 2).unwrap().acquire_many(2).unwrap();
    world.curator.tell(&format!("take heir c {path} 2 2"));
    queued(&client, name, 1);
    proxy.set(fencelock_testkit::Fault::SwallowRequests);
    world.curator.wait_for("granted heir");
    assert!(!dead.is_valid(), "Curator has them, and ours still trusts its hold");
    world.curator.ask("back heir", "returned heir");
    // What a process of theirs had when it was killed is given to ours.
    let mut process = fencelock_testkit::curator().unwrap();
    let servers = world.servers.connect_string();
    process.ask(&format!("open k {servers} 4000"), "opened k");
    process.ask(&format!("take theirs k {path} 2 2"), "granted theirs");
    let waiter = thread::spawn({
        let seats = client.semaphore(name, 2).unwrap();
        move || seats.acquire_many(2).unwrap()
    });
    queued(&client, name, 1);
    process.kill();
    waiter.join().unwrap().release().unwrap();
}

/// Four of ours, two of them in one client, and two of Curator's. Each hold makes a file that must
/// not be there, writes its token, and takes the file away.
fn both_contend(world: &mut World) {
    const TURNS: usize = 40;
    let (name, path) = ("distributed/contended", "/distributed/contended");
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display();
    for (tag, client) in [("one", "c"), ("two", "d")] {
        world.curator.tell(&format!("contend {tag} {client} {path} {TURNS} {place}"));
    }
    let clients: Vec<Client> = (0..3).map(|_| world.client()).collect();
    let overlaps = AtomicUsize::new(0);
    thread::scope(|scope| {
        for client in clients.iter().chain([&clients[0]]) {
            let (lock, overlaps, folder) = (client.lock(name).unwrap(), &overlaps, folder.path());
            scope.spawn(move || contend(&lock, TURNS, folder, overlaps));
        }
    });
    for tag in ["one", "two"] {
        assert_eq!(world.curator.wait_for(&format!("contended {tag}")), "overlaps=0");
    }
    assert_eq!(overlaps.load(Ordering::SeqCst), 0);
    let text = fs::read_to_string(folder.path().join("tokens")).unwrap();
    let tokens: Vec<u64> =
        text.lines().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(tokens.len(), TURNS * 6);
    assert!(tokens.is_sorted_by(|one, next| one < next), "{text}");
    // Neither side had to wait until the other was done.
    let half: Vec<&str> = text.lines().take(TURNS * 3).collect();
    for side in ["ours", "curator"] {
        assert!(half.iter().any(|line| line.contains(side)), "{text}");
    }
}

fn contend(lock: &Lock, turns: usize, folder: &Path, overlaps: &AtomicUsize) {
    for _ in 0..turns {
        let guard = lock.acquire().unwrap();
        let mark = fs::File::create_new(folder.join("held"));
        if mark.is_err() {
            overlaps.fetch_add(1, Ordering::SeqCst);
        }
        let mut file =
            fs::File::options().create(true).append(true).open(folder.join("tokens")).unwrap();
        file.write_all(format!("{} ours\n", guard.token()).as_bytes()).unwrap();
        if mark.is_ok() {
            fs::remove_file(folder.join("held")).unwrap();
        }
        guard.release().unwrap();
    }
}

fn either_may_be_killed(world: &mut World) {
    let (name, path) = ("distributed/killed", "/distributed/killed");
    let client = world.client();
    // Ours vanishes: its session is cut off and ends.
    let proxy = fencelock_testkit::Proxy::start(&world.servers.address(0)).unwrap();
    let ours = Client::connect(format!("zk://{}?{SESSION}", proxy.address())).unwrap();
    let guard = ours.lock(name).unwrap().acquire().unwrap();
    let token = guard.token().get();
    world.curator.tell(&format!("acquire heir c {path}"));
    queued(&client, name, 1);
    proxy.set(fencelock_testkit::Fault::SwallowRequests);
    let granted = world.curator.wait_for("granted heir");
    assert!(!guard.is_valid(), "Curator has it, and ours still trusts its hold");
    assert!(value(&granted, "token").unwrap().parse::<u64>().unwrap() > token);
    // Curator's process is killed while it holds a lock that nobody of ours has lost: the loss of
    // one of ours is told until somebody who was told has released, which Curator cannot be.
    let (name, path) = ("distributed/killed-later", "/distributed/killed-later");
    let lock = client.lock(name).unwrap();
    world.curator.tell(&format!("acquire last c {path}"));
    world.curator.wait_for("granted last");
    let waiter = thread::spawn({
        let lock = lock.clone();
        move || lock.acquire().unwrap()
    });
    queued(&client, name, 1);
    world.curator.kill();
    let guard = waiter.join().unwrap();
    assert_eq!(guard.previous_abandoned(), Abandoned::Unknown);
    guard.release().unwrap();
}
