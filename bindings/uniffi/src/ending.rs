//! How a call ended, for those who await it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use fencelock_support::{Dispatcher, Error, ErrorKind, Operation, Result};
use parking_lot::Mutex;

use crate::wake::is_by_pipe;

/// The end of a call: filled once, by whichever thread learns of it; awaited by any number; fetched
/// once.
pub(crate) struct Ending<T> {
    stage: Mutex<Stage<T>>,
    /// Wakes who awaits, unless that is by a pipe: their code may do anything, and the thread that learns
    /// of the end also serves the connection.
    dispatcher: &'static Dispatcher,
}

enum Stage<T> {
    Open(Vec<Waker>),
    Ended(Result<T>),
    Fetched,
}

impl<T: Send + 'static> Ending<T> {
    /// Nothing has ended.
    ///
    /// # Errors
    /// `Unavailable` when the operating system gives no thread.
    pub(crate) fn new() -> Result<Arc<Ending<T>>> {
        let dispatcher = Dispatcher::current()?;
        Ok(Arc::new(Ending { stage: Mutex::new(Stage::Open(Vec::new())), dispatcher }))
    }

    /// It has ended. What comes after the first end is dropped: a hold is then released.
    pub(crate) fn end(&self, result: Result<T>) {
        let mut stage = self.stage.lock();
        if !matches!(*stage, Stage::Open(_)) {
            // Not under the mutex: to drop a hold is to release it.
            drop(stage);
            return;
        }
        let Stage::Open(wakers) = std::mem::replace(&mut *stage, Stage::Ended(result)) else {
            return;
        };
        drop(stage);
        if is_by_pipe() {
            wakers.into_iter().for_each(Waker::wake);
        } else if !wakers.is_empty() {
            self.dispatcher.post(move || wakers.into_iter().for_each(Waker::wake));
        }
    }

    /// Ends it with `Cancelled`, even if it had ended well and nobody has fetched what it gave.
    pub(crate) fn revoke(&self) {
        self.end(Err(cancelled()));
        let mut stage = self.stage.lock();
        let mut unwanted = None;
        if matches!(*stage, Stage::Ended(Ok(_))) {
            unwanted = Some(std::mem::replace(&mut *stage, Stage::Ended(Err(cancelled()))));
        }
        drop(stage);
        drop(unwanted);
    }

    /// Waits for the end, and tells how it went.
    pub(crate) async fn ended(&self) -> Result<()> {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Result<()>> {
        match &mut *self.stage.lock() {
            Stage::Open(wakers) => {
                if !wakers.iter().any(|waker| waker.will_wake(context.waker())) {
                    wakers.push(context.waker().clone());
                }
                Poll::Pending
            }
            Stage::Ended(Err(error)) => Poll::Ready(Err(error.clone())),
            Stage::Ended(Ok(_)) | Stage::Fetched => Poll::Ready(Ok(())),
        }
    }

    /// What the call gave; `None` when it has not ended, or was fetched before.
    pub(crate) fn fetch(&self) -> Option<Result<T>> {
        let mut stage = self.stage.lock();
        match &*stage {
            Stage::Open(_) | Stage::Fetched => None,
            Stage::Ended(Err(error)) => Some(Err(error.clone())),
            Stage::Ended(Ok(_)) => match std::mem::replace(&mut *stage, Stage::Fetched) {
                Stage::Ended(result) => Some(result),
                _ => None,
            },
        }
    }

    /// Whether it is still under way.
    pub(crate) fn is_open(&self) -> bool {
        matches!(*self.stage.lock(), Stage::Open(_))
    }
}

/// Runs a call whose result needs no freeing. When the future is dropped, the call is cancelled.
pub(crate) async fn call<T: Send + 'static>(
    begin: impl FnOnce(Box<dyn FnOnce(Result<T>) + Send>) -> Result<Option<Operation>>,
) -> Result<T> {
    let ending = Ending::new()?;
    let told = ending.clone();
    let _cancelled = CancelOnDrop(begin(Box::new(move |result| told.end(result)))?);
    ending.ended().await?;
    // Only this future knows of it.
    ending.fetch().unwrap_or_else(|| Err(cancelled()))
}

struct CancelOnDrop(Option<Operation>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(operation) = &self.0 {
            operation.cancel();
        }
    }
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the call was cancelled")
}
