//! Why the machine does not carry out a request.

use std::time::Duration;

use crate::reply::{Refusal, RefusalKind};

/// Only exclusive locks of the client itself are there.
pub(crate) fn exclusive_alone() -> Refusal {
    let message =
        "on a quorum of servers there are exclusive locks alone: no shared ones, no permits \
                   and no explicit owners; use a single server, Sentinels or a cluster for these"
            .to_owned();
    Refusal { kind: RefusalKind::Unsupported, message }
}

/// The lease is longer than a server with a new memory waits.
pub(crate) fn too_long(lease: Duration, most: Duration) -> Refusal {
    let message = format!(
        "a lease of {lease:?} is longer than max_lease, {most:?}, after which a server that has lost \
         its memory gives votes again: ask for less, or raise max_lease for all clients"
    );
    Refusal { kind: RefusalKind::Misconfigured, message }
}

/// It may pass by itself.
pub(crate) fn later(message: String) -> Refusal {
    Refusal { kind: RefusalKind::Retry, message }
}
