//! One JavaScript environment: the main thread, or a worker.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use fencelock_support::{Client, ConnectOptions, errors};
use napi::bindgen_prelude::{FnArgs, Function};
use napi::{Env, Error};
use napi_derive::napi;

use crate::client::NativeClient;
use crate::inbox::Inbox;
use crate::options::{Setting, options};
use crate::outcome::Outcome;
use crate::session::{Session, farewell};
use crate::slot::Slot;

/// The clients of one environment, and the way of their outcomes into its event loop.
#[napi]
pub struct Environment {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    inbox: Arc<Inbox>,
    sessions: Mutex<Sessions>,
}

#[derive(Default)]
struct Sessions {
    /// Connected, and not fetched yet; by the number of their call.
    connected: HashMap<i64, Arc<Session>>,
    known: Vec<Weak<Session>>,
    ended: bool,
}

#[napi]
impl Environment {
    /// Lets `dispatch` settle the calls that do not end at once. One to a JavaScript environment.
    #[napi(constructor)]
    pub fn new(
        env: Env,
        #[napi(ts_arg_type = "(outcomes: Array<Outcome>) => void")] dispatch: Function<
            '_,
            FnArgs<(Vec<Outcome>,)>,
            (),
        >,
    ) -> napi::Result<Environment> {
        let inner = Arc::new(Inner::default());
        inner.inbox.connect(&dispatch)?;
        // A worker that is terminated runs nothing else.
        env.add_env_cleanup_hook(inner.clone(), |inner| inner.end())?;
        Ok(Environment { inner })
    }

    /// Connects; then `connected` with the same number gives the client.
    #[napi]
    pub fn connect(&self, call: i64, url: String, settings: Vec<Setting>) -> Option<Outcome> {
        let slot = Slot::new(&self.inner.inbox);
        match options(settings) {
            Ok(options) => self.start(call, url, options, &slot),
            Err(error) => slot.clone().end(Outcome::failed(call, &error)),
        }
        slot.started()
    }

    fn start(&self, call: i64, url: String, options: ConnectOptions, slot: &Slot) {
        let (inner, way) = (Arc::downgrade(&self.inner), slot.clone());
        let begun = Client::connect_async(url, options, move |client| {
            let Some(inner) = inner.upgrade() else { return };
            way.end(Outcome::with(call, client, |client, _| inner.add(call, client)));
        });
        if let Err(error) = begun {
            slot.clone().end(Outcome::failed(call, &error));
        }
    }

    /// The client of a `connect` that succeeded; once.
    #[napi]
    pub fn connected(&self, call: i64) -> napi::Result<NativeClient> {
        let session = self.inner.sessions().connected.remove(&call);
        session.map(NativeClient::new).ok_or_else(|| Error::from_reason("not connected"))
    }

    /// Gives back what all clients hold and leaves their queues; waits for that, within a bound.
    /// For the end of the process, when the event loop turns no more.
    #[napi]
    pub fn shutdown(&self) {
        self.inner.end();
    }
}

impl Inner {
    fn add(&self, call: i64, client: Client) {
        let session = Arc::new(Session::new(client, self.inbox.clone()));
        let mut sessions = self.sessions();
        if sessions.ended {
            return;
        }
        sessions.known.retain(|known| known.strong_count() > 0);
        sessions.known.push(Arc::downgrade(&session));
        sessions.connected.insert(call, session);
    }

    fn end(&self) {
        self.inbox.close();
        let mut sessions = self.sessions();
        sessions.ended = true;
        sessions.connected.clear();
        let known = std::mem::take(&mut sessions.known);
        drop(sessions);
        farewell(known.iter().filter_map(Weak::upgrade).collect());
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        // Nothing panics while it is locked.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A kind of error.
#[napi(object, object_from_js = false)]
pub struct ErrorRow {
    /// Its fixed number.
    pub number: u32,
    /// Its fixed name.
    pub code: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// What it means.
    pub meaning: String,
}

/// Every kind of error there is, for the tests and the documentation.
#[napi]
pub fn error_table() -> Vec<ErrorRow> {
    let row = |row: errors::Row| ErrorRow {
        number: row.code.into(),
        code: row.name.to_owned(),
        retryable: row.retryable,
        meaning: row.meaning.to_owned(),
    };
    errors::table().map(row).collect()
}
