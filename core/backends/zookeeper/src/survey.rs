//! What an ensemble is like, for an operator: findings, what they mean for locks, what to do.

use std::time::Duration;

pub use fencelock_engine::finding::{Finding, Severity};
use fencelock_engine::{Error, ErrorKind};
use zookeeper_client::{Acl, Client, Permission};

use crate::connect::connect;
use crate::fork::check_process;
use crate::options::Options;
use crate::survey_server::{self, Bounds};

pub use crate::survey_server::{Server, Word};

/// What an ensemble is like. `None` stands for what nobody would tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The servers that the URL names, each asked by itself.
    pub servers: Vec<Server>,
    /// Whether the connections are by TLS: the servers are then not asked one by one.
    pub tls: bool,
    /// How many servers vote, by the ensemble's own configuration; 1 for a server alone.
    pub voters: Option<usize>,
    /// How many servers only observe.
    pub observers: usize,
    /// Why no session could be had; none when there was one.
    pub refused: Option<String>,
    /// The session timeout that was asked for.
    pub wanted: Duration,
    /// The session timeout that was given.
    pub granted: Option<Duration>,
    /// The least and the greatest session timeout that the servers give.
    pub bounds: Option<(Duration, Duration)>,
    /// Who may do what below the chroot (the root, where there is none), in ZooKeeper's words.
    pub acl: Option<Vec<String>>,
    /// Whether that lets everybody make and delete nodes there.
    pub open: Option<bool>,
    /// Whether the nodes of locks are made so that only this login may change them.
    pub own_nodes: bool,
    /// Whether the chroot is there.
    pub chroot: Option<bool>,
}

/// Asks each server what it is, and connects as `options` say. It changes nothing.
///
/// # Errors
/// When none of the servers can be reached at all; an ensemble without a quorum is no error, but a
/// finding. `Unsupported` in a process that was forked from one that had used ZooKeeper.
pub async fn survey(options: Options) -> Result<Survey, Error> {
    options.check()?;
    check_process()?;
    let tls = options.tls.is_some();
    let mut servers = Vec::new();
    if !tls {
        for address in &options.servers {
            servers.push(survey_server::ask(address, options.connect_timeout).await);
        }
    }
    let mut survey = Survey {
        tls,
        voters: None,
        observers: 0,
        refused: None,
        wanted: options.session_timeout,
        granted: None,
        bounds: None,
        acl: None,
        open: None,
        own_nodes: options.acl == crate::options::Acl::Creator,
        chroot: None,
        servers,
    };
    let serving = survey.servers.iter().find_map(|it| it.bounds);
    survey.bounds = serving.map(|Bounds { shortest, longest }| (shortest, longest));
    if !tls && survey.servers.iter().all(|it| matches!(it.word, Word::Unreachable(_))) {
        let tried: Vec<String> = survey.servers.iter().map(ToString::to_string).collect();
        return Err(Error::new(
            ErrorKind::Unavailable,
            format!("no server of ZooKeeper can be reached: {}", tried.join("; ")),
        ));
    }
    if !tls && serving.is_none() && survey.servers.iter().all(|it| it.word != Word::Untold) {
        survey.refused = Some("no server serves".to_owned());
        return Ok(survey);
    }
    match tokio::time::timeout(options.connect_timeout, look(&options, &mut survey)).await {
        Ok(Ok(())) => Ok(survey),
        Ok(Err(why)) => {
            survey.refused = Some(why);
            Ok(survey)
        }
        Err(_) => {
            survey.refused = Some(format!("no session within {:?}", options.connect_timeout));
            Ok(survey)
        }
    }
}

/// What only a session shows.
async fn look(options: &Options, survey: &mut Survey) -> Result<(), String> {
    let connection = connect(options, None).await.map_err(|error| error.to_string())?;
    let client = &connection.client;
    survey.granted = Some(client.session_timeout());
    let told = |error: zookeeper_client::Error| error.to_string();
    (survey.voters, survey.observers) = match client.get_config().await {
        Ok((text, _)) => members(&String::from_utf8_lossy(&text)),
        // An ACL may forbid it.
        Err(_) => (None, 0),
    };
    let place = if options.chroot.is_empty() { "/" } else { &options.chroot };
    survey.chroot = Some(client.check_stat(place).await.map_err(told)?.is_some());
    // Where the chroot is missing, it will be made below the nearest that is there.
    let mut nearest = place;
    while nearest != "/" && client.check_stat(nearest).await.map_err(told)?.is_none() {
        nearest = match nearest.rfind('/') {
            Some(at @ 1..) => &nearest[..at],
            _ => "/",
        };
    }
    rights(client, nearest, survey).await
}

async fn rights(client: &Client, path: &str, survey: &mut Survey) -> Result<(), String> {
    match client.get_acl(path).await {
        Ok((entries, _)) => {
            survey.open = Some(entries.iter().any(is_open));
            survey.acl = Some(entries.iter().map(words).collect());
            Ok(())
        }
        // Not everybody may read it.
        Err(zookeeper_client::Error::NoAuth) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether everybody may make and delete nodes by this entry.
fn is_open(entry: &Acl) -> bool {
    let may = entry.permission();
    entry.scheme() == "world" && (may.has(Permission::CREATE) || may.has(Permission::DELETE))
}

/// As the tools of ZooKeeper write it.
fn words(entry: &Acl) -> String {
    let letters = [
        (Permission::CREATE, 'c'),
        (Permission::DELETE, 'd'),
        (Permission::READ, 'r'),
        (Permission::WRITE, 'w'),
        (Permission::ADMIN, 'a'),
    ];
    let may: String =
        letters.iter().filter(|it| entry.permission().has(it.0)).map(|it| it.1).collect();
    // What stands behind a digest login's name is a hash of its password.
    let who = entry.id().split(':').next().unwrap_or_default();
    format!("{}:{who} {may}", entry.scheme())
}

/// Voters and observers by the ensemble's configuration; a server alone has an empty one.
pub(crate) fn members(config: &str) -> (Option<usize>, usize) {
    let roles: Vec<bool> = config
        .lines()
        .filter_map(|line| line.strip_prefix("server.")?.split_once('='))
        .map(|(_, rest)| rest.split(';').next().unwrap_or_default().ends_with(":observer"))
        .collect();
    let observers = roles.iter().filter(|observes| **observes).count();
    match roles.len() - observers {
        0 => (Some(1), observers),
        voters => (Some(voters), observers),
    }
}
