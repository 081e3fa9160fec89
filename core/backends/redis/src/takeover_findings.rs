//! What it means for locks how another server takes over, behind Sentinels and in a cluster.

use std::time::Duration;

use fencelock_engine::finding::{Finding, Severity};

/// By how much clocks of servers may differ that take over from each other, in microseconds.
const SLACK: u64 = 100_000;

/// How soon a master that died is replaced. `lower`: what to do where that is late; `good`: what it means
/// otherwise.
pub(crate) fn replaced(
    name: &'static str,
    span: Duration,
    lower: &'static str,
    good: &'static str,
) -> Finding {
    let value = format!("{span:?}");
    // A default lease is renewed each 10 s, and lasts for 30.
    if span > Duration::from_secs(10) {
        return Finding::new(
            name,
            value,
            Severity::Warning,
            "a master that died is replaced so late that a default lease of 30 s may end before",
            Some(lower),
        );
    }
    Finding::new(name, value, Severity::Good, good, None)
}

/// How far clocks are apart, in microseconds. `early`: what is to be feared where that is far; `near`: how it is
/// to be taken otherwise.
pub(crate) fn clocks(
    name: &'static str,
    apart: u64,
    value: String,
    early: &'static str,
    near: Severity,
) -> Finding {
    if apart > SLACK {
        return Finding::new(
            name,
            value,
            Severity::Warning,
            early,
            Some("keep the servers' clocks together by NTP, or raise clock_slack in every client"),
        );
    }
    Finding::new(
        name,
        value,
        near,
        "a server that takes over has nearly the same time: holders allow for 100 ms (clock_slack)",
        None,
    )
}
