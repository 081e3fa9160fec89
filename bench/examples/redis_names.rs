//! What many names leave on a server of its own that are locked and released once: `redis_names [NAMES]
//! [RETENTION]`, the retention in seconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fencelock::Client;
use fencelock_testkit::RedisServer;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// How many are locked at the same time.
const TOGETHER: usize = 64;

struct Server {
    wire: redis::Connection,
    /// What it used before there was any name.
    empty: u64,
}

impl Server {
    /// How many keys there are, and the bytes that they take with the server's own tables.
    fn keys(&mut self) -> Result<(u64, u64), Failed> {
        let keys = redis::cmd("DBSIZE").query(&mut self.wire)?;
        Ok((keys, self.used()?.saturating_sub(self.empty)))
    }

    fn used(&mut self) -> Result<u64, Failed> {
        let info: String = redis::cmd("INFO").arg("memory").query(&mut self.wire)?;
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
        Ok(line.ok_or("the server does not say what it uses")?.trim().parse()?)
    }
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let mut args = std::env::args().skip(1);
    let names: u64 = args.next().map_or(Ok(1_000_000), |names| names.parse())?;
    let retention: u64 = args.next().map_or(Ok(60), |seconds| seconds.parse())?;
    let server = RedisServer::start()?;
    let url = server.url();
    let client = Client::connect(format!("{url}?retention={retention}s")).await?;
    client.ping().await?;
    let mut wire = Server { wire: redis::Client::open(url.as_str())?.get_connection()?, empty: 0 };
    wire.empty = wire.used()?;
    let start = Instant::now();
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for _ in 0..TOGETHER {
        let (client, next) = (client.clone(), next.clone());
        tasks.push(tokio::spawn(async move {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= names {
                    return Ok::<(), fencelock::Error>(());
                }
                let lock = client.lock(format!("order-{at:014}"))?;
                lock.try_acquire().await?.release().await?;
            }
        }));
    }
    let (mut most, mut told) = ((0, 0), start);
    while !tasks.iter().all(tokio::task::JoinHandle::is_finished) {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let (keys, bytes) = wire.keys()?;
        most = most.max((keys, bytes));
        if told.elapsed() > Duration::from_secs(10) {
            told = Instant::now();
            println!("{} names: {keys} keys, {} kB", next.load(Ordering::Relaxed), bytes / 1_000);
        }
    }
    for task in tasks {
        task.await??;
    }
    let (keys, bytes) = most;
    let each = bytes / keys.max(1);
    println!(
        "{names} names in {:.0?}; at most {keys} keys, {} kB, {each} bytes each",
        start.elapsed(),
        bytes / 1_000
    );
    let end = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let (keys, bytes) = wire.keys()?;
        println!("{:.0?} later: {keys} keys, {} kB", end.elapsed(), bytes / 1_000);
        if keys == 0 {
            client.close().await;
            return Ok(());
        }
    }
}
