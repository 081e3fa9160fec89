//! A client's connection: requests in one direction, replies and pushes in the other.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use fencelock_engine::reply::{Failure, Push, Reply};
use fencelock_engine::request::{Request, RequestId};

/// A connection. Replies and pushes may overtake each other, as on two connections they do.
#[derive(Clone, Debug, Default)]
pub(super) struct Wire {
    pub up: bool,
    /// The store has an inbox to publish to.
    pub heard: bool,
    /// Sent, and not executed yet.
    pub requests: VecDeque<Request>,
    /// Answered, and not arrived yet.
    pub replies: VecDeque<(RequestId, Result<Reply, Failure>)>,
    pub pushes: VecDeque<Push>,
}

impl Hash for Wire {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.up, self.heard).hash(state);
        self.requests.len().hash(state);
        for request in &self.requests {
            (request.id, &request.op).hash(state);
        }
        // Short, and of types that have no hash of their own.
        self.replies.len().hash(state);
        for reply in &self.replies {
            format!("{reply:?}").hash(state);
        }
        self.pushes.len().hash(state);
        for push in &self.pushes {
            format!("{push:?}").hash(state);
        }
    }
}
