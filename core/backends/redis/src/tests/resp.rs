use fencelock_engine::redis::Value;
use fencelock_engine::redis::session::{Frame, Incoming, Parsed, parse};
use proptest::prelude::*;

/// A reply as a server writes it, and as we read it.
#[derive(Clone, Debug)]
struct Spoken {
    bytes: Vec<u8>,
    value: Value,
}

fn spoken(bytes: impl Into<Vec<u8>>, value: Value) -> Spoken {
    Spoken { bytes: bytes.into(), value }
}

fn blob(kind: char, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{kind}{}\r\n", payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(b"\r\n");
    bytes
}

fn list(kind: char, count: usize, parts: &[Spoken]) -> Vec<u8> {
    let mut bytes = format!("{kind}{count}\r\n").into_bytes();
    parts.iter().for_each(|part| bytes.extend_from_slice(&part.bytes));
    bytes
}

fn values(parts: &[Spoken]) -> Value {
    Value::Array(parts.iter().map(|part| part.value.clone()).collect())
}

fn any_reply() -> impl Strategy<Value = Spoken> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(|n| spoken(format!(":{n}\r\n"), Value::Int(n))),
        proptest::collection::vec(any::<u8>(), 0..40)
            .prop_map(|b| spoken(blob('$', &b), Value::Bytes(b))),
        "[a-zA-Z ]{1,12}".prop_map(|s| spoken(format!("+{s}\r\n"), Value::Bytes(s.into_bytes()))),
        "[A-Z]{3,9} [a-z ]{0,12}[a-z]".prop_map(|s| spoken(format!("-{s}\r\n"), Value::Error(s))),
        "[A-Z]{3,9} [a-z ]{0,12}[a-z]"
            .prop_map(|s| spoken(blob('!', s.as_bytes()), Value::Error(s))),
        Just(spoken("$-1\r\n", Value::Nil)),
        Just(spoken("*-1\r\n", Value::Nil)),
        Just(spoken("_\r\n", Value::Nil)),
        Just(spoken("#t\r\n", Value::Int(1))),
        Just(spoken("#f\r\n", Value::Int(0))),
        Just(spoken(",1.5\r\n", Value::Bytes(b"1.5".to_vec()))),
        "[1-9][0-9]{20,30}".prop_map(|s| spoken(format!("({s}\r\n"), Value::Bytes(s.into()))),
        "[a-z]{0,12}".prop_map(|s| {
            spoken(blob('=', format!("txt:{s}").as_bytes()), Value::Bytes(s.into_bytes()))
        }),
    ];
    leaf.prop_recursive(4, 64, 6, |inner| {
        let parts = proptest::collection::vec(inner, 0..6);
        prop_oneof![
            parts.clone().prop_map(|p| spoken(list('*', p.len(), &p), values(&p))),
            parts.clone().prop_map(|p| spoken(list('~', p.len(), &p), values(&p))),
            parts.prop_map(|mut p| {
                p.truncate(p.len() / 2 * 2);
                spoken(list('%', p.len() / 2, &p), values(&p))
            }),
        ]
    })
}

/// What the `redis` crate makes of the same bytes, in our words.
fn theirs(value: redis::Value) -> Value {
    use redis::Value as V;
    match value {
        V::Nil => Value::Nil,
        V::Int(n) => Value::Int(n),
        V::BulkString(b) | V::BigNumber(b) => Value::Bytes(b),
        V::SimpleString(s) | V::VerbatimString { text: s, .. } => Value::Bytes(s.into_bytes()),
        V::Okay => Value::Bytes(b"OK".to_vec()),
        V::Array(v) | V::Set(v) => Value::Array(v.into_iter().map(theirs).collect()),
        V::Map(m) => {
            Value::Array(m.into_iter().flat_map(|(k, v)| [theirs(k), theirs(v)]).collect())
        }
        V::Boolean(b) => Value::Int(i64::from(b)),
        V::Double(d) => Value::Bytes(d.to_string().into_bytes()),
        V::ServerError(e) => {
            Value::Error(format!("{} {}", e.code(), e.details().unwrap_or_default()))
        }
        other => panic!("not generated: {other:?}"),
    }
}

proptest! {
    #[test]
    fn reads_what_a_server_writes_as_the_redis_crate_does(reply in any_reply()) {
        let parsed = parse(&reply.bytes);
        prop_assert_eq!(
            parsed,
            Ok(Parsed::Frame(Frame::Reply(reply.value.clone()), reply.bytes.len()))
        );
        let other = redis::parse_redis_value(&reply.bytes);
        prop_assert_eq!(theirs(other.unwrap()), reply.value);
    }

    #[test]
    fn a_part_is_never_taken_for_the_whole(reply in any_reply()) {
        for length in 0..reply.bytes.len() {
            match parse(&reply.bytes[..length]) {
                Ok(Parsed::Partial(needed)) => {
                    prop_assert!(needed > length && needed <= reply.bytes.len());
                }
                other => prop_assert!(false, "{:?} from {} bytes", other, length),
            }
        }
    }

    #[test]
    fn pieces_of_any_size_give_the_same_frames(
        replies in proptest::collection::vec(any_reply(), 1..6),
        sizes in proptest::collection::vec(1..50usize, 1..20),
    ) {
        let mut bytes: Vec<u8> = Vec::new();
        for reply in &replies {
            bytes.extend_from_slice(&reply.bytes);
            bytes.extend_from_slice(b">2\r\n+a\r\n:1\r\n");
        }
        let mut incoming = Incoming::default();
        let mut frames = Vec::new();
        let mut rest = &bytes[..];
        for size in sizes.iter().cycle() {
            let (piece, more) = rest.split_at((*size).min(rest.len()));
            incoming.extend(piece);
            while let Some(frame) = incoming.frame().unwrap() {
                frames.push(frame);
            }
            rest = more;
            if rest.is_empty() {
                break;
            }
        }
        let push = Frame::Push(vec![Value::Bytes(b"a".to_vec()), Value::Int(1)]);
        let expected: Vec<Frame> = replies
            .iter()
            .flat_map(|reply| [Frame::Reply(reply.value.clone()), push.clone()])
            .collect();
        prop_assert_eq!(frames, expected);
    }

    #[test]
    fn anything_at_all_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn damaged_replies_are_survived(
        reply in any_reply(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = reply.bytes;
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = parse(&bytes);
    }
}

#[test]
fn impossible_lengths_and_depths_are_refused() {
    for bad in
        ["$99999999999\r\n", "*99999999999\r\n", "$-2\r\n", "?\r\n", ":x\r\n", "$1\r\nab\r\n"]
    {
        assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
    }
    assert!(parse("*1\r\n".repeat(1000).as_bytes()).is_err());
    assert!(parse(b"HTTP/1.1 400 Bad Request\r\n").is_err());
    // A long array that has not come must not reserve its whole length.
    assert_eq!(parse(b"*4000000\r\n"), Ok(Parsed::Partial(11)));
}

#[test]
fn attributes_are_left_out() {
    let bytes = b"|1\r\n+ttl\r\n:3\r\n*2\r\n:1\r\n|1\r\n+x\r\n+y\r\n:2\r\n";
    let value = Value::Array(vec![Value::Int(1), Value::Int(2)]);
    assert_eq!(parse(bytes), Ok(Parsed::Frame(Frame::Reply(value), bytes.len())));
}
