//! Renewal, explicit leases, and losing a hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fencelock::{Broken, ErrorKind, LossReason};

use super::{LIMIT, Need, World, eventually, soon};

pub async fn p07_a_hold_is_renewed_until_released(world: &World) {
    let client = world.quick_client().await;
    let other = world.client().await.lock("kept").unwrap();
    let guard = client.lock("kept").unwrap().acquire().await.unwrap();
    // Until it would have ended without renewal, twice over.
    eventually("renewals", || async { (client.metrics().renewals >= 6).then_some(()) }).await;
    assert!(guard.is_valid());
    assert_eq!(other.try_acquire().await.unwrap_err().kind(), ErrorKind::Contended);
    guard.release().await.unwrap();
    other.try_acquire().await.unwrap().release().await.unwrap();
}

pub async fn p07_an_explicit_lease_ends_on_time(world: &World) {
    let client = world.client().await;
    let lease = Duration::from_millis(300);
    let begin = Instant::now();
    let guard = client.lock("timed").unwrap().lease(lease).acquire().await.unwrap();
    assert!(guard.remaining() < lease, "drift is taken off");
    assert_eq!(soon("the end", guard.lost()).await, LossReason::Ended);
    assert!(begin.elapsed() >= Duration::from_millis(250), "{:?}", begin.elapsed());
    assert_eq!(client.metrics().renewals, 0);
    assert_eq!(client.metrics().losses_by(LossReason::Ended), 1);
}

pub async fn p07_max_hold_is_a_ceiling(world: &World) {
    let client = world.client().await;
    let lock = client.lock("ceiling").unwrap();
    let guard = lock.clone().max_hold(Duration::from_millis(300)).acquire().await.unwrap();
    assert!(guard.remaining() <= Duration::from_millis(300));
    assert_eq!(soon("the end", guard.lost()).await, LossReason::Ended);
    let other = world.client().await.lock("ceiling").unwrap();
    other.acquire_timeout(LIMIT).await.unwrap().release().await.unwrap();
}

pub async fn p07_extend_lengthens_and_never_shortens(world: &World) {
    let client = world.client().await;
    if world.lacks(&client, Need::Leases) {
        return;
    }
    let lock = client.lock("longer").unwrap().lease(Duration::from_secs(5));
    let guard = lock.acquire().await.unwrap();
    guard.extend(Duration::from_secs(120)).await.unwrap();
    assert!(guard.remaining() > Duration::from_secs(80), "{:?}", guard.remaining());
    guard.extend(Duration::from_secs(1)).await.unwrap();
    assert!(guard.remaining() > Duration::from_secs(80), "{:?}", guard.remaining());
    let error = guard.extend(Duration::from_millis(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let info = client.inspect("longer").await.unwrap().unwrap();
    assert!(info.holds[0].expires_in > Duration::from_secs(80), "{info:?}");
    guard.release().await.unwrap();
}

pub async fn p07_many_holds_are_renewed_together(world: &World) {
    let client = world.builder().lease(Duration::from_secs(3)).connect().await.unwrap();
    let mut guards = Vec::new();
    for index in 0..150 {
        guards.push(client.lock(format!("many/{index}")).unwrap().acquire().await.unwrap());
    }
    eventually("renewals of all", || async { (client.metrics().renewals >= 450).then_some(()) })
        .await;
    assert!(guards.iter().all(|guard| guard.is_valid()));
    assert_eq!(client.metrics().losses(), 0);
}

pub async fn p08_a_lost_hold_says_so_everywhere(world: &World) {
    let client = world.client().await;
    let told = Arc::new(AtomicU32::new(0));
    let lock = client.lock("lost").unwrap().lease(Duration::from_millis(200));
    let guard = lock.acquire().await.unwrap();
    let count = told.clone();
    guard.on_lost(move |reason| {
        assert_eq!(reason, LossReason::Ended);
        count.fetch_add(1, Ordering::SeqCst);
    });
    let (first, second) = (guard.lost(), guard.lost());
    drop(guard.lost());
    assert_eq!(soon("the first", first).await, LossReason::Ended);
    assert_eq!(soon("the second", second).await, LossReason::Ended);
    assert!(!guard.is_valid());
    assert_eq!(guard.remaining(), Duration::ZERO);
    let error = guard.check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(error.message().contains("lost"), "{error}");
    // The second callback finds the loss there already.
    eventually("the callback", || async { (told.load(Ordering::SeqCst) == 1).then_some(()) }).await;
    let count = told.clone();
    guard.on_lost(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    assert_eq!(told.load(Ordering::SeqCst), 2);
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
}

pub async fn p08_broken_holds_are_told(world: &World) {
    let (client, operator) = (world.quick_client().await, world.client().await);
    let guard = client.lock("broken").unwrap().acquire().await.unwrap();
    let seen = operator.inspect("broken").await.unwrap().unwrap().token;
    let broken = |token| operator.break_lock("broken", token);
    let earlier = broken(seen - 1).await.unwrap();
    // Of several votes a stranger may see another than before: each has a number of its own.
    if client.capabilities().store != "redis quorum" {
        assert_eq!(earlier, Broken::ChangedHands(seen));
    }
    assert!(matches!(earlier, Broken::ChangedHands(_)), "{earlier:?}");
    assert_eq!(broken(seen).await.unwrap(), Broken::Ended(1));
    let reason = soon("the loss", guard.lost()).await;
    assert!(matches!(reason, LossReason::Broken | LossReason::Gone), "{reason:?}");
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(broken(seen).await.unwrap(), Broken::NotHeld);
    // The answer to a break was lost: repeated, it ends nobody who came later.
    let next = client.lock("broken").unwrap().acquire().await.unwrap();
    let later = broken(seen).await.unwrap();
    if client.capabilities().store != "redis quorum" {
        assert_eq!(later, Broken::ChangedHands(next.token().get()));
    }
    assert!(matches!(later, Broken::ChangedHands(token) if token > seen), "{later:?}");
    assert!(next.is_valid());
    next.release().await.unwrap();
}

pub async fn p08_extend_of_a_lost_hold_fails(world: &World) {
    let client = world.client().await;
    let lock = client.lock("late").unwrap().lease(Duration::from_millis(200));
    let guard = lock.acquire().await.unwrap();
    soon("the loss", guard.lost()).await;
    let error = guard.extend(Duration::from_secs(10)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(!guard.is_valid());
}
