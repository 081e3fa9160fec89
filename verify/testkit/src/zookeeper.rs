//! Real ZooKeeper servers.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::certs::Certificates;
use crate::four_letters::{self, Role};
use crate::port::steady_ports;
use crate::wait::eventually;
use crate::zookeeper_builder::{Ports, ZooKeeperBuilder};
use crate::{children, folder};

/// Where Debian's package puts what runs a server.
const JARS: &str = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar:\
                    /usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar";
const PATIENCE: Duration = Duration::from_secs(30);

/// Real ZooKeeper servers, one or an ensemble, on free ports, each in a folder of its own. They are
/// named by their place from 0 on. Killed on drop, and by the kernel when the test process ends.
///
/// A restarted server has its data still.
#[derive(Debug)]
pub struct ZooKeeper {
    folder: TempDir,
    builder: ZooKeeperBuilder,
    ports: Vec<Ports>,
    certificates: Option<Certificates>,
    children: Vec<Option<Child>>,
}

impl ZooKeeperBuilder {
    /// Starts them and waits until all of them serve.
    ///
    /// # Errors
    /// When Java or the jars are missing (the message names the packages) or one does not come up.
    pub fn start(self) -> io::Result<ZooKeeper> {
        ZooKeeper::launch(self)
    }
}

impl ZooKeeper {
    /// Starts one server, alone.
    ///
    /// # Errors
    /// When Java or the jars are missing (the message names the packages) or it does not come up.
    pub fn start() -> io::Result<ZooKeeper> {
        ZooKeeper::builder().start()
    }

    /// Starts an ensemble.
    ///
    /// # Errors
    /// When Java or the jars are missing (the message names the packages) or one does not come up.
    pub fn ensemble(servers: usize) -> io::Result<ZooKeeper> {
        ZooKeeper::builder().servers(servers).start()
    }

    /// How they are to be started.
    pub fn builder() -> ZooKeeperBuilder {
        ZooKeeperBuilder::default()
    }

    pub(crate) fn launch(builder: ZooKeeperBuilder) -> io::Result<ZooKeeper> {
        // Another process may take a free port first: then that server does not come up.
        let mut last = None;
        for _ in 0..5 {
            let folder = folder::fresh()?;
            let certificates =
                builder.tls.map(|_| Certificates::make(folder.path())).transpose()?;
            let count = builder.places.len();
            let ports = steady_ports(count * 4)?
                .chunks_exact(4)
                .map(|it| Ports { client: it[0], tls: it[1], peers: it[2], election: it[3] })
                .collect();
            let mut servers = ZooKeeper {
                folder,
                builder: builder.clone(),
                ports,
                certificates,
                children: (0..count).map(|_| None).collect(),
            };
            match servers.start_all() {
                Ok(()) => return Ok(servers),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| io::Error::other("no free ports for ZooKeeper")))
    }

    /// How many servers there are, running or not.
    pub fn count(&self) -> usize {
        self.ports.len()
    }

    /// A server's client port, as an address.
    pub fn socket(&self, at: usize) -> SocketAddr {
        SocketAddr::new(self.builder.places[at].address, self.ports[at].client)
    }

    /// A server's `host:port`.
    pub fn address(&self, at: usize) -> String {
        self.socket(at).to_string()
    }

    /// A server's `host:port` for clients with TLS.
    pub fn tls_address(&self, at: usize) -> String {
        SocketAddr::new(self.builder.places[at].address, self.ports[at].tls).to_string()
    }

    /// All servers, as clients want them: `host:port,host:port`.
    pub fn connect_string(&self) -> String {
        (0..self.count()).map(|at| self.address(at)).collect::<Vec<_>>().join(",")
    }

    /// `zk://host:port,host:port`.
    pub fn url(&self) -> String {
        format!("zk://{}", self.connect_string())
    }

    /// `zk://host:port` of one of them.
    pub fn url_of(&self, at: usize) -> String {
        format!("zk://{}", self.address(at))
    }

    /// A server's folder; its log is `zookeeper.log` there.
    pub fn folder(&self, at: usize) -> PathBuf {
        self.folder.path().join((at + 1).to_string())
    }

    /// The certificates, when they were started with TLS.
    pub fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }

    /// Whether a server's process is there.
    pub fn is_running(&self, at: usize) -> bool {
        self.children[at].is_some()
    }

    /// A server's process id.
    ///
    /// # Errors
    /// When it is not running.
    pub fn pid(&self, at: usize) -> io::Result<u32> {
        self.child(at).map(Child::id)
    }

    /// Kills a server as `kill -9` does.
    ///
    /// # Errors
    /// When it is not running.
    pub fn kill(&mut self, at: usize) -> io::Result<()> {
        let mut child = self.children[at].take().ok_or_else(not_running)?;
        child.kill()?;
        child.wait().map(drop)
    }

    /// Starts a killed server on its old ports, with its old data, and waits for its process only:
    /// it may take a quorum until it serves (see [`await_serving`](ZooKeeper::await_serving)).
    ///
    /// # Errors
    /// When it cannot be started, or runs already.
    pub fn start_server(&mut self, at: usize) -> io::Result<()> {
        if self.children[at].is_some() {
            return Err(io::Error::other("the server is running already"));
        }
        let (folder, data) = (self.folder(at), self.folder(at).join("data"));
        fs::create_dir_all(&data)?;
        fs::write(data.join("myid"), format!("{}\n", at + 1))?;
        let store = folder.join("server-store.pem");
        if let Some(files) = &self.certificates {
            let [key, certificate] =
                [&files.server_key, &files.server_cert].map(fs::read_to_string);
            fs::write(&store, key? + &certificate?)?;
        }
        let text = self.builder.file(at, &self.ports, self.certificates.as_ref(), &store);
        fs::write(folder.join("zoo.cfg"), text)?;
        self.children[at] = Some(self.spawn(at, &folder)?);
        Ok(())
    }

    /// Kills a server, if it runs, starts it again, and waits until it serves.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn restart(&mut self, at: usize) -> io::Result<()> {
        if self.children[at].is_some() {
            self.kill(at)?;
        }
        self.start_server(at)?;
        self.await_up(at)
    }

    /// Kills all servers and starts them again, and waits until all of them serve.
    ///
    /// # Errors
    /// When one does not come up.
    pub fn restart_all(&mut self) -> io::Result<()> {
        for at in 0..self.count() {
            if self.children[at].is_some() {
                self.kill(at)?;
            }
        }
        self.start_all()
    }

    /// Stops a server's process (SIGSTOP): it keeps its connections and answers nothing.
    ///
    /// # Errors
    /// When it is not running.
    pub fn stop(&self, at: usize) -> io::Result<()> {
        children::stop(self.child(at)?)
    }

    /// Lets a stopped process go on.
    ///
    /// # Errors
    /// When it is not running.
    pub fn cont(&self, at: usize) -> io::Result<()> {
        children::signal(self.child(at)?, libc::SIGCONT)
    }

    /// What a server answers to a command of four letters, such as `mntr`, `srvr`, `cons`, `wchp`.
    ///
    /// # Errors
    /// When it does not answer within two seconds.
    pub fn four_letters(&self, at: usize, word: &str) -> io::Result<String> {
        four_letters::ask(self.socket(at), word)
    }

    /// What a server counts, by the names of `mntr`.
    ///
    /// # Errors
    /// When it does not answer, or serves nobody.
    pub fn counters(&self, at: usize) -> io::Result<BTreeMap<String, f64>> {
        let text = self.four_letters(at, "mntr")?;
        let pairs = text.lines().filter_map(|line| line.split_once('\t'));
        let found: BTreeMap<String, f64> = pairs
            .filter_map(|(name, value)| Some((name.to_owned(), value.trim().parse().ok()?)))
            .collect();
        if found.is_empty() { Err(io::Error::other(text)) } else { Ok(found) }
    }

    /// A server's role; none while it serves nobody, is dead or stopped.
    pub fn role(&self, at: usize) -> Option<Role> {
        four_letters::role(&self.four_letters(at, "srvr").ok()?)
    }

    /// Who leads, by its own word.
    pub fn leader(&self) -> Option<usize> {
        (0..self.count()).find(|&at| {
            self.is_running(at) && matches!(self.role(at), Some(Role::Leader | Role::Standalone))
        })
    }

    /// Somebody who follows, by its own word.
    pub fn follower(&self) -> Option<usize> {
        (0..self.count()).find(|&at| self.is_running(at) && self.role(at) == Some(Role::Follower))
    }

    /// Waits until a majority serves; gives who leads.
    ///
    /// # Panics
    /// After 30 seconds.
    pub fn await_quorum(&self) -> usize {
        eventually("a quorum", || {
            let leader = self.leader()?;
            let serving = (0..self.count()).filter(|&at| self.role(at).is_some()).count();
            (serving > self.count() / 2).then_some(leader)
        })
    }

    /// Waits until a server serves, whatever its role.
    ///
    /// # Panics
    /// After 30 seconds.
    pub fn await_serving(&self, at: usize) -> Role {
        eventually("the server serves", || self.role(at))
    }

    fn child(&self, at: usize) -> io::Result<&Child> {
        self.children[at].as_ref().ok_or_else(not_running)
    }

    fn start_all(&mut self) -> io::Result<()> {
        for at in 0..self.count() {
            self.start_server(at)?;
        }
        (0..self.count()).try_for_each(|at| self.await_up(at))
    }

    fn spawn(&self, at: usize, folder: &Path) -> io::Result<Child> {
        let jars = std::env::var("ZOOKEEPER_CLASSPATH").unwrap_or_else(|_| JARS.to_owned());
        let first = jars.split(':').next().unwrap_or_default();
        if !first.ends_with('*') && !Path::new(first).exists() {
            return Err(missing(&format!("there is no {first}")));
        }
        let mut words = self.builder.places[at].prefix.clone();
        let java = match std::env::var_os("JAVA_HOME") {
            Some(home) => Path::new(&home).join("bin/java").display().to_string(),
            None => "java".to_owned(),
        };
        words.push(java);
        words.extend(self.builder.options());
        words.extend(["-cp", &jars].map(str::to_owned));
        words.push("org.apache.zookeeper.server.quorum.QuorumPeerMain".to_owned());
        words.push("zoo.cfg".to_owned());
        let log = File::options().create(true).append(true).open(folder.join("zookeeper.log"))?;
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .current_dir(folder)
            .env_remove("JAVA_TOOL_OPTIONS")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        children::spawn(command).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => missing(&format!("there is no {}", words[0])),
            _ => error,
        })
    }

    fn reaches_tls(&self, at: usize) -> bool {
        TcpStream::connect(self.tls_address(at)).is_ok()
    }

    fn await_up(&mut self, at: usize) -> io::Result<()> {
        let start = Instant::now();
        loop {
            // The port with TLS comes up after the other.
            let tls = || self.certificates.is_none() || self.reaches_tls(at);
            if self.role(at).is_some() && tls() {
                return Ok(());
            }
            let ended = match &mut self.children[at] {
                Some(child) => child.try_wait()?,
                None => return Err(not_running()),
            };
            if ended.is_some() || start.elapsed() > PATIENCE {
                let log = self.folder(at).join("zookeeper.log");
                let text = fs::read_to_string(log).unwrap_or_default();
                let kind = if text.contains("Address already in use") {
                    io::ErrorKind::AddrInUse
                } else {
                    io::ErrorKind::Other
                };
                let skip = text.lines().count().saturating_sub(40);
                let tail: Vec<&str> = text.lines().skip(skip).collect();
                let text = format!("ZooKeeper did not come up: {}", tail.join("\n"));
                return Err(io::Error::new(kind, text));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for ZooKeeper {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            // Whatever fails here, the kernel ends it with this process.
            let _ = child.kill();
        }
        for child in self.children.iter_mut().flatten() {
            let _ = child.wait();
        }
    }
}

fn not_running() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the server is not running")
}

fn missing(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::NotFound,
        format!(
            "{what}: install the package 'zookeeper' (Debian, Ubuntu) and Java, or set \
             ZOOKEEPER_CLASSPATH to the jars of a ZooKeeper 3.6 or later; \
             FENCELOCK_SKIP_SERVERS=1 leaves such tests out"
        ),
    )
}
