//! Servers on hosts of a network of their own, actors beside them, and their history.

use std::path::PathBuf;

use fencelock_nemesis::{Actor, History, Record};
use fencelock_testkit::{Network, Place, leave_out, skip_servers};
use tempfile::TempDir;

/// The lock that a case is about.
pub const LOCK: &str = "stock";

/// For holders that are to hear soon what is wrong.
pub const QUICK: &str = "lease=3s&request_timeout=1s&connect_timeout=30s";

pub struct World {
    pub network: Network,
    pub history: History,
    folder: TempDir,
}

impl World {
    /// So many hosts; `None` when servers are left out, or there can be no network.
    pub fn new(case: &str, hosts: u8) -> Option<World> {
        if skip_servers() {
            return None;
        }
        match Network::new(hosts) {
            Ok(network) => {
                let (history, folder) = (History::watched(), tempfile::tempdir().unwrap());
                Some(World { network, history, folder })
            }
            Err(error) => {
                leave_out(case, &error);
                None
            }
        }
    }

    /// The first hosts, for servers.
    pub fn places(&self, count: usize) -> Vec<Place> {
        (0..count).map(|at| self.network.host(at).place()).collect()
    }

    /// An actor on a host, with one client, `c`.
    pub fn actor(&self, name: &str, host: usize, url: &str) -> Actor {
        let prefix = self.network.host(host).prefix();
        let mut actor = Actor::start_behind(&self.history, name, &prefix);
        actor.ask(&format!("open c {url}?{QUICK}"), "opened", "c");
        actor
    }

    /// Cuts the ways between two sides. From here on the store may forget, as neither side knows all.
    pub fn part(&self, some: &[usize], others: &[usize]) {
        self.history.note("forgetting", "store", &[]);
        self.network.part(some, others).unwrap();
    }

    /// Mends all ways.
    pub fn heal(&self) {
        self.network.mend_all().unwrap();
    }

    /// The sides know the same again.
    pub fn healed(&self) {
        self.history.note("forgot", "store", &[]);
    }

    /// Has an actor write to what the lock protects, under its hold's token; whether that was taken.
    pub fn writes(&self, actor: &mut Actor, tag: &str) -> bool {
        let ledger: PathBuf = self.folder.path().join("ledger.db");
        let wrote = actor.ask(&format!("write {tag} {}", ledger.display()), "wrote", tag);
        wrote.get("accepted") == Some("Ok(true)")
    }
}

/// Acquires, waits as long as it takes, and gives the grant.
pub fn acquires(actor: &mut Actor, tag: &str) -> Record {
    actor.ask(&format!("acquire {tag} c {LOCK}"), "granted", tag)
}

/// Whether a hold is still trusted.
pub fn trusts(actor: &mut Actor, tag: &str) -> bool {
    actor.ask(&format!("look {tag}"), "seen", tag).get("valid") == Some("true")
}

impl Drop for World {
    /// Keeps the history of a test that fails.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let name = format!("nemesis-redis-{}.history", std::process::id());
            let path = std::env::temp_dir().join(name);
            match self.history.save(&path) {
                Ok(()) => eprintln!("the history is in {}", path.display()),
                Err(error) => eprintln!("the history cannot be written: {error}"),
            }
        }
    }
}
