//! A second connection, made while the first is silent.
//!
//! A server that stands still, or has too much to do, looks like one that is gone. To give a
//! connection up for that would be wrong twice: what was asked on it is asked again, and a server
//! that comes back finds all its clients connecting anew. So the first one stays until another is
//! ready. A server reads what came first before it greets who comes later: when the second is ready
//! and the first is silent still, the first is dead.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use fencelock_engine::Error;
use fencelock_engine::redis::session::NoSession;

use crate::attempt::{Attempts, Connected};
use crate::backoff::Backoff;

/// The first pause: clients that lost the same server do not come together.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

type Making<'a> = Pin<Box<dyn Future<Output = Result<Connected, Error>> + Send + 'a>>;

/// Makes the second connection; dropped when the first is heard again.
pub(crate) struct Rival<'a> {
    make: Box<dyn Fn() -> Making<'a> + Send + 'a>,
    making: Option<Making<'a>>,
}

impl<'a> Rival<'a> {
    /// `attempts` and the longest pause between two of them.
    pub(crate) fn new(
        attempts: impl Fn() -> Attempts<'a> + Send + 'a,
        longest: Duration,
    ) -> Rival<'a> {
        let make = move || -> Making<'a> {
            let backoff = Backoff::new(FIRST_PAUSE, longest);
            Box::pin(connect(attempts(), backoff))
        };
        Rival { make: Box::new(make), making: None }
    }

    /// Goes on while the first connection is `doubted`. Ready with the second one, or with what only
    /// an operator can mend.
    pub(crate) fn poll(
        &mut self,
        doubted: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Connected, Error>> {
        if !doubted {
            if self.making.take().is_some() {
                tracing::info!("the server answers again");
            }
            return Poll::Pending;
        }
        let making = self.making.get_or_insert_with(|| {
            tracing::warn!("the server is silent: looking whether it answers another connection");
            (self.make)()
        });
        making.as_mut().poll(cx)
    }
}

async fn connect(mut attempts: Attempts<'_>, mut backoff: Backoff) -> Result<Connected, Error> {
    loop {
        tokio::time::sleep(backoff.next()).await;
        match attempts.next().await {
            Ok(connected) => return Ok(connected),
            Err(NoSession::Later(reason)) => {
                tracing::debug!(%reason, "another connection is not answered either");
            }
            Err(NoSession::Misconfigured(error)) => return Err(error),
        }
    }
}
