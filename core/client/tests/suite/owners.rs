//! Explicit owners, tickets, and guards that travel.

use fencelock::{ErrorKind, OwnerId};

use super::{Need, World, soon};

fn owner(id: &str) -> OwnerId {
    OwnerId::new(id).unwrap()
}

pub async fn p06_an_explicit_owner_re_enters_from_another_client(world: &World) {
    let (here, there) = (world.client().await, world.client().await);
    if world.lacks(&here, Need::Owners) {
        return;
    }
    let stranger = world.client().await.lock("shared").unwrap();
    let here = here.lock("shared").unwrap().owner(owner("trace 1/ä"));
    let there = there.lock("shared").unwrap().owner(owner("trace 1/ä"));
    let first = here.acquire().await.unwrap();
    let second = there.try_acquire().await.unwrap();
    // Who else has it is the store's affair; in its own client the hold is the first.
    assert!(!second.is_reentry());
    let third = there.try_acquire().await.unwrap();
    assert!(third.is_reentry());
    assert_eq!((third.token(), there.hold_count()), (first.token(), 2));
    third.release().await.unwrap();
    assert_eq!(first.token(), second.token());
    assert_eq!((here.hold_count(), there.hold_count()), (1, 1));
    first.release().await.unwrap();
    assert_eq!(here.hold_count(), 0);
    assert!(second.is_valid());
    assert_eq!(stranger.try_acquire().await.unwrap_err().kind(), ErrorKind::Contended);
    second.release().await.unwrap();
    stranger.try_acquire().await.unwrap().release().await.unwrap();
}

pub async fn p06_another_owner_is_kept_out(world: &World) {
    let client = world.client().await;
    if world.lacks(&client, Need::Owners) {
        return;
    }
    let lock = client.lock("owned").unwrap();
    let guard = lock.clone().owner(owner("a")).acquire().await.unwrap();
    for other in [lock.clone().owner(owner("b")), lock.clone().owner(owner("a*")), lock] {
        assert_eq!(other.try_acquire().await.unwrap_err().kind(), ErrorKind::Contended);
    }
    guard.release().await.unwrap();
}

pub async fn p06_a_ticket_joins_the_hold(world: &World) {
    let (here, there) = (world.client().await, world.client().await);
    if world.lacks(&here, Need::Owners) {
        return;
    }
    let lock = here.lock("cart/42 {x}").unwrap().owner(owner("trace.8"));
    let guard = lock.acquire().await.unwrap();
    let ticket = guard.ticket().unwrap().to_string();
    let joined = there.attach(&ticket).await.unwrap();
    assert_eq!(joined.token(), guard.token());
    assert_eq!(joined.name(), "cart/42 {x}");
    guard.release().await.unwrap();
    // It goes on without the first, and may be handed on.
    assert!(joined.is_valid());
    assert_eq!(joined.ticket().unwrap().as_str(), ticket);
    joined.release().await.unwrap();
}

pub async fn p06_a_ticket_of_a_hold_that_is_over_is_refused(world: &World) {
    let (here, there) = (world.client().await, world.client().await);
    if world.lacks(&here, Need::Owners) {
        return;
    }
    let lock = here.lock("over").unwrap().owner(owner("o"));
    let guard = lock.acquire().await.unwrap();
    let ticket = guard.ticket().unwrap();
    guard.release().await.unwrap();
    assert_eq!(there.attach(&ticket).await.unwrap_err().kind(), ErrorKind::NotHeld);
    // The same owner's later hold has another token.
    let again = lock.acquire().await.unwrap();
    assert_eq!(there.attach(&ticket).await.unwrap_err().kind(), ErrorKind::NotHeld);
    again.release().await.unwrap();
    for text in
        ["", "fl1", "fl2.1.bw.bw", "fl1.x.bw.bw", "fl1.1.bw.bw.bw", "fl1.1..bw", "fl1.01.bw.bw"]
    {
        let error = there.attach(text).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{text}");
    }
}

pub async fn p06_only_an_explicit_owner_has_a_ticket(world: &World) {
    let guard = world.client().await.lock("plain").unwrap().acquire().await.unwrap();
    let error = guard.ticket().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("owner"), "{error}");
}

pub async fn p06_a_guard_may_be_released_by_another_task(world: &World) {
    let client = world.client().await;
    let lock = client.lock("sent").unwrap();
    let guard = lock.acquire().await.unwrap();
    let waiter = tokio::spawn({
        let lock = lock.clone();
        async move { lock.acquire().await.unwrap().token() }
    });
    let token = guard.token();
    tokio::spawn(async move { guard.release().await.unwrap() }).await.unwrap();
    assert!(soon("the waiter", waiter).await.unwrap() > token);
    assert_eq!(lock.hold_count(), 0);
}
