//! An acquire and a release that have begun.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use fencelock_engine::{Outcome, Time};
use tracing::Span;

use crate::Result;
use crate::client::failed;
use crate::guard::{By, Guard, released};
use crate::lock::LockRef;
use crate::wait::Wait;

/// An acquire that has begun.
pub(crate) enum Started {
    Granted(Guard),
    Pending { wait: Wait, lock: Arc<LockRef>, by: By },
}

impl Started {
    pub(crate) fn guard(self) -> Acquiring {
        let span = match &self {
            Started::Granted(_) => Span::none(),
            Started::Pending { lock, .. } => tracing::debug_span!("acquire", lock = %lock.name),
        };
        Acquiring { started: Some(self), span }
    }

    /// Makes the guard of a wait that has ended.
    pub(crate) fn finish(
        wait: Wait,
        lock: Arc<LockRef>,
        by: By,
        outcome: Outcome,
        now: Time,
    ) -> Result<Guard> {
        match outcome {
            Outcome::Granted(grant) => Ok(Guard::new(lock, wait.into_cell(), by, grant, now)),
            other => Err(failed(other)),
        }
    }
}

/// Resolves with the guard. Of its own, since tens of thousands may wait at a time: an async block
/// would have the same things in it two or three times.
#[must_use]
pub(crate) struct Acquiring {
    /// Taken out when it has ended.
    started: Option<Started>,
    span: Span,
}

impl Future for Acquiring {
    type Output = Result<Guard>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Guard>> {
        let this = &mut *self;
        let _entered = this.span.enter();
        let ended = match &mut this.started {
            Some(Started::Pending { wait, .. }) => Some(ready!(Pin::new(wait).poll(cx))),
            _ => None,
        };
        Poll::Ready(match (this.started.take(), ended) {
            (Some(Started::Granted(guard)), _) => Ok(guard),
            (Some(Started::Pending { wait, lock, by }), Some((outcome, now))) => {
                match &outcome {
                    Outcome::Granted(grant) => {
                        tracing::debug!(token = grant.token.get(), "granted");
                    }
                    Outcome::Failed(error) => tracing::debug!(%error, "not granted"),
                    _ => {}
                }
                Started::finish(wait, lock, by, outcome, now)
            }
            _ => unreachable!("it is polled again after it has ended"),
        })
    }
}

/// Resolves when a release has ended; as small as [`Acquiring`].
pub(crate) struct Releasing(Option<Result<Option<Wait>>>);

impl Releasing {
    pub(crate) fn new(begun: Result<Option<Wait>>) -> Releasing {
        Releasing(Some(begun))
    }
}

impl Future for Releasing {
    type Output = Result<()>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if let Some(Ok(Some(wait))) = &mut self.0 {
            let (outcome, _) = ready!(Pin::new(wait).poll(cx));
            self.0 = None;
            return Poll::Ready(released(outcome));
        }
        match self.0.take() {
            Some(begun) => Poll::Ready(begun.map(drop)),
            None => unreachable!("it is polled again after it has ended"),
        }
    }
}
