//! The Redis server of a comparison, and what it was asked.

use fencelock_testkit::RedisServer;
use redis::Connection;

use crate::Result;

/// What is looked at.
const SECTIONS: [&str; 3] = ["stats", "cpu", "commandstats"];

/// A Redis server, and what it was asked.
pub struct Server {
    url: String,
    wire: Connection,
    /// The counters when they were last looked at.
    before: Load,
    _server: RedisServer,
}

/// What a server was asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    /// Commands, those that scripts call too.
    pub commands: f64,
    /// Its time on a processor, in microseconds.
    pub micros: f64,
    /// Bytes that came and went.
    pub bytes: f64,
}

impl Server {
    /// Starts one.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start() -> Result<Server> {
        let server = RedisServer::start()?;
        let (url, wire) = (server.url(), server.connection()?);
        Ok(Server { url, wire, before: Load::default(), _server: server })
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

    /// Counts from here.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn count_anew(&mut self) -> Result<()> {
        self.before = self.counters()?;
        Ok(())
    }

    /// What it was asked since.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn load(&mut self) -> Result<Load> {
        let now = self.counters()?;
        Ok(Load {
            commands: now.commands - self.before.commands,
            micros: now.micros - self.before.micros,
            bytes: now.bytes - self.before.bytes,
        })
    }

    fn counters(&mut self) -> Result<Load> {
        let mut load = Load::default();
        let info: String = redis::cmd("INFO").arg(&SECTIONS).query(&mut self.wire)?;
        for (key, value) in info.lines().filter_map(|line| line.trim().split_once(':')) {
            match key {
                "total_net_input_bytes" | "total_net_output_bytes" => {
                    load.bytes += value.parse::<f64>()?;
                }
                "used_cpu_sys" | "used_cpu_user" => load.micros += value.parse::<f64>()? * 1e6,
                "cmdstat_info" => {}
                // `cmdstat_set:calls=2,usec=5,…`
                _ if key.starts_with("cmdstat_") => {
                    let calls = value.split(',').find_map(|it| it.strip_prefix("calls="));
                    load.commands += calls.ok_or("commands without a count")?.parse::<f64>()?;
                }
                _ => {}
            }
        }
        Ok(load)
    }
}
