//! What a seed draws before its run begins: the world's size, its numbers, its faults.

use std::time::Duration;

use fencelock_engine::Options;

use crate::bias::Bias;
use crate::clock::{Instant, MS, SEC, US};
use crate::cost::Cost;
use crate::dice::Dice;
use crate::fault::{Fault, Memory, Refusing};
use crate::zookeeper::ZkBias;

/// Which store the run is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// The rules in Rust, over a map: what memory and SQLite run.
    Record,
    /// The shipped scripts over a modelled keyspace.
    Redis,
    /// The shipped lock machine over a modelled ensemble.
    ZooKeeper,
}

impl StoreKind {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            StoreKind::Record => "record",
            StoreKind::Redis => "redis",
            StoreKind::ZooKeeper => "zookeeper",
        }
    }
}

/// Which kinds of faults a run may meet. Narrow ones let strict checks apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// None but delays.
    Calm,
    /// Pushes are lost, doubled or late.
    Pushes,
    /// Connections are cut, messages lost with them.
    Network,
    /// Clients pause, crash, and have odd clocks.
    Clients,
    /// The store pauses, restarts with its memory, refuses, cannot publish.
    Server,
    /// The store's clock steps.
    Clock,
    /// The store forgets what it acknowledged.
    Loss,
    /// Everything.
    All,
}

impl Profile {
    /// All of them.
    pub const ALL: [Profile; 8] = [
        Profile::Calm,
        Profile::Pushes,
        Profile::Network,
        Profile::Clients,
        Profile::Server,
        Profile::Clock,
        Profile::Loss,
        Profile::All,
    ];

    fn is(self, other: Profile) -> bool {
        self == other || self == Profile::All
    }
}

/// How likely each message is to suffer, in a thousand, while faults last.
#[derive(Clone, Debug, Default)]
pub struct Hazards {
    /// A request is lost, and its connection cut later.
    pub lose_request: u64,
    /// A reply is swallowed, and its connection cut later.
    pub lose_reply: u64,
    /// A push is lost.
    pub lose_push: u64,
    /// A push arrives twice.
    pub double_push: u64,
    /// A push is late by up to two leases (only where pushes have a connection of their own).
    pub late_push: u64,
    /// A request that did not arrive arrives later, when nobody waits for it any more.
    pub stray: u64,
    /// The reply to a release takes up to a request timeout longer.
    pub late_reply: u64,
    /// A message takes a hundred times as long.
    pub spike: u64,
    /// A call reads the clock before another one that goes first.
    pub stale_read: u64,
}

/// How callers behave, in a thousand.
#[derive(Clone, Debug)]
pub struct Habits {
    /// Tries.
    pub attempt: u64,
    /// Bounded waits, of those that do not try.
    pub bounded: u64,
    /// Waits that are cancelled.
    pub cancel: u64,
    /// Explicit leases.
    pub lease: u64,
    /// Ceilings over the renewal.
    pub max_hold: u64,
    /// Acquires again while holding.
    pub reenter: u64,
    /// Extends while holding.
    pub extend: u64,
    /// Sleeps over its lease while holding.
    pub nap: u64,
    /// Releases twice.
    pub twice: u64,
    /// Releases without waiting for it, as a dropped guard does.
    pub dropped: u64,
    /// Joins an explicit owner's holds by their token.
    pub attach: u64,
    /// Breaks a lock.
    pub breaks: u64,
    /// Does something else while a call of its own is under way: lets go, asks for more time, or
    /// for the lock once more.
    pub branch: u64,
    /// Gives a handle back and makes it anew.
    pub forget: u64,
    /// Shares the lock with others who do.
    pub read: u64,
    /// Makes a hold shared, or exclusive.
    pub convert: u64,
    /// Says another number of permits than the rest do.
    pub odd: u64,
    /// Changes the number of permits, from which on all say that.
    pub resize: u64,
    /// Follows the number of permits that those have who hold or wait, and says any of its own.
    pub adopt: u64,
    /// The longest hold.
    pub hold: u64,
    /// The longest rest between holds.
    pub rest: u64,
}

/// All that is drawn for a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed that it was drawn from.
    pub seed: u64,
    /// The store.
    pub store: StoreKind,
    /// The kinds of faults.
    pub profile: Profile,
    /// What else it is bent towards.
    pub bias: Bias,
    /// How many clients.
    pub clients: usize,
    /// How many callers each client has.
    pub actors: usize,
    /// How many locks.
    pub locks: usize,
    /// How many explicit owners are shared by all clients.
    pub owners: usize,
    /// How many permits each name has; empty where names are locks.
    pub permits: Vec<u32>,
    /// Of a thousand callers, how many act for an explicit owner.
    pub explicit: u64,
    /// Every client's options.
    pub options: Options,
    /// Rate errors of the clients' clocks, in parts per million.
    pub client_ppm: Vec<i64>,
    /// Which clients have no inbox.
    pub polling: Vec<bool>,
    /// Rate error of the store's clock.
    pub store_ppm: i64,
    /// Pushes come on a connection of their own.
    pub push_pipe: bool,
    /// A message's shortest and longest ordinary delay.
    pub latency: (u64, u64),
    /// What requests cost the store; nothing in most runs.
    pub cost: Option<Cost>,
    /// Where a replica must have a grant before it counts: how many in a thousand it confirms too late.
    pub short: Option<u64>,
    /// What messages suffer.
    pub hazards: Hazards,
    /// How callers behave.
    pub habits: Habits,
    /// The faults, each at its time.
    pub faults: Vec<(Instant, Fault)>,
    /// When faults end.
    pub quiet_at: Instant,
    /// What is ZooKeeper's own.
    pub zk: Option<crate::zookeeper::ZkPlan>,
}

impl Plan {
    /// Draws the plan of a seed.
    pub fn draw(seed: u64, store: StoreKind, dice: &mut Dice) -> Plan {
        let mut plan = Plan::plain(seed, store, dice);
        // An ensemble has troubles of its own.
        if store == StoreKind::ZooKeeper {
            let (bias, mut dice) = ZkBias::of(seed);
            if let Some(bias) = bias {
                bias.bend(&mut plan, &mut dice);
            }
            let (bias, mut dice) = Bias::of(seed);
            if bias.shares() {
                plan.share_on_zookeeper(bias, &mut dice);
            }
        } else {
            let (bias, mut dice) = Bias::of(seed);
            bias.bend(&mut plan, &mut dice);
        }
        plan
    }

    /// The same without a bias.
    pub(crate) fn plain(seed: u64, store: StoreKind, dice: &mut Dice) -> Plan {
        // What came later is drawn apart, so that the other draws stay what they were.
        let mut apart = Dice::new(seed ^ 0x6272_616e << 32);
        let profile = dice.pick(&Profile::ALL);
        let clients = dice.between(1, 5) as usize;
        let claim = dice.between(100, 500);
        let lease = dice.between(claim.max(200), 2_000);
        let options = Options {
            lease: Duration::from_millis(lease),
            claim: Duration::from_millis(claim),
            local_run_grants: dice.pick(&[0, 2, 8, 64]),
            local_run_time: Duration::from_millis(dice.between(1, 10)),
            request_timeout: Duration::from_millis(dice.between(40, 1_000)),
            max_waiters: 1_000,
            // Where a few are a crowd, waiters show themselves less often.
            crowd: [128, 1, 2, 128][(seed % 4) as usize],
            ..Options::default()
        };
        let hold = dice.pick(&[200 * US, 2 * MS, 30 * MS, 300 * MS]);
        let quiet_at = dice.between(1, 6) * SEC / 2 + if hold > 10 * MS { 2 * SEC } else { 0 };
        let mut plan = Plan {
            seed,
            store,
            profile,
            bias: Bias::None,
            clients,
            actors: dice.between(1, 4) as usize,
            locks: dice.between(1, 3) as usize,
            owners: dice.between(1, 2) as usize,
            permits: Vec::new(),
            explicit: dice.pick(&[0, 200, 600]),
            client_ppm: (0..clients).map(|_| dice.between(0, 10_000) as i64 - 5_000).collect(),
            polling: (0..clients).map(|_| false).collect(),
            store_ppm: dice.between(0, 10_000) as i64 - 5_000,
            push_pipe: dice.chance(400),
            latency: (20 * US, dice.pick(&[100 * US, 500 * US, 3 * MS, 12 * MS])),
            cost: None,
            short: None,
            hazards: Hazards { stale_read: 30, stray: 300, ..Hazards::default() },
            habits: Habits {
                attempt: dice.pick(&[50, 300]),
                bounded: 400,
                cancel: dice.pick(&[20, 200]),
                lease: dice.pick(&[0, 200, 600]),
                max_hold: dice.pick(&[0, 100]),
                reenter: dice.pick(&[50, 300]),
                extend: 60,
                nap: dice.pick(&[5, 60]),
                twice: 60,
                dropped: 200,
                attach: 200,
                breaks: if profile == Profile::All { dice.pick(&[0, 10]) } else { 0 },
                branch: apart.pick(&[0, 0, 200, 600]),
                forget: apart.pick(&[0, 200]),
                read: 0,
                convert: 0,
                odd: 0,
                resize: 0,
                adopt: 0,
                hold,
                rest: dice.pick(&[100 * US, 5 * MS, 80 * MS]),
            },
            options,
            faults: Vec::new(),
            quiet_at,
            zk: None,
        };
        plan.draw_hazards(dice);
        plan.draw_faults(dice);
        if store == StoreKind::ZooKeeper {
            plan.draw_zookeeper(dice);
        }
        plan
    }

    /// A replica must have a grant before it counts; of a thousand it confirms so many too late.
    pub(crate) fn confirm(&mut self, short: u64) {
        self.short = Some(short);
        self.options.confirm_grants = true;
    }

    /// Whether several may hold a name together.
    pub fn shares(&self) -> bool {
        self.bias.shares() || self.bias == Bias::Confirmed
    }

    /// The shortest lease that may be asked for, in nanoseconds.
    pub(crate) fn shortest_lease(&self) -> u64 {
        (10 * self.options.clock_slack.as_nanos() as u64).max(100 * MS)
    }

    /// The longest lease that a caller may ask for.
    pub fn longest_lease(&self) -> Duration {
        self.options.lease * 2
    }

    fn draw_hazards(&mut self, dice: &mut Dice) {
        let hazards = &mut self.hazards;
        if self.profile != Profile::Calm {
            hazards.spike = dice.pick(&[0, 10, 30]);
            for polling in &mut self.polling {
                *polling = dice.chance(120);
            }
        }
        if self.profile.is(Profile::Pushes) {
            hazards.lose_push = dice.pick(&[0, 100, 600, 1000]);
            hazards.double_push = dice.pick(&[0, 300]);
            hazards.late_push = dice.pick(&[0, 100]);
        }
        if self.profile.is(Profile::Network) {
            hazards.lose_request = dice.pick(&[0, 10, 50]);
            hazards.lose_reply = dice.pick(&[0, 10, 50]);
        }
    }

    fn draw_faults(&mut self, dice: &mut Dice) {
        if self.profile == Profile::Calm || self.profile == Profile::Pushes {
            return;
        }
        for _ in 0..dice.between(1, 8) {
            let at = dice.between(10 * MS, self.quiet_at - 1);
            if let Some(fault) = self.draw_fault(dice) {
                // Whatever lasts is over when the quiet part begins.
                self.faults.push((at, fault.within(self.quiet_at - at)));
            }
        }
        self.faults.sort_by_key(|(at, _)| *at);
    }

    fn draw_fault(&self, dice: &mut Dice) -> Option<Fault> {
        let profile = match self.profile {
            Profile::All => dice.pick(&Profile::ALL),
            other => other,
        };
        let slot = dice.below(self.clients as u64) as usize;
        let lease = self.options.lease.as_nanos() as u64;
        let micros = |dice: &mut Dice| dice.between(1_000, 4 * lease / US);
        Some(match profile {
            Profile::Calm | Profile::Pushes => return None,
            Profile::Network => match dice.below(4) {
                0 => Fault::Cut { slot },
                1 => Fault::BlackHole {
                    slot,
                    up: true,
                    down: dice.chance(500),
                    span: dice.between(MS, lease),
                },
                2 => Fault::Slow {
                    slot,
                    by: dice.between(MS, self.options.request_timeout.as_nanos() as u64),
                    span: dice.between(MS, 2 * lease),
                },
                _ => Fault::BlackHole {
                    slot,
                    up: false,
                    down: true,
                    span: dice.between(MS, 2 * lease),
                },
            },
            Profile::Clients => match dice.below(5) {
                0 => Fault::Crash { slot, span: dice.between(MS, 2 * lease) },
                1 => Fault::Jump { slot, by: dice.between(MS, lease) },
                _ => Fault::Pause { slot, span: dice.between(MS, 3 * lease) },
            },
            Profile::Server => match dice.below(7) {
                0 => Fault::ServerPause { span: dice.between(MS, 2 * lease) },
                1 => Fault::Restart { memory: Memory::Kept, span: dice.between(MS, lease) },
                2 => Fault::Refuse { how: Refusing::ReadOnly, span: dice.between(MS, 2 * lease) },
                3 => Fault::Refuse { how: Refusing::MemoryFull, span: dice.between(MS, 3 * lease) },
                4 => Fault::Mute { span: dice.between(MS, 3 * lease) },
                5 => Fault::Foreign {
                    lock: dice.below(self.locks as u64) as usize,
                    queue: dice.chance(300),
                    span: dice.between(MS, 3 * lease),
                },
                _ => Fault::ScriptFlush,
            },
            Profile::Clock => match dice.below(3) {
                0 => Fault::ClockStep { micros: micros(dice) as i64 },
                1 => Fault::ClockStep { micros: -3_600_000_000 },
                _ => Fault::ClockStep { micros: -(micros(dice) as i64) },
            },
            Profile::Loss => match dice.below(4) {
                0 => Fault::Flush,
                1 => Fault::Evict { lock: dice.below(self.locks as u64) as usize },
                2 => Fault::Restart { memory: Memory::Lost, span: dice.between(MS, lease) },
                _ => Fault::Failover {
                    lag: dice.between(0, lease),
                    skew: dice.pick(&[0, 0, -1, 1]) * micros(dice) as i64,
                    span: dice.between(MS, lease),
                },
            },
            Profile::All => return None,
        })
    }
}
