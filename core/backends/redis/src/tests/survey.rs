//! What is made of what the server says.

use std::time::Duration;

use crate::survey::{Finding, Severity, Survey};

/// A server as it should be.
fn sound() -> Survey {
    Survey {
        flavour: "redis".to_owned(),
        version: Some("7.0.15".to_owned()),
        resp3: true,
        pubsub: true,
        role: Some("master".to_owned()),
        replicas: Some(0),
        maxmemory: Some(0),
        maxmemory_policy: Some("noeviction".to_owned()),
        append_only: Some(true),
        save: Some(String::new()),
        clock_ahead: 0,
        clock_error: 100,
        round_trip: Duration::from_micros(200),
        missing: Vec::new(),
        sentinels: None,
        cluster: None,
    }
}

fn server(flavour: &str, version: Option<&str>) -> Finding {
    let version = version.map(str::to_owned);
    let survey = Survey { flavour: flavour.to_owned(), version, ..sound() };
    survey.findings().into_iter().find(|finding| finding.name == "server").unwrap()
}

#[test]
fn a_redis_older_than_6_2_is_a_problem() {
    for old in ["2.8.24", "5.0.14", "6.0.20", "6.0.0-rc1", "6.1.999"] {
        let finding = server("redis", Some(old));
        assert_eq!(finding.severity, Severity::Problem, "{old}");
        assert!(finding.value.contains(old), "{finding:?}");
        assert!(
            finding.advice.as_ref().is_some_and(|advice| advice.contains("6.2")),
            "{finding:?}"
        );
    }
    for good in ["6.2.0", "6.10.1", "7.0.15", "8.2.1", "255.255.255"] {
        assert_eq!(server("redis", Some(good)).severity, Severity::Good, "{good}");
    }
}

#[test]
fn what_other_servers_count_otherwise_is_not_judged() {
    for (flavour, version) in [("valkey", "8.0.1"), ("dragonfly", "1.21.0"), ("kvrocks", "2.9.0")] {
        assert_eq!(server(flavour, Some(version)).severity, Severity::Good, "{flavour}");
    }
    assert_eq!(server("redis", Some("unstable")).severity, Severity::Good);
    assert_eq!(server("redis", None).severity, Severity::Note);
}
