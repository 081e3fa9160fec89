//! How ZooKeeper servers are to be started.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use crate::certs::Certificates;

/// Where one server runs: its address, and the words before its command, such as
/// `ip netns exec NAME`.
#[derive(Clone, Debug)]
pub struct Place {
    /// The address that it listens at.
    pub address: IpAddr,
    /// What starts its command there.
    pub prefix: Vec<String>,
}

impl Place {
    /// This machine's loopback.
    pub fn here() -> Place {
        Place { address: Ipv4Addr::LOCALHOST.into(), prefix: Vec::new() }
    }
}

/// How ZooKeeper servers are to be started; made by `ZooKeeper::builder`.
#[derive(Clone, Debug)]
pub struct ZooKeeperBuilder {
    pub(crate) places: Vec<Place>,
    pub(crate) lines: Vec<String>,
    pub(crate) properties: Vec<String>,
    pub(crate) tick: Duration,
    pub(crate) tls: Option<bool>,
    pub(crate) lasting: bool,
}

impl Default for ZooKeeperBuilder {
    fn default() -> ZooKeeperBuilder {
        ZooKeeperBuilder {
            places: vec![Place::here()],
            lines: Vec::new(),
            properties: Vec::new(),
            tick: Duration::from_millis(100),
            tls: None,
            lasting: false,
        }
    }
}

impl ZooKeeperBuilder {
    /// So many servers, on this machine's loopback: one is standalone, more are an ensemble.
    #[must_use]
    pub fn servers(self, count: usize) -> ZooKeeperBuilder {
        self.places(vec![Place::here(); count])
    }

    /// One server at each of these places.
    #[must_use]
    pub fn places(mut self, places: Vec<Place>) -> ZooKeeperBuilder {
        self.places = places;
        self
    }

    /// Adds a line to their configuration files, such as `syncLimit=5`; a later line counts.
    #[must_use]
    pub fn config(mut self, line: &str) -> ZooKeeperBuilder {
        self.lines.push(line.to_owned());
        self
    }

    /// Sets a system property, such as `readonlymode.enabled=true`.
    #[must_use]
    pub fn property(mut self, pair: &str) -> ZooKeeperBuilder {
        self.properties.push(format!("-D{pair}"));
        self
    }

    /// How long a tick is (100 ms unless said): a session lasts two ticks at least.
    #[must_use]
    pub fn tick(mut self, tick: Duration) -> ZooKeeperBuilder {
        self.tick = tick;
        self
    }

    /// Listens by TLS as well; `client_certificate` says whether clients must show one.
    #[must_use]
    pub fn tls(mut self, client_certificate: bool) -> ZooKeeperBuilder {
        self.tls = Some(client_certificate);
        self
    }

    /// For measuring: a virtual machine that starts slower and then runs faster, and containers
    /// that are looked after each minute, as in life, instead of twice a second.
    #[must_use]
    pub fn lasting(mut self) -> ZooKeeperBuilder {
        self.lasting = true;
        self
    }

    /// Options of the virtual machine.
    pub(crate) fn options(&self) -> Vec<String> {
        let mut options: Vec<String> = [
            "-XX:+UseSerialGC",
            "-XX:-UsePerfData",
            "-Djava.net.preferIPv4Stack=true",
            // Data outlives a killed process without this, and nobody cuts the power.
            "-Dzookeeper.forceSync=no",
            "-Dzookeeper.preAllocSize=256",
            // A server that has vanished is given up soon.
            "-Dzookeeper.cnxTimeout=1000",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
        ]
        .map(str::to_owned)
        .into();
        if self.lasting {
            options.push("-Xmx512m".to_owned());
        } else {
            let quick =
                ["-XX:TieredStopAtLevel=1", "-Xmx128m", "-Dznode.container.checkIntervalMs=500"];
            options.extend(quick.map(str::to_owned));
        }
        options.extend(self.properties.iter().cloned());
        options
    }

    /// The configuration of one of them.
    pub(crate) fn file(
        &self,
        at: usize,
        ports: &[Ports],
        certificates: Option<&Certificates>,
        store: &Path,
    ) -> String {
        let tick = self.tick.as_millis();
        let mut lines = vec![
            format!("tickTime={tick}"),
            "dataDir=data".to_owned(),
            format!("clientPortAddress={}", self.places[at].address),
            format!("clientPort={}", ports[at].client),
            "admin.enableServer=false".to_owned(),
            "4lw.commands.whitelist=*".to_owned(),
            "maxClientCnxns=0".to_owned(),
            format!("minSessionTimeout={}", tick * 2),
            "maxSessionTimeout=60000".to_owned(),
            "initLimit=50".to_owned(),
            "syncLimit=20".to_owned(),
        ];
        if ports.len() > 1 {
            for (number, (place, ports)) in self.places.iter().zip(ports).enumerate() {
                let (address, Ports { peers, election, .. }) = (place.address, ports);
                lines.push(format!("server.{}={address}:{peers}:{election}", number + 1));
            }
        }
        if let (Some(required), Some(files)) = (self.tls, certificates) {
            lines.extend([
                "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory".to_owned(),
                format!("secureClientPortAddress={}", self.places[at].address),
                format!("secureClientPort={}", ports[at].tls),
                format!("ssl.keyStore.location={}", store.display()),
                "ssl.keyStore.type=PEM".to_owned(),
                format!("ssl.trustStore.location={}", files.ca.display()),
                "ssl.trustStore.type=PEM".to_owned(),
                format!("ssl.clientAuth={}", if required { "need" } else { "none" }),
            ]);
        }
        // Of two lines for one key the server takes the later.
        lines.extend(self.lines.iter().cloned());
        lines.push(String::new());
        lines.join("\n")
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) client: u16,
    pub(crate) tls: u16,
    pub(crate) peers: u16,
    pub(crate) election: u16,
}
