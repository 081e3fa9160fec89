//! What the lock machine asks of ZooKeeper, and what it hears from it.
//!
//! Paths are the server's own, chroot included. Which ACL a created node gets is the transport's
//! affair. Calls are executed in the order in which they are given; those of one
//! [`Output::Calls`] leave together.

use std::time::Duration;

use crate::event::Event;
use crate::time::Time;

/// Names a call until its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// One operation on the server, and its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The result comes back under the same id, exactly once.
    pub id: CallId,
    /// What is to be done.
    pub op: ZkOp,
}

/// An operation on the server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ZkOp {
    /// Make a node. Answered by [`ZkReply::Created`].
    Create {
        /// Its path; of a sequential node without the digits.
        path: String,
        /// Its data.
        data: Vec<u8>,
        /// What kind of node.
        kind: NodeKind,
    },
    /// Delete a node, whatever its version. Answered by [`ZkReply::Done`].
    Delete {
        /// Which node.
        path: String,
    },
    /// Whether a node is there. Answered by [`ZkReply::Exists`]; a node that is missing is no
    /// error, and its watch waits for its creation.
    Exists {
        /// Which node.
        path: String,
        /// Leave a watch that fires once.
        watch: bool,
    },
    /// A node's data. Answered by [`ZkReply::Data`]. The watch is left only where the node exists.
    GetData {
        /// Which node.
        path: String,
        /// Leave a watch that fires once.
        watch: bool,
    },
    /// The names of a node's children. Answered by [`ZkReply::Children`].
    Children {
        /// Which node.
        path: String,
        /// Leave a watch that fires once.
        watch: bool,
    },
    /// Replace a node's data, whatever its version. Answered by [`ZkReply::Done`].
    Set {
        /// Which node.
        path: String,
        /// The new data.
        data: Vec<u8>,
    },
    /// All of these, or none. Answered by [`ZkReply::Done`], where nodes are made by
    /// [`ZkReply::Made`], or by the error of the first that cannot be done, as [`ZkError::At`].
    Multi(Vec<ZkWrite>),
    /// A round trip through the leader, after which this server has all that came before.
    /// Answered by [`ZkReply::Done`].
    Sync {
        /// Any path.
        path: String,
    },
}

/// A part of a [`ZkOp::Multi`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ZkWrite {
    /// As [`ZkOp::Create`].
    Create {
        /// Its path; of a sequential node without the digits.
        path: String,
        /// Its data.
        data: Vec<u8>,
        /// What kind of node; no container.
        kind: NodeKind,
    },
    /// The node must exist.
    Check {
        /// Which node.
        path: String,
    },
    /// The node's data must not have been set since it had this [version](Stat::version).
    CheckVersion {
        /// Which node.
        path: String,
        /// How often its data was set.
        version: i32,
    },
    /// As [`ZkOp::Set`].
    Set {
        /// Which node.
        path: String,
        /// The new data.
        data: Vec<u8>,
    },
    /// As [`ZkOp::Delete`].
    Delete {
        /// Which node.
        path: String,
    },
}

/// What kind of node is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// The server deletes it some time after its last child went.
    Container,
    /// It ends with the session.
    Ephemeral,
    /// It ends with the session; the server adds ten digits to its name.
    EphemeralSequential,
}

/// What is known about a node beside its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Stat {
    /// The transaction that made the node.
    pub czxid: i64,
    /// The transaction that last set its data.
    pub mzxid: i64,
    /// The transaction that last made or deleted a child.
    pub pzxid: i64,
    /// How often its data was set.
    pub version: i32,
    /// The session that it ends with; 0 unless ephemeral.
    pub ephemeral_owner: i64,
    /// How many children it has.
    pub num_children: i32,
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ZkReply {
    /// A node was made.
    Created {
        /// Its path, with the digits of a sequential node.
        path: String,
        /// Its stat.
        stat: Stat,
    },
    /// These nodes were made by a multi, with their paths. Some servers do not tell their stats, which
    /// are without a czxid then.
    Made(Vec<(String, Stat)>),
    /// Whether the node is there.
    Exists(Option<Stat>),
    /// A node's data.
    Data {
        /// The data.
        data: Vec<u8>,
        /// The stat.
        stat: Stat,
    },
    /// A node's children.
    Children {
        /// Their names, without the path, in no order.
        names: Vec<String>,
        /// The parent's stat.
        stat: Stat,
    },
    /// It is done.
    Done,
}

/// Why a call was not carried out, or may not have been.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ZkError {
    /// The node, or the parent of the one to be made, is missing.
    NoNode,
    /// The node is there already.
    NodeExists,
    /// The node's data was set since.
    BadVersion,
    /// The node has children.
    NotEmpty,
    /// The parent is ephemeral and can have no children.
    NoChildrenForEphemerals,
    /// The node's ACL does not allow it, or the login is missing.
    NoAuth,
    /// The server does not accept the ACL of the node to be made.
    InvalidAcl,
    /// The server is cut off from its quorum and only reads.
    NotReadOnly,
    /// The path's quota is used up.
    Quota,
    /// The server is too busy.
    Throttled,
    /// The server does not know the operation.
    Unimplemented,
    /// Part `0` of a multi failed, with this error; nothing was done.
    At(usize, Box<ZkError>),
    /// The session is over; nothing was done.
    SessionExpired,
    /// The session is now at another server; nothing was done.
    SessionMoved,
    /// The login was refused; nothing was done.
    AuthFailed,
    /// The connection went: the call may or may not have been carried out, now or later.
    ConnectionLoss,
    /// There is no connection: the call was certainly not sent.
    NotSent,
    /// Something else, in the server's or the transport's words; nothing was done.
    Other(String),
}

/// What happened at ZooKeeper's side.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// A new session, connected. Nothing of an earlier session is left: no node, no watch, no
    /// call in flight.
    Connected {
        /// The session.
        session: i64,
        /// The timeout that the server granted.
        timeout: Duration,
        /// No later than the connect request was sent that opened the session.
        since: Time,
        /// What the clock on this machine's wall reads, in microseconds.
        wall: u64,
    },
    /// The same session has a connection again. Its watches are there again, and what would have
    /// fired meanwhile fires; those of a connection that was [given up](Output::Reconnect) are gone.
    Reattached,
    /// The connection went. The calls in flight fail by themselves, before or after.
    Disconnected {
        /// Why, for a person.
        reason: String,
    },
    /// No session can be had, and trying goes on.
    Unreachable {
        /// Why, for a person.
        reason: String,
    },
    /// The server says that the session is over. A new one is sought.
    Expired,
    /// The login was refused, or something else that only an operator can mend. Trying goes on.
    AuthFailed {
        /// What, and what to do.
        reason: String,
    },
    /// A call has ended.
    Result {
        /// Which call.
        call: CallId,
        /// How.
        result: Result<ZkReply, ZkError>,
    },
    /// A watch fired; it is gone.
    Fired {
        /// The node.
        path: String,
        /// What happened to it.
        what: Change,
    },
}

/// What a watch tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// The node was made.
    Created,
    /// The node was deleted.
    Deleted,
    /// The node's data was set.
    Data,
    /// A child was made or deleted.
    Children,
}

/// What the machine wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send these to the server, in this order, in one go.
    Calls(Vec<Call>),
    /// Tell the engine.
    Event(Event),
    /// Nobody waits for word of this node any more: what watches it may go. Calls that come later
    /// may watch it anew. Not said of a watch that fired, nor when the session ends.
    Unwatch {
        /// The node.
        path: String,
    },
    /// Give up the connection, and take up the session again by another.
    Reconnect,
}
