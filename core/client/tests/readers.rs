//! What readers of one process cost the store, and each other.
#![cfg(unix)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fencelock::Client;
use fencelock_testkit::{RedisServer, skip_servers};
use tokio::sync::Barrier;

const READERS: usize = 16;
const ROUNDS: usize = 10;

/// How many scripts a server has run.
fn scripts_run(server: &RedisServer) -> usize {
    let mut connection = server.connection().unwrap();
    let mut ask = redis::cmd("INFO");
    let text: String = ask.arg("commandstats").query(&mut connection).unwrap();
    let lines = text.lines().filter(|line| line.starts_with("cmdstat_eval"));
    lines
        .filter_map(|line| line.split("calls=").nth(1)?.split(',').next()?.parse::<usize>().ok())
        .sum()
}

#[tokio::test]
async fn sixteen_readers_of_a_process_ask_the_store_far_less_often_than_they_read() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let client = Client::connect(&server.url()).await.unwrap();
    let lock = client.rw_lock("prices").unwrap();
    lock.write().await.unwrap().release().await.unwrap();
    let before = scripts_run(&server);
    let together = Arc::new(Barrier::new(READERS));
    for _ in 0..ROUNDS {
        let tasks: Vec<_> = (0..READERS)
            .map(|_| {
                let (lock, together) = (lock.clone(), together.clone());
                tokio::spawn(async move {
                    let guard = lock.read().await.unwrap();
                    // Nobody leaves before all are in.
                    together.wait().await;
                    guard.release().await.unwrap();
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    }
    let (asked, reads) = (scripts_run(&server) - before, READERS * ROUNDS);
    println!("{reads} reads: {asked} scripts");
    assert!(asked >= 2 && asked < reads / 2, "{reads} reads: {asked} scripts");
}

#[tokio::test]
async fn a_task_that_reads_again_and_again_lets_others_run() {
    let client = Client::connect("memory:").await.unwrap();
    let lock = client.rw_lock("prices").unwrap();
    // As long as somebody reads, others join without a request.
    let reader = lock.read().await.unwrap();
    let ran = Arc::new(AtomicBool::new(false));
    let (again, seen) = (lock.clone(), ran.clone());
    let greedy = tokio::spawn(async move {
        for _ in 0..1_000 {
            drop(again.read().await.unwrap());
        }
        seen.load(Ordering::SeqCst)
    });
    tokio::spawn(async move { ran.store(true, Ordering::SeqCst) });
    assert!(greedy.await.unwrap(), "a thousand reads, and nobody else had a turn");
    reader.release().await.unwrap();
}
