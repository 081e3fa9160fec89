//! Which stores there are.

use std::fmt;

use fencelock_history::linear::Tries;

/// Which store a run is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A Redis server, with proxies before it.
    Redis,
    /// Three Redis servers and three Sentinels, with proxies before the servers.
    Sentinel,
    /// A cluster of six Redis servers, with proxies before them.
    Cluster,
    /// A SQLite file.
    Sqlite,
    /// A ZooKeeper server, with proxies before it.
    ZooKeeper,
}

/// What a store has beside locks for one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    /// Read-write locks.
    pub read_write: bool,
    /// Who writes becomes a reader.
    pub downgrades: bool,
    /// Who reads becomes a writer.
    pub upgrades: bool,
    /// Semaphores.
    pub permits: bool,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] =
        [Kind::Redis, Kind::Sqlite, Kind::ZooKeeper, Kind::Sentinel, Kind::Cluster];

    /// Of its name, as it is shown.
    #[must_use]
    pub fn of(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.to_string() == name)
    }

    /// What it has beside locks for one owner.
    #[must_use]
    pub fn modes(self) -> Modes {
        let all = Modes { read_write: true, downgrades: true, upgrades: true, permits: true };
        match self {
            Kind::Redis | Kind::Sentinel | Kind::Cluster | Kind::Sqlite => all,
            // Nobody who reads is made a writer there.
            Kind::ZooKeeper => Modes { upgrades: false, ..all },
        }
    }

    /// What a try is there.
    #[must_use]
    pub fn tries(self) -> Tries {
        if self == Kind::ZooKeeper { Tries::InLine } else { Tries::AtOnce }
    }

    /// As people write it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Kind::Redis => "Redis",
            Kind::Sentinel => "Redis behind Sentinels",
            Kind::Cluster => "Redis in a cluster",
            Kind::Sqlite => "SQLite",
            Kind::ZooKeeper => "ZooKeeper",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Redis => "redis",
            Kind::Sentinel => "sentinel",
            Kind::Cluster => "cluster",
            Kind::Sqlite => "sqlite",
            Kind::ZooKeeper => "zookeeper",
        })
    }
}
