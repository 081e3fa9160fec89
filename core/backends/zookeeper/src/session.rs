//! Gets a session, runs it, and gets another, until closed.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

use fencelock_engine::transport::caught;
use fencelock_engine::zookeeper::Input;
use zookeeper_client as zk;

use crate::backoff::Backoff;
use crate::clock;
use crate::connect::{Connection, connect};
use crate::options::Options;
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
    match connect(options, None).await {
        Ok(connection) => {
            backoff.reset();
            let client = &connection.client;
            let (session, timeout) = (client.session_id().0, client.session_timeout());
            tracing::info!(%servers, session = format!("{session:#x}"), ?timeout, "session");
            shared.set_client(Some(Arc::clone(client)));
            let wall = clock::wall();
            shared.handle(Input::Connected { session, timeout, since, wall });
            match live(options, shared, backoff, connection).await {
                End::Expired => {
                    tracing::warn!(%servers, "the session expired");
                    shared.handle(Input::Expired);
                }
                End::AuthFailed => shared.handle(refused(&servers)),
                End::Closed | End::GivenUp => shared.handle(Input::Expired),
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

/// A session over all its connections, until it ends.
async fn live(
    options: &Options,
    shared: &Arc<Shared>,
    backoff: &mut Backoff,
    mut connection: Connection,
) -> End {
    loop {
        match pump::run(shared, &connection.client).await {
            End::Closed if shared.is_closed() => {
                let states = connection.client.state_watcher();
                drop(connection);
                leave(states).await;
                return End::Closed;
            }
            End::GivenUp => {}
            end => return end,
        }
        tracing::warn!("the ZooKeeper connection is given up, for its server answers no calls");
        shared.let_go("the connection was given up, for its server answered no calls");
        let timeout = connection.client.session_timeout();
        let session = connection.abandon().await;
        connection = match resume(options, shared, backoff, session, timeout).await {
            Ok(connection) => connection,
            Err(end) => return end,
        };
        backoff.reset();
        tracing::info!("the ZooKeeper session has another connection");
        shared.resume(Arc::clone(&connection.client));
    }
}

/// Takes a session up by another connection, for as long as it can be alive.
async fn resume(
    options: &Options,
    shared: &Shared,
    backoff: &mut Backoff,
    session: zk::SessionInfo,
    timeout: Duration,
) -> Result<Connection, End> {
    let since = clock::now();
    while !shared.is_closed() {
        match connect(options, Some(session.clone())).await {
            Ok(connection) => return Ok(connection),
            Err(zk::Error::SessionExpired) => return Err(End::Expired),
            Err(zk::Error::AuthFailed) => return Err(End::AuthFailed),
            // With a leader that is gone the servers may keep it for longer than its timeout.
            Err(_) if clock::now().since(since) >= timeout * 2 => return Err(End::Expired),
            Err(error) => {
                tracing::warn!(reason = explain(options, &error), "the session is not taken up");
            }
        }
        tokio::time::sleep(backoff.next()).await;
    }
    Err(End::Closed)
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
