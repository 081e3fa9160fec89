//! Keys that hold something else: each operation says so, and leaves them as they are.

use fencelock_engine::redis::Command;
use fencelock_engine::reply::{Body, Failure, RefusalKind};
use fencelock_engine::request::{Break, Op};

use crate::compare::{Server, World};

const NEWER: &str = "by a newer fencelock, in layout version 3,";
const FOREIGN: &str = "something that is not a lock of fencelock";
const DAMAGED: &str = "is damaged";

/// The fields at a lock's key, and what is said of them.
const STRANGE: [(&[&str], &str); 7] = [
    (&["v", "3"], NEWER),
    (&["v", "0"], FOREIGN),
    (&["v", "-1"], FOREIGN),
    (&["v", "one"], FOREIGN),
    (&["name", "a session's"], FOREIGN),
    (&["v", "1", "t", "many"], DAMAGED),
    (&["v", "1", "e", "7", "i", "ab", "d", "soon"], DAMAGED),
];

pub fn compare(server: &mut dyn Server) {
    for (fields, said) in STRANGE {
        let mut world = World::new(server, 1_700_000_000_000_000);
        let key = world.clients[0].codec.keys(&world.names[0])[0].clone();
        let words =
            ["HSET".as_bytes(), &key].into_iter().chain(fields.iter().map(|it| it.as_bytes()));
        let words = words.map(<[u8]>::to_vec).collect();
        let _ = server.run(world.now, &Command::Plain(words));
        let (before, lock) = (server.hash(&key), world.names[0].clone());
        let what = Break { lock, token: u64::MAX, hold: None };
        for op in [
            world.ask(1, false),
            world.ask(1, true),
            world.beat(1),
            world.give_up(1),
            world.look(),
            Op::Break(what),
        ] {
            world.now += 10;
            let command = world.clients[0].codec.encode(&op);
            let (value, published) = server.run(world.now, &command);
            let refusal = match world.clients[0].codec.decode(&op, value) {
                Err(Failure::Refused(refusal)) => refusal,
                Ok(reply) => match reply.body {
                    Body::Beat(mut states) => states.remove(0).unwrap_err(),
                    other => panic!("{fields:?} {op:?}: {other:?}"),
                },
                other => panic!("{fields:?} {op:?}: {other:?}"),
            };
            assert_eq!(refusal.kind, RefusalKind::Misconfigured, "{fields:?} {op:?}");
            assert!(refusal.message.contains(said), "{fields:?} {op:?}: {}", refusal.message);
            assert_eq!(
                (server.hash(&key), published),
                (before.clone(), vec![]),
                "{fields:?} {op:?}"
            );
        }
    }
}
