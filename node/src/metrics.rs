//! What a client has counted.

use napi_derive::napi;

use fencelock_support::LossReason;

use crate::outcome::loss;

/// Counters of a client since it was made.
#[napi(object, object_from_js = false)]
pub struct Metrics {
    /// Holds granted.
    pub grants: f64,
    /// Of these, re-entries.
    pub reentries: f64,
    /// Of these, passed on within the client without asking the store.
    pub local: f64,
    /// Holds that ended before their release.
    pub losses: f64,
    /// The same, by reason.
    pub losses_by: Vec<LossCount>,
    /// Renewals, each of each hold counted.
    pub renewals: f64,
    /// Renewals that failed and were tried again.
    pub renewal_failures: f64,
    /// Times the store said that it may not publish to this client.
    pub publish_failures: f64,
    /// Grants that arrived when their wait was over, and were given back.
    pub stray_grants: f64,
    /// Connections lost.
    pub reconnects: f64,
    /// Acquires that wait now.
    pub waiting: f64,
    /// All of it, with the histograms, in Prometheus' text format.
    pub prometheus: String,
}

/// How many holds were lost for one reason.
#[napi(object, object_from_js = false)]
pub struct LossCount {
    /// The reason.
    pub reason: String,
    /// How many.
    pub count: f64,
}

const REASONS: [LossReason; 5] = [
    LossReason::Ended,
    LossReason::NotRenewed,
    LossReason::Gone,
    LossReason::Broken,
    LossReason::Closed,
];

#[expect(clippy::cast_precision_loss, reason = "a count beyond 2^53 takes centuries")]
fn number(count: u64) -> f64 {
    count as f64
}

impl From<fencelock_support::Metrics> for Metrics {
    fn from(metrics: fencelock_support::Metrics) -> Metrics {
        let by = |reason: &LossReason| LossCount {
            reason: loss(*reason).to_owned(),
            count: number(metrics.losses_by(*reason)),
        };
        Metrics {
            grants: number(metrics.grants()),
            reentries: number(metrics.grants_reentry()),
            local: number(metrics.grants_local()),
            losses: number(metrics.losses()),
            losses_by: REASONS.iter().map(by).collect(),
            renewals: number(metrics.renewals),
            renewal_failures: number(metrics.renewal_failures),
            publish_failures: number(metrics.publish_failures),
            stray_grants: number(metrics.stray_grants),
            reconnects: number(metrics.reconnects),
            waiting: number(metrics.waiting),
            prometheus: metrics.to_prometheus(),
        }
    }
}
