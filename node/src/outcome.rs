//! What the event loop is told.

use fencelock_support::{Abandoned, Error, Hold, LossReason};
use napi_derive::napi;

use crate::info::LockInfo;

/// How a call ended, or what happened to a hold.
#[napi(object, object_from_js = false)]
#[derive(Default)]
pub struct Outcome {
    /// The call's number; of a hold, that of the call that acquired it.
    pub call: i64,
    /// The error's number; 0 when there is none.
    pub code: u32,
    /// The error's message.
    pub message: Option<String>,
    /// Of a grant: its token.
    pub token: Option<u64>,
    /// Of a grant: whether the owner had the lock already.
    pub reentry: Option<bool>,
    /// Of a grant: whether the previous holder was lost: `no`, `yes` or `unknown`.
    pub abandoned: Option<String>,
    /// The hold was lost, for this reason.
    pub lost: Option<String>,
    /// Of a `release` that failed because the hold was lost: why.
    pub reason: Option<String>,
    /// Another client waits for the hold's lock.
    pub wanted: Option<bool>,
    /// Of `breakLock`, a count; of `ping`, milliseconds since 1970.
    pub number: Option<f64>,
    /// Of `ticket`; of a grant to `attach`, the lock's name.
    pub text: Option<String>,
    /// Of `isLocked`; of `drain`, whether all was released in time.
    pub flag: Option<bool>,
    /// Of `list`.
    pub names: Option<Vec<String>>,
    /// Of `inspect`, when the store knows the lock.
    pub lock: Option<LockInfo>,
}

impl Outcome {
    /// It succeeded, and there is nothing more to say.
    pub(crate) fn done(call: i64) -> Outcome {
        Outcome { call, ..Outcome::default() }
    }

    pub(crate) fn failed(call: i64, error: &Error) -> Outcome {
        Outcome {
            call,
            code: error.kind().code().into(),
            message: Some(error.message().to_owned()),
            ..Outcome::default()
        }
    }

    /// `named`: with the lock's name, for who does not know it.
    pub(crate) fn granted(call: i64, hold: &Hold, named: bool) -> Outcome {
        Outcome {
            token: Some(hold.token()),
            reentry: Some(hold.is_reentry()),
            abandoned: Some(abandoned(hold.previous_abandoned()).to_owned()),
            text: named.then(|| hold.name().to_owned()),
            ..Outcome::done(call)
        }
    }

    pub(crate) fn lost(call: i64, reason: LossReason) -> Outcome {
        Outcome { lost: Some(loss(reason).to_owned()), ..Outcome::done(call) }
    }

    pub(crate) fn wanted(call: i64) -> Outcome {
        Outcome { wanted: Some(true), ..Outcome::done(call) }
    }

    /// What `fill` makes of the result, or failed.
    pub(crate) fn with<T>(
        call: i64,
        result: Result<T, Error>,
        fill: impl FnOnce(T, &mut Outcome),
    ) -> Outcome {
        match result {
            Ok(value) => {
                let mut outcome = Outcome::done(call);
                fill(value, &mut outcome);
                outcome
            }
            Err(error) => Outcome::failed(call, &error),
        }
    }
}

pub(crate) fn abandoned(abandoned: Abandoned) -> &'static str {
    match abandoned {
        Abandoned::No => "no",
        Abandoned::Yes => "yes",
        Abandoned::Unknown => "unknown",
    }
}

pub(crate) fn loss(reason: LossReason) -> &'static str {
    match reason {
        LossReason::Ended => "ended",
        LossReason::NotRenewed => "not_renewed",
        LossReason::Gone => "gone",
        LossReason::Broken => "broken",
        LossReason::Closed => "closed",
    }
}
