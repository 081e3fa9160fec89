//! Tmp.
fn main() {
    let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(|| {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}?request_timeout=500ms", dir.path().join("locks.db").display());
    let mut failures = 0;
    for round in 0..40 {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let mut tasks = vec![];
            for _ in 0..4 {
            let client = fencelock::Client::connect(&url).await.unwrap();
            for t in 0..3 {
                let client = client.clone();
                tasks.push(tokio::spawn(async move {
                    let lock = client.lock("x").unwrap();
                    for i in 0..40 {
                        if let Ok(Ok(guard)) = tokio::time::timeout(std::time::Duration::from_micros(500 * ((i * 7 + t) % 9)), lock.acquire()).await {
                            drop(guard);
                        }
                    }
                }));
            }
            }
            for task in tasks { task.await.unwrap(); }
        });
        let started = std::time::Instant::now();
        match fencelock::blocking::Client::connect(&url) {
            Ok(_) => {}
            Err(error) => { failures += 1; println!("round {round} after {:?}: {error}", started.elapsed()); }
        }
        drop(runtime);
    }
    println!("{failures} failures");
    })).collect();
    for t in threads { t.join().unwrap(); }
}
