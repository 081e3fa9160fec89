use super::*;
use crate::open::{Store, StoreOptions};

#[test]
fn client_options_are_taken_out_and_the_stores_own_are_left() {
    let (url, options) = StoreUrl::split(
        "redis://h:1/2?prefix=x:&lease=10s&claim=1500ms&label=caf%C3%A9%201&request_timeout=1m\
         &retention=5m&clock_slack=50ms",
    )
    .unwrap();
    assert_eq!(url.text, "redis://h:1/2?prefix=x:");
    assert_eq!(options.lease, Some(Duration::from_secs(10)));
    assert_eq!(options.claim, Some(Duration::from_millis(1500)));
    assert_eq!(options.request_timeout, Some(Duration::from_secs(60)));
    assert_eq!(options.retention, Some(Duration::from_secs(300)));
    assert_eq!(options.clock_slack, Some(Duration::from_millis(50)));
    assert_eq!(options.connect_timeout, None);
    assert_eq!(options.label.as_deref(), Some("café 1"));
}

#[test]
fn valkey_is_redis_by_another_name() {
    for scheme in ["valkey", "valkeys"] {
        let (url, options) = StoreUrl::split(&format!("{scheme}://u:p@h:1?lease=1s")).unwrap();
        assert_eq!((url.kind, url.scheme()), (Kind::Redis, scheme));
        assert_eq!(url.to_string(), format!("{scheme}://***@h:1"));
        assert_eq!(options.lease, Some(Duration::from_secs(1)));
    }
    assert_eq!(StoreUrl::parse("valkey+unix:///run/v.sock").unwrap().kind, Kind::Redis);
}

#[test]
fn a_sqlite_path_is_left_as_it_is() {
    for text in ["sqlite:locks.db", "sqlite:../a b/locks.db", "sqlite:///var/lib/locks.db"] {
        let (url, options) = StoreUrl::split(text).unwrap();
        assert_eq!((url.kind, url.text.as_str()), (Kind::Sqlite, text));
        assert_eq!(options, ClientOptions::default());
    }
    let (url, _) = StoreUrl::split("sqlite:locks.db?lease=1s").unwrap();
    assert_eq!(url.text, "sqlite:locks.db");
}

#[test]
fn unknown_and_planned_schemes_differ() {
    for text in ["", "locks.db", "etcd://h", "Redis://h", "redis2://h"] {
        assert_eq!(StoreUrl::parse(text).unwrap_err().kind(), ErrorKind::InvalidArgument, "{text}");
    }
    let error = StoreUrl::parse("etcd://h").unwrap_err();
    for scheme in
        ["memory:", "sqlite:", "redis://", "rediss://", "redis+unix://", "zk://", "zks://"]
    {
        assert!(error.message().contains(scheme), "{error}");
    }
    for scheme in PLANNED {
        let error = StoreUrl::parse(&format!("{scheme}://h")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{scheme}");
    }
}

#[test]
fn bad_options_are_refused() {
    for query in ["lease=10", "lease=", "lease=fast", "claim=-1s", "label=%4", "label=%ff"] {
        let error = StoreUrl::parse(&format!("memory:?{query}")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{query}");
    }
}

#[test]
fn secrets_are_never_shown() {
    for text in [
        "redis://user:sesame@h:1",
        "redis://:ses@me@h",
        "redis+unix:///run/redis.sock?user=u&pass=sesame",
        "zk://user:sesame@h1,h2/x",
        "sesame://x",
        "rediss://h/sesame-is-no-password?x=sesame",
    ] {
        let shown = match StoreUrl::parse(text) {
            Ok(url) => format!("{url} {url:?}"),
            Err(error) => error.to_string(),
        };
        let scheme_only = text.starts_with("sesame");
        assert!(scheme_only || !shown.contains("=sesame"), "{shown}");
        assert!(!shown.contains(":sesame@") && !shown.contains("ses@"), "{shown}");
    }
}

/// Whatever stands where a password could be: a '?', '#', '/' or '@' in it, or no scheme at all.
#[test]
fn no_text_about_a_url_shows_a_password() {
    for url in [
        "redis://app:hunter2@cache:6379",
        "redis://app:1234?hunter2@cache:6379",
        "redis://app:1234#hunter2@cache:6379",
        "redis://app:1234/hunter2@cache:6379",
        "redis://app:1234?a=b&hunter2@cache",
        "redis://app:hunter2@x@cache",
        "redis://:hunter2@cache",
        "redis:app:hunter2@cache",
        "rediss:app:hunter2",
        "valkey://app:12?hunter2=1@cache",
        "redis+unix:///run/r.sock?user=app&pass=hunter2",
        "redis+unix:///run/r.sock?user=app&password=hunter2",
        "zk://app:hunter2@zk1,zk2/locks",
        "zk://app:12?hunter2@zk1,zk2/locks",
        "zk://app:12?recipe=hunter2@zk1",
        "zk://app:12?hunter2=x@zk1",
        "zk:app:hunter2@zk1",
        "hunter2@cache:6379",
        "hunter2:6379",
        "app:hunter2@cache:6379",
        "etcd://app:hunter2@cache",
        "mysql://app:hunter2@cache",
    ] {
        let shown = match StoreUrl::parse(url) {
            Ok(parsed) => {
                let lease = Duration::from_secs(30);
                let refused = Store::new(&parsed, StoreOptions::default(), None, lease).err();
                format!("{parsed} {parsed:?} {refused:?} {:?}", crate::Client::builder(url))
            }
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!shown.contains("hunter"), "{url}: {shown}");
    }
}

#[test]
fn servers_that_take_over_from_each_other_have_clocks_that_may_differ() {
    for name in ["redis", "rediss", "valkey", "valkeys"] {
        for kind in ["sentinel", "cluster"] {
            let url = StoreUrl::parse(&format!("{name}+{kind}://u:p@h1,h2/0")).unwrap();
            assert_eq!((url.kind, url.takes_over()), (Kind::Redis, true));
            assert_eq!(url.to_string(), format!("{name}+{kind}://***@h1,h2/0"));
        }
        assert!(!StoreUrl::parse(&format!("{name}://h")).unwrap().takes_over());
        // A quorum's servers do not.
        let url = StoreUrl::parse(&format!("{name}+quorum://u:p@h1,h2,h3/0")).unwrap();
        assert_eq!((url.kind, url.takes_over()), (Kind::Redis, false));
        assert_eq!(url.to_string(), format!("{name}+quorum://***@h1,h2,h3/0"));
    }
}
