//! Messages on a client's inbox.

use crate::id::HoldId;
use crate::redis::decode::{self, abandoned};
use crate::redis::key::decode_name;
use crate::reply::Push;

/// `1 granted <hold> <token> <end> <abandoned> <others> <name>`, or `1 <what> <hold> <name>`.
pub(super) fn decode(payload: &[u8]) -> Option<Push> {
    let (version, rest) = core::str::from_utf8(payload).ok()?.split_once(' ')?;
    let (what, rest) = rest.split_once(' ')?;
    let (hold, rest) = rest.split_once(' ')?;
    let hold = HoldId::parse(hold)?;
    if version != "1" {
        return None;
    }
    match what {
        "granted" => {
            let mut words = rest.splitn(5, ' ');
            let mut number = || words.next()?.parse::<u64>().ok();
            let (token, end) = (decode::token(number()?)?, decode::token(number()?)?);
            let (abandoned, losses) = abandoned(number()?)?;
            let others_waiting = u32::try_from(number()?).unwrap_or(u32::MAX);
            let lock = decode_name(words.next()?)?;
            Some(Push::Granted { lock, hold, token, end, abandoned, losses, others_waiting })
        }
        "wanted" => Some(Push::Wanted { lock: decode_name(rest)?, hold }),
        "broken" => Some(Push::Broken { lock: decode_name(rest)?, hold }),
        "changed" => Some(Push::Changed { lock: decode_name(rest)?, hold }),
        _ => None,
    }
}
