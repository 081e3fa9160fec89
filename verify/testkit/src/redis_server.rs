//! A real Redis server.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::certs::Certificates;
use crate::children;
use crate::folder;
use crate::port::free_port;
use crate::redis_builder::{Ports, RedisBuilder};

/// A real Redis server on free ports and a unix socket, in a folder of its own. Killed on drop,
/// and by the kernel when the test process ends.
#[derive(Debug)]
pub struct RedisServer {
    folder: TempDir,
    builder: RedisBuilder,
    ports: Ports,
    certificates: Option<Certificates>,
    child: Option<Child>,
    /// Stopped by [`RedisServer::stop`].
    stopped: AtomicBool,
}

impl RedisBuilder {
    /// Starts the server and waits until it answers.
    ///
    /// # Errors
    /// When the binary is missing (the message names the package) or does not come up.
    pub fn start(self) -> io::Result<RedisServer> {
        RedisServer::launch(self)
    }
}

impl RedisServer {
    /// Starts a server as it comes, without persistence.
    ///
    /// # Errors
    /// When the binary is missing (the message names the package) or does not come up.
    pub fn start() -> io::Result<RedisServer> {
        RedisServer::builder().start()
    }

    /// How it is to be started.
    pub fn builder() -> RedisBuilder {
        RedisBuilder::default()
    }

    pub(crate) fn launch(builder: RedisBuilder) -> io::Result<RedisServer> {
        // Another process may take the free port first: then the server does not come up.
        let mut last = None;
        for _ in 0..5 {
            let folder = folder::fresh()?;
            let certificates =
                builder.tls.map(|_| Certificates::make(folder.path())).transpose()?;
            let ports = Ports { tcp: free_port()?, tls: free_port()?, bus: free_port()? };
            let (builder, stopped) = (builder.clone(), AtomicBool::new(false));
            let mut server =
                RedisServer { folder, builder, ports, certificates, child: None, stopped };
            match server.run() {
                Ok(()) => return Ok(server),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| io::Error::other("no free port for redis-server")))
    }

    /// The port without TLS.
    pub fn port(&self) -> u16 {
        self.ports.tcp
    }

    /// The port with TLS.
    pub fn tls_port(&self) -> u16 {
        self.ports.tls
    }

    /// The port by which servers of a cluster talk to each other.
    pub(crate) fn bus_port(&self) -> u16 {
        self.ports.bus
    }

    /// Its address and port, `127.0.0.1:port` unless it was placed elsewhere.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host(), self.ports.tcp)
    }

    /// The address that it listens at.
    pub(crate) fn host(&self) -> String {
        self.builder.address().to_string()
    }

    /// `redis://127.0.0.1:port`, without a password.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// The unix socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    /// The folder of its files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The certificates, when it was started with TLS.
    pub fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }

    /// Kills the server as `kill -9` does.
    ///
    /// # Errors
    /// When it is not running.
    pub fn kill(&mut self) -> io::Result<()> {
        let mut child = self.child.take().ok_or_else(not_running)?;
        self.stopped.store(false, Ordering::Relaxed);
        child.kill()?;
        child.wait().map(drop)
    }

    /// Kills it, if it runs, and starts it again on the same ports: empty, unless persistent.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn restart(&mut self) -> io::Result<()> {
        if self.child.is_some() {
            self.kill()?;
        }
        self.run()
    }

    /// Stops the process (SIGSTOP): it keeps its connections and answers nothing.
    ///
    /// # Errors
    /// When it is not running.
    pub fn stop(&self) -> io::Result<()> {
        self.stopped.store(true, Ordering::Relaxed);
        children::stop(self.child.as_ref().ok_or_else(not_running)?)
    }

    /// Lets a stopped process go on.
    ///
    /// # Errors
    /// When it is not running.
    pub fn cont(&self) -> io::Result<()> {
        self.stopped.store(false, Ordering::Relaxed);
        children::signal(self.child.as_ref().ok_or_else(not_running)?, libc::SIGCONT)
    }

    /// Its process id.
    ///
    /// # Errors
    /// When it is not running.
    pub fn pid(&self) -> io::Result<u32> {
        self.child.as_ref().map(Child::id).ok_or_else(not_running)
    }

    /// A bare connection of the `redis` crate, by the unix socket, as the default user.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn connection(&self) -> redis::RedisResult<redis::Connection> {
        let mut connection = redis::Client::open(self.socket_url())?.get_connection()?;
        if let Some(password) = &self.builder.password {
            redis::cmd("AUTH").arg(password).exec(&mut connection)?;
        }
        Ok(connection)
    }

    /// Runs one command as the default user.
    ///
    /// # Errors
    /// What the server answers.
    pub fn cli(&self, words: &[&str]) -> redis::RedisResult<redis::Value> {
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(word);
        }
        command.query(&mut self.connection()?)
    }

    /// Whether it would answer: it runs, and was not stopped.
    pub fn answers(&self) -> bool {
        self.child.is_some() && !self.stopped.load(Ordering::Relaxed)
    }

    fn socket_url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    fn run(&mut self) -> io::Result<()> {
        let folder = self.folder.path();
        let file = folder.join("redis.conf");
        if !self.builder.keeps_file || !file.exists() {
            fs::write(file, self.builder.file(self.certificates.as_ref(), self.ports))?;
        }
        let log = folder.join("redis.log");
        let binary =
            std::env::var_os("REDIS_SERVER").unwrap_or_else(|| "redis-server".to_owned().into());
        let prefix = self.builder.place.iter().flat_map(|it| &it.prefix).map(OsString::from);
        let mut words = prefix.chain([binary.clone(), "redis.conf".into()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        if self.builder.sentinel {
            command.arg("--sentinel");
        }
        command
            .current_dir(folder)
            .envs(self.builder.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(File::create(&log)?)
            .stderr(Stdio::null());
        let child = children::spawn(command).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::new(
                io::ErrorKind::NotFound,
                format!(
                    "{} is not installed: install the package 'redis-server' (Debian, Ubuntu) or \
                     'redis' (others), or set REDIS_SERVER to a binary; \
                     FENCELOCK_SKIP_SERVERS=1 leaves such tests out",
                    binary.to_string_lossy()
                ),
            ),
            _ => error,
        })?;
        self.child = Some(child);
        self.await_ready(&log)
    }

    fn await_ready(&mut self, log: &Path) -> io::Result<()> {
        let start = Instant::now();
        loop {
            if self.cli(&["PING"]).is_ok() {
                return Ok(());
            }
            let ended = match &mut self.child {
                Some(child) => child.try_wait()?,
                None => return Err(not_running()),
            };
            if ended.is_some() || start.elapsed() > Duration::from_secs(30) {
                let text = fs::read_to_string(log).unwrap_or_default();
                let kind = if text.contains("Address already in use") {
                    io::ErrorKind::AddrInUse
                } else {
                    io::ErrorKind::Other
                };
                return Err(io::Error::new(kind, format!("redis-server did not come up: {text}")));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Whatever fails here, the kernel ends it with this process.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn not_running() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the server is not running")
}
