use std::path::PathBuf;
use std::time::Duration;

use fencelock_engine::ErrorKind;

use crate::{Address, Login, Options, Protocol};

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
