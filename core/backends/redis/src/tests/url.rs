use std::path::PathBuf;
use std::time::Duration;

use fencelock_engine::ErrorKind;

use crate::{Address, Login, Options, Protocol, Replicas};

fn refused(url: &str) -> String {
    let error = Options::from_url(url).expect_err(url);
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{url}");
    assert!(!error.message().contains("secret"), "{error}");
    error.message().to_owned()
}

#[test]
fn tcp_and_tls_urls() {
    let options = Options::from_url("redis://").err();
    assert!(options.is_some(), "a host is needed");

    let options = Options::from_url("redis://example").unwrap();
    assert_eq!(options.address, Address::Tcp { host: "example".into(), port: 6379 });
    assert_eq!((options.db, options.login, options.prefix.as_str()), (0, None, "fl:"));
    assert_eq!(options.connect_timeout, Duration::from_secs(5));

    let options = Options::from_url(
        "rediss://ann:s%40cret@[::1]:7000/3?prefix=shop%3A&connect_timeout=1500ms&backoff_min=20ms\
         &backoff_max=1m&protocol=2&tls_ca=/a&tls_cert=/b&tls_key=/c",
    )
    .unwrap();
    assert_eq!(options.address, Address::Tls { host: "::1".into(), port: 7000 });
    assert_eq!(options.address.to_string(), "[::1]:7000");
    assert_eq!(options.login, Some(Login { user: Some("ann".into()), password: "s@cret".into() }));
    assert_eq!((options.db, options.prefix.as_str()), (3, "shop:"));
    assert_eq!(options.connect_timeout, Duration::from_millis(1500));
    assert_eq!(options.backoff_min, Duration::from_millis(20));
    assert_eq!(options.backoff_max, Duration::from_secs(60));
    assert_eq!(options.protocol, Protocol::Resp2);
    assert_eq!(options.tls.ca, Some(PathBuf::from("/a")));
    assert_eq!(options.tls.cert, Some(PathBuf::from("/b")));
    assert_eq!(options.tls.key, Some(PathBuf::from("/c")));

    let options = Options::from_url("redis://:pw@h/").unwrap();
    assert_eq!(options.login, Some(Login { user: None, password: "pw".into() }));
}

#[test]
fn unix_urls() {
    let options =
        Options::from_url("redis+unix:///run/my%20redis.sock?db=2&user=u&pass=p&prefix=x:")
            .unwrap();
    assert_eq!(options.address, Address::Unix("/run/my redis.sock".into()));
    assert_eq!(options.db, 2);
    assert_eq!(options.login, Some(Login { user: Some("u".into()), password: "p".into() }));
    assert_eq!(options.prefix, "x:");
}

#[test]
fn what_is_wrong_is_named() {
    assert!(refused("redis://u:secret@h/0?lease=1s").contains("'lease'"));
    assert!(refused("redis://u:secret@h/0?db=1").contains("'db'"));
    assert!(refused("redis://u:secret@h/0?connect_timeout=5").contains("connect_timeout"));
    assert!(refused("redis://u:secret@h/0?connect_timeout=0s").contains("connect_timeout"));
    assert!(refused("redis://u:secret@h/0?backoff_max=1ms").contains("backoff"));
    assert!(refused("redis://u:secret@h/0?protocol=4").contains("protocol"));
    assert!(refused("redis://u:secret@h/0?prefix=a%7Bb").contains("prefix"));
    assert!(refused("redis://u:secret@h/x").contains("database"));
    assert!(refused("redis://u:secret@h1:7000,h2:7000").contains("redis+cluster://h1,h2,h3"));
    assert!(refused("redis://u:secret@h/-1").contains("database"));
    assert!(refused("redis://u:secret@h/0?tls_ca=/a").contains("rediss://"));
    assert!(refused("rediss://u:secret@h/0?tls_cert=/a").contains("tls_key"));
    assert!(refused("rediss://u:secret@h/0#insecure").contains("certificates"));
    assert!(refused("redis://ann@h").contains("password"));
    assert!(refused("http://u:secret@h").contains("'http://'"));
    assert!(refused("redis://u:secret@h:port/").contains("URL"));
    assert!(refused("not a url with secret").contains("URL"));
}

#[test]
fn debug_hides_the_password() {
    let options = Options::from_url("redis://ann:secret@h").unwrap();
    let shown = format!("{options:?}");
    assert!(shown.contains("ann") && !shown.contains("secret"), "{shown}");
}

#[test]
fn a_client_of_the_redis_crate_is_taken_over() {
    let client = redis::Client::open("redis://ann:secret@example:7000/4").unwrap();
    let options = Options::from_client(&client).unwrap();
    assert_eq!(options.address, Address::Tcp { host: "example".into(), port: 7000 });
    assert_eq!(options.login, Some(Login { user: Some("ann".into()), password: "secret".into() }));
    assert_eq!(options.db, 4);

    let client = redis::Client::open("redis+unix:///run/r.sock?db=1").unwrap();
    let options = Options::from_client(&client).unwrap();
    assert_eq!(options.address, Address::Unix("/run/r.sock".into()));
}

#[test]
fn a_cluster_is_named_by_some_of_its_servers() {
    let url = "rediss+cluster://u:s%40me@h1,h2:7000,[::1]:7001/0?prefix=x:&map=10.0.0.1:7=h:8";
    let options = Options::from_url(url).unwrap();
    assert_eq!(options.address.to_string(), "h1:6379,h2:7000,[::1]:7001");
    let login = options.login.clone().unwrap();
    assert_eq!((login.user.as_deref(), login.password.as_str()), (Some("u"), "s@me"));
    assert_eq!(options.prefix, "x:");
    let Address::Cluster(cluster) = &options.address else { panic!("{options:?}") };
    assert!(cluster.tls && cluster.map.len() == 1);
    assert!(crate::places(&options).is_some());
    for wrong in [
        "redis+cluster://",
        "redis+cluster://h1,,h2",
        "redis+cluster://h1:x",
        "redis+cluster://h1/2",
        "redis+cluster://h1?map=h2",
        "redis+cluster://h1?sentinel_user=x",
        "redis+cluster://h1?tls_ca=x",
    ] {
        let error = Options::from_url(wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{wrong}");
    }
}

#[test]
fn a_quorum_is_named_by_all_of_its_servers() {
    let url =
        "rediss+quorum://u:s%40me@H1,h2:7000,[::1]:7001/3?prefix=x:&max_lease=2m&map=h1:6379=h:8";
    let options = Options::from_url(url).unwrap();
    assert_eq!(options.address.to_string(), "h1:6379,h2:7000,[::1]:7001");
    let login = options.login.clone().unwrap();
    assert_eq!((login.user.as_deref(), login.password.as_str()), (Some("u"), "s@me"));
    assert_eq!((options.prefix.as_str(), options.db), ("x:", 3));
    let Address::Quorum(quorum) = &options.address else { panic!("{options:?}") };
    assert!(quorum.tls);
    assert_eq!((quorum.majority(), quorum.max_lease.as_secs()), (2, 120));
    assert_eq!(quorum.reached(&quorum.nodes[0]).to_string(), "h:8");
    let names: Vec<String> = quorum.sorted().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["[::1]:7001", "h1:6379", "h2:7000"]);
    assert!(crate::places(&options).is_none());
    let can = crate::capabilities(&options);
    assert!(!can.owners && !can.shared && !can.permits && can.abandoned);
    for (wrong, why) in [
        ("redis+quorum://", "cannot be read"),
        ("redis+quorum://h1", "three servers or more"),
        ("redis+quorum://h1,h2", "three servers or more"),
        ("redis+quorum://h1,h2,H1:6379", "named twice"),
        ("redis+quorum://h1,h2,h3?map=h4=h5", "does not name"),
        ("redis+quorum://h1,h2,h3?max_lease=60", "max_lease must be a time"),
        ("redis+quorum://h1,h2,h3?max_lease=10ms", "max_lease must lie"),
        ("redis+quorum://h1,h2,h3?sentinel_user=x", "unknown parameter"),
        ("redis+cluster://h1?max_lease=60s", "unknown parameter"),
        ("redis+quorum://h1,h2,h3?tls_ca=x", "rediss://"),
    ] {
        let error = Options::from_url(wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{wrong}");
        assert!(error.message().contains(why), "{wrong}: {error}");
    }
}

#[test]
fn replicas_are_waited_for_where_that_is_said() {
    let plain = Options::from_url("redis://h").unwrap();
    assert_eq!((plain.sync_replicas, plain.sync_disk), (None, false));
    assert_eq!(plain.sync_timeout, Duration::from_secs(1));
    assert_eq!(Options::from_url("redis://h?sync_replicas=0").unwrap().sync_replicas, None);
    for (url, replicas) in [
        ("redis://h?sync_replicas=2", Replicas::AtLeast(2)),
        ("redis+sentinel://h/m?sync_replicas=all", Replicas::All),
        ("redis+cluster://h?sync_replicas=all&sync_timeout=1m", Replicas::All),
    ] {
        assert_eq!(Options::from_url(url).unwrap().sync_replicas, Some(replicas), "{url}");
    }
    let all = Options::from_url("redis://h?sync_replicas=1&sync_timeout=50ms&sync_disk=yes");
    let all = all.unwrap();
    assert_eq!((all.sync_timeout, all.sync_disk), (Duration::from_millis(50), true));
    assert!(refused("redis://h?sync_replicas=-1").contains("sync_replicas must be"));
    assert!(refused("redis://h?sync_replicas=most").contains("or all"));
    assert!(refused("redis://h?sync_replicas=1&sync_timeout=0s").contains("sync_timeout"));
    assert!(refused("redis://h?sync_replicas=1&sync_disk=true").contains("yes or no"));
    for alone in ["sync_disk=yes", "sync_timeout=2s"] {
        assert!(refused(&format!("redis://h?{alone}")).contains("sync_replicas=1"), "{alone}");
    }
    let none = Options { sync_replicas: Some(Replicas::AtLeast(0)), ..plain };
    assert!(none.check().unwrap_err().message().contains("from 1 on"));
}
