//! The Redis server of a comparison, and what it was asked.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use fencelock_testkit::RedisServer;
use redis::Connection;

use crate::Result;

/// What is looked at.
const SECTIONS: [&str; 3] = ["stats", "cpu", "commandstats"];
/// What ends the lines of a monitor.
const MARK: &str = "seen-until-here";

/// A Redis server, and what it was asked.
pub struct Server {
    url: String,
    wire: Connection,
    /// The counters when they were last looked at.
    before: Counters,
    server: RedisServer,
}

/// What a server was asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    /// Commands, those that scripts call too.
    pub commands: f64,
    /// Its time in commands and scripts, by its own account, in microseconds.
    pub in_commands: f64,
    /// Its time on a processor, in microseconds.
    pub micros: f64,
    /// Bytes that came and went.
    pub bytes: f64,
}

/// What share of each command's calls scripts made. Redis counts the time of such a call twice: as
/// the command's, and as the script's.
#[derive(Clone, Debug, Default)]
pub struct Nested(HashMap<String, f64>);

/// Hears each command that the server runs.
pub struct Watch(BufReader<TcpStream>);

/// What `INFO` counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    micros: f64,
    bytes: f64,
    /// How often each command was called, and how many microseconds that took.
    commands: HashMap<String, (f64, f64)>,
}

impl Server {
    /// Starts one.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start() -> Result<Server> {
        let server = RedisServer::start()?;
        let (url, wire) = (server.url(), server.connection()?);
        Ok(Server { url, wire, before: Counters::default(), server })
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its version.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn version(&mut self) -> Result<String> {
        let about: String = redis::cmd("INFO").arg("server").query(&mut self.wire)?;
        let version = about.lines().find_map(|line| line.strip_prefix("redis_version:"));
        Ok(version.unwrap_or("unknown").to_owned())
    }

    /// Puts so many coupons on sale.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn set_stock(&mut self, stock: u64) -> Result<()> {
        Ok(redis::cmd("SET").arg("bench:stock").arg(stock).exec(&mut self.wire)?)
    }

    /// Hears what it runs from here on.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn watch(&self) -> Result<Watch> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.server.port()))?;
        stream.write_all(b"MONITOR\r\n")?;
        let mut watch = BufReader::new(stream);
        let mut answer = String::new();
        watch.read_line(&mut answer)?;
        match answer.trim() {
            "+OK" => Ok(Watch(watch)),
            other => Err(format!("MONITOR: {other}").into()),
        }
    }

    /// What was heard until now.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn seen(&mut self, watch: Watch) -> Result<Nested> {
        redis::cmd("ECHO").arg(MARK).exec(&mut self.wire)?;
        Nested::of(watch.0.split(b'\n'))
    }

    /// Counts from here.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn count_anew(&mut self) -> Result<()> {
        self.before = self.counters()?;
        Ok(())
    }

    /// What it was asked since, by a library whose scripts call so much.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn load(&mut self, nested: &Nested) -> Result<Load> {
        Ok(self.counters()?.since(&self.before, nested))
    }

    fn counters(&mut self) -> Result<Counters> {
        let info: String = redis::cmd("INFO").arg(&SECTIONS).query(&mut self.wire)?;
        Counters::read(&info)
    }
}

impl Nested {
    /// Of the lines of a monitor, such as `1339518083.107412 [0 lua] "get" "key"`.
    pub(super) fn of(lines: impl Iterator<Item = std::io::Result<Vec<u8>>>) -> Result<Nested> {
        let mut calls: HashMap<String, (f64, f64)> = HashMap::new();
        for line in lines {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            let Some((source, command)) = line.split_once("] \"") else { continue };
            let (name, arguments) = command.split_once('"').unwrap_or((command, ""));
            if arguments.contains(MARK) {
                break;
            }
            let of_name = calls.entry(name.to_ascii_lowercase()).or_default();
            of_name.0 += 1.0;
            if source.ends_with(" lua") {
                of_name.1 += 1.0;
            }
        }
        Ok(Nested(calls.into_iter().map(|(name, (all, by))| (name, by / all)).collect()))
    }
}

impl Counters {
    /// What `INFO` says.
    pub(super) fn read(info: &str) -> Result<Counters> {
        let mut counters = Counters::default();
        for (key, value) in info.lines().filter_map(|line| line.trim().split_once(':')) {
            match key {
                "total_net_input_bytes" | "total_net_output_bytes" => {
                    counters.bytes += value.parse::<f64>()?;
                }
                "used_cpu_sys" | "used_cpu_user" => counters.micros += value.parse::<f64>()? * 1e6,
                "cmdstat_info" => {}
                // `cmdstat_set:calls=2,usec=5,…`
                _ => {
                    let Some(name) = key.strip_prefix("cmdstat_") else { continue };
                    let of = |what| value.split(',').find_map(|it| it.strip_prefix(what));
                    let calls = of("calls=").ok_or("commands without a count")?.parse()?;
                    let micros = of("usec=").ok_or("commands without a time")?.parse()?;
                    counters.commands.insert(name.to_owned(), (calls, micros));
                }
            }
        }
        Ok(counters)
    }

    /// What came to be counted after `before`.
    pub(super) fn since(&self, before: &Counters, nested: &Nested) -> Load {
        let mut load = Load {
            micros: self.micros - before.micros,
            bytes: self.bytes - before.bytes,
            ..Load::default()
        };
        for (name, (calls, micros)) in &self.commands {
            let (calls_before, micros_before) = before.commands.get(name).unwrap_or(&(0.0, 0.0));
            let by_scripts = nested.0.get(name).unwrap_or(&0.0);
            load.commands += calls - calls_before;
            load.in_commands += (micros - micros_before) * (1.0 - by_scripts);
        }
        load
    }
}
