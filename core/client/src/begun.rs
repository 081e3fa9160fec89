//! An acquire that has begun.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use fencelock_engine::{Outcome, Time};
use tokio::task::coop::poll_proceed;
use tracing::Span;

use crate::Result;
use crate::guard::Guard;
use crate::lock_ref::LockRef;
use crate::outcome::failed;
use crate::owner::By;
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
            Started::Pending { lock, .. } => {
                tracing::debug_span!("acquire", lock = ?lock.name.as_str())
            }
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
            Outcome::Granted(grant) => Ok(Guard::new(lock, wait.into_listener(), by, grant, now)),
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
            // A task that joins others' holds without a request, again and again, lets others run.
            Some(Started::Granted(guard)) if !guard.is_reentry() => {
                ready!(poll_proceed(cx)).made_progress();
                None
            }
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
