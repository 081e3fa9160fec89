//! What the survey tells of real servers.

use fencelock_engine::ErrorKind;
use fencelock_redis::{Options, Severity, Survey, survey};
use fencelock_testkit::{
    RedisCluster, RedisSentinels, RedisServer, eventually, free_port, skip_servers,
};

fn ask(url: &str) -> Result<Survey, fencelock_engine::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(survey(Options::from_url(url).unwrap()))
}

fn severity(survey: &Survey, name: &str) -> Severity {
    let findings = survey.findings();
    let finding = findings.iter().find(|finding| finding.name == name).unwrap();
    assert!(!finding.meaning.is_empty() && !finding.value.is_empty());
    assert!(finding.advice.is_some() || finding.severity <= Severity::Note, "{finding:?}");
    finding.severity
}

#[test]
fn a_server_as_it_should_be() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::builder().persistent().start().unwrap();
    let survey = ask(&server.url()).unwrap();
    assert!(survey.version.is_some() && survey.resp3 && survey.pubsub);
    assert_eq!(survey.role.as_deref(), Some("master"));
    assert_eq!((survey.replicas, survey.append_only), (Some(0), Some(true)));
    assert_eq!((survey.may_evict(), survey.save.as_deref()), (Some(false), Some("")));
    assert_eq!(survey.missing, [""; 0]);
    assert!(survey.clock_ahead.abs() < 1_000_000, "the same machine: {}", survey.clock_ahead);
    assert!(survey.worst() <= Severity::Note, "{:?}", survey.findings());
    eventually("its key is gone", || {
        (server.cli(&["DBSIZE"]).unwrap() == redis::Value::Int(0)).then_some(())
    });
}

#[test]
fn a_server_that_could_evict_locks_and_forget_them() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::builder()
        .config("maxmemory 100mb")
        .config("maxmemory-policy allkeys-lru")
        .start()
        .unwrap();
    let survey = ask(&server.url()).unwrap();
    assert_eq!(survey.may_evict(), Some(true));
    assert_eq!(severity(&survey, "eviction"), Severity::Problem);
    assert_eq!(severity(&survey, "persistence"), Severity::Warning);
    assert_eq!(survey.worst(), Severity::Problem);
}

#[test]
fn a_replica_and_its_master() {
    if skip_servers() {
        return;
    }
    let (master, replica) = (RedisServer::start().unwrap(), RedisServer::start().unwrap());
    replica.cli(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]).unwrap();
    let survey = eventually("the replica is connected", || {
        Some(ask(&master.url()).unwrap()).filter(|survey| survey.replicas == Some(1))
    });
    assert_eq!(severity(&survey, "replicas"), Severity::Note);
    assert_eq!(severity(&ask(&replica.url()).unwrap(), "role"), Severity::Problem);
}

#[test]
fn sentinels_and_the_servers_that_could_take_over_are_looked_at() {
    if skip_servers() {
        return;
    }
    let mut all = RedisSentinels::start().unwrap();
    let survey = ask(&all.url()).unwrap();
    assert_eq!(survey.role.as_deref(), Some("master"));
    for name in ["sentinels", "down_after", "masters", "replica_clocks"] {
        assert_eq!(severity(&survey, name), Severity::Good, "{name}: {:?}", survey.sentinels);
    }
    // One Sentinel is away, and a replica was made a master by hand.
    all.sentinels[2].kill().unwrap();
    all.servers[1].cli(&["REPLICAOF", "NO", "ONE"]).unwrap();
    let survey = ask(&all.url()).unwrap();
    assert_eq!(severity(&survey, "sentinels"), Severity::Warning);
    assert_eq!(severity(&survey, "masters"), Severity::Problem);
    all.sentinels[1].kill().unwrap();
    let survey = ask(&all.url()).unwrap();
    assert_eq!(severity(&survey, "sentinels"), Severity::Problem);
    all.sentinels[0].kill().unwrap();
    let error = ask(&all.url()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

#[test]
fn missing_permissions_are_named() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    server
        .cli(&["ACL", "SETUSER", "u", "on", ">p", "~fl:*", "&fl:*", "+@all", "-hset", "-subscribe"])
        .unwrap();
    let url = format!("redis://u:p@{}", server.address());
    let survey = ask(&url).unwrap();
    assert_eq!(survey.missing.len(), 1, "{:?}", survey.missing);
    assert!(survey.missing[0].starts_with("HSET"), "{:?}", survey.missing);
    assert!(!survey.pubsub);
    assert_eq!(severity(&survey, "permissions"), Severity::Problem);
    assert_eq!(severity(&survey, "pubsub"), Severity::Warning);

    server.cli(&["ACL", "SETUSER", "u", "-info", "-config"]).unwrap();
    let survey = ask(&url).unwrap();
    assert_eq!((survey.may_evict(), survey.append_only, &survey.save), (None, None, &None));
    assert_eq!(severity(&survey, "eviction"), Severity::Note);
}

#[test]
fn no_answer_is_an_error_that_says_why() {
    if !skip_servers() {
        let server = RedisServer::builder().password("p").start().unwrap();
        let error = ask(&server.url()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misconfigured);
        assert!(error.message().contains("wants a password"), "{error}");
    }
    let url = format!("redis://127.0.0.1:{}", free_port().unwrap());
    assert_eq!(ask(&url).unwrap_err().kind(), ErrorKind::Unavailable);
}

const OF_CLUSTERS: [&str; 8] = [
    "nodes",
    "masters",
    "slots",
    "node_timeout",
    "node_eviction",
    "heirs",
    "node_clocks",
    "channels",
];

#[test]
fn every_server_of_a_cluster_is_looked_at() {
    if skip_servers() {
        return;
    }
    let mut cluster = RedisCluster::builder().config("appendonly yes").start().unwrap();
    let good = eventually("the replicas are connected", || {
        Some(ask(&cluster.url()).unwrap()).filter(|it| severity(it, "heirs") == Severity::Good)
    });
    let old = cluster.servers[0].cli(&["PUBSUB", "SHARDCHANNELS"]).is_err();
    for name in OF_CLUSTERS {
        let expected = if old && name == "channels" { Severity::Note } else { Severity::Good };
        assert_eq!(severity(&good, name), expected, "{name}: {:?}", good.cluster);
    }
    let of_one = ["role", "eviction", "persistence", "replicas", "pubsub"];
    assert!(!good.findings().iter().any(|finding| of_one.contains(&finding.name)));
    assert_eq!((good.missing.len(), good.cluster.as_ref().unwrap().members.len()), (0, 6));

    // One thing of each kind, each at another server.
    cluster.ask(1, &["CONFIG", "SET", "maxmemory", "1gb", "maxmemory-policy", "volatile-lru"]);
    cluster.ask(2, &["CONFIG", "SET", "cluster-node-timeout", "15000"]);
    cluster.ask(0, &["ACL", "SETUSER", "default", "-ssubscribe", "-spublish"]);
    cluster.ask(2, &["CONFIG", "SET", "appendonly", "no"]);
    let slot = cluster.slot(&cluster.name_at(0, "x"));
    cluster.begin_move(slot, 0, 1);
    cluster.servers[5].kill().unwrap();
    let bad = ask(&cluster.url()).unwrap();
    for (name, expected) in [
        ("nodes", Severity::Warning),
        ("masters", Severity::Good),
        ("slots", Severity::Warning),
        ("node_timeout", Severity::Warning),
        ("node_eviction", Severity::Problem),
        ("heirs", Severity::Warning),
        ("channels", if old { Severity::Note } else { Severity::Warning }),
        ("permissions", if old { Severity::Good } else { Severity::Problem }),
    ] {
        assert_eq!(severity(&bad, name), expected, "{name}: {:?}", bad.cluster);
    }
}

#[test]
fn a_cluster_whose_master_is_away_says_so_whoever_is_asked_first() {
    if skip_servers() {
        return;
    }
    let mut cluster = RedisCluster::builder().masters_alone().start().unwrap();
    assert_eq!(severity(&ask(&cluster.url()).unwrap(), "heirs"), Severity::Warning);
    cluster.servers[0].kill().unwrap();
    let survey = ask(&cluster.url()).unwrap();
    for name in ["nodes", "slots"] {
        assert_eq!(severity(&survey, name), Severity::Problem, "{:?}", survey.cluster);
    }
    cluster.servers[0].restart().unwrap();
    eventually("it is back", || {
        let survey = ask(&cluster.url()).unwrap();
        (severity(&survey, "slots") == Severity::Good).then_some(())
    });
}
