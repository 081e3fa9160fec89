//! Login by SASL to real servers. `cargo test -p fencelock-zookeeper --features sasl --test sasl`.
#![cfg(feature = "sasl")]

mod common;

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use fencelock_engine::ErrorKind;
use fencelock_engine::event::Event;
use fencelock_engine::reply::{Released, Standing};
use fencelock_testkit::recorder::{BOUND, Client, Recorder, hold, name};
use fencelock_testkit::{ZooKeeper, skip_servers};
use fencelock_zookeeper::{Options, open};

/// Whom the servers know.
const JAAS: &str = r#"Server {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    user_shop="sesame, open:now"
    user_bank="other";
};
"#;

#[test]
fn a_lock_is_taken_by_a_login_that_the_servers_know_and_by_no_other() {
    if skip_servers() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let jaas = folder.path().join("jaas.conf");
    fs::write(&jaas, JAAS).unwrap();
    let server = ZooKeeper::builder()
        .property(&format!("java.security.auth.login.config={}", jaas.display()))
        .config("authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider")
        // Whoever has not logged in is turned away.
        .config("enforce.auth.enabled=true")
        .config("enforce.auth.schemes=sasl")
        .start()
        .unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let at = |login: &str, rest: &str| {
        let url = format!("zk://{login}{}/locks?{rest}", server.address(0));
        Options { session_timeout: Duration::from_secs(6), ..Options::from_url(&url).unwrap() }
    };
    // Two of one login share locks that no other login may touch.
    let login = "shop:sesame%2C%20open%3Anow@";
    let client = || {
        let options = at(login, "auth=sasl&acl=creator");
        Client::open(|id, sink| open(options, id, sink, runtime.handle()).unwrap())
    };
    let (one, two, lock) = (client(), client(), name("by/sasl"));
    let first = hold();
    assert_eq!(one.take(&lock, first).standing, Standing::Granted);
    assert_eq!(two.take(&lock, hold()).standing, Standing::Contended);
    assert_eq!(one.release(&lock, first), Released::Done);
    assert_eq!(two.take(&lock, hold()).standing, Standing::Granted);
    let options = at("bank:other@", "auth=sasl");
    let bank = Client::open(|id, sink| open(options, id, sink, runtime.handle()).unwrap());
    let refused =
        bank.ask(fencelock_engine::request::Op::Acquire(bank.request(&lock, hold(), true)));
    assert!(refused.is_err(), "{refused:?}");

    for (login, rest) in [("shop:wrong@", "auth=sasl"), ("shop:sesame@", "auth=digest"), ("", "")] {
        let recorder = Arc::new(Recorder::default());
        let id = fencelock_engine::ClientId::new(1, "").unwrap();
        let none = open(at(login, rest), id, recorder.clone(), runtime.handle()).unwrap();
        let told = |event: &Event| match event {
            Event::Misconfigured(error) => Some(error.clone()),
            _ => None,
        };
        let error = recorder.wait(BOUND, told).expect("the login is refused");
        assert_eq!(error.kind(), ErrorKind::Misconfigured);
        assert!(error.message().contains("refuses the login"), "{error}");
        drop(none);
    }
}
