//! What the survey tells of real servers.

use std::time::Duration;

use fencelock_engine::ErrorKind;
use fencelock_testkit::{ZooKeeper, eventually, skip_servers};
use fencelock_zookeeper::{Finding, Options, Severity, Survey, Word, survey};

fn ask(url: &str) -> Result<Survey, fencelock_engine::Error> {
    ask_for(url, Duration::from_secs(30))
}

fn ask_for(url: &str, lease: Duration) -> Result<Survey, fencelock_engine::Error> {
    let mut options = Options::from_url(url).unwrap();
    options.session_timeout = lease;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(survey(options))
}

fn finding(survey: &Survey, name: &str) -> Finding {
    let findings = survey.findings();
    let finding = findings.iter().find(|finding| finding.name == name);
    let finding = finding.unwrap_or_else(|| panic!("no {name} in {findings:?}")).clone();
    assert!(!finding.meaning.is_empty() && !finding.value.is_empty());
    assert!(finding.advice.is_some() || finding.severity <= Severity::Note, "{finding:?}");
    finding
}

fn severity(survey: &Survey, name: &str) -> Severity {
    finding(survey, name).severity
}

#[test]
fn an_ensemble_of_three_and_what_is_left_of_it() {
    if skip_servers() {
        return;
    }
    let mut servers = ZooKeeper::ensemble(3).unwrap();
    let url = format!("{}/locks/here", servers.url());
    let seen = ask_for(&url, Duration::from_secs(10)).unwrap();
    assert_eq!((seen.voters, seen.observers, seen.chroot), (Some(3), 0, Some(false)));
    assert_eq!(seen.granted, Some(Duration::from_secs(10)));
    assert_eq!(seen.bounds, Some((Duration::from_millis(200), Duration::from_secs(60))));
    assert!(seen.servers.iter().all(|it| it.serves()), "{:?}", seen.servers);
    for name in ["quorum", "ensemble", "server", "session"] {
        assert_eq!(severity(&seen, name), Severity::Good, "{name}");
    }
    // Debian's servers, like all that nobody has touched, let everybody do everything.
    assert_eq!((seen.open, severity(&seen, "acl")), (Some(true), Severity::Warning));
    // A lease beyond what the servers give is cut.
    let seen = ask_for(&url, Duration::from_secs(90)).unwrap();
    assert_eq!(seen.granted, Some(Duration::from_secs(60)));
    assert_eq!(severity(&seen, "session"), Severity::Warning);
    // Who names one server of three depends on that one.
    let seen = ask(&servers.url_of(0)).unwrap();
    assert_eq!(severity(&seen, "ensemble"), Severity::Warning);

    let victim = servers.follower().unwrap();
    servers.kill(victim).unwrap();
    let seen = ask(&url).unwrap();
    assert_eq!(severity(&seen, "quorum"), Severity::Warning);
    assert!(matches!(seen.servers[victim].word, Word::Unreachable(_)));
    let other = (0..3).find(|at| servers.is_running(*at)).unwrap();
    servers.kill(other).unwrap();
    eventually("the last one serves nobody", || {
        let seen = ask(&url).unwrap();
        (severity(&seen, "quorum") == Severity::Problem).then_some(())
    });
    let last = (0..3).find(|at| servers.is_running(*at)).unwrap();
    let seen = ask(&url).unwrap();
    assert_eq!(seen.servers[last].word, Word::Idle);
    assert!(finding(&seen, "quorum").meaning.contains("no quorum"));
    servers.kill(last).unwrap();
    let error = ask(&url).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains(&servers.address(last)), "{error}");
}

#[test]
fn an_even_ensemble_tells_what_it_costs() {
    if skip_servers() {
        return;
    }
    let servers = ZooKeeper::ensemble(4).unwrap();
    let seen = ask(&servers.url()).unwrap();
    let finding = finding(&seen, "ensemble");
    assert_eq!(finding.severity, Severity::Warning);
    assert!(
        finding.meaning.contains("3 of 4") && finding.meaning.contains("1 may fail"),
        "{finding:?}"
    );
}

#[test]
fn one_server_alone() {
    if skip_servers() {
        return;
    }
    // A list of allowed commands never takes away the one that doctor needs.
    let server = ZooKeeper::builder().config("4lw.commands.whitelist=ruok").start().unwrap();
    let seen = ask(&server.url()).unwrap();
    assert!(matches!(&seen.servers[0].word, Word::Serves { role, .. } if role == "standalone"));
    assert_eq!((seen.voters, severity(&seen, "ensemble")), (Some(1), Severity::Warning));
    assert_eq!(severity(&seen, "quorum"), Severity::Good);
}

#[test]
fn who_may_break_locks_is_told() {
    if skip_servers() {
        return;
    }
    let server = ZooKeeper::start().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let connector = zookeeper_client::Client::connector().with_auth("digest", b"me:secret");
        let client = connector.connect(&server.address(0)).await.unwrap();
        let own = zookeeper_client::CreateMode::Persistent
            .with_acls(zookeeper_client::Acls::creator_all());
        client.create("/mine", b"", &own).await.unwrap();
    });
    let url = |login: &str, more: &str| format!("zk://{login}{}/mine{more}", server.address(0));
    let seen = ask(&url("me:secret@", "?acl=creator")).unwrap();
    assert_eq!((seen.chroot, seen.open), (Some(true), Some(false)));
    assert_eq!(severity(&seen, "acl"), Severity::Good);
    assert_eq!(seen.acl.as_deref().unwrap(), ["digest:me cdrwa"], "the hash is nobody's business");
    assert_eq!(severity(&ask(&url("me:secret@", "")).unwrap(), "acl"), Severity::Note);
    // A stranger may not even look.
    assert_eq!(severity(&ask(&url("you:guess@", "")).unwrap(), "acl"), Severity::Note);
}
