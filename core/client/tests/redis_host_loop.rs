//! An event loop that drives a client's connection to a real Redis server by turns.
#![cfg(unix)]

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use fencelock::blocking::{Client, HostLoop, Hosted};
use fencelock_testkit::{Proxy, RedisServer, skip_servers};
use mio::unix::SourceFd;
use mio::{Events, Interest, Token};

const LIMIT: Duration = Duration::from_secs(30);

/// How often a call is tried: the background thread serves some of them when the machine is slow.
const TRIES: usize = 1000;

/// A server, unless they are left out.
macro_rules! server {
    () => {
        match skip_servers() {
            true => return,
            false => RedisServer::start().unwrap(),
        }
    };
}

/// An event loop whose only work is to drive.
struct EventLoop {
    host: HostLoop,
    poll: mio::Poll,
    events: Events,
}

/// On which thread a call was answered.
#[derive(Default)]
struct Answered(Mutex<Option<ThreadId>>);

impl Wake for Answered {
    fn wake(self: Arc<Self>) {
        *self.0.lock().unwrap() = Some(thread::current().id());
    }
}

impl EventLoop {
    fn new() -> EventLoop {
        let (host, poll) = (HostLoop::new().unwrap(), mio::Poll::new().unwrap());
        let descriptor = host.descriptor();
        poll.registry().register(&mut SourceFd(&descriptor), Token(0), Interest::READABLE).unwrap();
        EventLoop { host, poll, events: Events::with_capacity(8) }
    }

    fn wait(&mut self, limit: Duration) {
        self.poll.poll(&mut self.events, Some(limit)).unwrap();
        if !self.events.is_empty() {
            self.host.turn();
        }
    }

    /// Runs one call to its end, with the loop's turns or without; gives the answer's thread, unless
    /// it was there at once.
    fn run<T>(
        &mut self,
        hosted: &Hosted,
        turns: bool,
        call: impl Future<Output = T>,
    ) -> (T, Option<ThreadId>) {
        let answered = Arc::new(Answered::default());
        let waker = Waker::from(answered.clone());
        let (mut call, start) = (pin!(call), Instant::now());
        loop {
            if let Poll::Ready(value) = call.as_mut().poll(&mut Context::from_waker(&waker)) {
                return (value, *answered.0.lock().unwrap());
            }
            hosted.expect();
            while answered.0.lock().unwrap().is_none() {
                assert!(start.elapsed() < LIMIT, "waited in vain");
                match turns {
                    true => self.wait(Duration::from_millis(5)),
                    false => thread::sleep(Duration::from_millis(1)),
                }
            }
        }
    }

    /// Makes calls until one is answered within a turn.
    fn answers_within_a_turn(&mut self, client: &Client, hosted: &Hosted) {
        let found = (0..TRIES).any(|_| {
            let (time, thread) = self.run(hosted, true, client.asynchronous().ping());
            time.unwrap();
            thread == Some(thread::current().id())
        });
        assert!(found, "the loop never drove");
    }
}

#[test]
fn answers_come_within_the_loops_turns() {
    let server = server!();
    let client = Client::connect(server.url()).unwrap();
    let mut turns = EventLoop::new();
    let hosted = turns.host.serve(&client).unwrap();
    turns.answers_within_a_turn(&client, &hosted);
    assert!(turns.host.serve(&client).is_none(), "it is served already");
    // Blocking calls and the background thread share the connection with it.
    let guard = client.lock("blocking").unwrap().acquire().unwrap();
    turns.answers_within_a_turn(&client, &hosted);
    guard.release().unwrap();
    drop(hosted);
    client.ping().unwrap();
}

#[test]
fn several_clients_are_served_by_one_loop() {
    let server = server!();
    let clients: Vec<_> = (0..3).map(|_| Client::connect(server.url()).unwrap()).collect();
    let mut turns = EventLoop::new();
    let hosted: Vec<_> = clients.iter().map(|client| turns.host.serve(client).unwrap()).collect();
    for (client, hosted) in clients.iter().zip(&hosted) {
        turns.answers_within_a_turn(client, hosted);
    }
}

#[test]
fn a_loop_that_is_busy_holds_nothing_up() {
    let server = server!();
    let client = Client::connect(format!("{}?lease=1s", server.url())).unwrap();
    let mut turns = EventLoop::new();
    let hosted = turns.host.serve(&client).unwrap();
    for _ in 0..20 {
        let (time, thread) = turns.run(&hosted, false, client.asynchronous().ping());
        time.unwrap();
        assert_ne!(thread, Some(thread::current().id()));
    }
    // Renewals go on, also while it is asked for the role all the time.
    let guard = client.lock("renewed").unwrap().acquire().unwrap();
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(2500) {
        hosted.expect();
    }
    guard.release().unwrap();
}

#[test]
fn the_loop_follows_a_connection_that_is_made_anew() {
    let server = server!();
    let proxy = Proxy::start(&server.address()).unwrap();
    let client = Client::connect(format!("redis://{}", proxy.address())).unwrap();
    let mut turns = EventLoop::new();
    let hosted = turns.host.serve(&client).unwrap();
    turns.answers_within_a_turn(&client, &hosted);
    for _ in 0..3 {
        proxy.cut();
        turns.answers_within_a_turn(&client, &hosted);
    }
    let lock = client.lock("after").unwrap();
    let (guard, _) = turns.run(&hosted, true, lock.asynchronous().acquire());
    drop(guard.unwrap());
}
