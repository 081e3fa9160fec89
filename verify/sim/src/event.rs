//! What the scheduler holds.

use fencelock_engine::request::Request;

use crate::network::ConnId;

/// Something that is to happen. Small: what is large lies in a box.
#[derive(Debug)]
#[allow(missing_docs)]
pub(crate) enum Event {
    /// An engine wanted to be woken.
    Wake { slot: usize, generation: u32 },
    /// A caller takes its turn.
    Turn { slot: usize, incarnation: usize, actor: usize, generation: u32 },
    /// A request reaches the store.
    Arrive { conn: ConnId, request: Box<Request>, late: bool },
    /// The server turns to what is next in its line.
    Serve,
    /// The client hears something.
    Hear { conn: ConnId, event: Box<fencelock_engine::Event> },
    /// The client finds its connection gone.
    Broken { conn: ConnId },
    /// The store finds a connection gone.
    Closed { conn: ConnId },
    /// A client tries to connect.
    Connect { slot: usize, incarnation: usize, attempt: u32 },
    /// Another connection is answered, made while the one in use was silent.
    Rival { slot: usize, incarnation: usize, attempt: u32 },
    /// A request found no connection.
    Unsent { slot: usize, incarnation: usize, request: u64 },
    /// What the client's transport has to say by itself.
    Inbox { slot: usize, incarnation: usize },
    /// A client's process starts again.
    Restart { slot: usize },
    /// The way between client and store is mended.
    Unblock { slot: usize, generation: u32 },
    /// A replica is up to here.
    Snapshot,
    /// A fault of the plan.
    Fault(usize),
    /// The store stops refusing.
    Mended,
    /// Something on the way to ZooKeeper.
    Zk(crate::zookeeper::Happening),
    /// Another program's key goes away from a lock's place.
    Cleared { lock: usize },
    /// Faults are over.
    Quiet,
    /// Look whether all waits and holds have ended.
    Settle,
    /// Look whether anything is left at the store.
    Residue { again: bool },
}
