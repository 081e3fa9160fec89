//! One JavaScript environment: the main thread, or a worker.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use fencelock_support::{Client, ConnectOptions, cork, errors};
use napi::bindgen_prelude::{FnArgs, Function};
use napi::{Env, Error};
use napi_derive::napi;

use crate::client::NativeClient;
use crate::host::{Host, Turns};
use crate::inbox::{Batch, Inbox};
use crate::options::{Setting, options};
use crate::outcome::{Ended, News, Outcome};
use crate::session::{Session, farewell};
use crate::slot::Slot;

/// The clients of one environment, and the way of their outcomes into its event loop.
#[napi]
pub struct Environment {
    inner: Arc<Inner>,
    drives: bool,
    turns: Turns,
}

#[derive(Default)]
struct Inner {
    inbox: Arc<Inbox>,
    host: Host,
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
    /// One to each evaluation of the module. It rests until [`Environment::open`]. `drives`: the event
    /// loop is libuv's, and drives its clients' connections.
    #[napi(constructor)]
    pub fn new(env: Env, drives: bool) -> napi::Result<Environment> {
        let inner = Arc::new(Inner::default());
        // A worker that is terminated runs nothing else.
        env.add_env_cleanup_hook(Arc::downgrade(&inner), |inner: Weak<Inner>| {
            if let Some(inner) = inner.upgrade() {
                inner.end();
            }
        })?;
        Ok(Environment { inner, drives, turns: Turns::default() })
    }

    /// Lets `dispatch` settle the calls that do not end at once: it gets three numbers for each, as
    /// `News::pack` says.
    #[napi]
    pub fn open(
        &self,
        env: Env,
        #[napi(ts_arg_type = "(batch: Array<number>) => void")] dispatch: Function<
            '_,
            FnArgs<(Batch,)>,
            (),
        >,
    ) -> napi::Result<()> {
        self.inner.inbox.connect(&dispatch)?;
        if self.drives {
            self.inner.host.start(&env, &dispatch, &self.inner.inbox, &self.turns);
        }
        Ok(())
    }

    /// When every client is closed and no call is under way: gives back `dispatch` and the loop's
    /// descriptors. False when a client is open.
    #[napi]
    pub fn rest(&self) -> bool {
        if !self.inner.leave() {
            return false;
        }
        self.inner.host.stop(&self.turns);
        self.inner.inbox.disconnect();
        true
    }

    /// A tick in which calls were made ends, and what they sent leaves. Gives the outcomes that have
    /// arrived meanwhile, as `dispatch` gets them; with `take` false, they stay until this is called
    /// again.
    #[napi]
    pub fn end_tick(&self, take: bool) -> Option<Vec<f64>> {
        cork::end();
        let batch = if take { self.inner.inbox.take() } else { Batch::new() };
        (!batch.is_empty()).then_some(batch)
    }

    /// The outcomes that are told in full, of the batches given so far.
    #[napi]
    pub fn told(&self) -> Vec<Outcome> {
        self.inner.inbox.told()
    }

    /// Connects; then `connected` with the same number gives the client.
    #[napi]
    pub fn connect(&self, call: i64, url: String, settings: Vec<Setting>) -> Option<Ended> {
        let slot = Slot::new(&self.inner.inbox);
        match options(settings) {
            Ok(options) => self.start(call, url, options, &slot),
            Err(error) => slot.clone().end(News::failed(call, &error)),
        }
        slot.started()
    }

    fn start(&self, call: i64, url: String, options: ConnectOptions, slot: &Slot) {
        let (inner, way) = (Arc::downgrade(&self.inner), slot.clone());
        let begun = Client::connect_async(url, options, move |client| {
            let Some(inner) = inner.upgrade() else { return };
            way.end(News::with(call, client, |client, _| inner.add(call, client)));
        });
        if let Err(error) = begun {
            slot.clone().end(News::failed(call, &error));
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
        let guest = self.host.serve(&client);
        let session = Arc::new(Session::new(client, self.inbox.clone(), guest));
        let mut sessions = self.sessions();
        if sessions.ended {
            return;
        }
        sessions.known.retain(|known| known.strong_count() > 0);
        sessions.known.push(Arc::downgrade(&session));
        sessions.connected.insert(call, session);
    }

    /// Lets the event loop drive nobody, if all clients are closed.
    fn leave(&self) -> bool {
        let mut sessions = self.sessions();
        sessions.known.retain(|known| known.strong_count() > 0);
        let known: Vec<_> = sessions.known.iter().filter_map(Weak::upgrade).collect();
        if !sessions.connected.is_empty() || known.iter().any(|it| !it.client.is_closed()) {
            return false;
        }
        drop(sessions);
        for session in known {
            session.leave();
        }
        true
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
