//! The same scripts, sent by the `redis` crate alone.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fencelock_engine::redis::{Codec, Command, Script};
use fencelock_engine::request::{Acquire, Op, Release, Wait};
use fencelock_engine::{ClientId, HoldId, Name};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Connection, ConnectionInfo, IntoConnectionInfo, Value};

use crate::Result;

/// Encodes acquires and releases as a client with default options does.
pub struct Scripts {
    codec: Codec,
    holds: u128,
}

impl Scripts {
    /// Loads the scripts.
    ///
    /// # Errors
    /// When the server refuses them.
    pub fn load(connection: &mut Connection) -> Result<Scripts> {
        for script in Codec::scripts() {
            redis::cmd("SCRIPT").arg("LOAD").arg(script.text).exec(connection)?;
        }
        let codec = Codec::new(ClientId::new(micros(), "bench")?, "fl:")?;
        Ok(Scripts { codec, holds: u128::from(micros()) << 64 })
    }

    /// The next acquire of a lock, whose last token was `floor`.
    pub fn acquire(&mut self, name: &Name, floor: u64) -> (Cmd, HoldId) {
        self.holds += 1 << 64;
        let hold = HoldId(self.holds);
        let claim = Duration::from_secs(3);
        let op = Op::Acquire(Acquire {
            floor,
            wait: Some(Wait { ticket: 0, claim, silence: claim }),
            ..Acquire::new(name.clone(), hold, Duration::from_secs(30), micros() + 3_000_000)
        });
        (encoded(&self.codec, &op), hold)
    }

    /// Its release.
    pub fn release(&self, name: &Name, hold: HoldId, used: u64) -> Cmd {
        let release = Release::new(name.clone(), hold, used);
        encoded(&self.codec, &Op::Release(release))
    }
}

/// A request as a client sends it.
pub fn encoded(codec: &Codec, op: &Op) -> Cmd {
    script(codec, op, "EVALSHA", |script| script.sha)
}

/// The same, which the server counts as another command.
pub fn whole(codec: &Codec, op: &Op) -> Cmd {
    script(codec, op, "EVAL", |script| script.text)
}

fn script(codec: &Codec, op: &Op, word: &str, named: fn(&Script) -> &'static str) -> Cmd {
    let mut command = Cmd::new();
    match codec.encode(op) {
        Command::Script { script, keys, args } => {
            command.arg(word).arg(named(script)).arg(keys.len());
            for part in keys.iter().chain(args.iter()) {
                command.arg(part);
            }
        }
        Command::Plain(parts) => {
            for part in &parts {
                command.arg(part);
            }
        }
    }
    command
}

/// The token of a grant, as it stands in an acquire's reply.
///
/// # Errors
/// When it is no grant.
pub fn token(reply: &Value) -> Result<u64> {
    match reply {
        Value::Array(items) => match items.as_slice() {
            [_, Value::Int(0), Value::Int(token), ..] => Ok(u64::try_from(*token)?),
            other => Err(format!("no grant: {other:?}").into()),
        },
        other => Err(format!("no grant: {other:?}").into()),
    }
}

fn info(url: &str) -> Result<ConnectionInfo> {
    let info = url.into_connection_info()?;
    let settings = info.tcp_settings().clone().set_nodelay(true);
    Ok(info.set_tcp_settings(settings))
}

/// A client of the `redis` crate that does not hold back small packets.
///
/// # Errors
/// When the URL is wrong.
pub fn client(url: &str) -> Result<redis::Client> {
    Ok(redis::Client::open(info(url)?)?)
}

/// An async connection without a timer for each request.
///
/// # Errors
/// When the server does not answer.
pub async fn multiplexed(url: &str) -> Result<MultiplexedConnection> {
    let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
    Ok(client(url)?.get_multiplexed_async_connection_with_config(&config).await?)
}

/// The wall clock.
pub(crate) fn micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// Lets the server count from 0.
///
/// # Errors
/// When it refuses.
pub fn count_anew(wire: &mut Connection) -> Result<()> {
    Ok(redis::cmd("CONFIG").arg("RESETSTAT").exec(wire)?)
}

/// How many scripts the server has run since then, and for how many microseconds.
///
/// # Errors
/// When it does not say.
pub fn scripts_run(wire: &mut Connection) -> Result<(f64, f64)> {
    let stats: String = redis::cmd("INFO").arg("commandstats").query(wire)?;
    // One that has run none does not speak of them.
    let Some(line) = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:")) else {
        return Ok((0.0, 0.0));
    };
    let field = |name: &str| -> Result<f64> {
        let found = line.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        Ok(found.ok_or_else(|| format!("commandstats without {name}: {line}"))?.parse()?)
    };
    Ok((field("calls")?, field("usec")?))
}
