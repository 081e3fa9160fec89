//! A client of one environment, with what it has under way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use fencelock_support::{Client, Hold, LossReason, Operation, Result, cork};

use crate::host::Guest;
use crate::inbox::Inbox;
use crate::outcome::{Ended, News, Outcome};
use crate::slot::Slot;

/// How long the end of a process or worker waits for stores to take its holds back. What is not
/// answered by then ends with its lease.
const FAREWELL: Duration = Duration::from_secs(2);

/// A client, its holds by the number of the call that acquired them, and its calls under way.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) inbox: Arc<Inbox>,
    guest: Guest,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    holds: HashMap<i64, Held>,
    waits: HashMap<i64, Option<Operation>>,
    ended: bool,
}

/// A hold, and why it was lost if it was.
#[derive(Clone)]
pub(crate) struct Held {
    pub(crate) hold: Hold,
    pub(crate) reason: Arc<OnceLock<LossReason>>,
}

impl Session {
    pub(crate) fn new(client: Client, inbox: Arc<Inbox>, guest: Guest) -> Session {
        Session { client, inbox, guest, table: Mutex::default() }
    }

    /// Begins a call of this tick.
    pub(crate) fn begin(&self) -> Slot {
        cork::begin();
        self.inbox.attend();
        Slot::new(&self.inbox)
    }

    /// A call was begun: gives its outcome if it is there, otherwise the loop will serve it.
    pub(crate) fn begun(&self, slot: &Slot) -> Option<Ended> {
        let ended = slot.started();
        if ended.is_none() {
            self.guest.expect();
        }
        ended
    }

    /// Begins to wait for a hold. `start` gets what to do with it, once; `named`: tell its name.
    pub(crate) fn wait(
        self: &Arc<Session>,
        call: i64,
        named: bool,
        start: impl FnOnce(Box<dyn FnOnce(Result<Hold>) + Send>) -> Operation,
    ) -> Option<Ended> {
        let slot = self.begin();
        let (session, way) = (self.clone(), slot.clone());
        self.table().waits.insert(call, None);
        let operation = start(Box::new(move |result| session.granted(call, named, result, way)));
        let ended = self.begun(&slot);
        if ended.is_none() {
            // Unless it has ended on another thread meanwhile.
            if let Some(wait) = self.table().waits.get_mut(&call) {
                *wait = Some(operation);
            }
        }
        ended
    }

    fn granted(&self, call: i64, named: bool, result: Result<Hold>, slot: Slot) {
        let mut table = self.table();
        table.waits.remove(&call);
        let hold = match result {
            Ok(hold) if !table.ended => hold,
            // Nobody is there to have it: dropping it releases it.
            Ok(_) => return,
            Err(error) => {
                drop(table);
                return slot.end(News::failed(call, &error));
            }
        };
        let reason = Arc::new(OnceLock::new());
        table.holds.insert(call, Held { hold: hold.clone(), reason: reason.clone() });
        drop(table);
        slot.end(News::granted(call, &hold, named));
        // After the grant, so that it is told first.
        let inbox = self.inbox.clone();
        hold.on_lost(move |why| {
            let _ = reason.set(why);
            inbox.push(Outcome::lost(call, why).into());
        });
    }

    /// Gives a wait up. Its outcome comes all the same.
    pub(crate) fn cancel(&self, call: i64) {
        let operation = self.table().waits.get(&call).cloned().flatten();
        if let Some(operation) = operation {
            operation.cancel();
        }
    }

    pub(crate) fn hold(&self, hold: i64) -> Option<Hold> {
        self.table().holds.get(&hold).map(|held| held.hold.clone())
    }

    /// Forgets a hold; dropping what this gives releases it, if that was not done.
    pub(crate) fn take(&self, hold: i64) -> Option<Held> {
        self.table().holds.remove(&hold)
    }

    /// The event loop drives its connection no longer.
    pub(crate) fn leave(&self) {
        self.guest.leave();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while it is locked.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The environment ends: gives back what is held and leaves the queues, within a bound.
pub(crate) fn farewell(sessions: Vec<Arc<Session>>) {
    cork::end();
    let (told, closed) = mpsc::channel();
    for session in sessions {
        session.table().ended = true;
        // This thread blocks, and the loop may not turn again.
        session.leave();
        // One that holds nothing may have releases under way, which closing waits for.
        if session.client.is_closed() {
            continue;
        }
        let told = told.clone();
        session.client.close_async(move |_| drop(told));
    }
    drop(told);
    // Ends when the last has been told, or after the bound.
    let _: std::result::Result<(), _> = closed.recv_timeout(FAREWELL);
}
