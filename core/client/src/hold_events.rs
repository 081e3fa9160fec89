//! The futures that tell a holder what befalls its hold.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use crate::LossReason;
use crate::listener::{Listener, Over, WatchKey};

/// Resolves when a hold is lost; from [`Guard::lost`](crate::Guard::lost).
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct Lost {
    listener: Listener,
    key: WatchKey,
    /// Set when the guard is released and others go on with the hold.
    over: Over,
}

impl Lost {
    pub(crate) fn new(listener: Listener, over: Over) -> Lost {
        Lost { listener, key: WatchKey::default(), over }
    }
}

impl Future for Lost {
    type Output = LossReason;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<LossReason> {
        let this = &mut *self;
        match this.listener.poll_lost(&mut this.key, cx.waker()) {
            Poll::Ready(_) if this.over.load(Ordering::Acquire) => Poll::Pending,
            polled => polled,
        }
    }
}

impl Drop for Lost {
    fn drop(&mut self) {
        self.listener.unwatch(&self.key);
    }
}

/// Resolves when another client waits for a hold's lock; from
/// [`Guard::wanted`](crate::Guard::wanted).
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct Wanted {
    listener: Listener,
    key: WatchKey,
    /// Set when the guard is released and others go on with the hold.
    over: Over,
}

impl Wanted {
    pub(crate) fn new(listener: Listener, over: Over) -> Wanted {
        Wanted { listener, key: WatchKey::default(), over }
    }
}

impl Future for Wanted {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        match this.listener.poll_wanted(&mut this.key, cx.waker()) {
            Poll::Ready(()) if this.over.load(Ordering::Acquire) => Poll::Pending,
            polled => polled,
        }
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.listener.unwatch(&self.key);
    }
}
