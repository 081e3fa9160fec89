//! What a client counts.

use std::fmt::Write as _;
use std::time::Duration;

use fencelock_engine::lane::LaneState;
use fencelock_engine::{Grant, How, LossReason, Note};

/// The upper bounds of the histograms' buckets, in microseconds; one more is unbounded.
const BOUNDS: [u64; 14] = [
    10,
    100,
    1_000,
    5_000,
    10_000,
    50_000,
    100_000,
    500_000,
    1_000_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
];

const HOWS: [(How, &str); 5] = [
    (How::Reentry, "reentry"),
    (How::Local, "local"),
    (How::Reply, "reply"),
    (How::Push, "push"),
    (How::Poll, "poll"),
];

const LOSSES: [(LossReason, &str); 5] = [
    (LossReason::Ended, "ended"),
    (LossReason::NotRenewed, "not_renewed"),
    (LossReason::Gone, "gone"),
    (LossReason::Broken, "broken"),
    (LossReason::Closed, "closed"),
];

/// The client's own counters, kept under its mutex.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    grants: [u64; 5],
    losses: [u64; 5],
    renewals: u64,
    renewal_failures: u64,
    publish_failures: u64,
    stray_grants: u64,
    reconnects: u64,
    waits: Spread,
    holds: Spread,
}

#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    counts: [u64; BOUNDS.len() + 1],
    sum: Duration,
}

impl Spread {
    fn add(&mut self, span: Duration) {
        // Compared in nanoseconds: a division by 1,000 would be the dearest part of a release.
        let nanos = span.as_nanos();
        let bucket = BOUNDS.iter().position(|bound| nanos <= u128::from(*bound) * 1_000);
        self.counts[bucket.unwrap_or(BOUNDS.len())] += 1;
        self.sum = self.sum.saturating_add(span);
    }

    fn snapshot(&self) -> Histogram {
        let mut below = 0;
        let buckets = self.counts.iter().enumerate().map(|(index, count)| {
            below += count;
            Bucket { upper: BOUNDS.get(index).map(|m| Duration::from_micros(*m)), count: below }
        });
        Histogram { buckets: buckets.collect(), sum: self.sum }
    }
}

impl Counts {
    pub(crate) fn granted(&mut self, grant: &Grant) {
        self.grants[how_index(grant.how)] += 1;
        if grant.how != How::Reentry {
            self.waits.add(grant.waited);
        }
    }

    pub(crate) fn note(&mut self, note: &Note) {
        match note {
            Note::Renewed(count) => self.renewals += *count as u64,
            Note::RenewalFailed { .. } => self.renewal_failures += 1,
            Note::Lost { reason, .. } => self.losses[loss_index(*reason)] += 1,
            Note::PublishFailed => self.publish_failures += 1,
            Note::StrayGrant(_) => self.stray_grants += 1,
        }
    }

    pub(crate) fn held(&mut self, span: Duration) {
        self.holds.add(span);
    }

    pub(crate) fn reconnected(&mut self) {
        self.reconnects += 1;
    }

    pub(crate) fn snapshot(
        &self,
        waiting: u64,
        reentries: u64,
        servers: Vec<ServerMetrics>,
    ) -> Metrics {
        let mut grants = self.grants;
        grants[how_index(How::Reentry)] += reentries;
        Metrics {
            grants,
            losses: self.losses,
            renewals: self.renewals,
            renewal_failures: self.renewal_failures,
            publish_failures: self.publish_failures,
            stray_grants: self.stray_grants,
            reconnects: self.reconnects,
            waiting,
            waits: self.waits.snapshot(),
            holds: self.holds.snapshot(),
            servers,
        }
    }
}

fn how_index(how: How) -> usize {
    match how {
        How::Reentry => 0,
        How::Local => 1,
        How::Reply => 2,
        How::Push => 3,
        How::Poll => 4,
    }
}

fn loss_index(reason: LossReason) -> usize {
    match reason {
        LossReason::Ended => 0,
        LossReason::NotRenewed => 1,
        LossReason::Gone => 2,
        LossReason::Broken => 3,
        LossReason::Closed => 4,
    }
}

/// What a client has counted since it was made; from [`Client::metrics`](crate::Client::metrics).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
/// # let client = fencelock::Client::connect("memory:").await?;
/// client.lock("counted")?.acquire().await?.release().await?;
/// let metrics = client.metrics();
/// assert_eq!(metrics.grants(), 1);
/// assert_eq!(metrics.holds.count(), 1);
/// assert!(metrics.to_prometheus().contains("fencelock_hold_seconds_count 1"));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics {
    grants: [u64; 5],
    losses: [u64; 5],
    /// Holds renewed, each renewal of each hold counted.
    pub renewals: u64,
    /// Renewals that failed and were tried again.
    pub renewal_failures: u64,
    /// Times the store said that it may not publish to this client.
    pub publish_failures: u64,
    /// Grants that arrived for a wait that was over, and were given back.
    pub stray_grants: u64,
    /// Connections that were lost.
    pub reconnects: u64,
    /// Acquires that wait at this moment.
    pub waiting: u64,
    /// How long granted acquires waited; re-entries are not among them.
    pub waits: Histogram,
    /// How long released holds lasted.
    pub holds: Histogram,
    /// Each server that the client has asked: each master of a cluster, those of earlier among them;
    /// elsewhere the one that there is.
    pub servers: Vec<ServerMetrics>,
}

/// What a client has counted of one server; from [`Metrics`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerMetrics {
    /// Its host and port where there are several servers; otherwise the store's name, such as `redis`.
    pub name: String,
    /// There is a connection, and it answers.
    pub connected: bool,
    /// How many requests were asked of it.
    pub requests: u64,
    /// How often it was silent for so long that the client looked whether the connection is dead.
    pub doubts: u64,
    /// How long its answers take: the longest of late, which one that comes sooner halves.
    pub round_trip: Duration,
}

impl ServerMetrics {
    pub(crate) fn of(name: String, state: LaneState) -> ServerMetrics {
        let LaneState { lane: _, connected, requests, doubts, latency } = state;
        ServerMetrics { name, connected, requests, doubts, round_trip: latency }
    }
}

impl Metrics {
    /// How many holds were granted.
    pub fn grants(&self) -> u64 {
        self.grants.iter().sum()
    }

    /// How many holds were granted as re-entries. Those that need nothing of their own are counted
    /// when the outermost hold is released.
    pub fn grants_reentry(&self) -> u64 {
        self.grants[0]
    }

    /// How many holds passed from another holder in this client without asking the store.
    pub fn grants_local(&self) -> u64 {
        self.grants[1]
    }

    /// How many holds ended before their release.
    pub fn losses(&self) -> u64 {
        self.losses.iter().sum()
    }

    /// How many holds ended for this reason before their release.
    pub fn losses_by(&self, reason: LossReason) -> u64 {
        self.losses[loss_index(reason)]
    }

    /// All of it in Prometheus' text format.
    pub fn to_prometheus(&self) -> String {
        let mut out = String::new();
        head(&mut out, "fencelock_grants_total", "counter", "Holds granted, by how.");
        for (how, label) in HOWS {
            let count = self.grants[how_index(how)];
            line(&mut out, &format!("fencelock_grants_total{{how=\"{label}\"}}"), count);
        }
        head(&mut out, "fencelock_losses_total", "counter", "Holds lost, by reason.");
        for (reason, label) in LOSSES {
            let count = self.losses[loss_index(reason)];
            line(&mut out, &format!("fencelock_losses_total{{reason=\"{label}\"}}"), count);
        }
        for (name, kind, help, value) in [
            ("fencelock_renewals_total", "counter", "Holds renewed.", self.renewals),
            (
                "fencelock_renewal_failures_total",
                "counter",
                "Renewals that failed and were tried again.",
                self.renewal_failures,
            ),
            (
                "fencelock_publish_failures_total",
                "counter",
                "Times the store could not publish to this client.",
                self.publish_failures,
            ),
            (
                "fencelock_stray_grants_total",
                "counter",
                "Grants given back because their wait was over.",
                self.stray_grants,
            ),
            ("fencelock_reconnects_total", "counter", "Connections lost.", self.reconnects),
            ("fencelock_waiting", "gauge", "Acquires waiting now.", self.waiting),
        ] {
            head(&mut out, name, kind, help);
            line(&mut out, name, value);
        }
        self.write_servers(&mut out);
        self.waits.write(&mut out, "fencelock_wait_seconds", "How long acquires waited.");
        self.holds.write(&mut out, "fencelock_hold_seconds", "How long holds lasted.");
        out
    }

    fn write_servers(&self, out: &mut String) {
        type Value = fn(&ServerMetrics) -> f64;
        let lines: [(&str, &str, &str, Value); 4] = [
            (
                "fencelock_server_connected",
                "gauge",
                "Whether there is a connection that answers.",
                |it| f64::from(u8::from(it.connected)),
            ),
            ("fencelock_server_requests_total", "counter", "Requests asked.", |it| {
                it.requests as f64
            }),
            (
                "fencelock_server_doubts_total",
                "counter",
                "Times that its connection was silent for too long.",
                |it| it.doubts as f64,
            ),
            (
                "fencelock_server_answer_seconds",
                "gauge",
                "How long answers take, the longest of late.",
                |it| it.round_trip.as_secs_f64(),
            ),
        ];
        for (name, kind, help, value) in lines {
            head(out, name, kind, help);
            for server in &self.servers {
                // A host's name has nothing that a label must escape.
                line(out, &format!("{name}{{server=\"{}\"}}", server.name), value(server));
            }
        }
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail.
    let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

fn line(out: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(out, "{name} {value}");
}

/// A histogram of durations, cumulative as Prometheus has it.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// The buckets, by rising bound; the last is unbounded.
    pub buckets: Vec<Bucket>,
    /// The sum of all durations.
    pub sum: Duration,
}

/// A bucket of a [`Histogram`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The inclusive upper bound; `None` for the unbounded one.
    pub upper: Option<Duration>,
    /// How many durations do not exceed it.
    pub count: u64,
}

impl Histogram {
    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.buckets.last().map_or(0, |bucket| bucket.count)
    }

    fn write(&self, out: &mut String, name: &str, help: &str) {
        head(out, name, "histogram", help);
        for bucket in &self.buckets {
            let upper = bucket.upper.map_or("+Inf".to_owned(), |u| u.as_secs_f64().to_string());
            line(out, &format!("{name}_bucket{{le=\"{upper}\"}}"), bucket.count);
        }
        line(out, &format!("{name}_sum"), self.sum.as_secs_f64());
        line(out, &format!("{name}_count"), self.count());
    }
}
