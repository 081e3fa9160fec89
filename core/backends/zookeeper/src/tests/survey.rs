//! What is made of what the servers say.

use std::time::Duration;

use crate::survey::{Severity, Survey, members};
use crate::survey_server::{Bounds, Server, Word, read};

fn server(word: Word, serves: bool) -> Server {
    let bounds = Bounds { shortest: Duration::from_secs(4), longest: Duration::from_secs(40) };
    Server { address: "h:2181".to_owned(), word, bounds: serves.then_some(bounds) }
}

fn serving(version: &str, role: &str) -> Server {
    server(Word::Serves { version: version.to_owned(), role: role.to_owned() }, true)
}

/// Three servers as they should be.
fn sound() -> Survey {
    Survey {
        servers: ["leader", "follower", "follower"].map(|role| serving("3.9.3", role)).into(),
        tls: false,
        voters: Some(3),
        observers: 0,
        refused: None,
        wanted: Duration::from_secs(30),
        granted: Some(Duration::from_secs(30)),
        bounds: Some((Duration::from_secs(4), Duration::from_secs(40))),
        acl: Some(vec!["digest:locks cdrwa".to_owned()]),
        open: Some(false),
        own_nodes: true,
        chroot: Some(true),
    }
}

fn severity(survey: &Survey, name: &str) -> Option<Severity> {
    survey
        .findings()
        .into_iter()
        .find(|finding| finding.name == name)
        .map(|finding| finding.severity)
}

#[test]
fn a_sound_ensemble_has_nothing_to_mend() {
    assert_eq!(sound().worst(), Severity::Good, "{:?}", sound().findings());
}

#[test]
fn each_way_to_be_unsound_is_told() {
    use Severity::{Note, Problem, Warning};
    type Case = (&'static str, Severity, fn(&mut Survey));
    let cases: [Case; 16] = [
        ("quorum", Problem, |it| {
            it.servers = vec![server(Word::Idle, false); 3];
            it.refused = Some("no server serves".to_owned());
        }),
        ("quorum", Problem, |it| it.refused = Some("authentication failed".to_owned())),
        ("quorum", Warning, |it| {
            it.servers[2] = server(Word::Unreachable("connection refused".to_owned()), false);
        }),
        ("quorum", Warning, |it| it.servers[1] = serving("3.9.3", "read-only")),
        ("ensemble", Warning, |it| it.voters = Some(1)),
        ("ensemble", Warning, |it| it.voters = Some(4)),
        ("ensemble", Warning, |it| it.voters = Some(5)),
        ("ensemble", Note, |it| it.voters = None),
        ("server", Problem, |it| it.servers[0] = serving("3.4.14", "leader")),
        ("server", Problem, |it| it.servers[0] = serving("3.5.2-alpha", "leader")),
        ("server", Note, |it| it.servers[0] = serving("3.10.0", "leader")),
        ("commands", Note, |it| it.servers[0] = server(Word::Untold, true)),
        ("session", Warning, |it| it.granted = Some(Duration::from_secs(40))),
        ("session", Warning, |it| it.granted = Some(Duration::from_secs(20))),
        ("acl", Warning, |it| (it.open, it.own_nodes) = (Some(true), false)),
        ("chroot", Note, |it| it.chroot = Some(false)),
    ];
    for (at, (name, expected, spoil)) in cases.into_iter().enumerate() {
        let mut survey = sound();
        spoil(&mut survey);
        assert_eq!(severity(&survey, name), Some(expected), "case {at}: {:?}", survey.findings());
        assert_eq!(survey.worst(), expected, "case {at}: {:?}", survey.findings());
        let advised = |finding: &crate::survey::Finding| {
            finding.advice.is_some() || finding.severity < Warning
        };
        assert!(survey.findings().iter().all(advised), "case {at}");
    }
}

#[test]
fn what_servers_say_is_read() {
    let serves = "Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2024-12-29\n\
                  Latency min/avg/max: 0/0.0/0\nMode: follower\nNode count: 5\n";
    let expected = Word::Serves { version: "3.8.0".to_owned(), role: "follower".to_owned() };
    assert_eq!(read(serves), expected);
    let idle = "This ZooKeeper instance is not currently serving requests\n";
    assert_eq!(read(idle), Word::Idle);
    assert_eq!(read("srvr is not executed because it is not in the whitelist.\n"), Word::Untold);
    assert_eq!(read("HTTP/1.1 400 Bad Request"), Word::Untold);

    assert_eq!(members(""), (Some(1), 0));
    let config = "server.1=a:2888:3888:participant;0.0.0.0:2181\nserver.2=b:2888:3888:participant\n\
                  server.3=c:2888:3888:observer;2181\nversion=0";
    assert_eq!(members(config), (Some(2), 1));
}
