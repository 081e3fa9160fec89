//! How many replicas are to confirm, and how.

use std::time::Duration;

/// How many replicas are to confirm a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replicas {
    /// So many, whichever they are.
    AtLeast(u32),
    /// All that there are, those that are down included, and at least one: whichever takes over has what
    /// was confirmed.
    All,
}

/// Who names the replicas, where all of them are to confirm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// The master itself, by ROLE, which knows those that are connected: so the most that it ever named on
    /// this connection count.
    Role,
    /// Somebody else, by [`Confirming::name`](super::Confirming::name): Sentinels.
    Told,
    /// The master, by CLUSTER NODES.
    Nodes,
}

/// What counts as confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How many replicas.
    pub replicas: Replicas,
    /// Who names them.
    pub naming: Naming,
    /// How long a request waits for them at the most; never longer than a third of its lease.
    pub timeout: Duration,
    /// They confirm that they have it on their disks.
    pub disk: bool,
}

impl Terms {
    /// The command that waits for `count` replicas.
    pub(super) fn wait(&self, count: u32, bound: Duration) -> Vec<String> {
        // Zero would be for ever.
        let millis = bound.as_millis().max(1).to_string();
        match self.disk {
            true => vec!["WAITAOF".to_owned(), "0".to_owned(), count.to_string(), millis],
            false => vec!["WAIT".to_owned(), count.to_string(), millis],
        }
    }

    /// A command that shows, without waiting, whether the server can do that.
    pub(in crate::redis) fn probe(&self) -> &'static [&'static str] {
        match self.disk {
            // It is refused where the server's own append-only file is off.
            true => &["WAITAOF", "1", "0", "1"],
            false => &["WAIT", "0", "1"],
        }
    }
}
