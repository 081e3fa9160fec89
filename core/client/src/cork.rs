//! Putting together what one thread's calls send.
//!
//! Each call sends at once what it asks the store. A host whose calls come in bursts, as those of
//! one turn of an event loop do, opens a section on its thread with [`begin`] and ends it with
//! [`end`]: what the calls between them ask of a store leaves together, in one write.
//!
//! ```
//! use fencelock::{Client, cork};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
//! let client = Client::connect("memory:").await?;
//! cork::begin();
//! let (a, b) = (client.lock("a")?, client.lock("b")?);
//! let both = tokio::spawn(async move { tokio::try_join!(a.acquire(), b.acquire()) });
//! tokio::task::yield_now().await;
//! cork::end();
//! both.await.unwrap()?;
//! # Ok(()) }
//! ```

use std::cell::RefCell;
use std::mem;
use std::sync::Arc;

use fencelock_engine::transport::Transport;

/// What this thread does with a flush.
enum Flushes {
    /// Does it.
    AtOnce,
    /// Leaves it to the flush that is under way further out: a store in memory delivers from
    /// within, and the stack must stay flat however long the chain.
    Within(Vec<Arc<dyn Transport>>),
    /// Leaves it to the end of the section.
    Held(Vec<Arc<dyn Transport>>),
}

/// A thread that ends sends what it held back.
struct Thread(RefCell<Flushes>);

impl Drop for Thread {
    fn drop(&mut self) {
        if let Flushes::Held(held) = self.0.replace(Flushes::AtOnce) {
            for transport in held {
                transport.flush();
            }
        }
    }
}

thread_local! {
    static THREAD: Thread = const { Thread(RefCell::new(Flushes::AtOnce)) };
}

/// Holds back, from now on, what this thread's calls send. Without effect while it does already.
///
/// The section must end soon: until then the calls of this thread wait, and so does a guard that it
/// drops. It ends with [`end`], with a call of [`blocking`](crate::blocking) that waits for the
/// store, or with the thread.
pub fn begin() {
    // A thread that is ending holds nothing back.
    let _ = THREAD.try_with(|thread| {
        let mut flushes = thread.0.borrow_mut();
        if let Flushes::AtOnce = *flushes {
            *flushes = Flushes::Held(Vec::new());
        }
    });
}

/// Sends what this thread held back, and holds back no more. Without effect outside a section.
pub fn end() {
    let _ = THREAD.try_with(|thread| {
        {
            let mut flushes = thread.0.borrow_mut();
            let Flushes::Held(held) = &mut *flushes else { return };
            let held = mem::take(held);
            *flushes = Flushes::Within(held);
        }
        let _leave = Leave(thread);
        run(thread);
    });
}

/// Flushes, now or when the section or the flush further out ends.
pub(crate) fn flush(transport: &Arc<dyn Transport>) {
    let outermost = THREAD.try_with(|thread| {
        {
            let mut flushes = thread.0.borrow_mut();
            match &mut *flushes {
                Flushes::Within(next) | Flushes::Held(next) => {
                    if !next.iter().any(|other| Arc::ptr_eq(other, transport)) {
                        next.push(transport.clone());
                    }
                    return;
                }
                at_once => *at_once = Flushes::Within(Vec::new()),
            }
        }
        let _leave = Leave(thread);
        transport.flush();
        run(thread);
    });
    if outermost.is_err() {
        // The thread is ending.
        transport.flush();
    }
}

/// Flushes what has gathered, and what that leads to.
fn run(thread: &Thread) {
    loop {
        let next = match &mut *thread.0.borrow_mut() {
            Flushes::Within(next) => next.pop(),
            Flushes::AtOnce | Flushes::Held(_) => None,
        };
        match next {
            Some(transport) => transport.flush(),
            None => return,
        }
    }
}

/// The outermost flush is over, also when a panic unwinds.
struct Leave<'a>(&'a Thread);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.0.replace(Flushes::AtOnce);
    }
}

#[cfg(test)]
mod tests;
