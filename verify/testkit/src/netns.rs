//! Network namespaces: hosts on a bridge, whose cables can be cut.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::children;
use crate::zookeeper_builder::Place;

/// What the names of ours begin with, before the process's id.
const PREFIX: &str = "flt";

/// A network of its own: hosts, which are network namespaces, on one bridge. The test process is on
/// it too, and reaches all of them. Taken down on drop; what dead processes left is taken down when
/// the next one is made.
#[derive(Debug)]
pub struct Network {
    name: String,
    subnet: u8,
    hosts: Vec<Host>,
}

/// One host of a [`Network`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    namespace: String,
    address: IpAddr,
}

impl Host {
    /// Its address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The words before a command that is to run on it.
    pub fn prefix(&self) -> Vec<String> {
        ["ip", "netns", "exec", &self.namespace].map(str::to_owned).into()
    }

    /// As a server's place.
    pub fn place(&self) -> Place {
        Place { address: self.address, prefix: self.prefix() }
    }
}

impl Network {
    /// Makes a network with so many hosts.
    ///
    /// # Errors
    /// When this process may not, or the machine cannot: the message says what was refused. A test
    /// that gets this is left out, and says so.
    pub fn new(hosts: u8) -> io::Result<Network> {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(sweep);
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let used = run("ip", "-o -4 addr show")?;
        // These addresses are set aside for measuring networks, so nothing else has them.
        let first = std::process::id().wrapping_add(number * 41);
        let subnet = (0..=u8::MAX)
            .map(|step| (first as u8).wrapping_add(step))
            .find(|it| !used.contains(&format!("198.18.{it}.")))
            .ok_or_else(|| io::Error::other("198.18.0.0/16 is all in use"))?;
        // From here on it is dropped, and so taken down, when a step fails.
        let mut network = Network { name, subnet, hosts: Vec::new() };
        let bridge = network.name.clone();
        run("ip", &format!("link add {bridge} type bridge"))?;
        run("ip", &format!("addr add 198.18.{subnet}.1/24 dev {bridge}"))?;
        run("ip", &format!("link set {bridge} up"))?;
        for at in 0..hosts {
            network.add(at)?;
        }
        Ok(network)
    }

    /// A host, from 0 on.
    pub fn host(&self, at: usize) -> &Host {
        &self.hosts[at]
    }

    /// Cuts the way between two hosts, in both directions: packets vanish in silence.
    ///
    /// # Errors
    /// When the rules are refused.
    pub fn cut(&self, one: usize, other: usize) -> io::Result<()> {
        self.rules("-A", one, other)
    }

    /// Mends what [`cut`](Network::cut) has cut.
    ///
    /// # Errors
    /// When the rules are refused.
    pub fn mend(&self, one: usize, other: usize) -> io::Result<()> {
        self.rules("-D", one, other)
    }

    /// Cuts the ways between each of `some` and each of `others`.
    ///
    /// # Errors
    /// When the rules are refused.
    pub fn part(&self, some: &[usize], others: &[usize]) -> io::Result<()> {
        let pairs = some.iter().flat_map(|one| others.iter().map(move |other| (*one, *other)));
        pairs.into_iter().try_for_each(|(one, other)| self.cut(one, other))
    }

    /// Mends everything.
    ///
    /// # Errors
    /// When the rules are refused.
    pub fn mend_all(&self) -> io::Result<()> {
        self.hosts.iter().try_for_each(|host| host.run("iptables -w -F INPUT").map(drop))
    }

    fn rules(&self, verb: &str, one: usize, other: usize) -> io::Result<()> {
        for (here, there) in [(one, other), (other, one)] {
            let from = self.hosts[there].address;
            self.hosts[here].run(&format!("iptables -w {verb} INPUT -s {from} -j DROP"))?;
        }
        Ok(())
    }

    fn add(&mut self, at: u8) -> io::Result<()> {
        let (bridge, subnet) = (&self.name, self.subnet);
        let namespace = format!("{bridge}-{at}");
        let cable = format!("{PREFIX}{:x}{:02x}{at:x}", std::process::id(), subnet);
        let address = Ipv4Addr::new(198, 18, subnet, at + 10);
        run("ip", &format!("netns add {namespace}"))?;
        let host = Host { namespace: namespace.clone(), address: address.into() };
        self.hosts.push(host.clone());
        run("ip", &format!("link add {cable} type veth peer name eth0 netns {namespace}"))?;
        run("ip", &format!("link set {cable} master {bridge} up"))?;
        for words in [
            format!("-n {namespace} addr add {address}/24 dev eth0"),
            format!("-n {namespace} link set eth0 up"),
            format!("-n {namespace} link set lo up"),
        ] {
            run("ip", &words)?;
        }
        // So that a machine without it is found out before a test relies on it.
        host.run("iptables -w -F INPUT").map(drop)
    }
}

impl Host {
    fn run(&self, command: &str) -> io::Result<String> {
        run("ip", &format!("netns exec {} {command}", self.namespace))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in &self.hosts {
            // A process in it keeps the namespace, without its cable, until it ends.
            let _ = run("ip", &format!("netns del {}", host.namespace));
        }
        let _ = run("ip", &format!("link del {}", self.name));
    }
}

/// Takes down what processes that are gone have left.
fn sweep() {
    let owner = |name: &str| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<i32>().ok();
    let gone = |name: &&str| owner(name).is_some_and(|pid| !children::exists(pid));
    let spaces = run("ip", "netns list").unwrap_or_default();
    for name in spaces.lines().filter_map(|line| line.split_whitespace().next()).filter(gone) {
        let _ = run("ip", &format!("netns del {name}"));
    }
    let links = run("ip", "-o link show type bridge").unwrap_or_default();
    let names = links.lines().filter_map(|line| line.split(": ").nth(1));
    for name in names.filter(gone) {
        let _ = run("ip", &format!("link del {name}"));
    }
}

fn run(program: &str, words: &str) -> io::Result<String> {
    let output = Command::new(program).args(words.split(' ')).output().map_err(|error| {
        io::Error::new(error.kind(), format!("{program} cannot be started: {error}"))
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(io::Error::other(format!("`{program} {words}` is refused: {why}")))
}
