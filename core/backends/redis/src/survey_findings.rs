//! What the findings of a survey mean for locks.

use crate::survey::{Finding, Severity, Survey};
use crate::{cluster_findings, sentinel_findings};

/// The oldest Redis that the scripts are written for.
const OLDEST: (u32, u32) = (6, 2);

/// A difference that is worth a word, in microseconds.
const CLOCKS_APART: u64 = 1_000_000;

/// What is told of each server of a cluster instead.
const OF_ONE: [&str; 5] = ["pubsub", "role", "eviction", "persistence", "replicas"];

impl Survey {
    /// Everything, with what it means and what to do.
    pub fn findings(&self) -> Vec<Finding> {
        findings(self)
    }

    /// The worst of the findings.
    pub fn worst(&self) -> Severity {
        Finding::worst(&self.findings())
    }

    /// Whether it is a Redis before [`OLDEST`]. Other servers count their versions otherwise.
    fn is_too_old(&self) -> bool {
        let version = self.version.as_deref().filter(|_| self.flavour == "redis");
        version.and_then(numbers).is_some_and(|version| version < OLDEST)
    }
}

fn findings(survey: &Survey) -> Vec<Finding> {
    let mut all = vec![
        version(survey),
        permissions(survey),
        resp3(survey),
        pubsub(survey),
        role(survey),
        eviction(survey),
        persistence(survey),
        replicas(survey),
        clock(survey),
        round_trip(survey),
    ];
    if let Some(cluster) = &survey.cluster {
        // What is one server's is told of each.
        all.retain(|finding| !OF_ONE.contains(&finding.name));
        all.extend(cluster_findings::all(cluster));
    }
    if let Some(sentinels) = &survey.sentinels {
        all.extend(sentinel_findings::all(sentinels, survey.clock_ahead));
    }
    all
}

/// The first two numbers of a version.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

fn untold(name: &'static str) -> Finding {
    Finding::new(
        name,
        "not told",
        Severity::Note,
        "this user may not ask, so it was not checked",
        Some("run the survey as an administrator, or allow +info and +config|get"),
    )
}

fn version(survey: &Survey) -> Finding {
    let value = match &survey.version {
        Some(version) => format!("{} {version}", survey.flavour),
        None => return untold("server"),
    };
    if survey.is_too_old() {
        return Finding::new(
            "server",
            value,
            Severity::Problem,
            "older than what the scripts of locks are written for",
            Some("use Redis 6.2 or later, or Valkey"),
        );
    }
    Finding::new("server", value, Severity::Good, "the server that keeps the locks", None)
}

fn permissions(survey: &Survey) -> Finding {
    if survey.missing.is_empty() {
        return Finding::new(
            "permissions",
            "all there",
            Severity::Good,
            "this user may use every command and key that locks need",
            None,
        );
    }
    Finding::new(
        "permissions",
        survey.missing.join("; "),
        Severity::Problem,
        "this user may not use commands or keys that locks need",
        Some("give the user the ACL of docs/redis.md"),
    )
}

fn resp3(survey: &Survey) -> Finding {
    if survey.resp3 {
        return Finding::new(
            "resp3",
            "yes",
            Severity::Good,
            "one connection carries pushes too",
            None,
        );
    }
    Finding::new(
        "resp3",
        "no",
        Severity::Note,
        "each client needs a second connection for pushes",
        Some("use Redis 6 or later, without a proxy that speaks RESP2 only"),
    )
}

fn pubsub(survey: &Survey) -> Finding {
    if survey.pubsub {
        return Finding::new(
            "pubsub",
            "yes",
            Severity::Good,
            "a waiter hears of its grant at once",
            None,
        );
    }
    Finding::new(
        "pubsub",
        "no",
        Severity::Warning,
        "waiters poll: a hand-off takes up to a second, and costs requests",
        Some("allow the user +subscribe and its channels (docs/redis.md)"),
    )
}

fn role(survey: &Survey) -> Finding {
    match survey.role.as_deref() {
        Some("master") => {
            Finding::new("role", "master", Severity::Good, "this server takes writes", None)
        }
        Some(role) => Finding::new(
            "role",
            role,
            Severity::Problem,
            "this server is a replica and refuses to lock",
            Some("connect to the master"),
        ),
        None => untold("role"),
    }
}

fn eviction(survey: &Survey) -> Finding {
    let (Some(policy), Some(evicts)) = (&survey.maxmemory_policy, survey.may_evict()) else {
        return untold("eviction");
    };
    if evicts {
        return Finding::new(
            "eviction",
            policy.as_str(),
            Severity::Problem,
            "when memory is full the server throws keys away, locks among them: two holders \
             could then have the same lock (tokens still grow)",
            Some("set maxmemory-policy noeviction, or keep locks on a server of their own"),
        );
    }
    if policy != "noeviction" {
        return Finding::new(
            "eviction",
            format!("{policy}, without maxmemory"),
            Severity::Note,
            "nothing is thrown away as long as maxmemory is not set",
            Some("set maxmemory-policy noeviction before maxmemory"),
        );
    }
    Finding::new("eviction", policy.as_str(), Severity::Good, "no lock is thrown away", None)
}

fn persistence(survey: &Survey) -> Finding {
    let save = survey.save.as_deref().unwrap_or_default();
    match survey.append_only {
        Some(true) => Finding::new(
            "persistence",
            "append-only file",
            Severity::Good,
            "locks outlive a restart, up to what appendfsync may lose",
            None,
        ),
        Some(false) if save.is_empty() => Finding::new(
            "persistence",
            "none",
            Severity::Warning,
            "a restart forgets every lock: holders may overlap for up to a lease, told apart by \
             their tokens only",
            Some("set appendonly yes, or let what the lock protects check tokens"),
        ),
        Some(false) => Finding::new(
            "persistence",
            format!("snapshots ({save})"),
            Severity::Warning,
            "a crash forgets the locks since the last snapshot: holders may overlap for up to a \
             lease, told apart by their tokens only",
            Some("set appendonly yes, or let what the lock protects check tokens"),
        ),
        None => untold("persistence"),
    }
}

fn replicas(survey: &Survey) -> Finding {
    match survey.replicas {
        Some(0) => Finding::new(
            "replicas",
            "0",
            Severity::Note,
            "when this server is down, nobody locks",
            None,
        ),
        Some(count) => Finding::new(
            "replicas",
            count.to_string(),
            Severity::Note,
            "a replica that takes over may lack the last writes: holders may then overlap, told \
             apart by their tokens only",
            Some("let what the lock protects check tokens"),
        ),
        None => untold("replicas"),
    }
}

fn clock(survey: &Survey) -> Finding {
    let ahead = survey.clock_ahead as f64 / 1000.0;
    let error = survey.clock_error as f64 / 1000.0;
    let value = format!("{ahead:+.1} ms (±{error:.1})");
    if survey.clock_ahead.unsigned_abs() > CLOCKS_APART + survey.clock_error {
        return Finding::new(
            "clock",
            value,
            Severity::Warning,
            "the server's clock and this machine's differ; leases count by the server's, so this \
             matters when another server takes over or the clock is put right with a step",
            Some("let NTP run on both, and slew rather than step"),
        );
    }
    Finding::new("clock", value, Severity::Good, "the clocks agree", None)
}

fn round_trip(survey: &Survey) -> Finding {
    let value = format!("{:.2} ms", survey.round_trip.as_secs_f64() * 1000.0);
    Finding::new("round_trip", value, Severity::Good, "what an acquire costs without waiting", None)
}
