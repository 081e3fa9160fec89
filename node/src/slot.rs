//! Where a call's outcome goes: to the caller if it is there at once, else to the inbox.

use std::sync::{Arc, Mutex, PoisonError};

use crate::inbox::Inbox;
use crate::outcome::{Ended, News};

/// One call's way back.
#[derive(Clone)]
pub(crate) struct Slot {
    state: Arc<Mutex<State>>,
    inbox: Arc<Inbox>,
}

enum State {
    /// The call that began it has not returned yet.
    Starting,
    /// It ended before that.
    Ended(News),
    /// It has returned: the inbox is the way.
    Started,
}

impl Slot {
    pub(crate) fn new(inbox: &Arc<Inbox>) -> Slot {
        Slot { state: Arc::new(Mutex::new(State::Starting)), inbox: inbox.clone() }
    }

    /// The call has ended. From any thread.
    pub(crate) fn end(self, news: News) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match *state {
            State::Starting => *state = State::Ended(news),
            State::Started | State::Ended(_) => {
                drop(state);
                self.inbox.push(news);
            }
        }
    }

    /// The call that began it returns: with the outcome, if it is there.
    pub(crate) fn started(&self) -> Option<Ended> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Started) {
            State::Ended(news) => Some(news.ended()),
            State::Starting | State::Started => None,
        }
    }
}
