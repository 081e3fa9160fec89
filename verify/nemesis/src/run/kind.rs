//! Which stores there are.

use std::fmt;

/// Which store a run is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A Redis server, with proxies before it.
    Redis,
    /// A SQLite file.
    Sqlite,
    /// A ZooKeeper server, with proxies before it.
    ZooKeeper,
}

impl Kind {
    /// As people write it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Kind::Redis => "Redis",
            Kind::Sqlite => "SQLite",
            Kind::ZooKeeper => "ZooKeeper",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Redis => "redis",
            Kind::Sqlite => "sqlite",
            Kind::ZooKeeper => "zookeeper",
        })
    }
}
