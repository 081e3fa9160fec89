//! What happens next, drawn from a seed.

use std::time::Duration;

use fencelock_engine::id::{HoldId, OwnerId};
use fencelock_engine::name::Name;
use fencelock_engine::request::{
    Acquire, Beat, Break, Convert, MAX_LOCAL_WAITERS, Mode, Op, Release, Resize, Wait,
};
use fencelock_engine::store::Record;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// From then on the store's clock leaves no room for tokens.
pub const END_OF_TIME: u64 = 9_006_099_743_113_216;

/// A fault, or a change of what surrounds the store.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    Flush,
    EvictRecord(usize),
    EvictQueue(usize),
    EvictEntries(usize),
    EvictOrder(usize),
    /// The holds, and their order where it says so.
    EvictHolds(usize, bool),
    EvictDue(usize),
    Oom(bool),
    ReadOnly(bool),
    PublishDenied(bool),
    Subscribed(usize, bool),
    Polling(usize, bool),
}

/// One draw after another.
pub struct Plan {
    rng: ChaCha8Rng,
    next_hold: u128,
    /// Whether locks are shared in this world.
    shared: bool,
    /// Of which lock so many requests come now at once.
    burst: Option<(usize, u64)>,
}

impl Plan {
    pub fn new(seed: u64) -> Plan {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        Plan {
            rng,
            next_hold: u128::from(seed) << 64,
            shared: !seed.is_multiple_of(4),
            burst: None,
        }
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.rng.next_u64() % n
    }

    pub fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).unwrap()
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// How the store's clock moves: mostly a little, at times past a claim or a lease, seldom
    /// back; and often to where something ends, or right beside that.
    pub fn tick(&mut self, now: u64, records: &[Record]) -> u64 {
        if self.burst.is_some() {
            return now + self.below(500);
        }
        if self.chance(15) {
            let span = if self.chance(20) { 40_000_000 } else { 3_000_000 };
            let near = |at: &u64| at.abs_diff(now) < span;
            let ends: Vec<u64> = records.iter().flat_map(ends).filter(near).collect();
            if !ends.is_empty() {
                return ends[self.index(ends.len())] + self.below(3) - 1;
            }
        }
        match self.below(100) {
            0..20 => now,
            20..60 => now + self.below(50_000),
            60..85 => now + self.below(1_000_000),
            85..95 => now + self.below(4_000_000),
            95..98 => now + self.below(40_000_000),
            98 => now - self.below(3_000_000),
            _ => now - self.below(90_000_000),
        }
    }

    pub fn change(&mut self, clients: usize, locks: usize) -> Option<Change> {
        Some(match self.below(160) {
            0 => Change::Flush,
            1 => Change::EvictRecord(self.index(locks)),
            2 => Change::EvictQueue(self.index(locks)),
            3 => Change::Oom(true),
            4..7 => Change::Oom(false),
            7 => Change::ReadOnly(true),
            8..11 => Change::ReadOnly(false),
            11 => Change::PublishDenied(true),
            12..14 => Change::PublishDenied(false),
            14..17 => Change::Subscribed(self.index(clients), false),
            17..24 => Change::Subscribed(self.index(clients), true),
            24 => Change::Polling(self.index(clients), true),
            25..28 => Change::Polling(self.index(clients), false),
            28 => Change::EvictEntries(self.index(locks)),
            29 => Change::EvictOrder(self.index(locks)),
            30 => Change::EvictHolds(self.index(locks), self.chance(50)),
            31..33 => Change::EvictDue(self.index(locks)),
            _ => return None,
        })
    }

    /// Of a name's kind, mostly: one is exclusive alone, one is read and written, and the others are
    /// semaphores, of whose permits somebody at times says another number.
    fn mode(&mut self, at: usize, record: &Record) -> Mode {
        let at = if self.chance(97) { at } else { self.index(4) };
        match (self.shared, at) {
            (false, _) | (true, 0) => Mode::Exclusive,
            (true, 1) if self.chance(35) => Mode::Exclusive,
            (true, 1) => Mode::Shared,
            (true, _) => {
                let of = if self.chance(98) { said(record).unwrap_or([3, 200][at % 2]) } else { 4 };
                let count = [1, 1, 2, 3][self.index(4)];
                Mode::Permits { count, of }
            }
        }
    }

    fn owner(&mut self) -> Option<OwnerId> {
        match self.below(5) {
            0..2 => Some(OwnerId::new("owner one").unwrap()),
            2 => Some(OwnerId::new("zwei").unwrap()),
            _ => None,
        }
    }

    /// A hold that the record knows, mostly; else one it knew, or a new one.
    fn hold(&mut self, record: &Record) -> HoldId {
        let holds = record.holds.iter().map(|hold| hold.hold);
        let waiters = record.waiters.iter().map(|waiter| waiter.hold);
        let known: Vec<HoldId> = holds.chain(waiters).chain(record.released).collect();
        if known.is_empty() || self.chance(10) {
            return self.fresh();
        }
        known[self.index(known.len())]
    }

    fn fresh(&mut self) -> HoldId {
        self.next_hold += 1;
        // Not in the order of their making, so that ties are settled by id and not by age.
        HoldId(self.next_hold.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
    }

    /// What a client knows of its own hold.
    fn mode_of(&mut self, hold: HoldId, record: &Record) -> Mode {
        let held = record.holds.iter().find(|it| it.hold == hold).map(|it| it.mode);
        let waits = || record.waiters.iter().find(|it| it.hold == hold).map(|it| it.mode);
        held.or_else(waits).unwrap_or_default()
    }

    fn lease(&mut self) -> Duration {
        Duration::from_nanos([100_000_000, 2_000_000_123, 30_000_000_000][self.index(3)])
    }

    fn local_waiters(&mut self) -> u32 {
        [0, 0, 0, 1, 3, MAX_LOCAL_WAITERS][self.index(6)]
    }

    fn release(&mut self, now: u64, lock: &Name, record: &Record) -> Release {
        // What was lost beside others is told, or not, by a release of one of those.
        let hold = match record.losses > 0 && self.chance(70) {
            true => record.holds[self.index(record.holds.len())].hold,
            false => self.hold(record),
        };
        let used = match self.below(20) {
            0..9 => 0,
            9..16 => record.token + self.below(300),
            16 => record.token.saturating_sub(1),
            17..19 => now + 1022 + self.below(4),
            _ => record.used,
        };
        let losses =
            if self.chance(60) { u32::try_from(self.below(3)).unwrap() } else { record.losses };
        let (told, lost, alone) = (self.chance(80), self.chance(15), self.chance(30));
        Release {
            lock: lock.clone(),
            hold,
            used,
            told,
            lost,
            losses,
            retention: Duration::from_secs([600, 86_400][self.index(2)]),
            alone,
            mode: self.mode_of(hold, record),
        }
    }

    fn wait(&mut self, now: u64, record: &Record) -> Wait {
        let tickets: Vec<u64> = record.waiters.iter().map(|waiter| waiter.ticket).collect();
        let ticket = match self.below(10) {
            0 => now - self.below(5_000_000),
            1 => now / 1_000_000 * 1_000_000,
            2 if !tickets.is_empty() => tickets[self.index(tickets.len())] + self.below(3) - 1,
            3 => record.ticket + self.below(3),
            _ => 0,
        };
        Wait {
            ticket,
            claim: Duration::from_millis([100, 1_000, 3_000][self.index(3)]),
            silence: Duration::from_millis([300, 3_000][self.index(2)]),
        }
    }

    fn acquire(&mut self, now: u64, at: usize, lock: &Name, record: &Record) -> Acquire {
        let wait = if self.chance(75) { Some(self.wait(now, record)) } else { None };
        let known = self.chance(20);
        let hold = if known { self.hold(record) } else { self.fresh() };
        let horizon = wait.map_or(3_000_000, |wait| u64::try_from(wait.claim.as_micros()).unwrap());
        let not_after = match self.below(20) {
            0 => now - self.below(2),
            1 => now + 2 * horizon + self.below(2),
            _ => now + horizon,
        };
        let floor = match self.below(20) {
            0..4 => now + self.below(5_000_000),
            4..7 => (record.last + self.below(3)).saturating_sub(1),
            7..9 => now + self.below(3) - 1,
            _ => 0,
        };
        let owner = self.owner();
        let mode = match known {
            true => self.mode_of(hold, record),
            false => self.mode(at, record),
        };
        let owner = owner.filter(|_| !matches!(mode, Mode::Permits { .. }));
        Acquire {
            lock: lock.clone(),
            hold,
            mode,
            read_write: false,
            lease: self.lease(),
            not_after,
            floor,
            wait,
            attach: (self.chance(10)).then(|| record.token + u64::from(self.chance(20))),
            after: self.chance(12).then(|| self.release(now, lock, record)),
            local_waiters: self.local_waiters(),
            owner,
        }
    }

    /// Mostly to the other mode; at times of a semaphore's hold, which has no other.
    fn conversion(&mut self, now: u64, lock: &Name, record: &Record) -> Convert {
        let alone = record.holds.iter().find(|hold| hold.mode == Mode::Exclusive);
        let hold = match alone.filter(|_| self.chance(50)) {
            Some(alone) => alone.hold,
            None if record.holds.is_empty() || self.chance(15) => self.hold(record),
            None => record.holds[self.index(record.holds.len())].hold,
        };
        let shared = self.mode_of(hold, record) == Mode::Shared;
        let to = if shared == self.chance(80) { Mode::Exclusive } else { Mode::Shared };
        let not_after = match self.below(20) {
            0 => now - self.below(2),
            1 => now + 6_000_000 + self.below(2),
            _ => now + 3_000_000,
        };
        let used = match self.below(8) {
            0 => 0,
            1 => record.token.saturating_sub(1),
            2 => record.used,
            3 => record.token + self.below(2_000),
            _ => record.token,
        };
        let losses = if self.chance(20) { 1 } else { record.losses };
        let floor = if self.chance(20) { now + self.below(5_000_000) } else { 0 };
        let (told, lock) = (self.chance(80), lock.clone());
        Convert { lock, hold, to, lease: self.lease(), not_after, floor, used, told, losses }
    }

    /// One that shares the lock for long.
    fn one_of_many(&mut self, now: u64, at: usize, lock: &Name, record: &Record) -> Acquire {
        let claim = Duration::from_secs(3);
        let wait = Wait { ticket: 0, claim, silence: Duration::from_secs(3) };
        Acquire {
            hold: self.fresh(),
            owner: self.owner().filter(|_| at == 1 && self.below(20) == 0),
            mode: [Mode::Shared, Mode::Permits { count: 1, of: 200 }][at / 2],
            lease: Duration::from_secs(30),
            not_after: now + 1_000_000,
            wait: Some(wait),
            attach: None,
            after: None,
            ..self.acquire(now, at, lock, record)
        }
    }

    /// Holds and waiters of one client, as its beat names them.
    fn beats(&mut self, locks: &[Name], records: &[Record]) -> Vec<Beat> {
        let mut beats: Vec<Beat> = Vec::new();
        for _ in 0..1 + self.below(4) {
            let at = self.index(locks.len());
            let record = &records[at];
            let hold = self.hold(record);
            let again = beats.iter().any(|beat| beat.lock == locks[at]);
            if again && beats.iter().any(|beat| beat.hold == hold) {
                continue;
            }
            let used = match self.below(12) {
                0..5 => 0,
                5..7 => record.token + self.below(5_000_000),
                7..9 => record.used,
                9 => record.used + self.below(3),
                10 => (record.token + self.below(3)).saturating_sub(1),
                _ => (record.last + self.below(3)).saturating_sub(1025),
            };
            let lease = self.lease();
            let silence = Duration::from_millis([300, 3_000, 30_000][self.index(3)]);
            let (lock, local_waiters) = (locks[at].clone(), self.local_waiters());
            let mode = self.mode_of(hold, record);
            beats.push(Beat {
                lock,
                hold,
                lease,
                used,
                silence,
                local_waiters,
                mode,
                apart: false,
            });
        }
        beats
    }

    fn resize(&mut self, lock: &Name) -> Resize {
        Resize { lock: lock.clone(), of: [1, 1, 2, 3, 5, 200][self.index(6)] }
    }

    pub fn op(&mut self, now: u64, locks: &[Name], records: &[Record]) -> Op {
        if self.shared && self.below(250) == 0 {
            self.burst = Some(([1, 3][self.index(2)], 66 + self.below(80)));
        }
        if let Some((at, left)) = self.burst {
            self.burst = left.checked_sub(1).map(|left| (at, left));
            return Op::Acquire(self.one_of_many(now, at, &locks[at], &records[at]));
        }
        let used: Vec<usize> =
            (0..locks.len()).filter(|at| said(&records[*at]).is_some()).collect();
        if !used.is_empty() && self.below(40) == 0 {
            let at = used[self.index(used.len())];
            return Op::Resize(self.resize(&locks[at]));
        }
        let at = self.index(if self.shared { locks.len() } else { 2 });
        let (lock, record) = (&locks[at], &records[at]);
        match self.below(100) {
            0..42 => Op::Acquire(self.acquire(now, at, lock, record)),
            42..68 => Op::Release(self.release(now, lock, record)),
            68..75 => Op::Convert(self.conversion(now, lock, record)),
            75..95 => Op::Beat(self.beats(locks, records)),
            95..97 => Op::Inspect(lock.clone()),
            97 => Op::Resize(self.resize(lock)),
            _ => {
                let token = (record.token + 2 * self.below(2)).saturating_sub(self.below(2));
                let hold = self.chance(30).then(|| self.hold(record));
                Op::Break(Break { lock: lock.clone(), token, hold })
            }
        }
    }
}

/// How many permits those say who hold or wait.
fn said(record: &Record) -> Option<u32> {
    let held = record.holds.first().map(|hold| hold.mode);
    match held.or_else(|| record.waiters.iter().next().map(|waiter| waiter.mode))? {
        Mode::Permits { of, .. } => Some(of),
        Mode::Exclusive | Mode::Shared => None,
    }
}

/// Where something ends or begins anew: a hold, what its lease may lie ahead, a waiter's silence, its
/// remembrance, a block of tokens, and all time.
fn ends(record: &Record) -> Vec<u64> {
    let holds = record.holds.iter().flat_map(|hold| [hold.deadline, hold.deadline - hold.lease]);
    let waiters = record.waiters.iter().flat_map(|waiter| {
        let (heard, silence) = (waiter.heard, waiter.silence);
        [heard, heard + silence, heard + 10 * silence, waiter.ticket]
    });
    let block = [record.last, record.last.saturating_sub(1024), record.token, END_OF_TIME];
    holds.chain(waiters).chain(block).collect()
}
