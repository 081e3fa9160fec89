//! Replies and pushes of a Redis server, given to the codec.

use std::time::Duration;

use fencelock_engine::redis::{Codec, Listing, Value, decode_record};
use fencelock_engine::reply::Body;
use fencelock_engine::request::{Acquire, Beat, Break, Convert, Mode, Op, Release, Resize};
use fencelock_engine::{ClientId, HoldId, Name};

use crate::bytes::Bytes;

/// The largest token that fits the protocol: what a store cannot give must not be decoded.
const MAX_TOKEN: u64 = 1 << 53;

/// Decodes the same bytes as a reply to each kind of request, as records and as a push.
pub fn codec(bytes: &[u8]) {
    let client = ClientId::new(7, "fuzz").expect("a short label");
    let codec = Codec::new(client, "fl:").expect("a good prefix");
    if let Some(push) = codec.decode_push(bytes) {
        assert!(format!("{push:?}").contains("hold"));
    }
    let mut bytes = Bytes::new(bytes);
    batch(&codec, &mut bytes.clone());
    let op = op(bytes.byte());
    let value = value(&mut bytes, 0);
    let (queue, holds) = (self::value(&mut bytes, 0), self::value(&mut bytes, 0));
    if let (Value::Array(record), Value::Array(queue), Value::Array(holds)) =
        (&value, &queue, &holds)
    {
        // What was read has been checked: it can be looked at, at any time.
        if let Ok(record) = decode_record(record, queue, holds) {
            record.inspect(bytes.number(), &lock());
        }
    }
    if let Op::List { .. } = op {
        let mut listing = Listing::default();
        let _ = codec.list_step(&op, &mut listing, value);
        let _ = codec.list_step(&op, &mut listing, self::value(&mut bytes, 0));
        return;
    }
    let Ok(reply) = codec.decode(&op, value) else { return };
    match (&op, reply.body) {
        (Op::Acquire(_), Body::Acquire(state)) | (Op::Convert(_), Body::Convert(state)) => {
            assert!(state.token <= MAX_TOKEN && state.end <= MAX_TOKEN, "{state:?}");
        }
        (Op::Beat(beats), Body::Beat(states)) => {
            assert_eq!(beats.len(), states.len(), "one answer for each");
            for state in states.into_iter().flatten() {
                assert!(state.token <= MAX_TOKEN && state.end <= MAX_TOKEN, "{state:?}");
            }
        }
        (Op::Release(_), Body::Release(_))
        | (Op::Inspect(_), Body::Inspect(_))
        | (Op::Resize(_), Body::Resize(_))
        | (Op::Break(_), Body::Break(_))
        | (Op::Time, Body::Time) => {}
        (op, body) => panic!("{body:?} as the answer to {op:?}"),
    }
}

/// Whatever a damaged record makes of one answer, the others of its batch count.
fn batch(codec: &Codec, bytes: &mut Bytes<'_>) {
    let granted = Value::Array([0, 1_800, 2_000, 30, 0, 0].map(Value::Int).to_vec());
    let items = vec![Value::Int(1_900), granted.clone(), value(bytes, 1), granted];
    let Op::Beat(one) = op(2) else { panic!("2 is a beat") };
    let op = Op::Beat(vec![one[0].clone(), one[0].clone(), one[0].clone()]);
    let reply = codec.decode(&op, Value::Array(items)).expect("one answer for each");
    let Body::Beat(states) = reply.body else { panic!("the answer to a beat") };
    assert!(states[0].is_ok() && states[2].is_ok(), "{states:?}");
}

fn lock() -> Name {
    Name::new("stock").expect("a good name")
}

fn op(kind: u8) -> Op {
    let hold = HoldId(7 << 64 | 9);
    let lease = Duration::from_secs(30);
    match kind % 8 {
        0 if kind >= 128 => {
            let to = if kind & 8 == 0 { Mode::Shared } else { Mode::Exclusive };
            Op::Convert(Convert::new(lock(), hold, to, lease, 0))
        }
        0 | 1 => Op::Acquire(Acquire {
            lock: lock(),
            hold,
            owner: None,
            mode: match kind / 16 % 4 {
                2 => Mode::Shared,
                3 => Mode::Permits { count: 2, of: 5 },
                _ => Mode::Exclusive,
            },
            read_write: false,
            lease,
            not_after: 0,
            floor: 0,
            wait: None,
            attach: None,
            after: None,
            local_waiters: 0,
        }),
        2 | 3 => {
            let beats = usize::from(kind / 8 % 3) + 1;
            Op::Beat(vec![Beat { silence: lease, ..Beat::new(lock(), hold, lease) }; beats])
        }
        4 => Op::Release(Release::new(lock(), hold, 0)),
        5 => Op::Inspect(lock()),
        6 if kind < 128 => {
            Op::Break(Break { lock: lock(), token: 7, hold: (kind < 64).then_some(hold) })
        }
        6 if kind > 250 => Op::Resize(Resize { lock: lock(), of: 5 }),
        6 => Op::Time,
        _ => Op::List { prefix: "s".to_owned(), limit: 5 },
    }
}

/// A value; words that the codec knows come up often.
fn value(bytes: &mut Bytes<'_>, depth: u32) -> Value {
    const WORDS: [&str; 38] = [
        "v",
        "1",
        "2",
        "i",
        "d",
        "l",
        "f",
        "c",
        "x",
        "o",
        "t",
        "e",
        "b",
        "r",
        "k",
        "",
        "00000000000000070000000000000009",
        "0000000000000007 fuzz",
        "1800000000000000",
        "9007199254740993",
        "18446744073709551615",
        "1800000000000000 1800000000000000 0 30000000 3000000 3000000\n0000000000000007 fuzz\n",
        "WRONGTYPE Operation against a key",
        "fl:{stock}",
        // Where several hold a name, and of semaphores.
        "a",
        "h",
        "s",
        "p",
        "u",
        "1 0",
        "2 1",
        "=trace",
        "00000000000000070000000000000009 1800000000000000 30000000 0 1800000000000000 1 s\n0000000000000007 fuzz\n",
        "1800000000000000 30000000 0 1800000000000000 1 p 2 5\n0000000000000007 fuzz\t3\n",
        "1800000000000000 30000000 2 1800000000000000 2\n0000000000000007 fuzz\ntrace",
        "1800000000000000 1800000000000000 2 30000000 3000000 3000000 p 6 5\n0000000000000007 fuzz\n",
        "KIND 5 permits",
        "MODES all keys are wanted",
    ];
    match bytes.byte() % 8 {
        0 => Value::Nil,
        1 => Value::Int(i64::from(bytes.byte() as i8)),
        2 => Value::Int(bytes.number() as i64),
        3 | 4 => Value::Bytes(WORDS[bytes.below(WORDS.len())].as_bytes().to_vec()),
        5 => {
            let length = bytes.below(40);
            Value::Bytes(bytes.slice(length).to_vec())
        }
        6 if depth > 3 => {
            let length = bytes.below(40);
            Value::Error(bytes.text(length))
        }
        _ if depth > 3 => Value::Nil,
        6 if bytes.flip() => Value::Error(WORDS[bytes.below(WORDS.len())].to_owned()),
        _ => {
            let length = bytes.below(12);
            Value::Array((0..length).map(|_| value(bytes, depth + 1)).collect())
        }
    }
}
