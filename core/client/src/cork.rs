//! Putting together what one thread's calls send.
//!
//! Each call sends at once what it asks the store. A host whose calls come in bursts, as those of
//! one turn of an event loop do, opens a section on its thread with [`begin`] and ends it with
//! [`end`]: what the calls between them ask of a store leaves together, in one write. A store in
//! memory, to which nothing has to be written, is asked at once all the same.
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
use std::sync::Arc;

use fencelock_engine::transport::Transport;

/// What this thread does not flush now.
struct Thread(RefCell<Flushes>);

#[derive(Default)]
struct Flushes {
    /// Left to the end of the section, while there is one.
    held: Option<Transports>,
    /// Left to the flush that is under way further out, while there is one: a store in memory
    /// delivers from within, and the stack must stay flat however long the chain.
    next: Option<Transports>,
}

type Transports = Vec<Arc<dyn Transport>>;

/// A thread that ends sends what it held back.
impl Drop for Thread {
    fn drop(&mut self) {
        for transport in self.0.take().held.into_iter().flatten() {
            transport.flush();
        }
    }
}

thread_local! {
    static THREAD: Thread = const { Thread(RefCell::new(Flushes { held: None, next: None })) };
}

/// Holds back, from now on, what this thread's calls send. Without effect while it does already.
///
/// The section must end soon: until then the calls of this thread wait, and so does a guard that it
/// drops. It ends with [`end`], with a call of [`blocking`](crate::blocking) that waits for the
/// store, or with the thread.
pub fn begin() {
    // A thread that is ending holds nothing back.
    let _ = THREAD.try_with(|thread| {
        thread.0.borrow_mut().held.get_or_insert_default();
    });
}

/// Sends what this thread held back, and holds back no more. Without effect outside a section.
pub fn end() {
    let _ = THREAD.try_with(|thread| {
        let held = thread.0.borrow_mut().held.take();
        for transport in held.into_iter().flatten() {
            thread.flush(&transport);
        }
    });
}

/// Flushes, now or when the section or the flush further out ends.
pub(crate) fn flush(transport: &Arc<dyn Transport>) {
    if THREAD.try_with(|thread| thread.hold_or_flush(transport)).is_err() {
        // The thread is ending.
        transport.flush();
    }
}

impl Thread {
    fn hold_or_flush(&self, transport: &Arc<dyn Transport>) {
        if let Some(held) = &mut self.0.borrow_mut().held
            && !transport.executes()
        {
            return add(held, transport);
        }
        self.flush(transport);
    }

    /// Flushes, and then what that leads to; or leaves it to who does.
    fn flush(&self, transport: &Arc<dyn Transport>) {
        {
            let mut flushes = self.0.borrow_mut();
            if let Some(next) = &mut flushes.next {
                return add(next, transport);
            }
            flushes.next = Some(Vec::new());
        }
        let _leave = Leave(self);
        transport.flush();
        while let Some(transport) = self.pop() {
            transport.flush();
        }
    }

    fn pop(&self) -> Option<Arc<dyn Transport>> {
        self.0.borrow_mut().next.as_mut()?.pop()
    }
}

fn add(transports: &mut Transports, transport: &Arc<dyn Transport>) {
    if !transports.iter().any(|other| Arc::ptr_eq(other, transport)) {
        transports.push(transport.clone());
    }
}

/// The outermost flush is over, also when a panic unwinds.
struct Leave<'a>(&'a Thread);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.0.borrow_mut().next = None;
    }
}

#[cfg(test)]
mod tests;
