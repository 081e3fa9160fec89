//! Several processes on one store, and what happens when one of them dies or sleeps.
#![cfg(unix)]

mod actor;

use std::time::Duration;

use actor::Actor;
use fencelock::blocking::Client;
use fencelock::{Abandoned, ErrorKind, OwnerId};
use fencelock_testkit::{RedisServer, ZooKeeper, skip_servers};

const LIMIT: Duration = Duration::from_secs(30);

/// Runs a case on each store that processes share.
fn on_each_store(case: impl Fn(&str)) {
    let folder = tempfile::tempdir().unwrap();
    case(&format!("sqlite:{}?claim=900ms", folder.path().join("locks.db").display()));
    if !skip_servers() {
        let server = RedisServer::start().unwrap();
        case(&format!("{}?claim=900ms", server.url()));
    }
}

fn kill(actor: &mut Actor) {
    actor.child.kill().unwrap();
    actor.child.wait().unwrap();
}

/// What a child does. An ordinary test run has no role and does nothing here.
#[test]
fn role() {
    let Some((role, url)) = actor::cast() else { return };
    let client = Client::connect(&url).unwrap();
    let lock = client.lock("shared").unwrap();
    match role.split_once('=').unwrap_or((&role, "")) {
        ("hold", "") => {
            let guard = lock.acquire().unwrap();
            println!("<held> {}", guard.token());
            while guard.is_valid() {
                std::thread::sleep(Duration::from_millis(5));
            }
            println!("<lost> {}", guard.release().unwrap_err().kind());
        }
        ("permits", _) => {
            let permits = client.semaphore("seats", 3).unwrap().acquire_many(2).unwrap();
            println!("<held> {}", permits.token());
            std::thread::sleep(LIMIT);
        }
        ("attach", ticket) => {
            let guard = client.attach(ticket).unwrap();
            println!("<held> {}", guard.token());
            std::thread::sleep(LIMIT);
        }
        ("sigterm", _) => {
            drop((lock, client));
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let client = fencelock::Client::connect(&url).await.unwrap();
                let ended = client.close_on_sigterm();
                let guard = client.lock("shared").unwrap().acquire().await.unwrap();
                println!("<held> {}", guard.token());
                ended.await.unwrap();
                println!("<closed> {}", guard.release().await.unwrap_err().kind());
            });
        }
        ("wait", _) => {
            println!("<waiting>");
            let guard = lock.acquire().unwrap();
            println!("<held> {}", guard.token());
            guard.release().unwrap();
            println!("<released>");
        }
        (role, _) => panic!("unknown role {role}"),
    }
}

#[test]
fn p12_the_successor_of_a_killed_process_is_told() {
    on_each_store(|url| {
        let mut holder = Actor::start("hold", &format!("{url}&lease=1s"));
        let token: u64 = holder.says("held").parse().unwrap();
        let client = Client::connect(url).unwrap();
        let lock = client.lock("shared").unwrap();
        assert_eq!(lock.try_acquire().unwrap_err().kind(), ErrorKind::Contended);
        kill(&mut holder);
        let guard = lock.acquire_timeout(LIMIT).unwrap();
        assert_eq!(guard.previous_abandoned(), Abandoned::Yes);
        assert!(guard.token().get() > token);
    });
}

fn permits_come_back(url: &str) {
    let client = Client::connect(url).unwrap();
    let seats = client.semaphore("seats", 3).unwrap();
    let mut holder = Actor::start("permits", url);
    holder.says("held");
    assert_eq!(seats.try_acquire_many(2).unwrap_err().kind(), ErrorKind::Contended);
    kill(&mut holder);
    let all = seats.acquire_many_timeout(3, LIMIT).unwrap();
    assert_eq!(all.previous_abandoned(), Abandoned::No);
    all.release().unwrap();
}

#[test]
fn a_killed_process_gives_its_permits_back() {
    on_each_store(|url| permits_come_back(&format!("{url}&lease=1s")));
}

mod zookeeper {
    #[test]
    fn a_killed_process_gives_its_permits_back() {
        if !super::skip_servers() {
            let servers = super::ZooKeeper::start().unwrap();
            super::permits_come_back(&format!("{}?lease=4s", servers.url()));
        }
    }
}

#[test]
fn p01_p08_a_stopped_process_finds_its_hold_lost() {
    on_each_store(|url| {
        let mut holder = Actor::start("hold", &format!("{url}&lease=1s"));
        let token: u64 = holder.says("held").parse().unwrap();
        holder.signal(libc::SIGSTOP);
        let client = Client::connect(url).unwrap();
        let guard = client.lock("shared").unwrap().acquire_timeout(LIMIT).unwrap();
        assert!(guard.token().get() > token);
        holder.signal(libc::SIGCONT);
        assert_eq!(holder.says("lost"), "lost");
        assert!(guard.is_valid());
        guard.release().unwrap();
    });
}

#[test]
fn p06_a_process_that_dies_takes_only_its_own_holds_of_an_owner() {
    on_each_store(|url| {
        let client = Client::connect(url).unwrap();
        let lock = client.lock("shared").unwrap().owner(OwnerId::new("trace").unwrap());
        let guard = lock.acquire().unwrap();
        let ticket = guard.ticket().unwrap();
        let mut partner = Actor::start(&format!("attach={ticket}"), &format!("{url}&lease=1s"));
        assert_eq!(partner.says("held"), guard.token().to_string());
        kill(&mut partner);
        let other = Client::connect(url).unwrap();
        // The dead one's hold ends by its lease; ours goes on.
        fencelock_testkit::eventually("the end of the dead one's hold", || {
            let holds = other.inspect("shared").unwrap().unwrap().holds;
            (holds.len() == 1 && holds[0].client == client.id()).then_some(())
        });
        assert!(guard.is_valid());
        assert!(other.lock("shared").unwrap().try_acquire().is_err());
        guard.release().unwrap();
        other.lock("shared").unwrap().acquire_timeout(LIMIT).unwrap().release().unwrap();
    });
}

#[test]
fn p11_sigterm_frees_what_is_held() {
    on_each_store(|url| {
        let mut holder = Actor::start("sigterm", url);
        holder.says("held");
        let client = Client::connect(url).unwrap();
        assert!(client.lock("shared").unwrap().try_acquire().is_err());
        holder.signal(libc::SIGTERM);
        assert_eq!(holder.says("closed"), "lost");
        assert!(holder.child.wait().unwrap().success());
        // At once, long before the lease would have ended.
        client.lock("shared").unwrap().try_acquire().unwrap().release().unwrap();
    });
}

#[test]
fn p09_waiters_that_were_killed_are_passed_over() {
    on_each_store(|url| {
        let client = Client::connect(url).unwrap();
        let guard = client.lock("shared").unwrap().acquire().unwrap();
        let mut actors = Vec::new();
        for count in 1..=9 {
            let mut actor = Actor::start("wait", url);
            actor.says("waiting");
            fencelock_testkit::eventually("the waiter", || {
                let waiters = client.inspect("shared").unwrap().unwrap().waiters;
                (waiters.len() == count).then_some(())
            });
            actors.push(actor);
        }
        for actor in actors.iter_mut().step_by(3) {
            kill(actor);
        }
        guard.release().unwrap();
        let mut last = 0;
        for (index, actor) in actors.iter_mut().enumerate() {
            if index % 3 != 0 {
                let token: u64 = actor.says("held").parse().unwrap();
                assert!(token > last, "in their order");
                last = token;
                actor.says("released");
            }
        }
    });
}
