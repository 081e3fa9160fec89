//! The codec without a server. What the scripts do is compared with the rules in `verify/sim`.

mod moving;

use super::error::refusal;
use super::key::{decode_name, encode_name};
use super::{Codec, Command, ListStep, Listing, Value, Words, decode_record};
use crate::id::{ClientId, HoldId};
use crate::name::Name;
use crate::reply::{Abandoned, Body, Failure, Push, RefusalKind, Reply};
use crate::request::{Acquire, Beat, Break, Mode, Op, Release};
use crate::secret::Secrets;
use crate::store::Record;
use crate::token::MAX_STORE_TIME;
use std::time::Duration;

fn codec(prefix: &str) -> Codec {
    Codec::new(ClientId::new(1, "web").unwrap(), prefix).unwrap()
}

fn bytes(text: &str) -> Value {
    Value::Bytes(text.as_bytes().to_vec())
}

fn kind(text: &str) -> RefusalKind {
    refusal(text, Some("fl:{job}"), &Secrets::default()).kind
}

#[test]
fn bug_62_a_name_keeps_all_keys_in_one_slot() {
    for name in ["}a", "{a}", "a%7Db", "%", "näme x"] {
        let encoded = encode_name(name);
        assert!(!encoded.contains(['{', '}']), "{encoded}");
        assert_eq!(decode_name(&encoded), Name::new(name).ok());
    }
    assert_eq!(decode_name("a%20b"), None);
    let keys = codec("fl:").keys(&Name::new("}a").unwrap());
    assert_eq!(
        keys,
        ["", ":q", ":z", ":h", ":d"].map(|end| format!("fl:{{%7Da}}{end}").into_bytes())
    );
}

#[test]
fn words_are_kept_apart_and_only_the_empty_tail_is_left_out() {
    let mut words: Words = ["a", "", "bc"].into_iter().collect();
    words.number(u64::MAX);
    words.hold(HoldId(0xfe));
    words.push([b"", b"d"]);
    words.push([]);
    words.push([]);
    assert_eq!((words.len(), words.get(7), words.get(8)), (8, Some(&b""[..]), None));
    words.trim();
    let hold = HoldId(0xfe).to_string();
    let left = ["a", "", "bc", "18446744073709551615", &hold, "d"];
    assert!(words.iter().eq(left.map(str::as_bytes)));
    assert!(left.iter().enumerate().all(|(at, word)| words.get(at) == Some(word.as_bytes())));
    assert_eq!((hold.len(), HoldId::parse(&hold)), (32, Some(HoldId(0xfe))));
    words = ["", ""].into_iter().collect();
    assert!(!words.is_empty());
    words.trim();
    assert!(words.is_empty());
}

#[test]
fn errors_are_retried_by_kind() {
    for code in ["MISCONF", "NOREPLICAS", "CLUSTERDOWN", "TRYAGAIN", "ASK", "MASTERDOWN"] {
        assert_eq!(kind(&format!("{code} whatever")), RefusalKind::Retry);
    }
    for text in [
        "LOADING Redis is loading the dataset in memory",
        "BUSY Redis is busy running a script.",
        "READONLY You can't write against a read only replica.",
        "OOM command not allowed when used memory > 'maxmemory'. script: ab, on @user_script:4.",
        "ERR Error running script (call to f_ab): @user_script:4: -OOM command not allowed",
    ] {
        assert_eq!(kind(text), RefusalKind::Retry, "{text}");
    }
    assert_eq!(kind("NOSCRIPT No matching script. Please use EVAL."), RefusalKind::Again);
    for text in ["NOAUTH Authentication required.", "WRONGPASS x", "NOPERM x", "ERR other"] {
        assert_eq!(kind(text), RefusalKind::Misconfigured, "{text}");
    }
    assert_eq!(kind("ERR ACL failure in script: x"), RefusalKind::Misconfigured);
    assert_eq!(kind("ERR unknown command 'EVALSHA', with args"), RefusalKind::Unsupported);
}

#[test]
fn a_newer_layout_and_a_foreign_key_say_what_to_do() {
    let newer = refusal("LAYOUT 2", Some("fl:{job}"), &Secrets::default());
    assert_eq!(newer.kind, RefusalKind::Misconfigured);
    assert!(newer.message.contains("version 2") && newer.message.contains("upgrade"));
    let foreign =
        refusal("WRONGTYPE Operation against a key", Some("fl:{job}"), &Secrets::default());
    assert!(foreign.message.contains("fl:{job}") && foreign.message.contains("another program"));
}

#[test]
fn a_record_of_another_layout_is_not_read() {
    let read = |fields: &[&str]| {
        decode_record(&fields.iter().map(|it| bytes(it)).collect::<Vec<_>>(), &[], &[])
    };
    assert_eq!(read(&[]), Ok(Record::default()));
    assert_eq!(read(&["v", "1"]), Ok(Record::default()));
    assert_eq!(read(&["v", "3"]), Err("LAYOUT 3".to_owned()));
    assert_eq!(read(&["v", "2"]), Err("DAMAGED".to_owned()));
    assert_eq!(read(&["v", "2", "h", "0 0 0 0 0"]), Ok(Record::default()));
    for fields in [["v", "0"], ["v", "-3"], ["v", "two"], ["t", "7"]] {
        assert_eq!(read(&fields), Err("FOREIGN".to_owned()), "{fields:?}");
    }
    assert_eq!(read(&["v", "1", "t", "x"]), Err("DAMAGED".to_owned()));
}

#[test]
fn bug_58_one_bad_key_costs_only_itself() {
    let beat = |name: &str| Beat::new(Name::new(name).unwrap(), HoldId(1), Duration::from_secs(1));
    let op = Op::Beat(vec![beat("bad"), beat("good")]);
    let good = [0, 7, 9, 1_000_000].map(Value::Int).to_vec();
    let value = Value::Array(vec![Value::Int(5), bytes("WRONGTYPE x"), Value::Array(good)]);
    let reply = codec("fl:").decode(&op, value).unwrap();
    let Body::Beat(states) = reply.body else { panic!() };
    assert!(states[0].as_ref().unwrap_err().message.contains("fl:{bad}"));
    assert_eq!(states[1].as_ref().unwrap().token, 7);
}

#[test]
fn who_waits_within_a_client_is_a_word_only_where_there_is_somebody() {
    let beat = |local_waiters| Beat {
        local_waiters,
        ..Beat::new(Name::new("job").unwrap(), HoldId(1), Duration::from_secs(1))
    };
    let words = |beats: [u32; 2]| {
        let beats = Op::Beat(beats.map(beat).to_vec());
        let Command::Script { args, .. } = codec("fl:").encode(&beats) else { panic!() };
        args.iter().skip(10).map(|word| word.to_vec()).collect::<Vec<_>>()
    };
    assert!(words([0, 0]).is_empty());
    assert_eq!(words([0, 12]), [b"0".to_vec(), b"12".to_vec()]);
}

#[test]
fn an_inspection_counts_who_waits_within_clients() {
    let id = |number: u128| HoldId(number).to_string();
    let words =
        |words: &[&str]| Value::Array(words.iter().map(|word| bytes(word)).collect::<Vec<_>>());
    let inspect = |holder: &str, waiter: &str| {
        let record = ["v", "1", "i", &id(1), "d", "9", "l", "9", "c", holder, "t", "7", "e", "9"];
        let queue = [&id(2), &*format!("3 4 0 5 6 7\n{waiter}\n")];
        let reply =
            Value::Array(vec![Value::Int(5), words(&record), words(&queue), Value::Int(300)]);
        let reply = codec("fl:").decode(&Op::Inspect(Name::new("job").unwrap()), reply).unwrap();
        let Body::Inspect(Some(info)) = reply.body else { panic!() };
        assert_eq!((&*info.holds[0].label, &*info.waiters[0].label), ("a b", ""));
        (info.holds[0].local_waiters, info.waiters[0].local_waiters, info.waiting)
    };
    let (holder, waiter) = ("00000000000000aa a b", "00000000000000bb ");
    assert_eq!(inspect(holder, waiter), (Some(0), Some(0), 300), "as older versions write it");
    let told = inspect(&format!("{holder}\t12"), &format!("{waiter}\t3"));
    assert_eq!(told, (Some(12), Some(3), 315));
}

#[test]
fn garbled_replies_are_refused_and_do_not_panic() {
    let op = Op::Break(Break { lock: Name::new("job").unwrap(), token: 7, hold: None });
    for value in [Value::Nil, Value::Array(vec![]), bytes("x"), Value::Array(vec![Value::Int(-1)])]
    {
        let Err(Failure::Refused(refused)) = codec("fl:").decode(&op, value) else { panic!() };
        assert_eq!(refused.kind, RefusalKind::Misconfigured);
        assert!(refused.message.contains("answer to 'break'"), "{}", refused.message);
    }
}

#[test]
fn what_this_store_does_not_do_is_refused_as_such() {
    let revoke = Op::Revoke(Name::new("job").unwrap());
    let good = Value::Array([0, 0, 7, 9, 1_000_000].map(Value::Int).to_vec());
    let Err(Failure::Refused(refused)) = codec("fl:").decode(&revoke, good) else { panic!() };
    assert_eq!(refused.kind, RefusalKind::Unsupported);
    assert!(refused.message.contains("queues"), "{}", refused.message);
}

#[test]
fn a_server_whose_clock_leaves_no_room_for_tokens_is_refused() {
    for (now, fits) in [(0, true), (MAX_STORE_TIME - 1, true), (MAX_STORE_TIME, false)] {
        assert_eq!(Codec::check_time(now).is_ok(), fits, "{now}");
    }
}

#[test]
fn messages_are_read_and_strange_ones_left() {
    let hold = HoldId(255);
    let text = format!("1 granted {hold} 10 1033 22 3 a%7Bb c");
    let lock = Name::new("a{b c").unwrap();
    let (abandoned, losses) = (Abandoned::Unknown, 5);
    let (token, end, others_waiting) = (10, 1033, 3);
    let push = Push::Granted { lock, hold, token, end, abandoned, losses, others_waiting };
    assert_eq!(codec("fl:").decode_push(text.as_bytes()), Some(push));
    for strange in ["", "1", "2 wanted x y", "1 wanted 00 job", "hello"] {
        assert_eq!(codec("fl:").decode_push(strange.as_bytes()), None);
    }
}

#[test]
fn listing_follows_the_cursor_then_asks_the_time() {
    let (codec, mut listing) = (codec("t*l:"), Listing::default());
    let op = Op::List { prefix: "a".to_owned(), limit: 2 };
    let Command::Plain(words) = codec.encode(&op) else { panic!() };
    assert_eq!(words[3], b"t\\*l:{a*}");
    let scan = |cursor: &str, keys: &[&str]| {
        let keys = keys.iter().map(|key| bytes(key)).collect();
        Value::Array(vec![bytes(cursor), Value::Array(keys)])
    };
    let step = codec.list_step(&op, &mut listing, scan("7", &["t*l:{ab}", "t*l:{ad}"]));
    let Ok(ListStep::Send(Command::Plain(words))) = step else { panic!() };
    assert_eq!(words[1], b"7");
    let step = codec.list_step(&op, &mut listing, scan("0", &["t*l:{ab}", "t*l:{ac}"]));
    assert_eq!(step, Ok(ListStep::Send(Command::Plain(vec![b"TIME".to_vec()]))));
    let time = Value::Array(vec![bytes("5"), bytes("6")]);
    let Ok(ListStep::Done(reply)) = codec.list_step(&op, &mut listing, time) else { panic!() };
    assert_eq!(reply.now, 5_000_006);
    let names = ["ab", "ac"].map(|name| Name::new(name).unwrap()).to_vec();
    assert_eq!(reply.body, Body::List(names));
}

#[test]
fn a_listing_keeps_no_more_than_its_limit_and_gives_the_first() {
    let (codec, mut listing) = (codec("fl:"), Listing::default());
    let op = Op::List { prefix: String::new(), limit: 5 };
    let least = format!("{:?}", Listing::default()).len();
    for round in 0..200 {
        // From the last to the first, and each twice.
        let keys: Vec<String> =
            (0..1_000).map(|at| format!("fl:{{{:06}}}", 200_000 - (round * 1_000 + at))).collect();
        let keys = keys.iter().chain(&keys).map(|key| bytes(key)).collect();
        let cursor = if round == 199 { "0" } else { "7" };
        let reply = Value::Array(vec![bytes(cursor), Value::Array(keys)]);
        assert!(matches!(codec.list_step(&op, &mut listing, reply), Ok(ListStep::Send(_))));
        assert!(format!("{listing:?}").len() < least + 200, "{listing:?}");
    }
    let time = Value::Array(vec![bytes("5"), bytes("6")]);
    let Ok(ListStep::Done(reply)) = codec.list_step(&op, &mut listing, time) else { panic!() };
    let Body::List(names) = reply.body else { panic!() };
    let names: Vec<&str> = names.iter().map(Name::as_str).collect();
    assert_eq!(names, ["000001", "000002", "000003", "000004", "000005"]);
}

#[test]
fn a_prefix_that_would_break_the_slots_is_refused() {
    let client = ClientId::new(1, "").unwrap();
    for prefix in ["a{", "}", "\0", &"x".repeat(65)] {
        assert!(Codec::new(client.clone(), prefix).is_err());
    }
    assert!(Codec::new(client.clone(), &"x".repeat(64)).is_ok());
    assert!(Codec::new(client, &"é".repeat(32)).is_ok(), "64 bytes");
    assert_eq!(codec("fl:").channel(), b"fl:inbox:0000000000000001");
}

#[test]
fn no_refusal_shows_what_is_secret() {
    let mut codec = codec("fl:");
    let mut secrets = Secrets::default();
    secrets.add("hunter22");
    codec.set_secrets(secrets);
    let name = Name::new("job").unwrap();
    let beats =
        Op::Beat(vec![Beat::new(name.clone(), HoldId(1), std::time::Duration::from_secs(1))]);
    for code in ["ERR", "OOM", "NOPERM", "READONLY", "LAYOUT", "ERR unknown command", "-SAID"] {
        let said = format!("{code} AUTH hunter22 HUNTER2 hunter22");
        let Err(Failure::Refused(refused)) =
            codec.decode(&Op::Inspect(name.clone()), Value::Error(said.clone()))
        else {
            panic!("{said}")
        };
        let value = Value::Array(vec![Value::Int(1), bytes(&said)]);
        let Ok(Reply { body: Body::Beat(states), .. }) = codec.decode(&beats, value) else {
            panic!("{said}")
        };
        for refused in [refused, states[0].clone().unwrap_err()] {
            let shown = refused.message.to_lowercase();
            assert!(!shown.contains("hunter"), "{shown}");
        }
    }
}

#[test]
fn a_shared_request_names_all_keys_and_an_exclusive_one_once_it_was_told_to() {
    let lock = Name::new("job").unwrap();
    let words = |codec: &Codec, op: &Op| match codec.encode(op) {
        Command::Script { keys, args, .. } => (keys.len(), args),
        Command::Plain(words) => panic!("{words:?}"),
    };
    let acquire = |mode| {
        let ask = Acquire::new(lock.clone(), HoldId(1), Duration::from_secs(1), 7);
        Op::Acquire(Acquire { mode, ..ask })
    };
    let beat = |mode| {
        Op::Beat(vec![Beat { mode, ..Beat::new(lock.clone(), HoldId(1), Duration::from_secs(1)) }])
    };
    let release = |mode| {
        let release = Release::new(lock.clone(), HoldId(1), 7);
        Op::Release(Release { mode, alone: true, ..release })
    };
    let permits = Mode::Permits { count: 2, of: 5 };
    for (mode, said) in [(Mode::Shared, "s"), (permits, "p 2 5")] {
        let (keys, args) = words(&codec("fl:"), &acquire(mode));
        assert_eq!((keys, args.get(14)), (5, Some(said.as_bytes())));
        assert_eq!(words(&codec("fl:"), &beat(mode)).0, 5);
        assert_eq!(words(&codec("fl:"), &release(mode)).0, 5);
    }
    let codec = codec("fl:");
    let exclusive = [acquire(Mode::Exclusive), beat(Mode::Exclusive), release(Mode::Exclusive)];
    assert_eq!(exclusive.each_ref().map(|op| words(&codec, op).0), [3, 3, 1]);
    assert_eq!(words(&codec, &exclusive[1]).1.get(1), Some(&b"0"[..]));
    let Err(Failure::Refused(refused)) = codec.decode(&exclusive[0], Value::Error("MODES".into()))
    else {
        panic!("MODES is a refusal")
    };
    assert_eq!(refused.kind, RefusalKind::Again);
    assert_eq!(exclusive.each_ref().map(|op| words(&codec, op).0), [5, 5, 5]);
    assert_eq!(words(&codec, &exclusive[1]).1.get(1), Some(&b"2"[..]));
    // Another codec of the client learns it, too.
    let mut other = self::codec("fl:");
    other.set_wide(codec.wide());
    assert_eq!(words(&other, &exclusive[0]).0, 5);
}

#[test]
fn a_name_of_another_kind_is_refused_with_both_numbers() {
    let ask = |mode| {
        let ask = Acquire::new(Name::new("job").unwrap(), HoldId(1), Duration::from_secs(1), 7);
        Op::Acquire(Acquire { mode, ..ask })
    };
    let said = |mode, text: &str| match codec("fl:").decode(&ask(mode), Value::Error(text.into())) {
        Err(Failure::Refused(refused)) => (refused.kind, refused.message),
        other => panic!("{other:?}"),
    };
    let (kind, message) = said(Mode::Permits { count: 1, of: 7 }, "KIND 5");
    assert_eq!(kind, RefusalKind::OtherPermits { of: 5 });
    assert!(message.contains('5') && message.contains('7'), "{message}");
    // As servers before version 7 wrap it.
    let (_, message) = said(Mode::Shared, "ERR Error running script (call to f_a): KIND 5");
    assert!(message.contains("semaphore's, of 5"), "{message}");
    let (_, message) = said(Mode::Permits { count: 1, of: 7 }, "KIND 0");
    assert!(message.contains("a lock's"), "{message}");
}
