//! A process that was forked from one that had used ZooKeeper.

use std::sync::OnceLock;

use fencelock_engine::{Error, ErrorKind};

/// The client crate polls its sockets from one thread per process, which a fork does not copy.
pub(crate) fn check_process() -> Result<(), Error> {
    static FIRST: OnceLock<u32> = OnceLock::new();
    let own = std::process::id();
    if *FIRST.get_or_init(|| own) == own {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Unsupported,
        "this process was forked from one that had connected to ZooKeeper, and cannot connect \
         itself: fork before the first connection, or start a new program",
    ))
}
