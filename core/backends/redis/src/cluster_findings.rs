//! What the findings about a cluster's servers mean for locks.

use fencelock_engine::finding::{Finding, Severity};
use fencelock_engine::redis::Node;

use crate::survey_cluster::{ClusterSurvey, Member};
use crate::takeover_findings;

/// Everything about them.
pub(crate) fn all(cluster: &ClusterSurvey) -> [Finding; 8] {
    [
        reach(cluster),
        masters(cluster),
        slots(cluster),
        node_timeout(cluster),
        eviction(cluster),
        heirs(cluster),
        clocks(cluster),
        channels(cluster),
    ]
}

/// Those that answered.
fn members(cluster: &ClusterSurvey) -> impl Iterator<Item = (&Node, &Member)> {
    cluster.members.iter().filter_map(|(node, said)| Some((node, said.as_ref().ok()?)))
}

fn masters_of(cluster: &ClusterSurvey) -> impl Iterator<Item = (&Node, &Member)> {
    members(cluster).filter(|(_, member)| member.master)
}

/// The names of some, or what stands for none.
fn named<'a>(nodes: impl Iterator<Item = &'a Node>, none: &str) -> String {
    let names: Vec<String> = nodes.map(ToString::to_string).collect();
    if names.is_empty() { none.to_owned() } else { names.join(", ") }
}

/// Whether each answers.
fn reach(cluster: &ClusterSurvey) -> Finding {
    let mut value = format!("{} of {} answer", members(cluster).count(), cluster.members.len());
    let mut masters = 0;
    for (node, said) in &cluster.members {
        if let Err(why) = said {
            value.push_str(&format!("; {node}: {why}"));
            masters += usize::from(cluster.masters.contains(node));
        }
    }
    let (severity, meaning) = match (masters, members(cluster).count() < cluster.members.len()) {
        (0, false) => (Severity::Good, "every master and replica can be reached"),
        (0, true) => {
            (Severity::Warning, "a replica that takes over could not be reached from here")
        }
        _ => (Severity::Problem, "locks in the slots of a master that is away are not served"),
    };
    let advice = "mend those servers, or say how they are reached from here (map)";
    Finding::new("nodes", value, severity, meaning, (severity > Severity::Good).then_some(advice))
}

/// Whether two take the same slots for their own.
fn masters(cluster: &ClusterSurvey) -> Finding {
    let shown: Vec<String> =
        masters_of(cluster).map(|(node, it)| format!("{node} (epoch {})", it.epoch)).collect();
    let (value, (_, twice)) = (shown.join(", "), cluster.slots());
    match twice.first() {
        Some(slot) => Finding::new(
            "masters",
            format!("{value}; {} slots, as {slot}, at two of them", twice.len()),
            Severity::Problem,
            "two servers take writes for the same slots: who reaches only one takes locks that the \
             other does not know",
            Some("it ends by itself after a failover; if it stays, have one of them CLUSTER RESET"),
        ),
        None => Finding::new(
            "masters",
            value,
            Severity::Good,
            "each has slots of its own, and nobody else takes writes for them",
            None,
        ),
    }
}

/// Whether all slots are served, and at rest.
fn slots(cluster: &ClusterSurvey) -> Finding {
    let (uncovered, _) = cluster.slots();
    let mut moving: Vec<String> = Vec::new();
    for (node, member) in members(cluster) {
        moving.extend(member.moving.iter().map(|slot| format!("{slot} at {node}")));
    }
    if uncovered > 0 {
        return Finding::new(
            "slots",
            format!("{uncovered} served by nobody that answers"),
            Severity::Problem,
            "locks in these slots are not served, and unless cluster-require-full-coverage is no, \
             none are",
            Some("bring their master back, or have its replica take over"),
        );
    }
    if !moving.is_empty() {
        return Finding::new(
            "slots",
            format!("all served; moving: {}", moving.join(", ")),
            Severity::Warning,
            "while a slot moves, who wants one of its locks waits, and some holds are not renewed",
            Some(
                "let the move end; one that was broken off ends by CLUSTER SETSLOT … STABLE at both",
            ),
        );
    }
    Finding::new("slots", "all served", Severity::Good, "every lock has a server", None)
}

/// How soon a master that died is replaced.
fn node_timeout(cluster: &ClusterSurvey) -> Finding {
    let Some(span) = members(cluster).filter_map(|(_, member)| member.node_timeout).max() else {
        let meaning = "this user may not ask, so it was not checked";
        return Finding::new("node_timeout", "not told", Severity::Note, meaning, None);
    };
    takeover_findings::replaced(
        "node_timeout",
        span,
        "lower cluster-node-timeout, or make leases several times as long",
        "after so long a silence, and some seconds, a master is replaced; leases should be several \
         times that",
    )
}

fn eviction(cluster: &ClusterSurvey) -> Finding {
    let evicting: Vec<String> = members(cluster)
        .filter_map(|(node, member)| Some(format!("{node}: {}", member.evicts.as_ref()?)))
        .collect();
    if evicting.is_empty() {
        return Finding::new(
            "node_eviction",
            "none",
            Severity::Good,
            "no lock is thrown away",
            None,
        );
    }
    Finding::new(
        "node_eviction",
        evicting.join(", "),
        Severity::Problem,
        "when memory is full the server throws keys away, locks among them: two holders could then \
         have the same lock (tokens still grow)",
        Some("set maxmemory-policy noeviction on every server"),
    )
}

/// Whether a master that dies has somebody to take over, and one that restarts knows its locks.
fn heirs(cluster: &ClusterSurvey) -> Finding {
    let alone = |member: &Member| member.replicas == Some(0);
    let forgets = |member: &Member| member.append_only == Some(false);
    let of = |test: &dyn Fn(&Member) -> bool| {
        named(masters_of(cluster).filter(|(_, it)| test(it)).map(|(node, _)| node), "none")
    };
    let value = format!("without a replica: {}; without a file: {}", of(&alone), of(&forgets));
    if masters_of(cluster).any(|(_, member)| forgets(member)) {
        return Finding::new(
            "heirs",
            value,
            Severity::Warning,
            "a master without an append-only file that is started again before it is replaced has \
             forgotten its locks, and its replicas forget them with it",
            Some("set appendonly yes, or do not let a master be started again by itself"),
        );
    }
    if masters_of(cluster).any(|(_, member)| alone(member)) {
        return Finding::new(
            "heirs",
            value,
            Severity::Warning,
            "when such a master dies, locks in its slots are not served until it is back",
            Some("give each master a replica"),
        );
    }
    Finding::new(
        "heirs",
        value,
        Severity::Good,
        "each master has a replica, and keeps a file",
        None,
    )
}

/// Whether servers have different times.
fn clocks(cluster: &ClusterSurvey) -> Finding {
    let ahead = || members(cluster).map(|(node, member)| (member.clock_ahead, node));
    let (Some(first), Some(last)) = (ahead().min(), ahead().max()) else {
        let meaning = "nobody answered";
        return Finding::new("node_clocks", "not told", Severity::Note, meaning, None);
    };
    let apart = last.0.abs_diff(first.0);
    let value = format!("at most {} ms apart ({}, {})", apart.div_ceil(1_000), first.1, last.1);
    takeover_findings::clocks(
        "node_clocks",
        apart,
        value,
        "after a failover, or where a slot has moved, leases would end early by more than \
         holders allow for (clock_slack, 100 ms)",
        Severity::Good,
    )
}

/// Whether waiters can hear by the channels of their locks.
fn channels(cluster: &ClusterSurvey) -> Finding {
    let mut without = 0;
    for (node, member) in masters_of(cluster) {
        match &member.channels {
            Some(Ok(())) => {}
            Some(Err(why)) => {
                return Finding::new(
                    "channels",
                    format!("{node}: {why}"),
                    Severity::Warning,
                    "waiters poll: a hand-off takes up to a second, and costs requests",
                    Some("allow the user +ssubscribe +sunsubscribe +spublish (docs/redis.md)"),
                );
            }
            None => without += 1,
        }
    }
    if without > 0 {
        return Finding::new(
            "channels",
            "not of each lock",
            Severity::Note,
            "servers before version 7 send each message to all of the cluster; with RESP2 waiters poll",
            Some("use Redis 7.0 or later, or Valkey, with RESP3"),
        );
    }
    Finding::new(
        "channels",
        "of each lock",
        Severity::Good,
        "a waiter hears of its grant at once, by its lock's server alone",
        None,
    )
}
