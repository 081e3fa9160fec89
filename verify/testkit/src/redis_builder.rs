//! How a Redis server is to be started.

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr};

use crate::certs::Certificates;
use crate::zookeeper_builder::Place;

/// How a Redis server is to be started; made by `RedisServer::builder`.
#[derive(Clone, Debug, Default)]
pub struct RedisBuilder {
    pub(crate) lines: Vec<String>,
    pub(crate) password: Option<String>,
    pub(crate) tls: Option<bool>,
    pub(crate) persistent: bool,
    pub(crate) sentinel: bool,
    pub(crate) keeps_file: bool,
    pub(crate) place: Option<Place>,
    pub(crate) cluster: bool,
    pub(crate) environment: Vec<(OsString, OsString)>,
}

impl RedisBuilder {
    /// Adds a line of its configuration file, such as `maxmemory 1mb`.
    #[must_use]
    pub fn config(mut self, line: &str) -> RedisBuilder {
        self.lines.push(line.to_owned());
        self
    }

    /// Sets the default user's password; `RedisServer::cli` uses it.
    #[must_use]
    pub fn password(mut self, password: &str) -> RedisBuilder {
        self.password = Some(password.to_owned());
        self
    }

    /// Listens by TLS as well; `client_certificate` says whether clients must show one.
    #[must_use]
    pub fn tls(mut self, client_certificate: bool) -> RedisBuilder {
        self.tls = Some(client_certificate);
        self
    }

    /// Keeps its data over a restart (append-only file).
    #[must_use]
    pub fn persistent(mut self) -> RedisBuilder {
        self.persistent = true;
        self
    }

    /// Runs it as a Sentinel. What it learns, it keeps over a restart.
    #[must_use]
    pub(crate) fn sentinel(mut self) -> RedisBuilder {
        self.sentinel = true;
        self.keeps_file()
    }

    /// Over a restart it keeps its configuration file, into which Sentinels have written whom it follows.
    #[must_use]
    pub(crate) fn keeps_file(mut self) -> RedisBuilder {
        self.keeps_file = true;
        self
    }

    /// Runs it as one of a cluster. What it learns, it keeps over a restart.
    #[must_use]
    pub(crate) fn in_cluster(mut self) -> RedisBuilder {
        self.cluster = true;
        self
    }

    /// Runs it there, where nobody else is: it lets in whoever reaches it.
    #[must_use]
    pub fn place(mut self, place: Option<Place>) -> RedisBuilder {
        self.place = place;
        self
    }

    /// The address that it listens at.
    pub(crate) fn address(&self) -> IpAddr {
        self.place.as_ref().map_or(Ipv4Addr::LOCALHOST.into(), |it| it.address)
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> RedisBuilder {
        self.environment.push((key.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    pub(crate) fn file(&self, certificates: Option<&Certificates>, ports: Ports) -> String {
        let mut lines = vec![
            format!("port {}", ports.tcp),
            format!("bind {}", self.address()),
            "unixsocket redis.sock".to_owned(),
            "save \"\"".to_owned(),
            "daemonize no".to_owned(),
            format!("appendonly {}", if self.persistent { "yes" } else { "no" }),
        ];
        if self.persistent {
            lines.push("appendfsync always".to_owned());
        }
        if self.place.is_some() {
            lines.push("protected-mode no".to_owned());
        }
        if self.cluster {
            lines.push("cluster-enabled yes".to_owned());
            lines.push(format!("cluster-port {}", ports.bus));
        }
        if let Some(password) = &self.password {
            lines.push(format!("requirepass {password}"));
        }
        if let (Some(required), Some(files)) = (self.tls, certificates) {
            lines.push(format!("tls-port {}", ports.tls));
            lines.push(format!("tls-cert-file {}", files.server_cert.display()));
            lines.push(format!("tls-key-file {}", files.server_key.display()));
            lines.push(format!("tls-ca-cert-file {}", files.ca.display()));
            lines.push(format!("tls-auth-clients {}", if required { "yes" } else { "no" }));
        }
        lines.extend(self.lines.iter().cloned());
        lines.push(String::new());
        lines.join("\n")
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) tcp: u16,
    pub(crate) tls: u16,
    pub(crate) bus: u16,
}
