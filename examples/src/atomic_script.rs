//! Instead of a lock: one atomic script, with a queue behind it.
//!
//! When all that has to be consistent lives in one Redis, a script is the critical section: it
//! runs alone, cannot be paused in the middle, and needs no lease. What takes longer goes into a
//! queue for a worker.

/// What a buyer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sale {
    /// The coupon is theirs, and the order is in the queue.
    Sold,
    /// None is left.
    SoldOut,
    /// This person has one already.
    HasOne,
}

const SELL: &str = "
    if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then return 2 end
    if tonumber(redis.call('GET', KEYS[1]) or '0') < 1 then return 1 end
    redis.call('DECR', KEYS[1])
    redis.call('SADD', KEYS[2], ARGV[1])
    redis.call('LPUSH', KEYS[3], ARGV[1])
    return 0";

/// Sells a coupon to `person`, at most one each and never more than there are.
///
/// # Errors
/// When Redis cannot be reached.
pub fn sell(connection: &mut redis::Connection, person: &str) -> redis::RedisResult<Sale> {
    let keys = ["{sale}:stock", "{sale}:buyers", "{sale}:orders"];
    let outcome: u8 = redis::Script::new(SELL)
        .key(keys[0])
        .key(keys[1])
        .key(keys[2])
        .arg(person)
        .invoke(connection)?;
    Ok(match outcome {
        0 => Sale::Sold,
        1 => Sale::SoldOut,
        _ => Sale::HasOne,
    })
}
