//! Lost replies, lost connections and restarts, against a real server.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{World, granted};
use fencelock_engine::event::Event;
use fencelock_engine::reply::{Failure, Push, Released, Standing};
use fencelock_engine::request::{Op, Release, RequestId};
use fencelock_engine::transport::{Doubt, Sink, Transport};
use fencelock_testkit::recorder::{BOUND, hold, name};
use fencelock_testkit::{Fault, Proxy, eventually, skip_servers};

/// That `owed` is not answered, and all before it are.
fn doubt(owed: RequestId) -> Doubt {
    Doubt { owed, heard: Some(RequestId(owed.0 - 1)) }
}

fn down(client: &common::ZkClient) {
    let down = |event: &Event| matches!(event, Event::Down { .. }).then_some(());
    client.recorder.wait(BOUND, down).expect("the connection goes down");
}

#[test]
fn a_create_whose_reply_was_lost_is_found_again() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let proxy = Proxy::start(&world.server.address(0)).unwrap();
    let (client, bare) = (world.client_at(&format!("zk://{}", proxy.address())), world.bare());
    let lock = name("orphan");
    let other = hold();
    client.take(&lock, other);
    client.release(&lock, other);
    let ask = client.request(&lock, hold(), true);
    let id = ask.hold;
    proxy.set(Fault::SwallowReplies);
    let request = client.send(Op::Acquire(ask.clone()));
    client.transport.flush();
    eventually("the node", || (bare.children("/orphan").len() == 1).then_some(()));
    proxy.set(Fault::Pass);
    proxy.cut();
    assert_eq!(client.reply(request), Err(Failure::Unknown));
    client.up();
    let state = client.acquire(ask);
    assert_eq!(state.standing, Standing::Granted);
    assert_eq!(bare.children("/orphan").len(), 1, "no second node");
    assert_eq!(client.release(&lock, id), Released::Done);
    assert_eq!(bare.children("/orphan").len(), 0);
}

#[test]
fn a_release_whose_reply_was_lost_is_repeated() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let proxy = Proxy::start(&world.server.address(0)).unwrap();
    let (client, bare) = (world.client_at(&format!("zk://{}", proxy.address())), world.bare());
    let lock = name("released");
    let id = hold();
    client.take(&lock, id);
    // Lost on the way there, then on the way back.
    for (fault, left) in [(Fault::SwallowRequests, 1), (Fault::SwallowReplies, 0)] {
        proxy.set(fault);
        let release = Release::new(lock.clone(), id, 0);
        let request = client.send(Op::Release(release));
        client.transport.flush();
        let swallowed = || {
            let counts = proxy.counts();
            let swallowed = match fault {
                Fault::SwallowRequests => counts.swallowed_requests,
                _ => counts.swallowed_replies,
            };
            (swallowed > 0).then_some(())
        };
        eventually("the loss", swallowed);
        eventually("the server's part", || {
            (bare.children("/released").len() == left).then_some(())
        });
        proxy.set(Fault::Pass);
        proxy.cut();
        assert_eq!(client.reply(request), Err(Failure::Unknown), "{fault:?}");
        client.up();
        // The new connection carries calls.
        client.now();
    }
    assert_eq!(client.release(&lock, id), Released::Unknown, "the second one did it");
}

#[test]
fn a_hold_outlives_a_lost_connection_and_a_restart_of_the_server() {
    if skip_servers() {
        return;
    }
    let mut world = World::new();
    let proxy = Proxy::start(&world.server.address(0)).unwrap();
    let client = world.client_at(&format!("zk://{}", proxy.address()));
    let lock = name("kept");
    let (id, waiter) = (hold(), hold());
    let token = client.take(&lock, id).token;
    client.queue(&lock, waiter);
    proxy.cut();
    down(&client);
    client.up();
    assert_eq!(client.beat(&lock, id).token, token);
    world.server.restart(0).unwrap();
    down(&client);
    client.up();
    let state = client.beat(&lock, id);
    assert_eq!((state.standing, state.token), (Standing::Granted, token));
    assert_eq!(client.release(&lock, id), Released::Done);
    granted(&client, &lock, waiter);
}

/// A server by two addresses, of which the session's nodes know only one owner.
fn owner(world: &World, path: &str) -> i64 {
    let bare = world.bare();
    let nodes = bare.children(path);
    let own = nodes.first().expect("a node");
    bare.get(&format!("{path}/{own}")).1.ephemeral_owner
}

#[test]
fn a_connection_whose_server_answers_nothing_is_given_up_and_the_session_kept() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let proxies = [(); 2].map(|()| Proxy::start(&world.server.address(0)).unwrap());
    let url = format!("zk://{},{}", proxies[0].address(), proxies[1].address());
    let (client, other) = (world.client_at(&url), world.client(""));
    let (held, queued) = (name("mine"), name("theirs"));
    let (mine, theirs, waiter) = (hold(), hold(), hold());
    let token = client.take(&held, mine).token;
    let before = owner(&world, "/mine");
    other.take(&queued, theirs);
    assert_eq!(client.queue(&queued, waiter).standing, Standing::Queued);
    for round in 0..3 {
        let ask = client.request(&name("unanswered"), hold(), false);
        let unanswered = ask.hold;
        for proxy in &proxies {
            proxy.set(Fault::SwallowReplies);
        }
        let request = client.send(Op::Acquire(ask));
        client.transport.flush();
        client.transport.reconnect(doubt(request));
        assert_eq!(client.reply(request), Err(Failure::Unknown), "round {round}");
        down(&client);
        for proxy in &proxies {
            proxy.set(Fault::Pass);
        }
        client.up();
        let state = client.beat(&held, mine);
        assert_eq!((state.standing, state.token), (Standing::Granted, token));
        client.release(&name("unanswered"), unanswered);
    }
    assert_eq!(owner(&world, "/mine"), before, "the session is the same");
    // What is waited for is heard of by the new connection: a place in the queue, and a waiter.
    other.release(&queued, theirs);
    let turn = |push: &Push| matches!(push, Push::Changed { hold, .. } if *hold == waiter);
    assert!(client.push(BOUND, turn).is_some(), "the release is heard of");
    assert_eq!(client.beat(&queued, waiter).standing, Standing::Granted);
    other.queue(&held, hold());
    let wanted = |push: &Push| matches!(push, Push::Wanted { hold, .. } if *hold == mine);
    assert!(client.push(BOUND, wanted).is_some());
    // And it ends as ever: with all that is in it, and at once.
    let bare = world.bare();
    client.transport.close();
    eventually("the end of the session", || (bare.children("/theirs").is_empty()).then_some(()));
}

#[test]
fn a_doubt_that_an_answer_overtook_costs_no_connection() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let client = world.client("");
    let (lock, id) = (name("busy"), hold());
    client.take(&lock, id);
    for _ in 0..20 {
        let owed = client.send(Op::Time);
        client.transport.flush();
        assert!(client.reply(owed).is_ok(), "the connection was given up");
        // The engine's thread was held up on its way to tell.
        client.transport.reconnect(doubt(owed));
        assert_eq!(client.beat(&lock, id).standing, Standing::Granted);
    }
    let down = |event: &Event| matches!(event, Event::Down { .. }).then_some(());
    assert_eq!(client.recorder.wait(Duration::ZERO, down), None);
}

#[test]
fn a_session_that_ends_while_its_connection_is_given_up_is_replaced() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let proxy = Proxy::start(&world.server.address(0)).unwrap();
    let (client, bare) = (world.client_at(&format!("zk://{}", proxy.address())), world.bare());
    let (lock, id) = (name("outlived"), hold());
    client.take(&lock, id);
    proxy.set(Fault::SwallowReplies);
    let owed = client.send(Op::Time);
    client.transport.flush();
    client.transport.reconnect(doubt(owed));
    down(&client);
    proxy.set(Fault::Refuse);
    eventually("the session's end", || {
        // The client may have been back before the proxy refused.
        proxy.cut();
        bare.children("/outlived").is_empty().then_some(())
    });
    proxy.set(Fault::Pass);
    client.up();
    assert_eq!(client.beat(&lock, id).standing, Standing::Gone);
    assert_eq!(client.take(&lock, hold()).standing, Standing::Granted);
}

#[test]
fn an_expired_session_is_replaced_and_its_holds_are_gone() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let proxy = Proxy::start(&world.server.address(0)).unwrap();
    let (client, bare) = (world.client_at(&format!("zk://{}", proxy.address())), world.bare());
    let lock = name("expired");
    let (id, waiter) = (hold(), hold());
    let token = client.take(&lock, id).token;
    let other = world.client("");
    other.queue(&lock, waiter);
    proxy.set(Fault::Refuse);
    proxy.cut();
    down(&client);
    eventually("the session's end", || (bare.children("/expired").len() == 1).then_some(()));
    assert!(granted(&other, &lock, waiter) > token);
    assert_eq!(other.beat(&lock, waiter).abandoned, fencelock_engine::reply::Abandoned::Yes);
    proxy.set(Fault::Pass);
    client.up();
    assert_eq!(client.beat(&lock, id).standing, Standing::Gone);
    assert_eq!(client.take(&lock, hold()).standing, Standing::Contended);
}

#[test]
fn no_servers_are_no_error_of_the_opening_and_are_told() {
    if skip_servers() {
        return;
    }
    let port = fencelock_testkit::free_port().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let recorder = std::sync::Arc::new(fencelock_testkit::recorder::Recorder::default());
    let options =
        fencelock_zookeeper::Options::from_url(&format!("zk://127.0.0.1:{port}")).unwrap();
    let id = fencelock_engine::ClientId::new(1, "").unwrap();
    let transport =
        fencelock_zookeeper::open(options, id, recorder.clone(), runtime.handle()).unwrap();
    let why = recorder.wait(BOUND, |event| match event {
        Event::Down { reason } => Some(reason.clone()),
        _ => None,
    });
    let why = why.unwrap();
    assert!(why.contains("quorum") && why.contains(&port.to_string()), "{why}");
    drop(transport);
}

/// Panics when it is to, in place of passing an event on.
struct Jumpy {
    sink: Arc<dyn Sink>,
    armed: AtomicBool,
}

impl Sink for Jumpy {
    fn deliver(&self, event: Event) {
        assert!(!self.armed.swap(false, Ordering::Relaxed), "startled by {event:?}");
        self.sink.deliver(event);
    }
}

#[test]
fn a_panic_of_whoever_is_told_ends_the_session_and_not_the_transport() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let options = fencelock_zookeeper::Options::from_url(&world.server.url()).unwrap();
    let mut jumpy = None;
    let client = common::ZkClient::open(|id, sink| {
        let sink = Arc::new(Jumpy { sink, armed: AtomicBool::new(false) });
        jumpy = Some(Arc::clone(&sink));
        fencelock_zookeeper::open(options, id, sink, world.runtime.handle()).unwrap()
    });
    let (other, bare) = (world.client(""), world.bare());
    let lock = name("startled");
    let (id, waiter) = (hold(), hold());
    client.take(&lock, id);
    eventually("the note", || (bare.get("/startled").0 == "fencelock 1 held 0 1").then_some(()));
    jumpy.unwrap().armed.store(true, Ordering::Relaxed);
    // The holder is told that somebody waits.
    other.queue(&lock, waiter);
    let why = |event: &Event| match event {
        Event::Down { reason } if reason.contains("startled by") => Some(()),
        _ => None,
    };
    client.recorder.wait(BOUND, why).expect("the panic is told");
    granted(&other, &lock, waiter);
    client.up();
    assert_eq!(client.beat(&lock, id).standing, Standing::Gone);
    assert_eq!(client.take(&name("calm"), hold()).standing, Standing::Granted);
}
