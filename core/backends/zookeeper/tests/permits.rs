//! Permits on a real server, and the nodes that they leave.

mod common;

use common::{World, ZkClient, granted};
use fencelock_engine::reply::{Broken, Failure, Released, Standing, State};
use fencelock_engine::request::{Acquire, Break, Mode, Op, Resize};
use fencelock_engine::transport::Transport;
use fencelock_engine::{HoldId, Name};
use fencelock_testkit::recorder::{hold, name};
use fencelock_testkit::{Fault, Proxy, eventually, skip_servers};

fn asks(
    client: &ZkClient,
    lock: &Name,
    id: HoldId,
    (count, of): (u32, u32),
    wait: bool,
) -> Acquire {
    Acquire { mode: Mode::Permits { count, of }, ..client.request(lock, id, wait) }
}

fn take(client: &ZkClient, lock: &Name, id: HoldId, permits: (u32, u32)) -> State {
    client.acquire(asks(client, lock, id, permits, true))
}

fn try_take(client: &ZkClient, lock: &Name, permits: (u32, u32)) -> State {
    client.acquire(asks(client, lock, hold(), permits, false))
}

fn refusal(client: &ZkClient, ask: Acquire) -> String {
    match client.ask(Op::Acquire(ask)) {
        Err(Failure::Refused(refusal)) => refusal.message,
        other => panic!("{other:?}"),
    }
}

fn resize(client: &ZkClient, lock: &Name, of: u32) {
    client.ask(Op::Resize(Resize { lock: lock.clone(), of })).unwrap();
}

#[test]
fn the_nodes_are_those_of_curators_semaphore() {
    if skip_servers() {
        return;
    }
    let world = World::that_remembers();
    let (client, bare) = (world.client(""), world.bare());
    let lock = name("pool/seats");
    let [one, two, three] = [hold(), hold(), hold()];
    let first = take(&client, &lock, one, (2, 3));
    assert_eq!(first.standing, Standing::Granted);
    let out = bare.children("/pool/seats/leases");
    assert!(out.len() == 2 && out.iter().all(|name| name.contains("-lease-00000000")), "{out:?}");
    assert_eq!(bare.children("/pool/seats/locks"), Vec::<String>::new());
    assert_eq!(bare.get("/pool/seats").0, "fencelock 1 permits 3");
    let second = take(&client, &lock, two, (1, 3));
    assert!(second.token > first.token);
    assert_eq!(take(&client, &lock, three, (1, 3)).standing, Standing::Queued);
    assert!(bare.children("/pool/seats/locks")[0].contains("-lock-"));
    let info = client.inspect(&lock).unwrap();
    let modes: Vec<Mode> = info.holds.iter().map(|hold| hold.mode).collect();
    assert_eq!(modes, [(2, 3), (1, 3)].map(|(count, of)| Mode::Permits { count, of }));
    assert_eq!(info.waiters.len(), 1);
    assert_eq!(client.list("pool", 10), ["pool/seats"]);
    assert_eq!(client.release(&lock, one), Released::Done);
    assert!(granted(&client, &lock, three) > second.token);
    assert_eq!(bare.children("/pool/seats/leases").len(), 2);
    assert_eq!(client.release(&lock, one), Released::Unknown, "given back once");
    client.release(&lock, two);
    client.release(&lock, three);
    assert_eq!(bare.children("/pool/seats/leases"), Vec::<String>::new());
    assert_eq!(client.list("pool", 10), Vec::<String>::new());
}

/// M103, M109: two that have two of four each want three: nobody holds some while it waits for more.
#[test]
fn the_large_one_comes_in_its_turn_and_takes_nothing_before() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let clients = [world.client(""), world.client("")];
    let lock = name("pair");
    let [a, b, large, other, small] = [hold(), hold(), hold(), hold(), hold()];
    assert_eq!(take(&clients[0], &lock, a, (2, 4)).standing, Standing::Granted);
    assert_eq!(take(&clients[1], &lock, b, (2, 4)).standing, Standing::Granted);
    assert_eq!(take(&clients[0], &lock, large, (3, 4)).standing, Standing::Queued);
    assert_eq!(take(&clients[1], &lock, other, (3, 4)).standing, Standing::Queued);
    assert_eq!(take(&clients[1], &lock, small, (1, 4)).standing, Standing::Queued);
    clients[0].release(&lock, a);
    let bare = world.bare();
    assert_eq!(bare.children("/pair/leases").len(), 2, "two are free, and three are wanted");
    assert_eq!(try_take(&clients[0], &lock, (1, 4)).standing, Standing::Contended);
    clients[1].release(&lock, b);
    let first = granted(&clients[0], &lock, large);
    assert_eq!(clients[1].beat(&lock, small).standing, Standing::Queued);
    clients[0].release(&lock, large);
    assert!(granted(&clients[1], &lock, other) > first);
    granted(&clients[1], &lock, small);
}

#[test]
fn another_number_is_refused_until_it_is_set() {
    if skip_servers() {
        return;
    }
    let world = World::that_remembers();
    let client = world.client("");
    let lock = name("sized");
    let [one, two, three, four] = [hold(), hold(), hold(), hold()];
    take(&client, &lock, one, (2, 2));
    let said = refusal(&client, asks(&client, &lock, hold(), (1, 5), true));
    assert!(said.contains('2') && said.contains('5'), "{said}");
    assert_eq!(take(&client, &lock, two, (1, 2)).standing, Standing::Queued);
    // M105: of more, who fits enters at once.
    resize(&client, &lock, 3);
    granted(&client, &lock, two);
    assert_eq!(take(&client, &lock, three, (3, 3)).standing, Standing::Queued);
    assert_eq!(take(&client, &lock, four, (1, 3)).standing, Standing::Queued);
    // Of fewer, who wants more than there are is told, and who comes next is not stuck behind it.
    resize(&client, &lock, 2);
    eventually("the word that there are fewer", || {
        (client.beat(&lock, three).standing == Standing::Doomed { of: 2 }).then_some(())
    });
    assert_eq!(client.beat(&lock, four).standing, Standing::Queued);
    client.release(&lock, two);
    client.release(&lock, one);
    granted(&client, &lock, four);
    client.release(&lock, four);
    // Nobody is there: the next one says how many there are.
    assert_eq!(take(&client, &lock, hold(), (5, 5)).standing, Standing::Granted);
    for (permits, limit) in [((1, 10_001), "10000"), ((1_001, 2_000), "1000")] {
        let said = refusal(&client, asks(&client, &lock, hold(), permits, true));
        assert!(said.contains(limit), "{said}");
    }
}

#[test]
fn a_name_is_a_locks_or_a_semaphores() {
    if skip_servers() {
        return;
    }
    let world = World::that_remembers();
    let client = world.client("");
    let lock = name("either");
    let [one, two] = [hold(), hold()];
    take(&client, &lock, one, (1, 2));
    for wait in [true, false] {
        let said = refusal(&client, client.request(&lock, hold(), wait));
        assert!(said.contains("semaphore"), "{said}");
    }
    client.release(&lock, one);
    client.take(&lock, two);
    for wait in [true, false] {
        let said = refusal(&client, asks(&client, &lock, hold(), (1, 2), wait));
        assert!(said.contains("lock's"), "{said}");
    }
    client.release(&lock, two);
    assert_eq!(take(&client, &lock, one, (1, 2)).standing, Standing::Granted);
}

#[test]
fn what_a_dead_client_had_comes_back_once() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let (client, bare) = (world.client(""), world.bare());
    let proxy = Proxy::start(&world.server.address(0)).unwrap();
    let dying = world.client_at(&format!("zk://{}", proxy.address()));
    let lock = name("dead");
    let [theirs, waits, next] = [hold(), hold(), hold()];
    take(&dying, &lock, theirs, (2, 2));
    assert_eq!(take(&dying, &lock, waits, (1, 2)).standing, Standing::Queued);
    assert_eq!(take(&client, &lock, next, (2, 2)).standing, Standing::Queued);
    proxy.set(Fault::SwallowRequests);
    granted(&client, &lock, next);
    assert_eq!(bare.children("/dead/leases").len(), 2);
    assert_eq!(try_take(&client, &lock, (1, 2)).standing, Standing::Contended);
}

/// M111: the answers to an acquire are lost; its hold's next acquire finds what it made, and its release
/// leaves nothing.
#[test]
fn what_an_unheard_acquire_made_is_found() {
    if skip_servers() {
        return;
    }
    let world = World::that_remembers();
    let bare = world.bare();
    let proxy = Proxy::start(&world.server.address(0)).unwrap();
    let client = world.client_at(&format!("zk://{}", proxy.address()));
    let lock = name("found");
    for again in [true, false] {
        let id = hold();
        let ask = asks(&client, &lock, id, (1, 2), true);
        take(&client, &lock, id, (1, 2));
        client.release(&lock, id);
        proxy.set(Fault::SwallowReplies);
        let request = client.send(Op::Acquire(ask));
        client.transport.flush();
        eventually("it queues", || (bare.children("/found/locks").len() == 1).then_some(()));
        proxy.cut();
        proxy.set(Fault::Pass);
        assert!(client.reply(request).is_err());
        client.up();
        if again {
            eventually("the grant", || {
                let state = take(&client, &lock, id, (1, 2));
                (state.standing == Standing::Granted).then_some(())
            });
            assert_eq!(client.release(&lock, id), Released::Done);
        } else {
            client.release(&lock, id);
        }
        eventually("that nothing is left", || {
            let left = ["/found/locks", "/found/leases"].map(|path| bare.children(path).len());
            (left == [0, 0]).then_some(())
        });
    }
}

#[test]
fn an_operator_ends_one_hold_with_all_it_has() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let client = world.client("");
    let lock = name("broken");
    let [one, two] = [hold(), hold()];
    take(&client, &lock, one, (2, 3));
    let token = take(&client, &lock, two, (1, 3)).token;
    let what = Break { lock: lock.clone(), token, hold: Some(one) };
    let reply = client.ask(Op::Break(what)).unwrap();
    assert_eq!(reply.body, fencelock_engine::reply::Body::Break(Broken::Ended(1)));
    eventually("the word of it", || {
        (client.beat(&lock, one).standing == Standing::Gone).then_some(())
    });
    assert_eq!(client.beat(&lock, two).standing, Standing::Granted);
    assert_eq!(world.bare().children("/broken/leases").len(), 1);
}

/// Six clients, four permits, and requests for one to three.
#[test]
fn many_clients_never_have_more_than_there_are() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let lock = name("crowd");
    let out = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for nth in 0..6u32 {
            let (client, lock, out) = (world.client(""), &lock, &out);
            scope.spawn(move || {
                for turn in 0..20 {
                    let (id, count) = (hold(), 1 + (nth + turn) % 3);
                    let state = take(&client, lock, id, (count, 4));
                    if state.standing != Standing::Granted {
                        granted(&client, lock, id);
                    }
                    let now = out.fetch_add(count, std::sync::atomic::Ordering::SeqCst) + count;
                    assert!(now <= 4, "{now} of 4 are out");
                    out.fetch_sub(count, std::sync::atomic::Ordering::SeqCst);
                    assert_eq!(client.release(lock, id), Released::Done);
                }
            });
        }
    });
    assert_eq!(world.bare().children("/crowd/leases"), Vec::<String>::new());
}
