//! A server that was left without a majority and serves reads only (`readonlymode.enabled`): it
//! answers, and must not be taken for one that can keep a lock.

use std::sync::mpsc::channel;
use std::time::Duration;

use fencelock::blocking::Client;
use fencelock::{ErrorKind, LossReason, Severity};
use fencelock_testkit::{Role, ZooKeeper, eventually, skip_servers};

const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn p08_a_read_only_server_grants_nothing_and_the_holder_is_told() {
    if skip_servers() {
        return;
    }
    let mut servers =
        ZooKeeper::builder().servers(3).property("readonlymode.enabled=true").start().unwrap();
    let url = format!("{}?lease=4s&request_timeout=2s", servers.url());
    let client = Client::connect(&url).unwrap();
    let lock = client.lock("kept").unwrap();
    let guard = lock.acquire().unwrap();
    let (tell, told) = channel();
    guard.on_lost(move |reason| tell.send(reason).unwrap());

    let left = servers.follower().expect("somebody follows");
    for at in (0..servers.count()).filter(|at| *at != left) {
        servers.kill(at).unwrap();
    }
    // Its session counts for nothing where no majority keeps it.
    assert_eq!(told.recv_timeout(LIMIT).expect("the holder is told"), LossReason::NotRenewed);
    assert!(!guard.is_valid() && guard.remaining().is_zero());
    assert_eq!(guard.release().unwrap_err().kind(), ErrorKind::Lost);
    eventually("the last one serves reads", || {
        (servers.role(left) == Some(Role::ReadOnly)).then_some(())
    });

    let without_quorum = |error: fencelock::Error| {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.message().contains("quorum"), "{error}");
        assert!(error.is_retryable());
    };
    // Neither who had a session, nor who comes now, also to this very server; and nobody hangs.
    without_quorum(lock.try_acquire().unwrap_err());
    without_quorum(lock.acquire_timeout(Duration::from_secs(1)).unwrap_err());
    without_quorum(client.inspect("kept").unwrap_err());
    for url in [servers.url(), servers.url_of(left)] {
        let url = format!("{url}?connect_timeout=1500ms");
        without_quorum(Client::connect(&url).unwrap_err());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let findings = runtime.block_on(fencelock::survey(&url)).unwrap();
    let quorum =
        findings.iter().find(|finding| finding.name == "quorum").expect("a word of the quorum");
    assert_eq!(quorum.severity, Severity::Problem);
    assert!(quorum.value.contains("read-only"), "{quorum:?}");

    // With a majority the same client goes on by itself.
    for at in (0..servers.count()).filter(|at| *at != left) {
        servers.start_server(at).unwrap();
    }
    servers.await_quorum();
    let guard = eventually("a grant", || lock.acquire_timeout(LIMIT).ok());
    guard.release().unwrap();
}
