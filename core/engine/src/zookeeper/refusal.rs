//! What ZooKeeper's errors mean for a request.

use crate::reply::{Failure, Refusal, RefusalKind};
use crate::zookeeper::wire::ZkError;

/// Why a request has no answer, when `error` met a call about `path`.
pub(crate) fn failure(error: &ZkError, path: &str) -> Failure {
    match error {
        ZkError::ConnectionLoss => Failure::Unknown,
        ZkError::NotSent | ZkError::SessionExpired | ZkError::SessionMoved => Failure::NotSent,
        ZkError::At(_, inner) => failure(inner, path),
        other => Failure::Refused(refusal(other, path)),
    }
}

pub(crate) fn refusal(error: &ZkError, path: &str) -> Refusal {
    use RefusalKind::{Misconfigured, Retry, Unsupported};
    let (kind, why) = match error {
        ZkError::NoAuth | ZkError::AuthFailed => (
            Misconfigured,
            "does not allow it: log in with user:password in the URL, or mend the node's ACL",
        ),
        ZkError::InvalidAcl => {
            (Misconfigured, "refuses the ACL: acl=creator needs user:password in the URL")
        }
        ZkError::NoChildrenForEphemerals => (
            Misconfigured,
            "has an ephemeral node above it: is it a lock of recipe=simple, or a participant's \
             own node?",
        ),
        ZkError::NodeExists => (Misconfigured, "has a node there that is not this lock's"),
        ZkError::NotEmpty => (Misconfigured, "has nodes below it that are not this lock's"),
        ZkError::Quota => (Misconfigured, "has a quota on the path, which is used up: raise it"),
        ZkError::Unimplemented => {
            (Unsupported, "does not know the operation: version 3.5 or newer is needed")
        }
        ZkError::NotReadOnly => (Retry, "is cut off from its quorum and only reads"),
        ZkError::Throttled => (Retry, "is too busy"),
        ZkError::NoNode => (Retry, "lost the node meanwhile"),
        ZkError::BadVersion => (Retry, "has other data meanwhile"),
        ZkError::Other(text) => {
            return Refusal { kind: Retry, message: format!("ZooKeeper, at {path}: {text}") };
        }
        ZkError::ConnectionLoss
        | ZkError::NotSent
        | ZkError::SessionExpired
        | ZkError::SessionMoved => (Retry, "lost the session"),
        ZkError::At(_, inner) => return refusal(inner, path),
    };
    Refusal { kind, message: format!("ZooKeeper, at {path}, {why}") }
}

/// Whether the node was not there, alone or as part of a multi.
pub(crate) fn is_missing(error: &ZkError) -> bool {
    match error {
        ZkError::NoNode => true,
        ZkError::At(_, inner) => is_missing(inner),
        _ => false,
    }
}

/// The name is one that locks cannot have here.
pub(crate) fn misplaced(message: String) -> Failure {
    Failure::Refused(Refusal { kind: RefusalKind::Misconfigured, message })
}
