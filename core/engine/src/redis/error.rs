//! What a server's error replies mean, and what to do about them.

use crate::reply::{Refusal, RefusalKind};
use crate::secret::Secrets;
use crate::store::clock_ahead;

/// Errors that may pass by themselves, each with what helps.
const PASSING: [(&str, &str); 10] = [
    ("MISCONF", "the server cannot write its snapshot; look at its disk and its log"),
    ("NOREPLICAS", "too few replicas are connected for min-replicas-to-write"),
    ("CLUSTERDOWN", "the cluster does not serve this slot now"),
    ("TRYAGAIN", "the slot is being moved"),
    ("ASK", "the slot is being moved"),
    ("MASTERDOWN", "the replica has lost its master"),
    ("LOADING", "the server is loading its data"),
    ("BUSY", "a script of somebody has been running for long; see SCRIPT KILL"),
    ("READONLY", "the server is a replica; connect to the master, or wait for the failover's end"),
    ("OOM", "the server's memory is full; raise maxmemory or free some"),
];

/// Errors that an operator must mend, each with how.
const LASTING: [(&str, &str); 5] = [
    ("NOAUTH", "the server wants a password; give one in the URL or as an option"),
    ("WRONGPASS", "the user or password is wrong; give the right one in the URL or as an option"),
    ("NOPERM", "the user lacks a permission; docs/redis.md lists the smallest set"),
    ("MOVED", "the server is one of a cluster: name it as redis+cluster://"),
    ("NOPROTO", "the server does not speak the protocol version that was asked for"),
];

/// The reply has not the shape that was expected.
pub(super) fn garbled(operation: &str) -> Refusal {
    misconfigured(format!(
        "the server's answer to '{operation}' was not understood; is there a proxy that changes \
         replies, or a server that is not Redis?"
    ))
}

fn misconfigured(message: String) -> Refusal {
    Refusal { kind: RefusalKind::Misconfigured, message }
}

/// The error's code. Before version 7 the server wraps a script's error in one of its own, with
/// the code somewhere inside.
fn code(text: &str) -> &str {
    let known = |word: &&str| {
        PASSING.iter().chain(&LASTING).any(|(code, _)| code == word)
            || [
                "WRONGTYPE",
                "NOSCRIPT",
                "LAYOUT",
                "FOREIGN",
                "DAMAGED",
                "CLOCK",
                "QUEUE",
                "MODES",
                "KIND",
            ]
            .contains(word)
    };
    let mut words = text.split_whitespace().map(|word| word.trim_start_matches('-'));
    let first = words.next().unwrap_or_default();
    if first != "ERR" && !first.starts_with('@') {
        return first;
    }
    words.find(known).unwrap_or("ERR")
}

/// Whether the lock is shared, and the request named too few of its keys.
pub(super) fn wants_all_keys(text: &str) -> bool {
    code(text.trim_start_matches('-')) == "MODES"
}

/// Whether the request named too few keys to be served.
pub(super) fn wants_queue(text: &str) -> bool {
    code(text.trim_start_matches('-')) == "QUEUE"
}

/// Whether the slot is moving, and some of the keys that were named are not there.
pub(super) fn is_moving(text: &str) -> bool {
    code(text.trim_start_matches('-')) == "TRYAGAIN"
}

/// Of how many permits the name is, or 0 for a lock's, when another kind was asked for.
pub(super) fn kind_of_others(text: &str) -> Option<u32> {
    if code(text.trim_start_matches('-')) != "KIND" {
        return None;
    }
    text.split_once("KIND ")?.1.split_whitespace().next()?.parse().ok()
}

/// What an error reply means. `key` is the lock's key, when the request had just one.
/// The server's words are shown without the secrets.
pub(super) fn refusal(text: &str, key: Option<&str>, secrets: &Secrets) -> Refusal {
    let text = text.trim_start_matches('-').trim_end();
    let key = key.unwrap_or("of a lock");
    let code = code(text);
    let shown = secrets.hide(text);
    if text.contains("attempted to access a non local key") {
        let advice = "the slot is being moved";
        return Refusal { kind: RefusalKind::Retry, message: format!("{shown} ({advice})") };
    }
    if let Some((_, advice)) = PASSING.iter().find(|(known, _)| *known == code) {
        return Refusal { kind: RefusalKind::Retry, message: format!("{shown} ({advice})") };
    }
    if let Some((_, advice)) = LASTING.iter().find(|(known, _)| *known == code) {
        return misconfigured(format!("{shown} ({advice})"));
    }
    match code {
        "NOSCRIPT" | "QUEUE" | "MODES" => {
            Refusal { kind: RefusalKind::Again, message: shown.into_owned() }
        }
        "WRONGTYPE" | "FOREIGN" => misconfigured(format!(
            "the key {key} holds something that is not a lock of fencelock: another program uses \
             it; choose another key prefix or another name for the lock, or delete the key"
        )),
        "LAYOUT" => misconfigured(format!(
            "the key {key} was written by a newer fencelock, in layout version {}, and this one \
             reads versions 1 and 2; upgrade this program",
            shown.rsplit("LAYOUT").next().unwrap_or_default().trim()
        )),
        "CLOCK" => clock_ahead(),
        // The part of a script that serves the frequent case does not look before it counts.
        code if code == "DAMAGED" || text.contains("attempt to ") => misconfigured(format!(
            "the record of the lock in the key {key} is damaged, or another program wrote it; stop \
             what uses this lock, and delete the key"
        )),
        // Servers name a missing permission and a missing command differently inside scripts.
        _ if text.contains("ACL failure in script")
            || text.contains("The user executing the script can't") =>
        {
            misconfigured(format!("{shown} ({})", LASTING[2].1))
        }
        _ if text.to_ascii_lowercase().contains("unknown command")
            || text.contains("Unknown Redis command") =>
        {
            Refusal {
                kind: RefusalKind::Unsupported,
                message: format!(
                    "{shown} (fencelock needs Redis 6.2 or later, or Valkey, with scripts allowed)"
                ),
            }
        }
        _ => misconfigured(shown.into_owned()),
    }
}
