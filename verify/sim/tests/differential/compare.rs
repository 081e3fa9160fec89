//! One sequence, applied to the rules and to a server.

use std::collections::BTreeMap;
use std::time::Duration;

use fencelock_engine::id::HoldId;
use fencelock_engine::name::Name;
use fencelock_engine::redis::{Command, Value, decode_record};
use fencelock_engine::reply::{
    Abandoned, Body, Failure, Push, Refusal, RefusalKind, Released, Reply, Standing, State,
};
use fencelock_engine::request::{Mode, Op, Release};
use fencelock_engine::store::{Announce, Delivery, Record, StoredHold, StoredWaiter};

use crate::clients::Client;
use crate::expiry::Expiry;
use crate::plan::{Change, END_OF_TIME, Plan};

/// Messages as they came: channel and payload.
pub type Published = Vec<(Vec<u8>, Vec<u8>)>;

/// What runs the scripts.
pub trait Server {
    fn run(&mut self, now: u64, command: &Command) -> (Value, Published);
    fn subscribe(&mut self, channel: &[u8], on: bool);
    fn flush(&mut self);
    fn evict(&mut self, key: &[u8]);
    fn set_oom(&mut self, on: bool);
    fn set_readonly(&mut self, on: bool);
    fn set_publish_denied(&mut self, on: bool);
    /// The hash at a key, as `HGETALL` gives it.
    fn hash(&mut self, key: &[u8]) -> Vec<Value>;
    /// The members of the sorted set at a key with their scores, in order.
    fn sorted(&mut self, key: &[u8]) -> Vec<(Vec<u8>, i64)>;
    /// When the key expires, in milliseconds, if it does; `None` when it is not there, or the server's
    /// own clock cannot be set.
    fn expiry(&mut self, key: &[u8]) -> Option<Option<u64>>;
}

/// What was compared, and which of the rarer cases came up.
#[derive(Debug, Default)]
pub struct Counts {
    operations: u64,
    seen: BTreeMap<&'static str, u64>,
}

impl Counts {
    fn see(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// A comparison that did not meet the hard cases, each so often, has shown nothing.
    pub fn assert_met(&self, least: u64) {
        for case in [
            "granted",
            "queued",
            "contended",
            "late",
            "released",
            "gone",
            "not held",
            "co-hold",
            "push granted",
            "push wanted",
            "push broken",
            "publish failed",
            "refused",
            "silenced",
            "release done",
            "release left",
            "release unknown",
            "claim",
            "loss told",
            "loss not told",
            "local waiters of a hold",
            "local waiters of a waiter",
            "readers",
            "readers of a writer",
            "permits",
            "more than a batch",
            "deadlock",
            "another kind",
            "all keys",
            "made shared",
            "made exclusive",
            "not converted",
            "doomed",
            "resized",
            "nothing to resize",
        ] {
            assert!(
                self.seen.get(case).is_some_and(|n| *n >= least),
                "too few of: {case}, {self:?}"
            );
        }
    }

    fn see_state(&mut self, state: &State) {
        self.see(match state.standing {
            Standing::Granted => "granted",
            Standing::Queued => "queued",
            Standing::Contended => "contended",
            Standing::Late => "late",
            Standing::Released => "released",
            Standing::Gone => "gone",
            Standing::NotHeld => "not held",
            Standing::Deadlock => "deadlock",
            Standing::Doomed { .. } => "doomed",
            Standing::Unconfirmed { .. } => "unconfirmed",
        });
        if state.publish_failed {
            self.see("publish failed");
        }
    }

    /// A release of one of several holds of an owner who lost another.
    fn see_release(&mut self, release: &Release, record: &Record) {
        let there = record.holds.iter().any(|hold| hold.hold == release.hold);
        if there && record.losses > 0 && release.told && !release.lost {
            let told = release.losses == record.losses;
            self.see(if told { "loss told" } else { "loss not told" });
        }
    }

    fn see_record(&mut self, record: &Record) {
        let cases = [
            ("co-hold", record.holds.len() > 1),
            ("claim", record.holds.iter().any(|hold| hold.claim)),
            ("local waiters of a hold", record.holds.iter().any(|hold| hold.local_waiters > 0)),
            ("local waiters of a waiter", record.waiters.iter().any(|it| it.local_waiters > 0)),
            ("readers", holds_in(record, Mode::Shared) > 1),
            ("readers of a writer", {
                let readers = holds_in(record, Mode::Shared);
                readers > 0 && readers < record.holds.len()
            }),
            ("permits", record.holds.iter().any(|it| matches!(it.mode, Mode::Permits { .. }))),
            ("more than a batch", record.holds.len() > 64),
            ("an owner's tokens differ", {
                let own = |hold: &&StoredHold| hold.mode == Mode::Shared && hold.owner.is_some();
                let mut own = record.holds.iter().filter(own);
                own.clone().any(|one| own.any(|it| it.owner == one.owner && it.token != one.token))
            }),
            ("silenced", record.waiters.iter().any(|waiter| waiter.silent)),
        ];
        for (case, met) in cases {
            if met {
                self.see(case);
            }
        }
    }
}

fn holds_in(record: &Record, mode: Mode) -> usize {
    record.holds.iter().filter(|hold| hold.mode == mode).count()
}

/// The pushes that the rules want, to whom somebody listens.
struct Inboxes<'a> {
    clients: &'a [Client],
    denied: bool,
    pushes: Vec<(String, Push)>,
}

impl Announce for Inboxes<'_> {
    fn announce(&mut self, client: &str, push: Push) -> Delivery {
        if self.denied {
            return Delivery::Failed;
        }
        if !self.clients.iter().any(|other| other.id.id() == client && other.subscribed) {
            return Delivery::Nobody;
        }
        self.pushes.push((client.to_owned(), push));
        Delivery::Delivered
    }
}

/// The rules' side, and who takes part.
pub struct World {
    pub now: u64,
    pub names: Vec<Name>,
    pub records: Vec<Record>,
    pub clients: Vec<Client>,
    denied: bool,
    /// Of whose queue one key is lost: the next contact mends it.
    torn: Vec<bool>,
    /// Of whose holds or waiters something is lost: the next contact finds it.
    torn_holds: Vec<bool>,
    expiry: Expiry,
}

/// Nobody knows how those ended that had the lock for themselves.
fn lose_holds(record: &mut Record) {
    if record.holds.iter().any(|hold| hold.mode == Mode::Exclusive) {
        record.owner = None;
        record.losses = 0;
        if record.abandoned != Abandoned::Yes {
            record.abandoned = Abandoned::Unknown;
        }
    }
    record.holds.clear();
}

impl World {
    pub fn new(server: &mut dyn Server, now: u64) -> World {
        let names = ["job", "we{ird}%7B} näme", "few", "many"].map(|name| Name::new(name).unwrap());
        server.flush();
        server.set_oom(false);
        server.set_readonly(false);
        server.set_publish_denied(false);
        let clients: Vec<Client> = (1..=4).map(Client::new).collect();
        for client in &clients {
            server.subscribe(client.codec.channel(), true);
        }
        World {
            now,
            records: vec![Record::default(); names.len()],
            names: names.to_vec(),
            clients,
            denied: false,
            torn: vec![false; names.len()],
            torn_holds: vec![false; names.len()],
            expiry: Expiry::default(),
        }
    }

    fn change(&mut self, server: &mut dyn Server, change: Change) {
        match change {
            Change::Flush => {
                server.flush();
                self.records.fill(Record::default());
                self.torn.fill(false);
                self.torn_holds.fill(false);
            }
            Change::EvictRecord(at) => {
                server.evict(&self.clients[0].codec.keys(&self.names[at])[0]);
                let waiters = std::mem::take(&mut self.records[at].waiters);
                self.records[at] = Record { waiters, ..Record::default() };
            }
            Change::EvictQueue(at) => {
                let [_, entries, order, ..] = self.clients[0].codec.keys(&self.names[at]);
                server.evict(&entries);
                server.evict(&order);
                self.records[at].waiters.clear();
                self.torn_holds[at] = true;
            }
            Change::EvictEntries(at) => {
                server.evict(&self.clients[0].codec.keys(&self.names[at])[1]);
                self.records[at].waiters.clear();
                self.torn[at] = true;
            }
            Change::EvictOrder(at) => {
                server.evict(&self.clients[0].codec.keys(&self.names[at])[2]);
                self.torn[at] = true;
            }
            Change::EvictHolds(at, both) => {
                let [main, _, _, holds, due] = self.clients[0].codec.keys(&self.names[at]);
                let record = server.hash(&main);
                let shared = is_wide(&record) && !stands_within(&record);
                server.evict(&holds);
                if both {
                    server.evict(&due);
                }
                if shared {
                    lose_holds(&mut self.records[at]);
                }
                self.torn_holds[at] = true;
            }
            Change::EvictDue(at) => {
                server.evict(&self.clients[0].codec.keys(&self.names[at])[4]);
                self.torn_holds[at] = true;
            }
            Change::Oom(on) => server.set_oom(on),
            Change::ReadOnly(on) => server.set_readonly(on),
            Change::PublishDenied(on) => {
                self.denied = on;
                server.set_publish_denied(on);
            }
            Change::Subscribed(at, on) => {
                self.clients[at].subscribed = on;
                server.subscribe(self.clients[at].codec.channel(), on);
            }
            Change::Polling(at, on) => self.clients[at].set_polling(on),
        }
    }

    fn at(&self, name: &Name) -> usize {
        self.names.iter().position(|other| other == name).unwrap()
    }

    /// What the rules say to `op`. What the server refused was not executed: it is left out, and
    /// the comparison of the states shows whether that is true.
    fn expect(
        &mut self,
        client: usize,
        op: &Op,
        got: &Result<Reply, Failure>,
    ) -> (Result<Reply, Failure>, Vec<(String, Push)>) {
        let now = self.now;
        let caller = self.clients[client].caller();
        let mut out = Inboxes { clients: &self.clients, denied: self.denied, pushes: Vec::new() };
        if let Err(Failure::Refused(refusal)) = got
            && is_passing(refusal)
        {
            return (got.clone(), Vec::new());
        }
        let at = |name| self.names.iter().position(|other| other == name).unwrap();
        let body = match op {
            Op::Acquire(ask) => {
                let record = &mut self.records[at(&ask.lock)];
                match record.acquire(now, &caller, ask, &mut out) {
                    Ok(state) => Body::Acquire(state),
                    Err(refusal) => return (Err(Failure::Refused(refusal)), Vec::new()),
                }
            }
            Op::Beat(beats) if now >= END_OF_TIME => {
                let record = &mut self.records[at(&beats[0].lock)];
                let refusal = record.beat(now, &caller, &beats[0], &mut out).unwrap_err();
                return (Err(Failure::Refused(refusal)), Vec::new());
            }
            Op::Beat(beats) => {
                let Ok(Reply { body: Body::Beat(states), .. }) = got else { panic!("{got:?}") };
                let answer = |(beat, got): (_, &Result<State, Refusal>)| {
                    let beat: &fencelock_engine::request::Beat = beat;
                    match got {
                        Err(refusal) if is_passing(refusal) => got.clone(),
                        _ => self.records[at(&beat.lock)].beat(now, &caller, beat, &mut out),
                    }
                };
                Body::Beat(beats.iter().zip(states).map(answer).collect())
            }
            Op::Release(release) => {
                let record = &mut self.records[at(&release.lock)];
                Body::Release(record.release(now, release, &mut out))
            }
            Op::Convert(ask) => {
                match self.records[at(&ask.lock)].convert(now, &caller, ask, &mut out) {
                    Ok(state) => Body::Convert(state),
                    Err(refusal) => return (Err(Failure::Refused(refusal)), Vec::new()),
                }
            }
            Op::Resize(ask) => match self.records[at(&ask.lock)].resize(now, ask, &mut out) {
                Ok(resized) => Body::Resize(resized),
                Err(refusal) => return (Err(Failure::Refused(refusal)), Vec::new()),
            },
            Op::Break(what) => {
                let record = &mut self.records[at(&what.lock)];
                Body::Break(record.break_lock(now, what, &mut out))
            }
            Op::Inspect(name) => {
                let record = &self.records[at(name)];
                let unknown = *record == Record::default();
                // A queue whose waiters are all forgotten is nothing, either.
                let info = record.inspect(now, name);
                let nothing =
                    info.last_token == 0 && info.holds.is_empty() && info.waiters.is_empty();
                Body::Inspect((!unknown && !nothing).then_some(info))
            }
            Op::List { .. } | Op::Revoke(_) | Op::Time => unreachable!("not planned"),
        };
        (Ok(Reply { now, body }), out.pushes)
    }

    /// Whoever was answered has mended what was lost.
    fn mended(&mut self, op: &Op, got: &Result<Reply, Failure>) {
        match (op, got) {
            (_, Err(_)) | (Op::Inspect(_), _) => {}
            (Op::Beat(beats), Ok(Reply { body: Body::Beat(states), .. })) => {
                for (beat, _) in beats.iter().zip(states).filter(|(_, state)| state.is_ok()) {
                    let at = self.at(&beat.lock);
                    self.torn[at] = false;
                    self.torn_holds[at] = false;
                }
            }
            (op, Ok(reply)) => {
                let at = self.at(lock_of(op, &self.names[0]));
                self.torn_holds[at] |= self.torn[at];
                self.torn[at] = false;
                // Nothing was done: what is left of the holds is found again.
                let nothing = matches!(&reply.body, Body::Acquire(state) | Body::Convert(state)
                    if matches!(state.standing, Standing::Released | Standing::Late));
                self.torn_holds[at] &= nothing;
            }
        }
    }

    /// The state as the server has it, and as the rules have it.
    fn check_states(&self, server: &mut dyn Server, trace: &str) {
        for (name, record) in self.names.iter().zip(&self.records) {
            let [main, queue, order, holds, due] = self.clients[0].codec.keys(name);
            let (main, queue, kept) =
                (server.hash(&main), server.hash(&queue), server.hash(&holds));
            let stored = decode_record(&main, &queue, &kept).unwrap();
            let mut expected = record.clone();
            // The scripts keep the first half of its id.
            expected.released = expected.released.map(|hold| HoldId(hold.0 >> 64 << 64));
            for hold in &mut expected.holds {
                hold.asked = hold.lease;
            }
            assert_eq!(stored, expected, "the stored state of {name:?} differs\n{trace}");
            let mut places: Vec<(Vec<u8>, i64)> = record.waiters.iter().map(place).collect();
            places.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
            if !self.torn[self.at(name)] {
                assert_eq!(server.sorted(&order), places, "the order of {name:?} differs\n{trace}");
            }
            let wide = is_wide(&main);
            let shared = record.holds.iter().any(|hold| hold.mode != Mode::Exclusive)
                || record.waiters.iter().any(|waiter| waiter.mode != Mode::Exclusive);
            let used = !record.holds.is_empty() || !record.waiters.is_empty();
            assert!(wide || !shared || main.is_empty(), "shared, in layout 1: {name:?}\n{trace}");
            if self.torn[self.at(name)] || self.torn_holds[self.at(name)] {
                continue;
            }
            assert!(used || !wide, "free, and in layout 2: {name:?}\n{trace}");
            if wide && !stands_within(&main) {
                check_due(server.sorted(&due), record, &format!("{name:?}\n{trace}"));
            }
        }
    }
}

/// Whether a record has holds of their own.
pub fn is_wide(record: &[Value]) -> bool {
    let said = [b"v", b"2"].map(|it| Value::Bytes(it.to_vec()));
    record.chunks_exact(2).any(|pair| pair == said)
}

/// Whether the only hold stands in the record itself.
fn stands_within(record: &[Value]) -> bool {
    let name = Value::Bytes(b"a".to_vec());
    record.chunks_exact(2).any(|pair| pair[0] == name && pair[1] != Value::Bytes(Vec::new()))
}

/// Whether the refused request was not carried out, and may be when it is repeated.
fn is_passing(refusal: &Refusal) -> bool {
    matches!(refusal.kind, RefusalKind::Retry | RefusalKind::Again)
}

/// By deadline are those that hold, and below zero the same in the order of their grants.
fn check_due(due: Vec<(Vec<u8>, i64)>, record: &Record, trace: &str) {
    let (marks, ends): (Vec<_>, Vec<_>) = due.into_iter().partition(|(_, score)| *score < 0);
    let marks: Vec<String> =
        marks.iter().rev().map(|(id, _)| String::from_utf8_lossy(&id[1..]).into_owned()).collect();
    let held: Vec<String> = record.holds.iter().map(|hold| hold.hold.to_string()).collect();
    assert_eq!(marks, held, "the order of holds differs: {trace}");
    let mut wanted: Vec<(Vec<u8>, i64)> = record
        .holds
        .iter()
        .map(|hold| (hold.hold.to_string().into_bytes(), hold.deadline.cast_signed()))
        .collect();
    wanted.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
    assert_eq!(ends, wanted, "the deadlines differ: {trace}");
}

fn place(waiter: &StoredWaiter) -> (Vec<u8>, i64) {
    let ticket = i64::try_from(waiter.ticket).unwrap();
    let score = if waiter.silent { -ticket } else { ticket };
    (waiter.hold.to_string().into_bytes(), score)
}

/// Applies one sequence to both and compares after every step.
pub fn run(server: &mut dyn Server, seed: u64, steps: usize, counts: &mut Counts) {
    let mut plan = Plan::new(seed);
    // Some are played at the end of the time that tokens have room for.
    let now = if seed % 25 == 7 { END_OF_TIME - 60_000_000 } else { 1_700_000_000_000_000 };
    let mut world = World::new(server, now);
    for step in 0..steps {
        world.now = plan.tick(world.now, &world.records);
        if let Some(change) = plan.change(world.clients.len(), world.names.len()) {
            world.change(server, change);
        }
        let op = plan.op(world.now, &world.names, &world.records);
        // It reads what is there, and mends nothing.
        if matches!(&op, Op::Inspect(name)
            if world.torn[world.at(name)] || world.torn_holds[world.at(name)])
        {
            continue;
        }
        if let Op::Release(release) = &op {
            counts.see_release(release, &world.records[world.at(&release.lock)]);
        }
        let client = plan.index(world.clients.len());
        let trace = format!("seed {seed} step {step} now {} client {client}: {op:?}", world.now);
        let (mut got, mut pushes) = world.step(server, client, &op, &trace);
        // Who is told to ask again with all keys does so, and is answered.
        let again = |got: &Result<Reply, Failure>| match got {
            Err(Failure::Refused(refusal)) => refusal.kind == RefusalKind::Again,
            Ok(Reply { body: Body::Beat(states), .. }) => {
                let mut refused = states.iter().filter_map(|state| state.as_ref().err());
                refused.any(|refusal| refusal.kind == RefusalKind::Again)
            }
            _ => false,
        };
        let alone = matches!(&op, Op::Release(release) if release.alone);
        if again(&got) && !alone {
            counts.see("all keys");
            (got, pushes) = world.step(server, client, &op, &trace);
            assert!(!again(&got), "asked again, with all keys\n{trace}");
        }
        if let Err(Failure::Refused(refusal)) = &got
            && refusal.message.contains("another name")
        {
            counts.see("another kind");
        }
        counts.operations += 1;
        note(counts, &op, &got, &pushes, &world.records[world.at(lock_of(&op, &world.names[0]))]);
    }
}

impl World {
    /// Does one thing on both sides, and compares all that can be seen of it.
    pub fn step(
        &mut self,
        server: &mut dyn Server,
        client: usize,
        op: &Op,
        trace: &str,
    ) -> (Result<Reply, Failure>, Vec<(String, Push)>) {
        let (before, torn) = (self.records.clone(), self.torn.clone());
        let torn_holds = self.torn_holds.clone();
        let (got, pushes) = self.answers(server, client, op, trace);
        self.mended(op, &got);
        self.check_states(server, trace);
        for (at, name) in self.names.iter().enumerate() {
            let keys = self.clients[0].codec.keys(name);
            let records = (&before[at], &self.records[at]);
            // What another kind was refused has looked at the record all the same.
            let passing = matches!(&got, Err(Failure::Refused(why)) if is_passing(why));
            if lock_of(op, name) == name && !passing {
                self.expiry.check(
                    server,
                    &keys,
                    records,
                    (self.now, op, torn[at] || torn_holds[at]),
                    trace,
                );
            }
        }
        (got, pushes)
    }

    /// Does one thing on both sides, and compares what they say.
    pub fn answers(
        &mut self,
        server: &mut dyn Server,
        client: usize,
        op: &Op,
        trace: &str,
    ) -> (Result<Reply, Failure>, Vec<(String, Push)>) {
        let command = self.clients[client].codec.encode(op);
        let (value, published) = server.run(self.now, &command);
        let got = self.clients[client].codec.decode(op, value);
        let (expected, pushes) = self.expect(client, op, &got);
        assert_eq!(got, expected, "the replies differ (server's first)\n{trace}");
        let read = |(channel, payload): &(Vec<u8>, Vec<u8>)| {
            let by = |client: &&Client| client.codec.channel() == channel;
            let client = self.clients.iter().find(by).expect("a channel of ours");
            (client.id.id().to_owned(), client.codec.decode_push(payload).expect("a push"))
        };
        let published: Vec<_> = published.iter().map(read).collect();
        assert_eq!(published, pushes, "the pushes differ (server's first)\n{trace}");
        (got, pushes)
    }
}

fn lock_of<'a>(op: &'a Op, other: &'a Name) -> &'a Name {
    match op {
        Op::Acquire(ask) => &ask.lock,
        Op::Release(release) => &release.lock,
        Op::Convert(ask) => &ask.lock,
        Op::Resize(ask) => &ask.lock,
        Op::Break(what) => &what.lock,
        _ => other,
    }
}

fn note(
    counts: &mut Counts,
    op: &Op,
    got: &Result<Reply, Failure>,
    pushes: &[(String, Push)],
    record: &Record,
) {
    counts.see_record(record);
    if let (Op::Convert(ask), Ok(Reply { body: Body::Convert(state), .. })) = (op, got) {
        counts.see_state(state);
        counts.see(match (state.standing, ask.to) {
            (Standing::Granted, Mode::Shared) => "made shared",
            (Standing::Granted, _) => "made exclusive",
            _ => "not converted",
        });
    }
    for (_, push) in pushes {
        counts.see(match push {
            Push::Granted { .. } => "push granted",
            Push::Wanted { .. } => "push wanted",
            Push::Broken { .. } => "push broken",
            Push::Changed { .. } => "push changed",
        });
    }
    match got {
        Err(_) => counts.see("refused"),
        Ok(Reply { body: Body::Acquire(state), .. }) => counts.see_state(state),
        Ok(Reply { body: Body::Beat(states), .. }) => {
            for state in states.iter().flatten() {
                counts.see_state(state);
                assert!(state.lease <= Duration::from_secs(31 + 90));
            }
        }
        Ok(Reply { body: Body::Release(released), .. }) => counts.see(match released {
            Released::Done => "release done",
            Released::Left => "release left",
            Released::Unknown => "release unknown",
        }),
        Ok(Reply { body: Body::Resize(resized), .. }) => {
            counts.see(if *resized { "resized" } else { "nothing to resize" });
        }
        Ok(_) => {}
    }
}
