//! Readers and writers in one queue, in the layout of Curator's read-write lock.

use super::*;
use crate::reply::{Abandoned, Broken, RefusalKind, Standing};
use crate::request::{Break, Mode};
use crate::zookeeper::ZkWrite;

fn read(number: u128, sequence: i32) -> String {
    node_of(number, sequence, Kind::Read)
}

fn write(number: u128, sequence: i32) -> String {
    node_of(number, sequence, Kind::Write)
}

fn list(names: &[&String]) -> Result {
    children(&names.iter().map(|name| name.as_str()).collect::<Vec<_>>())
}

fn badge() -> Result {
    data("fencelock 1 6000 0000000000000006 other")
}

impl Talk {
    fn acquire_in(&mut self, number: u128, mode: Mode, waits: bool) -> RequestId {
        self.acquire_for(number, mode, waits, None)
    }

    /// Through a read-write lock.
    fn acquire_for(
        &mut self,
        number: u128,
        mode: Mode,
        waits: bool,
        owner: Option<&str>,
    ) -> RequestId {
        let wait = waits.then_some(Wait { ticket: 0, claim: TIMEOUT, silence: TIMEOUT });
        let owner = owner.map(|owner| crate::id::OwnerId::new(owner).unwrap());
        let ask = Acquire::new(name(), hold(number), TIMEOUT, u64::MAX);
        self.ask(Op::Acquire(Acquire { wait, mode, owner, read_write: true, ..ask }))
    }

    /// A reader that was let in at once.
    fn reads(number: u128, sequence: i32) -> Talk {
        let mut talk = Talk::new();
        let request = talk.acquire_in(number, Mode::Shared, true);
        talk.answer([
            made(&read(number, sequence), 100),
            list(&[&read(number, sequence)]),
            data(""),
        ]);
        assert_eq!(talk.state(request).standing, Standing::Granted);
        talk
    }

    fn note(&self) -> String {
        match self.ops()[..] {
            [ZkOp::Multi(parts)] => match &parts[0] {
                ZkWrite::Set { data, .. } => String::from_utf8(data.clone()).unwrap(),
                other => panic!("no note: {other:?}"),
            },
            ref other => panic!("{other:?}"),
        }
    }
}

/// Whom a waiter watches.
fn watched(talk: &Talk) -> String {
    match talk.ops()[..] {
        [ZkOp::GetData { path, watch: true }] => path.rsplit('/').next().unwrap().to_owned(),
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn the_nodes_are_those_of_curators_read_write_lock() {
    let mut talk = Talk::new();
    for (number, mode, stem) in [(1, Mode::Shared, "-__READ__"), (2, Mode::Exclusive, "-__WRIT__")]
    {
        talk.acquire_in(number, mode, true);
        match talk.ops()[0] {
            ZkOp::Create { path, .. } => assert!(path.ends_with(stem), "{path}"),
            other => panic!("{other:?}"),
        }
        talk.calls.clear();
    }
}

/// Each has one number of its own, and no block: its client hands it on to nobody.
#[test]
fn p01_readers_hold_together_and_a_writer_waits_for_the_nearest() {
    let mut talk = Talk::new();
    let request = talk.acquire_in(2, Mode::Shared, true);
    talk.answer([made(&read(2, 6), 101), list(&[&read(2, 6), &read(1, 5)]), data("")]);
    let state = talk.state(request);
    assert_eq!((state.standing, state.token, state.end), (Standing::Granted, 103_424, 103_424));
    assert_eq!(state.others_waiting, 0, "who reads does not wait");
    let request = talk.acquire_in(3, Mode::Exclusive, true);
    talk.answer([
        made(&write(3, 7), 102),
        list(&[&write(3, 7), &read(1, 5), &read(2, 6)]),
        data(""),
    ]);
    assert_eq!(talk.state(request).standing, Standing::Queued);
    assert_eq!(watched(&talk), read(2, 6));
    talk.answer([badge()]);
    talk.events();
    // M86: the nearest reader goes, and the other one still reads.
    talk.fired(path(&read(2, 6)), Change::Deleted);
    talk.answer([list(&[&read(1, 5), &write(3, 7)]), data("fencelock 1 released 6 0")]);
    assert_eq!(talk.pushes(), []);
    assert_eq!(watched(&talk), read(1, 5));
    talk.answer([badge()]);
    talk.fired(path(&read(1, 5)), Change::Deleted);
    talk.answer([list(&[&write(3, 7)]), data("fencelock 1 released 6 0")]);
    assert_eq!(talk.pushes(), [Push::Changed { lock: name(), hold: hold(3) }]);
    let request = talk.beat(3);
    let state = talk.state(request);
    assert_eq!((state.standing, state.abandoned), (Standing::Granted, Abandoned::No));
    assert_eq!((state.token, state.end), (102 * 1024, 102 * 1024 + 1023));
}

/// Nobody passes a writer who waits, a try no more than others; and readers before a reader do not
/// keep it.
#[test]
fn p09_a_reader_waits_for_the_nearest_writer_before_it() {
    let mut talk = Talk::new();
    let request = talk.acquire_in(4, Mode::Shared, true);
    let names = [&read(1, 5), &write(2, 6), &read(3, 7), &read(4, 8)];
    talk.answer([made(&read(4, 8), 104), list(&names), data("")]);
    assert_eq!(talk.state(request).standing, Standing::Queued);
    assert_eq!(watched(&talk), write(2, 6));
    talk.answer([badge()]);
    let request = talk.acquire_in(9, Mode::Shared, false);
    talk.answer([done(), list(&names)]);
    assert_eq!(talk.state(request).standing, Standing::Contended);
    assert!(talk.calls.is_empty());
    talk.fired(path(&write(2, 6)), Change::Deleted);
    talk.answer([list(&[&read(1, 5), &read(3, 7), &read(4, 8)]), data("fencelock 1 released 5 2")]);
    assert_eq!(talk.pushes(), [Push::Changed { lock: name(), hold: hold(4) }]);
    // A try goes in beside readers.
    let request = talk.acquire_in(9, Mode::Shared, false);
    let there = [&read(1, 5), &read(3, 7), &read(4, 8)];
    talk.answer([done(), list(&there)]);
    talk.answer([
        made(&read(9, 9), 105),
        list(&[there[0], there[1], there[2], &read(9, 9)]),
        data(""),
    ]);
    assert_eq!(talk.state(request).standing, Standing::Granted);
}

/// Counter-example M126, M99: a reader writes no word that it holds, says what it was told as it goes,
/// and its loss is nobody's affair.
#[test]
fn p12_a_reader_tells_on_what_it_was_told() {
    for (before, told) in [("released 4 1", 1), ("released 4 0", 0), ("held 4 1", 1), ("", 2)] {
        let note = if before.is_empty() { String::new() } else { format!("fencelock 1 {before}") };
        for lost in [false, true] {
            let mut talk = Talk::new();
            talk.acquire_in(1, Mode::Shared, true);
            talk.answer([made(&read(1, 5), 100), list(&[&read(1, 5)]), data(&note)]);
            talk.events();
            talk.pass(Duration::from_millis(20));
            let writes = |op: &&&ZkOp| matches!(op, ZkOp::Multi(_) | ZkOp::Set { .. });
            assert_eq!(talk.ops().iter().find(writes), None, "no word that it holds");
            talk.calls.clear();
            talk.release(1, true, lost);
            assert_eq!(talk.note(), format!("fencelock 1 released 5 {told}"));
            talk.said.take();
        }
    }
}

#[test]
fn a_reader_hears_of_who_waits_to_write_and_not_of_readers() {
    let mut talk = Talk::reads(1, 5);
    talk.pass(Duration::from_millis(20));
    assert!(matches!(talk.ops()[..], [ZkOp::GetData { .. }, ZkOp::Children { watch: true, .. }]));
    talk.answer([badge(), list(&[&read(1, 5), &read(2, 6)])]);
    assert_eq!(talk.pushes(), []);
    talk.fired(LOCK.to_owned(), Change::Children);
    talk.answer([list(&[&read(1, 5), &read(2, 6), &write(3, 7), &read(4, 8)])]);
    assert_eq!(talk.pushes(), [Push::Wanted { lock: name(), hold: hold(1) }]);
    let request = talk.beat(1);
    let stat = Stat { ephemeral_owner: SESSION, ..Stat::default() };
    talk.answer([exists(stat), list(&[&read(1, 5), &read(2, 6), &write(3, 7), &read(4, 8)])]);
    assert_eq!(talk.state(request).others_waiting, 2);
    // One that was not the first as it came looks with its beats only: nobody is woken for nothing.
    let mut talk = Talk::new();
    talk.acquire_in(2, Mode::Shared, true);
    talk.answer([made(&read(2, 6), 101), list(&[&read(2, 6), &read(1, 5)]), data("")]);
    talk.pass(Duration::from_millis(20));
    assert!(matches!(talk.ops()[..], [ZkOp::GetData { watch: true, .. }]), "{:?}", talk.ops());
    talk.calls.clear();
}

/// The next number proves nothing to one who left others behind.
#[test]
fn a_reader_that_was_not_first_lists_when_it_comes_again() {
    let mut talk = Talk::new();
    talk.acquire_in(2, Mode::Shared, true);
    talk.answer([made(&read(2, 6), 101), list(&[&read(2, 6), &read(1, 5)]), data("")]);
    talk.release(2, true, false);
    talk.answer([done()]);
    talk.acquire_in(3, Mode::Exclusive, true);
    assert_eq!(talk.calls.len(), 3, "{:?}", talk.ops());
    talk.calls.clear();
    // The first, when it goes, leaves nobody.
    let mut talk = Talk::reads(1, 5);
    talk.release(1, true, false);
    talk.answer([done()]);
    let request = talk.acquire_in(3, Mode::Exclusive, true);
    talk.answer([made(&write(3, 6), 102)]);
    let state = talk.state(request);
    assert_eq!((state.standing, state.abandoned), (Standing::Granted, Abandoned::Unknown));
}

/// Counter-example M127's other half: neither of Curator's recipes looks at the nodes of the other.
#[test]
fn one_path_is_one_of_curators_recipes() {
    for (mode, read_write, other) in [
        (Mode::Exclusive, false, read(1, 4)),
        (Mode::Exclusive, false, write(1, 4)),
        (Mode::Exclusive, true, node(1, 4)),
        (Mode::Shared, true, node(1, 4)),
    ] {
        for (theirs, refused) in [("10.0.0.7", true), ("fencelock 1 6000 06 x", false)] {
            let mut talk = Talk::new();
            let wait = Some(Wait { ticket: 0, claim: TIMEOUT, silence: TIMEOUT });
            let ask = Acquire::new(name(), hold(2), TIMEOUT, u64::MAX);
            let request = talk.ask(Op::Acquire(Acquire { wait, mode, read_write, ..ask }));
            let own = node_of(2, 5, Kind::of(mode, read_write));
            talk.answer([made(&own, 100), list(&[&own, &other]), data("")]);
            let look = ZkOp::GetData { path: path(&other), watch: false };
            assert_eq!(talk.ops(), [&look]);
            talk.answer([data(theirs)]);
            if refused {
                assert_eq!(talk.ops(), [&ZkOp::Delete { path: path(&own) }]);
                match talk.reply(request) {
                    Err(Failure::Refused(refusal)) => {
                        assert_eq!(refusal.kind, RefusalKind::Misconfigured);
                        assert!(refusal.message.contains("does not look"), "{refusal:?}");
                    }
                    other => panic!("{other:?}"),
                }
            } else {
                talk.answer([list(&[&own, &other]), data("")]);
                let beside = own.contains("READ") && other.contains("READ");
                let standing = if beside { Standing::Granted } else { Standing::Queued };
                assert_eq!(talk.state(request).standing, standing);
            }
            talk.said.take();
        }
    }
}

#[test]
fn an_explicit_owner_that_reads_reads_again_and_would_wait_for_itself_to_write() {
    let mut talk = Talk::new();
    talk.acquire_for(1, Mode::Shared, true, Some("job"));
    talk.answer([made(&read(1, 5), 100), list(&[&read(1, 5)]), data("")]);
    talk.events();
    let request = talk.acquire_for(2, Mode::Exclusive, true, Some("job"));
    assert_eq!(talk.state(request).standing, Standing::Deadlock);
    let request = talk.acquire_for(3, Mode::Shared, true, Some("job"));
    assert_eq!(talk.state(request).token, 100 * 1024);
    assert!(talk.calls.is_empty());
    // Who waits already when its owner is let in: the read joins, the write is told at its next beat.
    let mut talk = Talk::new();
    talk.acquire_for(1, Mode::Shared, true, Some("job"));
    talk.answer([made(&read(1, 5), 100), list(&[&write(9, 4), &read(1, 5)]), data("")]);
    talk.answer([badge()]);
    talk.acquire_for(2, Mode::Exclusive, true, Some("job"));
    let queue = [&write(9, 4), &read(1, 5), &write(2, 6)];
    talk.answer([made(&write(2, 6), 101), list(&queue), data("")]);
    talk.answer([badge()]);
    talk.events();
    talk.fired(path(&write(9, 4)), Change::Deleted);
    talk.answer([list(&[&read(1, 5), &write(2, 6)]), data("fencelock 1 released 4 0")]);
    assert_eq!(talk.ops(), [&ZkOp::Delete { path: path(&write(2, 6)) }]);
    talk.calls.clear();
    let request = talk.beat(2);
    assert_eq!(talk.state(request).standing, Standing::Deadlock);
    let request = talk.beat(2);
    assert_eq!(talk.state(request).standing, Standing::Gone);
}

#[test]
fn a_break_ends_the_readers_that_were_seen_and_leaves_no_word() {
    let stat = |czxid| exists(Stat { czxid, ..Stat::default() });
    let mut talk = Talk::new();
    let all = [&read(1, 5), &read(2, 6), &read(3, 7), &write(4, 8)];
    let request = talk.ask(Op::Break(Break { lock: name(), token: 101 * 1024, hold: None }));
    talk.answer([done(), list(&all)]);
    assert_eq!(talk.calls.len(), 3, "the holders alone");
    talk.answer([stat(100), stat(101), stat(102)]);
    let delete = |name: &String| ZkOp::Multi(vec![ZkWrite::Delete { path: path(name) }]);
    assert_eq!(talk.ops(), [&delete(all[0]), &delete(all[1])]);
    talk.answer([done(), done()]);
    assert_eq!(talk.reply(request), Ok(Body::Break(Broken::Ended(2))));
    // One of them, by its id.
    let named = Break { lock: name(), token: 102 * 1024, hold: Some(hold(2)) };
    let request = talk.ask(Op::Break(named));
    talk.answer([done(), list(&all)]);
    talk.answer([stat(101)]);
    talk.answer([Err(ZkError::At(0, Box::new(ZkError::NoNode)))]);
    assert_eq!(talk.reply(request), Ok(Body::Break(Broken::NotHeld)), "it went by itself");
}

#[test]
fn a_clients_own_reader_hears_at_once_that_the_client_broke_it() {
    let mut talk = Talk::reads(1, 5);
    let request = talk.ask(Op::Break(Break { lock: name(), token: u64::MAX, hold: None }));
    talk.answer([done(), list(&[&read(1, 5)])]);
    talk.answer([exists(Stat { czxid: 100, ..Stat::default() })]);
    talk.answer([done()]);
    let [Event::Push(told), Event::Reply { request: answered, .. }] = talk.events() else {
        panic!("the word comes first")
    };
    assert_eq!(*told, Push::Broken { lock: name(), hold: hold(1) });
    assert_eq!(*answered, request);
}

#[test]
fn inspect_tells_who_reads_and_who_waits() {
    let mut talk = Talk::new();
    let request = talk.ask(Op::Inspect(name()));
    let all = [&read(1, 5), &read(2, 6), &write(3, 7), &read(4, 8)];
    talk.answer([done(), list(&all), data("fencelock 1 released 4 0")]);
    let nodes = [100, 101, 102, 103].map(|czxid| {
        let data = b"fencelock 1 6000 0000000000000006 other".to_vec();
        Ok(ZkReply::Data { data, stat: Stat { czxid, ..Stat::default() } })
    });
    talk.answer(nodes);
    let Ok(Body::Inspect(Some(info))) = talk.reply(request) else { panic!("nothing is told") };
    let holds: Vec<_> = info.holds.iter().map(|it| (it.mode, it.token / 1024)).collect();
    assert_eq!(holds, [(Mode::Shared, 100), (Mode::Shared, 101)]);
    let waiters: Vec<_> = info.waiters.iter().map(|it| it.mode).collect();
    assert_eq!(waiters, [Mode::Exclusive, Mode::Shared]);
    assert_eq!(info.token, 101 * 1024);
}
