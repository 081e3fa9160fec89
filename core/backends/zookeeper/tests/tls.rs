//! TLS to real servers. `cargo test -p fencelock-zookeeper --features tls --test tls`.
#![cfg(feature = "tls")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use fencelock_engine::event::Event;
use fencelock_engine::reply::{Released, Standing};
use fencelock_testkit::recorder::{BOUND, Client, Recorder, hold, name};
use fencelock_testkit::{ZooKeeper, skip_servers};
use fencelock_zookeeper::{Options, open};

#[test]
fn a_lock_is_taken_over_tls_with_a_clients_certificate_and_not_without() {
    if skip_servers() {
        return;
    }
    let server = ZooKeeper::builder().tls(true).start().unwrap();
    let files = server.certificates().expect("made for TLS");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let at = format!("zks://{}/locks?tls_ca={}", server.tls_address(0), files.ca.display());
    let url = format!(
        "{at}&tls_cert={}&tls_key={}",
        files.client_cert.display(),
        files.client_key.display()
    );
    let options = |url: &str| Options {
        session_timeout: Duration::from_secs(6),
        ..Options::from_url(url).unwrap()
    };
    let client = Client::open(|id, sink| open(options(&url), id, sink, runtime.handle()).unwrap());
    let (lock, id) = (name("by/tls"), hold());
    assert_eq!(client.take(&lock, id).standing, Standing::Granted);
    assert_eq!(client.release(&lock, id), Released::Done);

    let recorder = Arc::new(Recorder::default());
    let id = fencelock_engine::ClientId::new(1, "").unwrap();
    let none = open(options(&at), id, recorder.clone(), runtime.handle()).unwrap();
    let down = |event: &Event| matches!(event, Event::Down { .. }).then_some(());
    recorder.wait(BOUND, down).expect("a client without a certificate is turned away");
    drop(none);
}
