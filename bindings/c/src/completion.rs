//! How asynchronous calls end.

#![allow(non_camel_case_types)]

use fencelock_support::{Broken, Client, Error, Hold, LockInfo};

use crate::error_object::object;
use crate::failure::Failure;
use crate::hold_object::HoldObject;
use crate::inspection::Inspection;
use crate::kinds::{
    Kind, fencelock_client, fencelock_error, fencelock_hold, fencelock_inspection, fencelock_names,
};
use crate::sized::Growing;
use crate::status::{FENCELOCK_OK, fencelock_status};
use crate::string::Text;

/// How an asynchronous call ended. What it carries is the receiver's to free.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fencelock_completion {
    /// sizeof(fencelock_completion); in `now`, to be set by the caller.
    pub size: usize,
    /// In `now`: whether the call has ended already, so that the callback will not be called.
    pub ended: bool,
    /// What the blocking call would have returned.
    pub status: fencelock_status,
    /// NULL when status is FENCELOCK_OK.
    pub error: *mut fencelock_error,
    /// Of fencelock_connect_async().
    pub client: *mut fencelock_client,
    /// Of fencelock_client_attach_async(), and of all that acquire without blocking.
    pub hold: *mut fencelock_hold,
    /// Of fencelock_client_list_async().
    pub names: *mut fencelock_names,
    /// Of fencelock_client_inspect_async(); NULL: the store knows nothing of the lock.
    pub inspection: *mut fencelock_inspection,
    /// The token that was entered with, how many holds were broken, the store's time in nanoseconds
    /// since 1970, whether the lock is held, how many permits are free, or whether a semaphore
    /// was resized.
    pub number: u64,
    /// Of fencelock_client_break_async(): the token under which somebody else holds the lock now, or 0.
    pub changed_hands: u64,
}

// SAFETY: it begins with its size, and all zeros are a value of it.
unsafe impl Growing for fencelock_completion {}

/// What a call gives.
pub(crate) enum Outcome {
    Nothing,
    Client(Client),
    Hold(Hold),
    Names(Vec<String>),
    Inspection(Option<Box<LockInfo>>),
    Number(u64),
    Broken(Broken),
}

impl fencelock_completion {
    /// Makes handles of what a call gave.
    pub(crate) fn of(result: Result<Outcome, Error>) -> fencelock_completion {
        let mut completion = fencelock_completion {
            size: size_of::<fencelock_completion>(),
            ended: true,
            status: FENCELOCK_OK,
            ..fencelock_completion::empty()
        };
        let carried = result.map_err(Failure::from).and_then(|outcome| {
            match outcome {
                Outcome::Nothing => {}
                Outcome::Client(client) => completion.client = fencelock_client::make(client)?,
                Outcome::Hold(hold) => {
                    completion.hold = fencelock_hold::make(HoldObject::new(hold))?;
                }
                Outcome::Names(names) => {
                    let names = names.iter().map(|name| Text::new(name)).collect();
                    completion.names = fencelock_names::make(names)?;
                }
                Outcome::Inspection(None) => {}
                Outcome::Inspection(Some(info)) => {
                    completion.inspection = fencelock_inspection::make(Inspection::new(&info))?;
                }
                Outcome::Number(number) => completion.number = number,
                Outcome::Broken(broken) => {
                    completion.number = broken.ended as u64;
                    completion.changed_hands = broken.changed_hands.unwrap_or(0);
                }
            }
            Ok(())
        });
        if let Err(failure) = carried {
            completion.status = failure.status();
            completion.error = object(failure);
        }
        completion
    }
}
