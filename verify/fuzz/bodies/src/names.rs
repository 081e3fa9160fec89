//! Names of locks, owners, labels and holds.

use fencelock_engine::redis::{Codec, Listing, Value};
use fencelock_engine::request::Op;
use fencelock_engine::{ClientId, HoldId, Name, OwnerId};

/// Takes the bytes as each kind of name.
pub fn names(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(owner) = OwnerId::new(text) {
        assert_eq!(owner.as_str(), text);
    }
    if let Ok(client) = ClientId::new(7, text) {
        assert_eq!(client.label(), text);
    }
    if let Some(hold) = HoldId::parse(text) {
        assert_eq!(HoldId::parse(&hold.to_string()), Some(hold));
    }
    let Ok(name) = Name::new(text) else {
        assert!(text.is_empty() || text.len() > 512 || text.contains('\0'));
        return;
    };
    assert_eq!(name.as_str(), text);
    in_redis(&name);
}

/// A name makes keys with one hash tag, and is read back from them.
fn in_redis(name: &Name) {
    let client = ClientId::new(7, "fuzz").expect("a short label");
    let codec = Codec::new(client, "fl:").expect("a good prefix");
    let [record, queue, order, ..] = codec.keys(name);
    let tag = |key: &[u8]| {
        let open = key.iter().position(|&byte| byte == b'{').expect("an opening brace");
        let close = key.iter().position(|&byte| byte == b'}').expect("a closing brace");
        assert_eq!(key.iter().filter(|&&byte| byte == b'{' || byte == b'}').count(), 2);
        assert!(open + 1 < close, "an empty hash tag spreads the keys over the slots");
        key[open..=close].to_vec()
    };
    assert_eq!(tag(&record), tag(&queue), "all keys lie in one slot");
    assert_eq!(tag(&record), tag(&order), "all keys lie in one slot");
    let op = Op::List { prefix: String::new(), limit: 10 };
    let mut listing = Listing::default();
    let keys = Value::Array(vec![Value::Bytes(record), Value::Bytes(queue)]);
    let scanned = Value::Array(vec![Value::Bytes(b"0".to_vec()), keys]);
    codec.list_step(&op, &mut listing, scanned).expect("a good answer to SCAN");
    let time = Value::Array(vec![Value::Int(1), Value::Int(2)]);
    let listed = codec.list_step(&op, &mut listing, time).expect("a good answer to TIME");
    let fencelock_engine::redis::ListStep::Done(reply) = listed else { panic!("{listed:?}") };
    let fencelock_engine::reply::Body::List(names) = reply.body else { panic!("{reply:?}") };
    assert_eq!(names, std::slice::from_ref(name));
}
