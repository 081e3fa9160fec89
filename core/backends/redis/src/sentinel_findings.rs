//! What the findings about Sentinels mean for locks.

use fencelock_engine::finding::{Finding, Severity};

use crate::survey_sentinels::{Replica, SentinelSurvey};
use crate::takeover_findings;

/// Everything about them; `ahead` is how far the master's clock is ahead of this machine's.
pub(crate) fn all(sentinels: &SentinelSurvey, ahead: i64) -> [Finding; 4] {
    [agreement(sentinels), down_after(sentinels), masters(sentinels), clocks(sentinels, ahead)]
}

/// Whether the Sentinels say the same.
fn agreement(sentinels: &SentinelSurvey) -> Finding {
    let master = sentinels.master();
    let epoch = sentinels.said.iter().map(|(_, _, epoch)| *epoch).max().unwrap_or(0);
    let agree = sentinels.said.iter().filter(|(_, node, _)| Some(node) == master).count();
    let named = master.map_or("nobody".to_owned(), ToString::to_string);
    let mut value = format!("{agree} of {} say {named} (epoch {epoch})", sentinels.all);
    for (node, why) in &sentinels.silent {
        value.push_str(&format!("; {node}: {why}"));
    }
    if agree * 2 <= sentinels.all {
        return Finding::new(
            "sentinels",
            value,
            Severity::Problem,
            "fewer than most of the Sentinels agree: a dead master may not be replaced",
            Some("mend the Sentinels that are away or differ, and name all of them in the URL"),
        );
    }
    if agree < sentinels.all {
        return Finding::new(
            "sentinels",
            value,
            Severity::Warning,
            "some of the Sentinels are away or know less: a client may hear of a failover late",
            Some("mend those; a client may be the only one that cannot reach them"),
        );
    }
    Finding::new(
        "sentinels",
        value,
        Severity::Good,
        "they agree on which server is the master",
        None,
    )
}

/// How soon a master that died is replaced.
fn down_after(sentinels: &SentinelSurvey) -> Finding {
    let Some(span) = sentinels.down_after else {
        let meaning = "the Sentinel did not tell it, so it was not checked";
        return Finding::new("down_after", "not told", Severity::Note, meaning, None);
    };
    takeover_findings::replaced(
        "down_after",
        span,
        "lower down-after-milliseconds, or make leases several times as long",
        "after so long a silence a master is replaced; leases should be several times that",
    )
}

/// Whether another server takes itself for the master.
fn masters(sentinels: &SentinelSurvey) -> Finding {
    let other = |(node, said): &(_, Result<Replica, _>)| match said {
        Ok(replica) if replica.claims => Some(format!("{node} too")),
        _ => None,
    };
    let others: Vec<String> = sentinels.replicas.iter().filter_map(other).collect();
    if others.is_empty() {
        return Finding::new(
            "masters",
            "one",
            Severity::Good,
            "no other server takes writes",
            None,
        );
    }
    Finding::new(
        "masters",
        others.join(", "),
        Severity::Problem,
        "two servers take writes: who reaches only one side takes locks that the other does not know",
        Some("it ends by itself after a failover; if it stays, make the old master a replica"),
    )
}

/// Whether a server that could take over has another time.
fn clocks(sentinels: &SentinelSurvey, ahead: i64) -> Finding {
    let mut furthest: Option<(u64, String)> = None;
    let mut untold = Vec::new();
    for (node, said) in &sentinels.replicas {
        match said {
            Ok(replica) => {
                let apart = replica.clock_ahead.abs_diff(ahead);
                if furthest.as_ref().is_none_or(|(most, _)| apart > *most) {
                    furthest = Some((apart, node.to_string()));
                }
            }
            Err(why) => untold.push(format!("{node}: {why}")),
        }
    }
    let Some((apart, node)) = furthest else {
        return Finding::new(
            "replica_clocks",
            if untold.is_empty() { "no replica".to_owned() } else { untold.join("; ") },
            Severity::Warning,
            "no server could be asked that would take over",
            Some("run replicas that clients can reach, with the same login and +role"),
        );
    };
    let mut value = format!("at most {} ms apart ({node})", apart.div_ceil(1_000));
    for why in &untold {
        value.push_str(&format!("; {why}"));
    }
    takeover_findings::clocks(
        "replica_clocks",
        apart,
        value,
        "after a failover leases would end early by more than holders allow for (clock_slack, 100 ms)",
        if untold.is_empty() { Severity::Good } else { Severity::Note },
    )
}
