//! Replies into outcomes.

use core::time::Duration;

use crate::name::Name;
use crate::redis::codec::Codec;
use crate::redis::encode::is_plain;
use crate::redis::error::{
    garbled, is_moving, kind_of_others, refusal, wants_all_keys, wants_queue,
};
use crate::redis::layout::decode_record;
use crate::redis::value::Value;
use crate::reply::{
    Abandoned, Body, Broken, Refusal, RefusalKind, Released, Reply, Standing, State,
};
use crate::request::{Beat, Mode, Op};
use crate::store::{other_kind, revoke_unsupported};

/// A token, or the end of a block: above 2^53 the scripts cannot count.
pub(super) fn token(number: u64) -> Option<u64> {
    (number <= 1 << 53).then_some(number)
}

/// What the scripts write for `Abandoned`, and for the losses that it tells of.
pub(super) fn abandoned(code: u64) -> Option<(Abandoned, u32)> {
    let abandoned = match code % 4 {
        0 => Abandoned::No,
        1 => Abandoned::Yes,
        2 => Abandoned::Unknown,
        _ => return None,
    };
    Some((abandoned, u32::try_from(code / 4).ok()?))
}

impl Codec {
    pub(super) fn outcome(&self, op: &Op, value: Value) -> Result<Reply, Refusal> {
        if let Value::Error(text) = &value {
            return Err(self.refused(op, text));
        }
        match op {
            Op::Revoke(_) => Err(revoke_unsupported()),
            Op::List { .. } => Err(garbled("list")),
            Op::Time => {
                let now = time(&value).ok_or_else(|| garbled("time"))?;
                Ok(Reply { now, body: Body::Time })
            }
            _ => self.answered(op, &value).unwrap_or_else(|| Err(garbled(name_of(op)))),
        }
    }

    fn refused(&self, op: &Op, text: &str) -> Refusal {
        let lock = match op {
            Op::Acquire(ask) => &ask.lock,
            Op::Release(release) => &release.lock,
            Op::Convert(ask) => &ask.lock,
            Op::Resize(ask) => &ask.lock,
            Op::Break(what) => &what.lock,
            Op::Inspect(name) | Op::Revoke(name) => name,
            Op::Beat(beats) => {
                let refusal = refusal(text, None, &self.secrets);
                if let [beat] = &beats[..] {
                    // The keys of its holds are not at one server.
                    self.wide.gather(&beat.lock);
                }
                let moving = is_moving(text) && !planted!(MovingBeatsWhole);
                let apart = moving && !beats.iter().any(|beat| beat.apart);
                let kind = if apart { RefusalKind::Apart } else { refusal.kind };
                return Refusal { kind, ..refusal };
            }
            Op::List { .. } | Op::Time => return refusal(text, None, &self.secrets),
        };
        let asked = match op {
            Op::Acquire(ask) => Some(ask.mode),
            Op::Convert(ask) => Some(ask.to),
            Op::Resize(ask) => Some(Mode::Permits { count: 1, of: ask.of }),
            _ => None,
        };
        if let Op::Acquire(ask) = op
            && is_plain(ask)
        {
            let refusal = self.refused_of(lock, text);
            if is_moving(text) && self.wide.take_alone(lock) {
                return Refusal { kind: RefusalKind::Again, ..refusal };
            }
            if is_moving(text) || wants_queue(text) {
                self.wide.take_whole(lock);
                return Refusal { kind: RefusalKind::Retry, ..refusal };
            }
        }
        if matches!(op, Op::Release(_)) && wants_queue(text) {
            self.wide.queue(lock);
        }
        if let Some((asked, of)) = asked.zip(kind_of_others(text)) {
            return other_kind(of, asked);
        }
        self.refused_of(lock, text)
    }

    /// A refusal that concerns one lock.
    fn refused_of(&self, lock: &Name, text: &str) -> Refusal {
        if wants_all_keys(text) {
            self.wide.add(lock);
        }
        refusal(text, Some(&self.shown_key(lock)), &self.secrets)
    }

    fn beat_refused(&self, beat: &Beat, text: &str) -> Refusal {
        let refusal = self.refused_of(&beat.lock, text);
        if !beat.apart || !wants_queue(text) {
            return refusal;
        }
        // The record was not enough: the keys of its holds may be.
        if self.wide.spread(&beat.lock) {
            return Refusal { kind: RefusalKind::Apart, ..refusal };
        }
        self.wide.gather(&beat.lock);
        refusal
    }

    fn shown_key(&self, name: &Name) -> String {
        String::from_utf8_lossy(&self.keys(name)[0]).into_owned()
    }

    /// `None` when the reply has not the shape that the script gives it.
    fn answered(&self, op: &Op, value: &Value) -> Option<Result<Reply, Refusal>> {
        let (now, rest) = value.array()?.split_first()?;
        let now = now.number()?;
        let body = match op {
            Op::Acquire(ask) => {
                self.wide.take_whole(&ask.lock);
                Body::Acquire(state(rest)?)
            }
            Op::Beat(beats) => {
                let mut states = Vec::with_capacity(beats.len());
                for (beat, item) in beats.iter().zip(rest) {
                    let state = match item {
                        Value::Array(fields) => state(fields).ok_or("DAMAGED"),
                        // What a damaged record makes of an answer is that lock's trouble alone.
                        item => Err(item.text().unwrap_or("DAMAGED")),
                    };
                    states.push(state.map_err(|text| self.beat_refused(beat, text)));
                }
                (states.len() == beats.len()).then_some(Body::Beat(states))?
            }
            Op::Convert(ask) => {
                // Of a hold that is exclusive from now on the other requests need all keys, too.
                self.wide.add(&ask.lock);
                Body::Convert(state(rest)?)
            }
            Op::Release(release) => {
                self.wide.unqueue(&release.lock);
                Body::Release(match rest.first()?.number()? {
                    0 => Released::Done,
                    1 => Released::Left,
                    2 => Released::Unknown,
                    _ => return None,
                })
            }
            Op::Resize(_) => Body::Resize(rest.first()?.number()? > 0),
            Op::Break(_) => {
                let [ended, later] = rest else { return None };
                Body::Break(match (ended.number()?, token(later.number()?)?) {
                    (0, 0) => Broken::NotHeld,
                    (0, later) => Broken::ChangedHands(later),
                    (ended, 0) => Broken::Ended(usize::try_from(ended).ok()?),
                    _ => return None,
                })
            }
            Op::Inspect(name) => {
                let (record, queue, waiting, holds) = match rest {
                    [record, queue, waiting] => (record, queue, waiting, &[][..]),
                    [record, queue, waiting, holds] => (record, queue, waiting, holds.array()?),
                    _ => return None,
                };
                let waiting = usize::try_from(waiting.number()?).ok()?;
                let (record, queue) = (record.array()?, queue.array()?);
                if record.is_empty() && queue.is_empty() {
                    Body::Inspect(None)
                } else {
                    let key = self.shown_key(name);
                    match decode_record(record, queue, holds) {
                        Ok(record) => {
                            let mut info = record.inspect(now, name);
                            info.waiting += waiting.saturating_sub(record.waiters.len());
                            // All that was left is a queue whose waiters are forgotten.
                            let nothing = info.last_token == 0
                                && info.holds.is_empty()
                                && info.waiters.is_empty();
                            Body::Inspect((!nothing).then_some(info))
                        }
                        Err(text) => {
                            return Some(Err(refusal(&text, Some(&key), &self.secrets)));
                        }
                    }
                }
            }
            Op::List { .. } | Op::Revoke(_) | Op::Time => return None,
        };
        Some(Ok(Reply { now, body }))
    }
}

fn name_of(op: &Op) -> &'static str {
    match op {
        Op::Acquire(_) => "acquire",
        Op::Beat(_) => "beat",
        Op::Release(_) => "release",
        Op::Inspect(_) => "inspect",
        Op::List { .. } => "list",
        Op::Convert(_) => "convert",
        Op::Resize(_) => "resize",
        Op::Break(_) => "break",
        Op::Revoke(_) => "revoke",
        Op::Time => "time",
    }
}

/// The reply to `TIME`, in microseconds.
pub(super) fn time(value: &Value) -> Option<u64> {
    let [seconds, micros] = value.array()? else { return None };
    seconds.number()?.checked_mul(1_000_000)?.checked_add(micros.number()?)
}

/// A hold's state: what is not there is zero.
fn state(fields: &[Value]) -> Option<State> {
    let field = |at: usize| fields.get(at).map_or(Some(0), Value::number);
    let count = |at: usize| field(at).map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    let standing = match field(0)? {
        0 => {
            let (abandoned, losses) = abandoned(field(4)?)?;
            return Some(State {
                token: token(field(1)?)?,
                end: token(field(2)?)?,
                lease: Duration::from_micros(field(3)?),
                abandoned,
                losses,
                others_waiting: count(5)?,
                publish_failed: field(6)? != 0,
                ..State::bare(Standing::Granted)
            });
        }
        1 => Standing::Queued,
        2 => Standing::Contended,
        3 => Standing::Late,
        4 => Standing::Released,
        5 => Standing::Gone,
        6 => Standing::NotHeld,
        7 => Standing::Doomed { of: count(4)? },
        8 => Standing::Deadlock,
        _ => return None,
    };
    let expires_in = match fields.get(2) {
        None | Some(Value::Int(..0)) => None,
        Some(micros) => Some(Duration::from_micros(micros.number()?)),
    };
    let (others_waiting, ahead) = match standing {
        Standing::Queued => (0, count(3)?),
        _ => (count(3)?, 0),
    };
    Some(State {
        last: token(field(1)?)?,
        expires_in,
        others_waiting,
        ahead,
        ticket: if standing == Standing::Queued { field(4)? } else { 0 },
        publish_failed: field(5)? != 0,
        ..State::bare(standing)
    })
}
