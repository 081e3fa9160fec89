//! The cases, and the store that each is given.

pub mod admin;
pub mod blocking;
pub mod ending;
pub mod exclusion;
pub mod leases;
pub mod modes;
pub mod owners;
pub mod reentry;
pub mod waiting;

use std::future::Future;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fencelock::{Abandoned, Builder, Client};
use fencelock_testkit::{
    RedisCluster, RedisQuorum, RedisSentinels, RedisServer, ZooKeeper, leave_out, skip_servers,
    team_acl,
};
use tempfile::TempDir;

/// How long anything may take on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(30);

/// A store that nobody else uses.
pub struct World {
    url: String,
    _folder: Option<TempDir>,
}

/// What a store may lack.
#[allow(dead_code)]
#[derive(Clone, Copy, Debug)]
pub enum Need {
    Owners,
    Leases,
    Abandoned,
    Shared,
    Permits,
}

impl World {
    pub fn memory() -> World {
        World { url: format!("memory:{}", fresh()), _folder: None }
    }

    pub fn sqlite() -> World {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("locks.db");
        World { url: format!("sqlite:{}", path.display()), _folder: Some(folder) }
    }

    /// A key prefix of its own on a server that all cases share, as a user who has the smallest
    /// permissions that the documentation names, for this prefix; `None` when servers are left out.
    pub fn redis() -> Option<World> {
        static SERVER: OnceLock<RedisServer> = OnceLock::new();
        if skip_servers() {
            return None;
        }
        let server = SERVER.get_or_init(|| RedisServer::start().unwrap());
        let user = format!("team-{}", fresh());
        let prefix = format!("{user}:");
        let acl = team_acl(&user, &prefix);
        server.cli(&acl.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        let login = format!("{user}:a-long-password");
        let url = format!("redis://{login}@{}?prefix={prefix}", server.address());
        Some(World { url, _folder: None })
    }

    /// The same, where a replica confirms each grant.
    pub fn confirmed() -> Option<World> {
        static SERVERS: OnceLock<[RedisServer; 2]> = OnceLock::new();
        if skip_servers() {
            return None;
        }
        let servers = SERVERS.get_or_init(|| {
            let master = RedisServer::start().unwrap();
            let primary = format!("replicaof 127.0.0.1 {}", master.port());
            let replica = RedisServer::builder().config(&primary).start().unwrap();
            [master, replica]
        });
        let user = format!("team-{}", fresh());
        let prefix = format!("{user}:");
        let mut acl = team_acl(&user, &prefix);
        acl.extend(["+wait", "+role"].map(str::to_owned));
        servers[0].cli(&acl.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        let login = format!("{user}:a-long-password");
        let options = format!("prefix={prefix}&sync_replicas=all");
        let url = format!("redis://{login}@{}?{options}", servers[0].address());
        Some(World { url, _folder: None })
    }

    /// The same on the master that Sentinels name.
    pub fn sentinel() -> Option<World> {
        static ALL: OnceLock<RedisSentinels> = OnceLock::new();
        if skip_servers() {
            return None;
        }
        // Nothing fails over here, however busy the machine is.
        let all = ALL.get_or_init(|| RedisSentinels::builder().down_after(60_000).start().unwrap());
        let user = format!("team-{}", fresh());
        let prefix = format!("{user}:");
        let mut acl = team_acl(&user, &prefix);
        acl.push("+role".to_owned());
        for server in &all.servers {
            server.cli(&acl.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        }
        let nodes = all.url().replace("redis+sentinel://", "");
        // The cases have leases that are too short for servers whose clocks differ by 100 ms.
        let options = format!("prefix={prefix}&clock_slack=10ms");
        let url = format!("redis+sentinel://{user}:a-long-password@{nodes}?{options}");
        Some(World { url, _folder: None })
    }

    /// The same on a cluster.
    pub fn cluster() -> Option<World> {
        static CLUSTER: OnceLock<RedisCluster> = OnceLock::new();
        if skip_servers() {
            return None;
        }
        let cluster =
            CLUSTER.get_or_init(|| RedisCluster::builder().masters_alone().start().unwrap());
        let user = format!("team-{}", fresh());
        let prefix = format!("{user}:");
        let mut acl = team_acl(&user, &prefix);
        acl.extend(["+role", "+cluster|slots", "+cluster|info", "+asking"].map(str::to_owned));
        acl.extend(["+ssubscribe", "+sunsubscribe", "+spublish"].map(str::to_owned));
        for server in &cluster.servers {
            server.cli(&acl.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        }
        let nodes = cluster.url().replace("redis+cluster://", "");
        // As above.
        let options = format!("prefix={prefix}&clock_slack=10ms");
        let url = format!("redis+cluster://{user}:a-long-password@{nodes}?{options}");
        Some(World { url, _folder: None })
    }

    /// The same on three servers that know nothing of each other.
    pub fn quorum() -> Option<World> {
        static QUORUM: OnceLock<RedisQuorum> = OnceLock::new();
        if skip_servers() {
            return None;
        }
        let quorum = QUORUM.get_or_init(|| {
            let longest = Duration::from_secs(600);
            RedisQuorum::builder().max_lease(longest).start().unwrap()
        });
        let user = format!("team-{}", fresh());
        let prefix = format!("{user}:");
        let mut acl = team_acl(&user, &prefix);
        acl.extend(["+info".to_owned(), format!("~{prefix}quorum")]);
        for (at, server) in quorum.servers.iter().enumerate() {
            server.cli(&acl.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
            quorum.init_of(at, &prefix).unwrap();
        }
        let nodes = quorum.direct_url().replace("redis+quorum://", "");
        let url = format!("redis+quorum://{user}:a-long-password@{nodes}&prefix={prefix}");
        Some(World { url, _folder: None })
    }

    /// A chroot of its own on a server that all cases share; `None` when servers are left out.
    pub fn zookeeper() -> Option<World> {
        static SERVER: OnceLock<ZooKeeper> = OnceLock::new();
        if skip_servers() {
            return None;
        }
        // A lock's node that is reaped between two steps takes what is known of its last holder
        // along.
        const PATIENT: &str = "znode.container.checkIntervalMs=600000";
        let server = SERVER.get_or_init(|| ZooKeeper::builder().property(PATIENT).start().unwrap());
        let url = format!("{}/suite/{}", server.url(), fresh());
        Some(World { url, _folder: None })
    }

    pub fn builder(&self) -> Builder {
        Client::builder(&self.url)
            .connect_timeout(LIMIT)
            .request_timeout(Duration::from_secs(10))
            .label("suite")
    }

    pub async fn client(&self) -> Client {
        self.builder().connect().await.unwrap()
    }

    /// A client whose crash or silence is noticed soon.
    pub async fn quick_client(&self) -> Client {
        self.quick().connect().await.unwrap()
    }

    pub fn quick(&self) -> Builder {
        self.builder().lease(Duration::from_secs(2)).claim(Duration::from_millis(900))
    }

    pub fn blocking(&self) -> fencelock::blocking::Client {
        self.builder().connect_blocking().unwrap()
    }

    /// The holder before released. Of a quorum a server may have missed that hold, and then the votes differ.
    pub fn assert_released(&self, told: Abandoned) {
        match self.url.contains("+quorum://") {
            true => assert_ne!(told, Abandoned::Yes),
            false => assert_eq!(told, Abandoned::No),
        }
    }

    /// Whether the store lacks what a case is about; says so.
    pub fn lacks(&self, client: &Client, need: Need) -> bool {
        let can = client.capabilities();
        let has = match need {
            Need::Owners => can.owners,
            Need::Leases => can.leases,
            Need::Abandoned => can.abandoned,
            Need::Shared => can.shared,
            Need::Permits => can.permits,
        };
        if !has {
            // Each test has a thread, which is named after it.
            let case = std::thread::current().name().unwrap_or("a case").to_owned();
            leave_out(&case, &format_args!("{} has no {need:?}", can.store));
        }
        !has
    }
}

fn fresh() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Looks at a condition until it holds.
pub async fn eventually<F, T>(what: &str, mut condition: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let start = Instant::now();
    loop {
        if let Some(value) = condition().await {
            return value;
        }
        assert!(start.elapsed() < LIMIT, "waited in vain for: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until so many acquires wait in the client.
pub async fn waiting(client: &Client, count: u64) {
    eventually("waiters in the client", || async {
        (client.metrics().waiting == count).then_some(())
    })
    .await;
}

/// Waits until so many clients are queued at the store.
pub async fn queued(client: &Client, name: &str, count: usize) {
    eventually("waiters at the store", || async {
        let info = client.inspect(name).await.unwrap();
        (info.map_or(0, |info| info.waiters.len()) == count).then_some(())
    })
    .await;
}

/// Waits for a future, but not for ever.
pub async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(LIMIT, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain for: {what}"),
    }
}
