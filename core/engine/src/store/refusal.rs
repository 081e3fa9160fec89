//! Why a store does not carry out a request.

use crate::reply::{Refusal, RefusalKind};
use crate::token::MAX_STORE_TIME;

/// The store's clock leaves no room for tokens below 2^53.
pub(crate) fn clock_ahead() -> Refusal {
    Refusal {
        kind: RefusalKind::Misconfigured,
        message: "the store's clock reads a year after 2220, which leaves no room for fencing \
                  tokens; set the clock of the store's host right"
            .to_owned(),
    }
}

/// Only exclusive locks are there.
pub(crate) fn mode_unsupported() -> Refusal {
    Refusal {
        kind: RefusalKind::Unsupported,
        message: "with recipe=simple there are no shared locks or permits: leave the recipe out, or use the exclusive mode".to_owned(),
    }
}

/// Holders are told of waiters without being asked.
pub fn revoke_unsupported() -> Refusal {
    Refusal {
        kind: RefusalKind::Unsupported,
        message: "this store tells a holder by itself when another client queues; there is \
                  nothing to request"
            .to_owned(),
    }
}

/// Refuses when the store's clock leaves no room for tokens.
pub(super) fn check_clock(now: u64) -> Result<(), Refusal> {
    if now < MAX_STORE_TIME { Ok(()) } else { Err(clock_ahead()) }
}
