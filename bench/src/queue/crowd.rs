//! Clients that wait for one lock, and the one that holds it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use fencelock_engine::options::Options;
use fencelock_engine::redis::{Codec, Value};
use fencelock_engine::reply::{Body, Push, Standing, State};
use fencelock_engine::request::{Acquire, Beat, Op, Release, Wait};
use fencelock_engine::{ClientId, HoldId, Name};
use redis::{Connection, Pipeline};

use crate::{Result, bare};

/// Nothing here ends by itself: a line rests while the others have their turns.
const LONG: Duration = Duration::from_secs(3600);
/// How many clients queue at a time.
const BATCH: usize = 500;

/// Which scripts the server is to count under the command that is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Those that are measured; the others run as `EVAL`, with their whole text.
    These,
    /// All, as a client sends them.
    All,
}

/// One lock and its clients.
pub struct Crowd {
    lock: Name,
    options: Options,
    clients: Vec<Waiter>,
    holder: usize,
    token: u64,
    /// Who waits, in order.
    line: VecDeque<usize>,
    /// Hears for all of them.
    inbox: Connection,
    /// When who shows itself next, by `clock`, and under which hold.
    beats: BinaryHeap<Reverse<(Duration, usize, HoldId)>>,
    /// Rests with the line.
    clock: Duration,
    holds: u128,
    /// Comes and goes.
    guest: Codec,
    /// Whose beat was measured last.
    beaten: usize,
}

struct Waiter {
    codec: Codec,
    hold: HoldId,
}

impl Crowd {
    /// Lets so many wait for a lock that one more holds.
    pub fn gather(url: &str, wire: &mut Connection, waiting: usize) -> Result<Crowd> {
        let mut clients = Vec::new();
        for number in 0..=waiting {
            let id = ((waiting as u64) << 32) + number as u64 + 1;
            let hold = HoldId(u128::from(id) << 64);
            clients.push(Waiter { codec: codec(id)?, hold });
        }
        let mut inbox = bare::client(url)?.get_connection()?;
        let mut subscribe = redis::cmd("SUBSCRIBE");
        for client in &clients {
            subscribe.arg(client.codec.channel());
        }
        inbox.send_packed_command(&subscribe.get_packed_command())?;
        for _ in &clients {
            inbox.recv_response()?;
        }
        let mut crowd = Crowd {
            lock: Name::new(format!("queue/{waiting}"))?,
            options: Options::default(),
            clients,
            holder: 0,
            token: 0,
            line: (1..=waiting).collect(),
            inbox,
            beats: BinaryHeap::new(),
            clock: Duration::ZERO,
            holds: u128::from(u64::MAX) << 64,
            guest: codec(((waiting as u64) << 32) - 1)?,
            beaten: 0,
        };
        let order: Vec<usize> = (0..=waiting).collect();
        for batch in order.chunks(BATCH) {
            let mut pipe = Pipeline::new();
            for &at in batch {
                let client = &crowd.clients[at];
                pipe.add_command(bare::encoded(&client.codec, &crowd.acquire(client.hold)));
            }
            for (&at, answer) in batch.iter().zip(pipe.query::<Vec<redis::Value>>(wire)?) {
                let state = crowd.acquired(at, answer)?;
                match (at, state.standing) {
                    (0, Standing::Granted) => crowd.token = state.token,
                    (1.., Standing::Queued) => {}
                    _ => return Err(format!("client {at} is neither: {state:?}").into()),
                }
            }
        }
        crowd.rest();
        Ok(crowd)
    }

    /// From now on they beat as if they had come one after the other, long ago, each at its place.
    pub fn rest(&mut self) {
        self.beats.clear();
        for (ahead, &at) in self.line.iter().enumerate() {
            let part = (ahead as f64 * 0.618_034).fract();
            let first = self.interval(ahead as u32).mul_f64(part);
            self.beats.push(Reverse((self.clock + first, at, self.clients[at].hold)));
        }
    }

    /// The holder, which was handed the lock, answers for its claim and hands on to the next; then it
    /// queues again. Gives how many scripts are to be counted.
    pub fn hand_over(&mut self, wire: &mut Connection, count: Count) -> Result<usize> {
        let (from, next) = (self.holder, self.line.pop_front().ok_or("nobody waits")?);
        let (hold, again) = (self.clients[from].hold, self.mint());
        let codec = &self.clients[from].codec;
        let mut pipe = Pipeline::new();
        pipe.add_command(bare::encoded(codec, &self.beat(hold, self.token)));
        pipe.add_command(bare::encoded(codec, &self.release(hold, self.token)));
        pipe.add_command(match count {
            Count::These => bare::whole(codec, &self.acquire(again)),
            Count::All => bare::encoded(codec, &self.acquire(again)),
        });
        let answers: Vec<redis::Value> = pipe.query(wire)?;
        self.token = self.granted(next)?;
        self.holder = next;
        self.clients[from].hold = again;
        self.line.push_back(from);
        let state = self.acquired(from, answers.into_iter().last().ok_or("no answer")?)?;
        if state.standing != Standing::Queued {
            return Err(format!("queued again: {state:?}").into());
        }
        self.beats.push(Reverse((self.clock + self.options.heartbeat(), from, again)));
        Ok(2)
    }

    /// One more queues, which is counted, and leaves again.
    pub fn queue_and_leave(&mut self, wire: &mut Connection, _: Count) -> Result<usize> {
        let hold = self.mint();
        let mut pipe = Pipeline::new();
        pipe.add_command(bare::encoded(&self.guest, &self.acquire(hold)));
        pipe.add_command(bare::whole(&self.guest, &self.release(hold, 0)));
        pipe.query::<Vec<redis::Value>>(wire)?;
        Ok(1)
    }

    /// One of the line, the next time another one, shows that it lives.
    pub fn beat_next(&mut self, wire: &mut Connection, _: Count) -> Result<usize> {
        // Steps that are prime to each length of a line, through all of it.
        self.beaten = (self.beaten + 617) % self.line.len();
        let at = self.line[self.beaten];
        self.shown(wire, at)?;
        Ok(1)
    }

    /// Lets one that is due show that it lives, if there is one.
    pub fn beat_due(&mut self, wire: &mut Connection) -> Result<bool> {
        while let Some(&Reverse((due, at, hold))) = self.beats.peek() {
            if due > self.clock {
                break;
            }
            self.beats.pop();
            if self.clients[at].hold == hold && at != self.holder {
                let ahead = self.shown(wire, at)?;
                self.beats.push(Reverse((due + self.interval(ahead), at, hold)));
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Until the next one is due.
    pub fn idle(&self) -> Duration {
        self.beats.peek().map_or(LONG, |Reverse((due, ..))| due.saturating_sub(self.clock))
    }

    /// Time goes on for this line.
    pub fn pass(&mut self, time: Duration) {
        self.clock += time;
    }

    /// How often one shows itself with so many ahead of it.
    fn interval(&self, ahead: u32) -> Duration {
        self.options.stretched(self.options.heartbeat(), ahead)
    }

    /// Sends a waiter's beat; gives how many are ahead of it.
    fn shown(&self, wire: &mut Connection, at: usize) -> Result<u32> {
        let Waiter { codec, hold } = &self.clients[at];
        let op = self.beat(*hold, 0);
        let answer = bare::encoded(codec, &op).query(wire)?;
        match codec.decode(&op, value(answer)).map(|reply| reply.body) {
            Ok(Body::Beat(states)) => match states.as_slice() {
                [Ok(state)] if state.standing == Standing::Queued => Ok(state.ahead),
                other => Err(format!("a waiter's beat: {other:?}").into()),
            },
            other => Err(format!("a beat: {other:?}").into()),
        }
    }

    fn acquired(&self, at: usize, answer: redis::Value) -> Result<State> {
        let Waiter { codec, hold } = &self.clients[at];
        match codec.decode(&self.acquire(*hold), value(answer)).map(|reply| reply.body) {
            Ok(Body::Acquire(state)) => Ok(state),
            other => Err(format!("an acquire: {other:?}").into()),
        }
    }

    /// Waits until `at` hears that it has the lock; gives the token.
    fn granted(&mut self, at: usize) -> Result<u64> {
        loop {
            let Value::Array(parts) = value(self.inbox.recv_response()?) else { continue };
            let [_, _, Value::Bytes(payload)] = parts.as_slice() else { continue };
            let Waiter { codec, hold: wanted } = &self.clients[at];
            match codec.decode_push(payload) {
                Some(Push::Granted { hold, token, .. }) if hold == *wanted => return Ok(token),
                Some(Push::Granted { hold, .. }) => {
                    return Err(format!("{hold:?} was served before {wanted:?}").into());
                }
                _ => {}
            }
        }
    }

    fn mint(&mut self) -> HoldId {
        self.holds += 1 << 64;
        HoldId(self.holds)
    }

    fn acquire(&self, hold: HoldId) -> Op {
        Op::Acquire(Acquire {
            wait: Some(Wait { ticket: 0, claim: LONG, silence: LONG }),
            ..Acquire::new(self.lock.clone(), hold, LONG, bare::micros() + 3_000_000)
        })
    }

    fn beat(&self, hold: HoldId, used: u64) -> Op {
        let lock = self.lock.clone();
        Op::Beat(vec![Beat { used, ..Beat::new(lock, hold, LONG) }])
    }

    fn release(&self, hold: HoldId, used: u64) -> Op {
        Op::Release(Release { told: used > 0, ..Release::new(self.lock.clone(), hold, used) })
    }
}

fn codec(id: u64) -> Result<Codec> {
    Ok(Codec::new(ClientId::new(id, "bench")?, "fl:")?)
}

/// As the codec reads it.
fn value(of: redis::Value) -> Value {
    match of {
        redis::Value::Int(number) => Value::Int(number),
        redis::Value::BulkString(bytes) => Value::Bytes(bytes),
        redis::Value::SimpleString(text) => Value::Bytes(text.into_bytes()),
        redis::Value::Array(items) => Value::Array(items.into_iter().map(value).collect()),
        _ => Value::Nil,
    }
}
