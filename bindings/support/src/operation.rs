//! An asynchronous call of a host that has no runtime of ours.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

use crate::{Error, ErrorKind, Result};

/// A call under way. Dropping it changes nothing: the call goes on.
///
/// The client's futures need no runtime: they only wait to be woken. So they are polled by whoever
/// starts them, and then by whichever thread learns of their end.
#[derive(Clone)]
pub struct Operation(Arc<dyn Cancel>);

impl Operation {
    /// Starts a call. `done` is called exactly once: by this thread, before this returns, when the
    /// call ends at once; otherwise by the thread that learns of it, which also serves the
    /// connection. So it must be short and must neither block nor call anything that blocks: let it
    /// hand the result over to the host's loop or to a [`Dispatcher`](crate::Dispatcher).
    pub fn start<T: Send + 'static>(
        future: impl Future<Output = Result<T>> + Send + 'static,
        done: impl FnOnce(Result<T>) + Send + 'static,
    ) -> Operation {
        let body = Body { future: Box::pin(future), done: Box::new(done) };
        let task = Arc::new(Task { stage: Mutex::new(Stage::Idle(body)) });
        Task::run(&task);
        Operation(task)
    }

    /// Cancels the call, from any thread. `done` gets the word: `Cancelled`, and then nothing is
    /// held and nobody queued, or how the call ended before.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Operation")
    }
}

trait Cancel: Send + Sync {
    fn cancel(&self);
}

struct Body<T> {
    future: Pin<Box<dyn Future<Output = Result<T>> + Send>>,
    done: Box<dyn FnOnce(Result<T>) + Send>,
}

enum Stage<T> {
    Idle(Body<T>),
    /// A thread polls; it looks at these before it lets go.
    Polled {
        again: bool,
        cancelled: bool,
    },
    Done,
}

struct Task<T> {
    stage: Mutex<Stage<T>>,
}

impl<T: Send + 'static> Task<T> {
    fn run(task: &Arc<Task<T>>) {
        let mut body = {
            let mut stage = task.stage.lock();
            match &mut *stage {
                Stage::Polled { again, .. } => {
                    *again = true;
                    return;
                }
                Stage::Done => return,
                Stage::Idle(_) => {}
            }
            let polled = Stage::Polled { again: false, cancelled: false };
            let Stage::Idle(body) = std::mem::replace(&mut *stage, polled) else { return };
            body
        };
        let waker = Waker::from(task.clone());
        loop {
            // Not under the mutex: polling may wake this very task.
            let mut cx = Context::from_waker(&waker);
            // Nor may a panic unwind into the thread that serves the connection.
            let polled = catch_unwind(AssertUnwindSafe(|| body.future.as_mut().poll(&mut cx)))
                .unwrap_or_else(|_| Poll::Ready(Err(panicked())));
            let mut stage = task.stage.lock();
            let result = match (polled, &mut *stage) {
                (Poll::Ready(result), _) => result,
                (Poll::Pending, Stage::Polled { cancelled: true, .. }) => Err(cancelled()),
                (Poll::Pending, Stage::Polled { again, .. }) if *again => {
                    *again = false;
                    continue;
                }
                (Poll::Pending, stage) => {
                    *stage = Stage::Idle(body);
                    return;
                }
            };
            *stage = Stage::Done;
            drop(stage);
            body.end(result);
            return;
        }
    }
}

impl<T: Send + 'static> Wake for Task<T> {
    fn wake(self: Arc<Self>) {
        Task::run(&self);
    }
    fn wake_by_ref(self: &Arc<Self>) {
        Task::run(self);
    }
}

impl<T: Send + 'static> Cancel for Task<T> {
    fn cancel(&self) {
        let body = {
            let mut stage = self.stage.lock();
            match &mut *stage {
                Stage::Polled { cancelled, .. } => {
                    *cancelled = true;
                    return;
                }
                Stage::Done => return,
                Stage::Idle(_) => {}
            }
            let Stage::Idle(body) = std::mem::replace(&mut *stage, Stage::Done) else { return };
            body
        };
        body.end(Err(cancelled()));
    }
}

impl<T> Body<T> {
    /// A panic in `done` must not unwind into the thread that serves the connection.
    fn end(self, result: Result<T>) {
        let Body { future, done } = self;
        // Before the word goes out: a wait that is dropped leaves the queue.
        if catch_unwind(AssertUnwindSafe(|| drop(future))).is_err() {
            tracing::error!("the end of a call panicked");
        }
        if catch_unwind(AssertUnwindSafe(|| done(result))).is_err() {
            tracing::error!("the completion of a call panicked");
        }
    }
}

fn panicked() -> Error {
    let text = "the call panicked, which is a fault of fencelock: what came of it is not known";
    Error::new(ErrorKind::Unavailable, text)
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the call was cancelled")
}
