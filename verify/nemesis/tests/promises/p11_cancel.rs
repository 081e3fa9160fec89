//! Promise 11: a wait that ends otherwise than by a grant leaves nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fencelock::Client;
use fencelock_nemesis::{Actor, Dice, check};

use crate::world::{LOCK, QUICK, World, nothing_left, on_each_store, shows};

on_each_store! {
    waits_that_end_while_they_are_granted_leave_nothing,
    waits_of_other_processes_that_end_while_they_are_granted_leave_nothing,
}

mod memory {
    #[test]
    fn waits_that_end_while_they_are_granted_leave_nothing() {
        super::waits_that_end_while_they_are_granted_leave_nothing(
            &mut crate::world::World::memory(),
        );
    }
}

const CLIENTS: u64 = 4;
const TASKS: u64 = 3;
const ROUNDS: u64 = 300;

/// Thousands of waits end by drop, by timeout and by a grant at nearly the same instant.
fn waits_that_end_while_they_are_granted_leave_nothing(world: &mut World) {
    let url = world.url("lease=20s&claim=900ms&request_timeout=5s");
    let (granted, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut tasks = Vec::new();
        for client in 0..CLIENTS {
            let client_of = Client::connect(&url).await.unwrap();
            for task in 0..TASKS {
                let (client, granted, ended) = (client_of.clone(), granted.clone(), ended.clone());
                let dice = Dice::new(client_number(client.id(), task));
                tasks.push(tokio::spawn(race(client, dice, granted, ended)));
            }
            let _ = client;
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
    let (granted, ended) = (granted.load(Ordering::SeqCst), ended.load(Ordering::SeqCst));
    assert_eq!(granted + ended, (CLIENTS * TASKS * ROUNDS) as usize);
    // Both ends were met often enough to have raced.
    assert!(granted > 100 && ended > 100, "{granted} granted, {ended} ended");
    nothing_left(&world.client(QUICK), LOCK);
    let next = world.client(QUICK).lock(LOCK).unwrap().acquire_timeout(Duration::from_secs(30));
    next.unwrap().release().unwrap();
}

fn client_number(id: &str, task: u64) -> u64 {
    u64::from_str_radix(id, 16).unwrap() ^ task
}

async fn race(client: Client, mut dice: Dice, granted: Arc<AtomicUsize>, ended: Arc<AtomicUsize>) {
    let lock = client.lock(LOCK).unwrap();
    for _ in 0..ROUNDS {
        let patience = Duration::from_micros(dice.below(6_000));
        let outcome = if dice.chance(50) {
            tokio::time::timeout(patience, lock.acquire()).await.ok()
        } else {
            match lock.acquire_timeout(patience).await {
                Err(error) if error.is_retryable() => None,
                other => Some(other),
            }
        };
        match outcome {
            None => ended.fetch_add(1, Ordering::SeqCst),
            Some(guard) => {
                let guard = guard.unwrap();
                assert!(guard.is_valid());
                if dice.chance(30) {
                    tokio::time::sleep(Duration::from_micros(dice.below(1_000))).await;
                }
                match dice.chance(50) {
                    true => guard.release().await.unwrap(),
                    false => drop(guard),
                }
                granted.fetch_add(1, Ordering::SeqCst)
            }
        };
    }
}

fn waits_of_other_processes_that_end_while_they_are_granted_leave_nothing(world: &mut World) {
    let url = world.url("lease=20s&claim=900ms&request_timeout=5s");
    let watcher = world.client(QUICK);
    let mut holder = world.actor(&url);
    let mut waiters: Vec<Actor> = (0..3).map(|_| world.actor(&url)).collect();
    for round in 0..20 {
        let tag = format!("t{round}");
        holder.tell(&format!("acquire {tag} c {LOCK}"));
        holder.wait_for("granted", &tag);
        for (index, actor) in waiters.iter_mut().enumerate() {
            let wait = if index == 1 { "wait=30ms" } else { "wait=forever" };
            actor.tell(&format!("acquire {tag} c {LOCK} {wait}"));
        }
        if round % 2 == 0 {
            // One of the three may have given up by then.
            shows(&watcher, "waiters", |info| (info.waiters.len() >= 2).then_some(()));
        }
        holder.tell(&format!("release {tag}"));
        for actor in &mut waiters {
            actor.tell(&format!("cancel {tag}"));
            actor.tell(&format!("release {tag}"));
        }
        for actor in &waiters {
            fencelock_testkit::eventually("the end of a wait", || {
                let ends = ["cancelled", "failed", "released", "unreleased"];
                let ended = ends.iter().any(|end| actor.said(end, &tag).is_some());
                // A grant that came just after both commands.
                (ended || actor.said("granted", &tag).is_some()).then_some(())
            });
        }
        for actor in &mut waiters {
            if actor.said("granted", &tag).is_some() && actor.said("release-asked", &tag).is_none()
            {
                actor.ask(&format!("release {tag}"), "released", &tag);
            }
        }
        nothing_left(&watcher, LOCK);
        holder.wait_for("released", &tag);
    }
    check::all(&world.history.since(0)).unwrap();
}
