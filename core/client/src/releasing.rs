//! A release that has begun.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::Result;
use crate::outcome::released;
use crate::wait::Wait;

/// Resolves when a release has ended.
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
