//! What a pair costs the server, by its own account.

use fencelock::blocking;
use redis::Connection;
use serde::{Deserialize, Serialize};

use crate::bare;
use crate::stats::Spread;
use crate::{Result, case::Effort};

/// The least a lock with a counter can do.
const TAKE: &str = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 30000) then \
                    return redis.call('INCR', KEYS[2]) end return 0";
const GIVE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                    return redis.call('DEL', KEYS[1]) end return 0";

/// How many pairs are counted at a time.
const PAIRS: u32 = 10_000;

/// Server time of one kind of pair.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cost {
    /// Which pair.
    pub name: String,
    /// Microseconds of `EVALSHA` a pair.
    pub micros: Spread,
    /// At most so many are hoped for.
    pub aim: Option<f64>,
}

/// Counts server time for an uncontended pair of ours and for a minimal one, in turn.
///
/// # Errors
/// When the server does not answer.
pub fn measure(url: &str, effort: Effort) -> Result<Vec<Cost>> {
    let lock = blocking::Client::connect(url)?.lock("ours/cost")?;
    let mut wire = bare::client(url)?.get_connection()?;
    let [take, give] = [TAKE, GIVE]
        .map(|text| redis::cmd("SCRIPT").arg("LOAD").arg(text).query::<String>(&mut wire));
    let (take, give) = (take?, give?);
    let (mut ours, mut least) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        reset(&mut wire)?;
        for _ in 0..PAIRS {
            lock.acquire()?.release()?;
        }
        ours.push(spent(&mut wire)?);
        reset(&mut wire)?;
        for _ in 0..PAIRS {
            evalsha(&take, &["bare/cost", "bare/cost:n"]).exec(&mut wire)?;
            evalsha(&give, &["bare/cost"]).exec(&mut wire)?;
        }
        least.push(spent(&mut wire)?);
    }
    let cost = |name: &str, micros: Vec<f64>, aim| Cost {
        name: name.to_owned(),
        micros: Spread::of(micros),
        aim,
    };
    Ok(vec![
        cost("server time of a pair, fencelock", ours, Some(15.0)),
        cost("server time of a pair, SET/INCR and GET/DEL", least, None),
    ])
}

fn evalsha(sha: &str, keys: &[&str]) -> redis::Cmd {
    let mut command = redis::cmd("EVALSHA");
    command.arg(sha).arg(keys.len()).arg(keys).arg("00000000000000000000000000000001");
    command
}

fn reset(wire: &mut Connection) -> Result<()> {
    Ok(redis::cmd("CONFIG").arg("RESETSTAT").exec(wire)?)
}

/// Microseconds in scripts, a pair; what a script calls is counted in it.
fn spent(wire: &mut Connection) -> Result<f64> {
    let stats: String = redis::cmd("INFO").arg("commandstats").query(wire)?;
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:"));
    let line = line.ok_or("the server counted no scripts")?;
    let field = |name: &str| -> Result<f64> {
        let found = line.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        Ok(found.ok_or_else(|| format!("commandstats without {name}: {line}"))?.parse()?)
    };
    let (calls, micros) = (field("calls")?, field("usec")?);
    let wanted = f64::from(PAIRS) * 2.0;
    if calls < wanted || calls > wanted * 1.01 {
        return Err(format!("{calls} scripts ran where {wanted} were sent").into());
    }
    Ok(micros / f64::from(PAIRS))
}
