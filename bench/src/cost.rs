//! What a pair costs the server, by its own account.

use fencelock::blocking;
use redis::Connection;

use crate::case::Effort;
use crate::gauge::Gauge;
use crate::{Result, bare};

/// The least a lock with a counter can do.
const TAKE: &str = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 30000) then \
                    return redis.call('INCR', KEYS[2]) end return 0";
const GIVE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                    return redis.call('DEL', KEYS[1]) end return 0";

/// How many pairs are counted at a time.
const PAIRS: u32 = 10_000;

/// A reader's pair and one of permits take at most so many times what an exclusive one does.
const SHARING: f64 = 1.5;

/// Counts server time for uncontended pairs of ours, exclusive, shared and of permits, and for a minimal
/// one, in turn.
///
/// # Errors
/// When the server does not answer.
pub fn measure(url: &str, effort: Effort) -> Result<Vec<Gauge>> {
    let client = blocking::Client::connect(url)?;
    let lock = client.lock("ours/cost")?;
    let (shared, permits) = (client.rw_lock("ours/read")?, client.semaphore("ours/permits", 5)?);
    let pairs: [&dyn Fn() -> Result<()>; 3] =
        [&|| Ok(lock.acquire()?.release()?), &|| Ok(shared.read()?.release()?), &|| {
            Ok(permits.acquire()?.release()?)
        }];
    let mut wire = bare::client(url)?.get_connection()?;
    let [take, give] = [TAKE, GIVE]
        .map(|text| redis::cmd("SCRIPT").arg("LOAD").arg(text).query::<String>(&mut wire));
    let (take, give) = (take?, give?);
    let (mut ours, mut least) = ([const { Vec::new() }; 3], Vec::new());
    for _ in 0..effort.rounds {
        for (pair, ours) in pairs.iter().zip(&mut ours) {
            bare::count_anew(&mut wire)?;
            for _ in 0..PAIRS {
                pair()?;
            }
            ours.push(spent(&mut wire)?);
        }
        bare::count_anew(&mut wire)?;
        for _ in 0..PAIRS {
            evalsha(&take, &["bare/cost", "bare/cost:n"]).exec(&mut wire)?;
            evalsha(&give, &["bare/cost"]).exec(&mut wire)?;
        }
        least.push(spent(&mut wire)?);
    }
    let [ours, read, taken] = ours;
    let (reading, taking) = (quotients(&read, &ours), quotients(&taken, &ours));
    Ok(vec![
        Gauge::of("server time of a pair, fencelock", "µs", ours, Some(15.0)),
        Gauge::of("server time of a pair, a reader", "µs", read, None),
        Gauge::of("server time of a pair, a permit", "µs", taken, None),
        Gauge::of("pair of a reader beside an exclusive one", "×", reading, Some(SHARING)),
        Gauge::of("pair of a permit beside an exclusive one", "×", taking, Some(SHARING)),
        Gauge::of("server time of a pair, SET/INCR and GET/DEL", "µs", least, None),
    ])
}

/// Round by round.
pub(crate) fn quotients(these: &[f64], those: &[f64]) -> Vec<f64> {
    these.iter().zip(those).map(|(this, that)| this / that).collect()
}

fn evalsha(sha: &str, keys: &[&str]) -> redis::Cmd {
    let mut command = redis::cmd("EVALSHA");
    command.arg(sha).arg(keys.len()).arg(keys).arg("00000000000000000000000000000001");
    command
}

/// Microseconds in scripts, a pair; what a script calls is counted in it.
fn spent(wire: &mut Connection) -> Result<f64> {
    let (calls, micros) = bare::scripts_run(wire)?;
    let wanted = f64::from(PAIRS) * 2.0;
    if calls < wanted || calls > wanted * 1.01 {
        return Err(format!("{calls} scripts ran where {wanted} were sent").into());
    }
    Ok(micros / f64::from(PAIRS))
}
