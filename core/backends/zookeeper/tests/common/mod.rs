//! A server, clients of it, and a bare client that looks over their shoulder.
#![allow(dead_code)] // each test file uses its part

use std::sync::Arc;
use std::time::Duration;

use fencelock_engine::reply::Standing;
use fencelock_engine::{HoldId, Name};
use fencelock_testkit::recorder::Client;
use fencelock_testkit::{ZooKeeper, ZooKeeperBuilder, eventually};
use fencelock_zookeeper::{Options, ZooKeeperTransport, open};
use tokio::runtime::Runtime;
use zookeeper_client as zk;

pub type ZkClient = Client<ZooKeeperTransport>;

pub struct World {
    pub server: ZooKeeper,
    pub runtime: Runtime,
}

impl World {
    pub fn new() -> World {
        World::of(ZooKeeper::builder())
    }

    /// With a server that lets a lock's empty node be for a minute, instead of half a second: what
    /// it says of the last holder goes with it.
    pub fn that_remembers() -> World {
        World::of(ZooKeeper::builder().property("znode.container.checkIntervalMs=60000"))
    }

    fn of(server: ZooKeeperBuilder) -> World {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        World { server: server.start().unwrap(), runtime: runtime.unwrap() }
    }

    pub fn client(&self, rest: &str) -> ZkClient {
        self.client_at(&format!("{}{rest}", self.server.url()))
    }

    pub fn client_at(&self, url: &str) -> ZkClient {
        let mut options = Options::from_url(url).unwrap();
        options.session_timeout = Duration::from_secs(6);
        Client::open(|id, sink| open(options, id, sink, self.runtime.handle()).unwrap())
    }

    /// A client that knows nothing of locks.
    pub fn bare(&self) -> Bare<'_> {
        let servers = self.server.connect_string();
        let client = self.runtime.block_on(zk::Client::connect(&servers)).unwrap();
        Bare { client: Arc::new(client), runtime: &self.runtime }
    }
}

pub struct Bare<'a> {
    pub client: Arc<zk::Client>,
    runtime: &'a Runtime,
}

impl Bare<'_> {
    pub fn children(&self, path: &str) -> Vec<String> {
        match self.runtime.block_on(self.client.list_children(path)) {
            Ok(mut names) => {
                names.sort_by_key(|name| name[name.len() - 10..].to_owned());
                names
            }
            Err(zk::Error::NoNode) => Vec::new(),
            Err(error) => panic!("{error}"),
        }
    }

    pub fn get(&self, path: &str) -> (String, zk::Stat) {
        let (data, stat) = self.runtime.block_on(self.client.get_data(path)).unwrap();
        (String::from_utf8(data).unwrap(), stat)
    }

    pub fn set(&self, path: &str, data: &str) {
        self.runtime.block_on(self.client.set_data(path, data.as_bytes(), None)).unwrap();
    }

    pub fn delete(&self, path: &str) {
        self.runtime.block_on(self.client.delete(path, None)).unwrap();
    }

    /// Takes part in a lock as Curator does; gives the node's path.
    pub fn take_part(&self, parent: &str) -> String {
        let options = zk::CreateMode::EphemeralSequential.with_acls(zk::Acls::anyone_all());
        let path = format!("{parent}/_c_6ef91d2f-1b1a-4a0c-9f10-0a7a5d1f7c11-lock-");
        let created = self.client.create(&path, b"10.0.0.7", &options);
        let (_, sequence) = self.runtime.block_on(created).unwrap();
        format!("{path}{sequence}")
    }
}

/// Waits until a queued hold is granted, as an engine would.
pub fn granted(client: &ZkClient, lock: &Name, hold: HoldId) -> u64 {
    eventually("the grant", || {
        let state = client.beat(lock, hold);
        (state.standing == Standing::Granted).then_some(state.token)
    })
}
