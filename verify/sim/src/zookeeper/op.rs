//! What a client asks of a ZooKeeper server, and what it hears.

/// Numbers a connection of a client to a server.
pub type ConnId = usize;

/// A session's number; 0 is none.
pub type SessionId = u64;
/// A transaction's number: the leader's epoch in the upper half, a counter in the lower.
pub type Zxid = u64;

/// How a node is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Mode {
    Persistent,
    PersistentSequential,
    Ephemeral,
    EphemeralSequential,
    Container,
}

impl Mode {
    /// The node goes with its session.
    pub fn is_ephemeral(self) -> bool {
        matches!(self, Mode::Ephemeral | Mode::EphemeralSequential)
    }

    /// The server adds a number to its name.
    pub fn is_sequential(self) -> bool {
        matches!(self, Mode::PersistentSequential | Mode::EphemeralSequential)
    }
}

/// An operation. A version of -1 is any.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Op {
    Create {
        path: String,
        data: Vec<u8>,
        mode: Mode,
    },
    Delete {
        path: String,
        version: i32,
    },
    Set {
        path: String,
        data: Vec<u8>,
        version: i32,
    },
    Check {
        path: String,
        version: i32,
    },
    /// All or none, as one transaction.
    Multi(Vec<Op>),
    Data {
        path: String,
        watch: bool,
    },
    Exists {
        path: String,
        watch: bool,
    },
    Children {
        path: String,
        watch: bool,
    },
    Sync,
    /// Sets watches again after a reconnect: those of what has changed since fire at once.
    SetWatches {
        since: Zxid,
        data: Vec<String>,
        exist: Vec<String>,
        child: Vec<String>,
    },
    /// Ends the session.
    Close,
    /// Removes a container, if it is empty: the leader's own.
    Reap {
        path: String,
    },
}

impl Op {
    /// It goes through the leader and its log.
    pub fn is_write(&self) -> bool {
        matches!(
            self,
            Op::Create { .. }
                | Op::Delete { .. }
                | Op::Set { .. }
                | Op::Check { .. }
                | Op::Multi(_)
                | Op::Close
                | Op::Reap { .. }
        )
    }
}

/// The answer to an operation that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Answer {
    Created {
        path: String,
        stat: Stat,
    },
    Done,
    /// A library's answer: the node is not there.
    Missing,
    Stat(Stat),
    Set(Stat),
    Data {
        data: Vec<u8>,
        stat: Stat,
    },
    Children {
        names: Vec<String>,
        stat: Stat,
    },
    Multi(Vec<Answer>),
}

/// Why an operation was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Code {
    RuntimeInconsistency,
    ConnectionLoss,
    BadArguments,
    NoNode,
    BadVersion,
    NoChildrenForEphemerals,
    NodeExists,
    NotEmpty,
    SessionExpired,
    SessionMoved,
    NotReadOnly,
}

impl Code {
    /// Its number on the wire.
    pub fn number(self) -> i32 {
        match self {
            Code::RuntimeInconsistency => -2,
            Code::ConnectionLoss => -4,
            Code::BadArguments => -8,
            Code::NoNode => -101,
            Code::BadVersion => -103,
            Code::NoChildrenForEphemerals => -108,
            Code::NodeExists => -110,
            Code::NotEmpty => -111,
            Code::SessionExpired => -112,
            Code::SessionMoved => -118,
            Code::NotReadOnly => -119,
        }
    }
}

/// A failed operation: why, and for a multi, which of its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Why.
    pub code: Code,
    /// Which operation of a multi.
    pub index: usize,
}

impl From<Code> for Failure {
    fn from(code: Code) -> Failure {
        Failure { code, index: 0 }
    }
}

/// A node's numbers, as clients see them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Stat {
    pub czxid: Zxid,
    pub mzxid: Zxid,
    pub pzxid: Zxid,
    pub version: i32,
    pub cversion: i32,
    pub owner: SessionId,
    pub children: usize,
    pub length: usize,
}

/// What a watch tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Change {
    Created,
    Deleted,
    Data,
    Children,
}

/// A watch that fired.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Fired {
    pub path: String,
    pub change: Change,
}
