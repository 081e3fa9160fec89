//! What the event loop is told.

use fencelock_support::{Abandoned, Error, Hold, LossReason};
use napi::bindgen_prelude::Either3;
use napi_derive::napi;

use crate::info::{LockInfo, abandoned};

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
    /// Of a grant: its token. Of `breakLock`: the token under which somebody else holds the lock.
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
    /// Of `breakLock` and `breakHold`, a count; of `ping`, milliseconds since 1970.
    pub number: Option<f64>,
    /// Of `ticket`; of a grant to `attach`, the lock's name.
    pub text: Option<String>,
    /// Of `isLocked`; of `drain`, whether all was released in time; of `resize`, whether anybody holds
    /// or waits.
    pub flag: Option<bool>,
    /// Of `list`.
    pub names: Option<Vec<String>>,
    /// Of `inspect`, when the store knows the lock.
    pub lock: Option<LockInfo>,
}

impl Outcome {
    fn done(call: i64) -> Outcome {
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

    pub(crate) fn lost(call: i64, reason: LossReason) -> Outcome {
        Outcome { lost: Some(loss(reason).to_owned()), ..Outcome::done(call) }
    }

    pub(crate) fn wanted(call: i64) -> Outcome {
        Outcome { wanted: Some(true), ..Outcome::done(call) }
    }
}

/// What there is to tell: most of it can be packed into three numbers.
pub(crate) enum News {
    /// The call succeeded, and there is nothing more to say.
    Done(i64),
    /// The call has a hold.
    Granted(i64, Grant),
    Told(Box<Outcome>),
}

/// What there is to say of a hold.
pub(crate) struct Grant {
    token: u64,
    reentry: bool,
    abandoned: Abandoned,
}

/// How a call ended that ended at once: `true` for 'done', and a number for the usual grant, of which
/// it is the token: no re-entry, and the previous holder released it.
#[napi]
pub type Ended = Either3<bool, f64, Outcome>;

/// The integers below are doubles, too.
const EXACT: u64 = 1 << 53;

impl News {
    /// `named`: with the lock's name, for who does not know it.
    pub(crate) fn granted(call: i64, hold: &Hold, named: bool) -> News {
        let grant = Grant {
            token: hold.token(),
            reentry: hold.is_reentry(),
            abandoned: hold.previous_abandoned(),
        };
        if grant.token <= EXACT && !named {
            return News::Granted(call, grant);
        }
        let mut outcome = grant.outcome(call);
        outcome.text = named.then(|| hold.name().to_owned());
        outcome.into()
    }

    pub(crate) fn failed(call: i64, error: &Error) -> News {
        Outcome::failed(call, error).into()
    }

    /// What `fill` makes of the result, or failed.
    pub(crate) fn with<T>(
        call: i64,
        result: Result<T, Error>,
        fill: impl FnOnce(T, &mut Outcome),
    ) -> News {
        match result {
            Ok(value) => {
                let mut outcome = Outcome::done(call);
                fill(value, &mut outcome);
                outcome.into()
            }
            Err(error) => News::failed(call, &error),
        }
    }

    /// The call's number; what it is: 0 is told in full, 1 done, from 8 on a grant; and its token.
    pub(crate) fn pack(&self) -> [f64; 3] {
        #[expect(clippy::cast_precision_loss, reason = "numbers come from JavaScript or are exact")]
        match self {
            News::Done(call) => [*call as f64, 1.0, 0.0],
            News::Granted(call, Grant { token, reentry, abandoned }) => {
                let previous = match abandoned {
                    Abandoned::No => 0.0,
                    Abandoned::Yes => 2.0,
                    Abandoned::Unknown => 4.0,
                };
                [*call as f64, 8.0 + previous + f64::from(u8::from(*reentry)), *token as f64]
            }
            News::Told(outcome) => [outcome.call as f64, 0.0, 0.0],
        }
    }

    pub(crate) fn ended(self) -> Ended {
        match self {
            News::Done(_) => Either3::A(true),
            #[expect(clippy::cast_precision_loss, reason = "it is exact")]
            News::Granted(_, Grant { token, reentry: false, abandoned: Abandoned::No }) => {
                Either3::B(token as f64)
            }
            News::Granted(call, grant) => Either3::C(grant.outcome(call)),
            News::Told(outcome) => Either3::C(*outcome),
        }
    }
}

impl Grant {
    fn outcome(self, call: i64) -> Outcome {
        Outcome {
            token: Some(self.token),
            reentry: Some(self.reentry),
            abandoned: Some(abandoned(self.abandoned).to_owned()),
            ..Outcome::done(call)
        }
    }
}

impl From<Outcome> for News {
    fn from(outcome: Outcome) -> News {
        News::Told(Box::new(outcome))
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
