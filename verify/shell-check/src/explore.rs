//! Running a scene in every order.

/// Allows each bounded scene so many preemptions more.
const MORE: &str = "LOOM_MORE";

/// Runs `scene` in every order of its threads in which no more than `preemptions` of them are
/// interrupted where they would not wait; `None` for every order there is. The variable
/// `LOOM_MORE` raises the bounds. A thread that waits for ever fails the scene.
pub fn explore(preemptions: Option<usize>, scene: impl Fn() + Send + Sync + 'static) {
    let more = std::env::var(MORE).ok().and_then(|more| more.parse().ok()).unwrap_or(0);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions.map(|bound| bound + more);
    builder.max_branches = 50_000;
    let orders = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = orders.clone();
    builder.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        scene();
    });
    println!("{} orders", orders.load(std::sync::atomic::Ordering::Relaxed));
}
