//! A session's client, and the crate's task behind it, which can be ended without the session.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spawns_core::{Spawn, Task};
use tokio::task::JoinHandle;
use zookeeper_client as zk;

use crate::options::{Auth, Options};

/// A session that has, or had, a connection.
pub(crate) struct Connection {
    pub(crate) client: Arc<zk::Client>,
    tasks: Vec<JoinHandle<()>>,
}

impl Connection {
    /// Closes the connection and keeps the session, to be taken up by [`connect`].
    ///
    /// The crate knows only how to close both: when the client is dropped, its task ends the session.
    /// So the task goes first. Nobody else may have the client any more.
    pub(crate) async fn abandon(self) -> zk::SessionInfo {
        for task in &self.tasks {
            task.abort();
        }
        for task in self.tasks {
            // That it was ended is no error.
            let _ = task.await;
        }
        self.client.session().clone()
    }
}

/// Gets a new session, or takes `session` up again.
pub(crate) async fn connect(
    options: &Options,
    session: Option<zk::SessionInfo>,
) -> Result<Connection, zk::Error> {
    let mut connector = zk::Client::connector()
        .with_session_timeout(options.session_timeout)
        .with_connection_timeout(patience(options))
        .with_fail_eagerly();
    if let Some(session) = session {
        connector = connector.with_session(session);
    }
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
    let spawner = Spawner::default();
    let connecting = tokio::time::timeout(options.connect_timeout, spawner.around(connecting));
    let client = connecting.await.unwrap_or(Err(zk::Error::Timeout))?;
    Ok(Connection { client: Arc::new(client), tasks: spawner.into_tasks() })
}

/// How long a server may be silent before another is tried: each has its share of the time that
/// connecting may take, and a session can move in time.
fn patience(options: &Options) -> Duration {
    let servers = u32::try_from(options.servers.len()).unwrap_or(1).max(1);
    let share = (options.connect_timeout / servers).max(Duration::from_secs(1));
    share.min(options.session_timeout * 2 / 5)
}

/// Spawns on the runtime, and remembers what.
#[derive(Default)]
struct Spawner {
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Spawner {
    /// What `future` spawns, it spawns by this.
    async fn around<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let _scope = spawns_core::enter(self);
            future.as_mut().poll(cx)
        })
        .await
    }

    fn into_tasks(self) -> Vec<JoinHandle<()>> {
        self.tasks.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spawn for Spawner {
    fn spawn(&self, task: Task) {
        let task = tokio::spawn(Box::into_pin(task.future));
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }
}
