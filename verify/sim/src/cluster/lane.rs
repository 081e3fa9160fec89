//! A client's connection to one server: the machines that ship, as a host keeps them.

use std::cell::RefCell;

use fencelock_engine::redis::Node;
use fencelock_engine::redis::session::{self, Asked, Guarded, Hearing};
use fencelock_engine::request::RequestId;

/// What is asked of a server.
pub(super) struct Line(RefCell<Asked>);

impl Line {
    pub fn new(asked: Asked) -> Line {
        Line(RefCell::new(asked))
    }
}

impl Guarded for Line {
    fn with<R>(&self, act: impl FnOnce(&mut Asked) -> R) -> R {
        act(&mut self.0.borrow_mut())
    }
}

/// One server, as a client knows it.
pub(super) struct Lane {
    pub node: Node,
    /// Makes the connections, while the lane is open.
    pub session: Option<session::Machine>,
    pub line: Line,
    /// Hears what comes on the one that is up.
    pub hearing: Option<Hearing>,
    /// The connection that is up, and the one that is being made.
    pub main: Option<usize>,
    pub making: Option<usize>,
    /// What was asked while there was none.
    pub refused: Vec<RequestId>,
}

impl Lane {
    /// One that is not open yet.
    pub fn new(node: Node, asked: Asked) -> Lane {
        let line = Line::new(asked);
        let refused = Vec::new();
        Lane { node, session: None, line, hearing: None, main: None, making: None, refused }
    }

    /// Whether the engine doubts it.
    pub fn is_doubted(&self) -> bool {
        self.line.with(|asked| asked.is_doubted())
    }
}
