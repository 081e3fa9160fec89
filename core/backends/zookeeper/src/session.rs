//! Gets a session, runs it, and gets another, until closed.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

use fencelock_engine::transport::caught;
use fencelock_engine::zookeeper::Input;
use zookeeper_client as zk;

use crate::backoff::Backoff;
use crate::clock;
use crate::options::{Auth, Options};
use crate::pump::{self, End};
use crate::shared::Shared;

/// How often to look whether an operator has mended what only an operator can.
const MENDED_BY_HAND: Duration = Duration::from_secs(1);

/// How long a server gets to end a session.
const FAREWELL: Duration = Duration::from_secs(1);

pub(crate) async fn run(options: Options, shared: Arc<Shared>) {
    let mut backoff = Backoff::new(options.backoff_min, options.backoff_max);
    while !shared.is_closed() {
        // Whoever is told may panic, and so may what looks on: that must not be the end of it.
        let ended = caught(round(&options, &shared, &mut backoff)).await;
        let pause = ended.unwrap_or_else(|panic| {
            give_up(&shared, &panic);
            Some(backoff.next().max(MENDED_BY_HAND))
        });
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
    }
}

/// One session, from its beginning to its end; gives how long to wait before the next.
async fn round(options: &Options, shared: &Arc<Shared>, backoff: &mut Backoff) -> Option<Duration> {
    let servers = options.connect_string();
    // The session lives no shorter than from here on.
    let since = clock::now();
    match connect(options).await {
        Ok(client) => {
            backoff.reset();
            let client = Arc::new(client);
            let (session, timeout) = (client.session_id().0, client.session_timeout());
            tracing::info!(%servers, session = format!("{session:#x}"), ?timeout, "session");
            shared.set_client(Some(Arc::clone(&client)));
            let wall = clock::wall();
            shared.handle(Input::Connected { session, timeout, since, wall });
            let end = pump::run(shared, &client).await;
            let states = client.state_watcher();
            drop(client);
            match end {
                End::Closed if shared.is_closed() => leave(states).await,
                End::Expired => {
                    tracing::warn!(%servers, "the session expired");
                    shared.handle(Input::Expired);
                }
                End::AuthFailed => shared.handle(refused(&servers)),
                End::Closed => shared.handle(Input::Expired),
            }
            shared.set_client(None);
            None
        }
        Err(zk::Error::AuthFailed) => {
            shared.handle(refused(&servers));
            Some(backoff.next().max(MENDED_BY_HAND))
        }
        Err(error) => {
            let reason = explain(options, &error);
            tracing::warn!(%servers, %reason, "no session, will try again");
            shared.handle(Input::Unreachable { reason });
            Some(backoff.next())
        }
    }
}

/// After a panic nobody knows how far things had come: the session is given up, with its holds.
fn give_up(shared: &Shared, panic: &str) {
    let reason = format!(
        "the ZooKeeper session is given up and a new one sought, because of a panic: {panic}; mend \
         what panicked, which may be a tracing subscriber or a waker of the program, or report it"
    );
    // Each of these may panic for the same cause.
    let each: [&dyn Fn(); 4] = [
        &|| {
            if shared.has_client() {
                shared.handle(Input::Expired);
            }
        },
        &|| shared.set_client(None),
        &|| shared.handle(Input::Unreachable { reason: reason.clone() }),
        &|| tracing::error!(%reason, "panic"),
    ];
    for one in each {
        // The panic hook has told of it.
        let _ = panic::catch_unwind(AssertUnwindSafe(one));
    }
}

/// The crate ends a session that nobody uses any more: until the server has heard of it, whatever
/// was left in it would keep others waiting.
async fn leave(mut states: zk::StateWatcher) {
    let ended = async {
        loop {
            match states.changed().await {
                zk::SessionState::SyncConnected => {}
                _ => return,
            }
        }
    };
    if tokio::time::timeout(FAREWELL, ended).await.is_err() {
        tracing::warn!("the server does not answer to the end of the session: it will time out");
    }
}

pub(crate) async fn connect(options: &Options) -> Result<zk::Client, zk::Error> {
    let mut connector = zk::Client::connector()
        .with_session_timeout(options.session_timeout)
        .with_connection_timeout(patience(options))
        .with_fail_eagerly();
    if let Some(login) = &options.login {
        match options.auth {
            Auth::Digest => {
                let word = format!("{}:{}", login.user, login.password);
                connector = connector.with_auth("digest", word.as_bytes());
            }
            #[cfg(feature = "sasl")]
            Auth::Sasl => {
                let (user, password) = (login.user.clone(), login.password.clone());
                connector = connector.with_sasl(zk::SaslOptions::digest_md5(user, password));
            }
            // The check of the options has refused it.
            #[cfg(not(feature = "sasl"))]
            Auth::Sasl => return Err(zk::Error::AuthFailed),
        }
    }
    let servers = options.connect_string();
    let connecting = async {
        #[cfg(feature = "tls")]
        if let Some(tls) = &options.tls {
            let connector = connector.with_tls(crate::tls::options(tls)?);
            return connector.secure_connect(&servers).await;
        }
        connector.connect(&servers).await
    };
    tokio::time::timeout(options.connect_timeout, connecting)
        .await
        .unwrap_or(Err(zk::Error::Timeout))
}

/// How long a server may be silent before another is tried: each has its share of the time that
/// connecting may take, and a session can move in time.
fn patience(options: &Options) -> Duration {
    let servers = u32::try_from(options.servers.len()).unwrap_or(1).max(1);
    let share = (options.connect_timeout / servers).max(Duration::from_secs(1));
    share.min(options.session_timeout * 2 / 5)
}

fn refused(servers: &str) -> Input {
    let reason = format!(
        "ZooKeeper at {servers} refuses the login: check user and password in the URL, and what \
         the servers ask for"
    );
    Input::AuthFailed { reason }
}

/// Why there is no session, and what to look at.
fn explain(options: &Options, error: &zk::Error) -> String {
    let servers = options.connect_string();
    match error {
        zk::Error::NoHosts => format!(
            "none of {servers} gives a session: the servers are down, or without a quorum (more \
             than half of them), or read-only"
        ),
        zk::Error::Timeout => format!(
            "no session from {servers} within {:?} (connect_timeout): the servers cannot be \
             reached, or are without a quorum (more than half of them)",
            options.connect_timeout
        ),
        error => format!("no session from {servers}: {error}"),
    }
}
