//! Whether the engine doubts the connection, as the transport has to know it.

use std::collections::BTreeSet;
use std::time::Duration;

use fencelock_engine::Time;
use fencelock_engine::event::Event;
use fencelock_engine::reply::Failure;
use fencelock_engine::request::RequestId;
use fencelock_engine::transport::Doubt;

/// A process that stood still finds answers that came meanwhile: they have so long to be read.
const GRACE: Duration = Duration::from_millis(250);

/// What is owed to the engine, and what it was told last.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    owed: BTreeSet<RequestId>,
    /// What failed on the present connection without an answer, which ends no doubt.
    failed: BTreeSet<RequestId>,
    /// Whose answer it was told last, or will be next, on the present connection.
    told: Option<RequestId>,
    /// It was told that the connection is up, or will be.
    up: bool,
    /// When the connection is to be given up, unless an answer comes before.
    due: Option<Time>,
}

impl Doubts {
    /// The engine asks.
    pub(crate) fn asked(&mut self, request: RequestId) {
        self.owed.insert(request);
    }

    /// The engine will be told. An answer ends its doubt, and so ours; before the engine hears it, so
    /// that a doubt that comes after it is not lost.
    pub(crate) fn tells(&mut self, event: &Event) {
        match event {
            Event::Up { .. } => {
                (self.up, self.told, self.due) = (true, None, None);
                self.failed.clear();
            }
            Event::Down { .. } | Event::Misconfigured(_) => (self.up, self.due) = (false, None),
            Event::Reply { request, result } => {
                self.owed.remove(request);
                if matches!(result, Ok(_) | Err(Failure::Refused(_))) {
                    (self.told, self.due) = (Some(*request), None);
                } else {
                    self.failed.insert(*request);
                }
            }
            Event::Push(_) | Event::Map(_) | Event::Detour(..) => {}
        }
    }

    /// The connection may be dead; so it is until the engine is told an answer. A doubt that comes late
    /// is none: the engine has been told one since, or will be, or the connection is another. `waits`:
    /// the request has yet to be sent.
    pub(crate) fn doubt(&mut self, now: Time, doubt: Doubt, waits: bool) {
        let owed = |request| self.owed.contains(request) || self.failed.contains(request);
        if self.up && self.told == doubt.heard && (waits || owed(&doubt.owed)) {
            self.due = Some(now + GRACE);
        }
    }

    /// When the connection is to be given up, if it is.
    pub(crate) fn due(&self) -> Option<Time> {
        self.due
    }

    /// It is given up now, or was replaced.
    pub(crate) fn settle(&mut self) {
        self.due = None;
    }
}
