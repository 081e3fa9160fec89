//! Runs with one kind of fault each, on a world like one of the stores': what the table is made of.

use std::time::Duration;

use crate::bias::Bias;
use crate::clock::{MS, SEC, US};
use crate::cover::Cover;
use crate::dice::Dice;
use crate::fault::{Fault, Memory, Refusing};
use crate::plan::{Habits, Hazards, Plan, Profile, StoreKind};

/// A store as users know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shop {
    /// The process's own memory.
    Memory,
    /// A SQLite file.
    Sqlite,
    /// A Redis server.
    Redis,
    /// A ZooKeeper ensemble.
    ZooKeeper,
}

/// One kind of fault, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Scene {
    Nothing,
    Suspend,
    Pause,
    Crash,
    ClientClock,
    Pushes,
    Messages,
    Cuts,
    Slow,
    StorePause,
    Restart,
    ReadOnly,
    MemoryFull,
    Busy,
    Mute,
    ScriptFlush,
    Foreign,
    ClockBack,
    ClockForward,
    Forget,
    Evict,
    TakeOver,
    Lag,
    Skew,
    Double,
    Expired,
    FollowerLag,
    FollowerCut,
    Leader,
    Moved,
    Deleted,
    Reaped,
    Curator,
    CuratorPause,
    Readers(Under),
    Permits(Under),
}

/// What befalls names that several hold together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Under {
    Nothing,
    Pause,
    Crash,
    Messages,
    Forget,
}

use Scene::*;

/// Of a thousand things that a holder does in a run with naps, so many at the least are naps.
const NAP: u64 = 120;
/// Of a thousand acquires in such a run, so many at the least have a lease of their own, which ends.
const LEASED: u64 = 400;
/// The longest ordinary lease there, so that several end before the run does.
const SHORT: Duration = Duration::from_millis(800);

impl Shop {
    /// All of them.
    pub const ALL: [Shop; 4] = [Shop::Memory, Shop::Sqlite, Shop::Redis, Shop::ZooKeeper];

    /// The heading of its table.
    pub fn title(self) -> &'static str {
        match self {
            Shop::Memory => "Memory",
            Shop::Sqlite => "SQLite",
            Shop::Redis => "Redis",
            Shop::ZooKeeper => "ZooKeeper",
        }
    }

    /// What can happen to it.
    pub fn scenes(self) -> &'static [Scene] {
        match self {
            Shop::Memory => &[Nothing, Suspend, Readers(Under::Nothing), Permits(Under::Nothing)],
            Shop::Sqlite => &[
                Nothing,
                Suspend,
                Pause,
                Crash,
                Busy,
                Forget,
                Lag,
                Readers(Under::Nothing),
                Readers(Under::Pause),
                Readers(Under::Crash),
                Readers(Under::Forget),
                Permits(Under::Nothing),
                Permits(Under::Pause),
                Permits(Under::Crash),
                Permits(Under::Forget),
            ],
            Shop::Redis => &[
                Nothing,
                Pause,
                Crash,
                ClientClock,
                Pushes,
                Messages,
                Cuts,
                Slow,
                StorePause,
                Restart,
                ReadOnly,
                MemoryFull,
                Mute,
                ScriptFlush,
                Foreign,
                ClockBack,
                ClockForward,
                Forget,
                Evict,
                TakeOver,
                Lag,
                Skew,
                Double,
                Readers(Under::Nothing),
                Readers(Under::Pause),
                Readers(Under::Crash),
                Readers(Under::Messages),
                Readers(Under::Forget),
                Permits(Under::Nothing),
                Permits(Under::Pause),
                Permits(Under::Crash),
                Permits(Under::Messages),
                Permits(Under::Forget),
            ],
            Shop::ZooKeeper => &[
                Nothing,
                Pause,
                Crash,
                ClientClock,
                Messages,
                Cuts,
                Expired,
                StorePause,
                FollowerLag,
                FollowerCut,
                Leader,
                Restart,
                Moved,
                Deleted,
                Reaped,
                Curator,
                CuratorPause,
                Permits(Under::Nothing),
                Permits(Under::Pause),
                Permits(Under::Crash),
                Permits(Under::Messages),
            ],
        }
    }

    fn model(self) -> StoreKind {
        match self {
            Shop::Memory | Shop::Sqlite => StoreKind::Record,
            Shop::Redis => StoreKind::Redis,
            Shop::ZooKeeper => StoreKind::ZooKeeper,
        }
    }
}

impl Scene {
    /// What happens, for users.
    pub fn title(self, shop: Shop) -> String {
        let fault = self.fault().words(shop);
        match self {
            Readers(_) => format!("readers and writers: {fault}"),
            Permits(_) => format!("permits: {fault}"),
            _ => fault.to_owned(),
        }
    }

    /// What happens, whatever the names are.
    pub fn fault(self) -> Scene {
        match self {
            Readers(under) | Permits(under) => match under {
                Under::Nothing => Nothing,
                Under::Pause => Pause,
                Under::Crash => Crash,
                Under::Messages => Messages,
                Under::Forget => Forget,
            },
            fault => fault,
        }
    }

    fn words(self, shop: Shop) -> &'static str {
        match (self, shop) {
            (Readers(_) | Permits(_), _) => "",
            (Nothing, _) => "nothing but contention, and callers that sleep over their leases",
            (Suspend, _) => "the machine is suspended and resumed",
            (Pause, Shop::ZooKeeper) => "a client's process stands still, also past its session",
            (Pause, _) => "a client's process stands still, also past its lease",
            (Crash, _) => "a client's process is killed",
            (ClientClock, _) => "a client's clock runs 0.5 % wrong, or jumps forward",
            (Pushes, _) => "pushes are lost, doubled, late",
            (Messages, Shop::ZooKeeper) => {
                "requests and replies are lost: nobody knows whether an operation was done"
            }
            (Messages, _) => "requests and replies are lost, or arrive when nobody waits for them",
            (Cuts, _) => "connections are cut, or let nothing pass, in either direction",
            (Slow, _) => "the way back from the server is slow",
            (StorePause, Shop::ZooKeeper) => "a server stands still",
            (StorePause, _) => "the server stands still",
            (Restart, Shop::ZooKeeper) => "all servers are restarted with their logs",
            (Restart, _) => "the server restarts with its data",
            (ReadOnly, _) => "the server refuses writes",
            (MemoryFull, _) => "the server's memory is full",
            (Busy, _) => "the file cannot be written: another writer, a full disk",
            (Mute, _) => "the user may not publish",
            (ScriptFlush, _) => "scripts are flushed",
            (Foreign, _) => "another program's key stands in a lock's place",
            (ClockBack, _) => "the server's clock is set back",
            (ClockForward, _) => "the server's clock is set forward",
            (Forget, Shop::Sqlite) => "the file is deleted",
            (Forget, _) => "the server restarts empty, or is flushed",
            (Evict, _) => "a lock's key is evicted or deleted",
            (Lag, Shop::Sqlite) => "an older copy of the file is put back",
            (TakeOver, _) => {
                "failover to a replica that has everything, its clock ahead by up to `clock_slack`"
            }
            (Lag, _) => "failover to a replica that lags",
            (Skew, _) => "failover to a replica that lags and whose clock is ahead",
            (Double, _) => "the data are lost while the clock is behind (the double fault)",
            (Expired, _) => "a session expires under a client that lives",
            (FollowerLag, _) => "a server lags behind the others",
            (FollowerCut, _) => "a holder's server is cut off from the others, and answers pings",
            (Leader, _) => "the leader dies or is cut off, and another one is elected",
            (Moved, _) => "a session moves from server to server while the leader lags",
            (Deleted, _) => "somebody else deletes the holder's node",
            (Reaped, _) => "the lock's empty container is removed again and again",
            (Curator, _) => "Curator participants want the same locks",
            (CuratorPause, _) => "Curator participants stand still, also past their sessions",
        }
    }

    fn profile(self) -> Profile {
        match self {
            Nothing | Reaped | Curator => Profile::Calm,
            Pushes | FollowerLag => Profile::Pushes,
            Messages | Cuts | Slow | Moved => Profile::Network,
            Pause | Crash | ClientClock | Suspend | Expired | CuratorPause => Profile::Clients,
            StorePause | TakeOver | Restart | ReadOnly | MemoryFull | Busy | Mute | ScriptFlush
            | Foreign => Profile::Server,
            ClockBack | ClockForward | FollowerCut => Profile::Clock,
            Forget | Evict | Lag | Skew | Double | Leader | Deleted => Profile::Loss,
            Readers(_) | Permits(_) => self.fault().profile(),
        }
    }

    /// What shows that the fault struck: a row that never met it says nothing.
    pub(crate) fn shown_by(self, shop: Shop) -> Option<Cover> {
        Some(match (self, shop) {
            (Readers(Under::Nothing), _) => Cover::ReadTogether,
            (Permits(Under::Nothing), _) => Cover::PermitsTogether,
            (Readers(_) | Permits(_), _) => return self.fault().shown_by(shop),
            (Nothing, _) => Cover::LocalHandOff,
            (Pause, _) => Cover::PausedPastLease,
            (Crash, _) => Cover::CrashedWhileHolding,
            (ClientClock, _) => Cover::ClockJumped,
            (Suspend, _) => Cover::Suspended,
            (Pushes, _) => Cover::PushLost,
            (Messages, Shop::ZooKeeper) => Cover::ZkLostWrite,
            (Messages, _) => Cover::ReplyLost,
            (Cuts, _) => Cover::BlockedDown,
            (Slow, _) => Cover::Slowed,
            (Restart, Shop::ZooKeeper) | (Leader, _) => Cover::ZkElection,
            (StorePause, _) => Cover::ServerPaused,
            (Restart, _) => Cover::Restarted,
            (ReadOnly | MemoryFull | Busy, _) => Cover::Refusing,
            (Mute, _) => Cover::Muted,
            (ScriptFlush, _) => Cover::ScriptsForgotten,
            (Foreign, _) => Cover::ForeignKey,
            (ClockBack, _) => Cover::ClockBack,
            (ClockForward, _) => Cover::ClockForward,
            (Forget | Double, _) => Cover::MemoryLostWhileHeld,
            (Evict, _) => Cover::Evicted,
            (TakeOver, _) => Cover::TakenOver,
            (Lag, _) => Cover::FailoverWhileHeld,
            (Skew, _) => Cover::FailoverSkewed,
            (Expired, _) => Cover::ZkExpired,
            (FollowerLag, _) => Cover::ZkLagged,
            (FollowerCut, _) => Cover::ZkCutOff,
            (Moved, _) => Cover::ZkReattached,
            (Deleted, _) => Cover::ZkDeleted,
            (Reaped, _) => Cover::ZkReaped,
            (Curator | CuratorPause, _) => Cover::ZkForeign,
        })
    }

    /// The plan of a seed in this scene, and the dice for what follows.
    pub(crate) fn draw(self, shop: Shop, seed: u64) -> (Plan, Dice) {
        let mut dice = Dice::new(seed);
        let mut plan = Plan::plain(seed, shop.model(), &mut dice);
        plan.profile = self.profile();
        plan.faults.clear();
        plan.hazards = Hazards { stale_read: 30, stray: 300, ..Hazards::default() };
        plan.habits = Habits { breaks: 0, ..plan.habits };
        plan.clients = plan.clients.max(2);
        plan.explicit = plan.explicit.max(100);
        // A third of the runs has no naps, so that no hold is lost but by the fault.
        if dice.chance(333) {
            plan.habits.nap = 0;
        } else {
            // In the others many sleep over leases that end, and write when others have the lock.
            plan.habits.nap = plan.habits.nap.max(NAP);
            plan.habits.lease = plan.habits.lease.max(LEASED);
            plan.options.lease = plan.options.lease.min(SHORT);
            plan.quiet_at = plan.quiet_at.max(2 * SEC);
        }
        let polls = shop == Shop::Sqlite;
        plan.polling = vec![polls; plan.clients];
        plan.client_ppm.resize(plan.clients, 0);
        if shop == Shop::ZooKeeper {
            self.bend_zookeeper(&mut plan, &mut dice);
        } else if shop != Shop::Redis {
            // One machine, one clock, and no network.
            plan.client_ppm.fill(plan.store_ppm);
            plan.push_pipe = false;
            plan.latency = (20 * US, 100 * US);
        }
        self.share(&mut plan, &mut dice);
        match self.fault() {
            TakeOver => {
                // Leases and claims are ten times it at least.
                let short = plan.options.lease.min(plan.options.claim);
                plan.options.clock_slack = short / 10;
            }
            Pushes => {
                plan.hazards.lose_push = dice.pick(&[100, 600, 1000]);
                plan.hazards.double_push = 300;
                plan.hazards.late_push = 100;
            }
            Messages => {
                plan.hazards.lose_request = dice.pick(&[10, 50]);
                plan.hazards.lose_reply = dice.pick(&[10, 50]);
            }
            Slow => plan.hazards.spike = 30,
            _ => {}
        }
        for _ in 0..dice.between(1, 6) {
            let at = dice.between(10 * MS, plan.quiet_at - 1);
            let faults = match shop {
                Shop::ZooKeeper => self.zk_faults(&plan, &mut dice),
                _ => self.fault().faults(&plan, &mut dice),
            };
            for fault in faults {
                plan.faults.push((at, fault.within(plan.quiet_at - at)));
            }
        }
        plan.faults.sort_by_key(|(at, _)| *at);
        (plan, dice)
    }

    /// Makes of the names what several hold together.
    fn share(self, plan: &mut Plan, dice: &mut Dice) {
        match self {
            Readers(_) => {
                plan.bias = Bias::Readers;
                plan.habits.read = dice.pick(&[300, 600]);
            }
            Permits(_) => {
                plan.bias = Bias::Permits;
                plan.permits = (0..plan.locks).map(|_| dice.pick(&[1, 2, 3, 3, 5])).collect();
                // Some follow the number that the others say.
                plan.habits.adopt = dice.pick(&[0, 300]);
                plan.explicit = 0;
            }
            _ => {}
        }
    }

    fn faults(self, plan: &Plan, dice: &mut Dice) -> Vec<Fault> {
        let slot = dice.below(plan.clients as u64) as usize;
        let lock = dice.below(plan.locks as u64) as usize;
        let lease = plan.options.lease.as_nanos() as u64;
        let timeout = plan.options.request_timeout.as_nanos() as u64;
        let span = dice.between(MS, 2 * lease);
        let micros = dice.between(1_000, 4 * lease / US) as i64;
        let lag = dice.between(0, lease);
        vec![match self {
            Nothing | Pushes | Messages => return Vec::new(),
            Expired | FollowerLag | FollowerCut | Leader | Moved | Deleted | Reaped | Curator
            | CuratorPause | Readers(_) | Permits(_) => return Vec::new(),
            Suspend => Fault::Suspend { by: dice.between(MS, 3 * lease) },
            Pause => Fault::Pause { slot, span: dice.between(MS, 3 * lease) },
            Crash => Fault::Crash { slot, span },
            ClientClock => Fault::Jump { slot, by: dice.between(MS, lease) },
            Cuts => match dice.below(4) {
                0 => Fault::Cut { slot },
                1 => Fault::BlackHole { slot, up: true, down: false, span },
                2 => Fault::BlackHole { slot, up: false, down: true, span },
                _ => Fault::BlackHole { slot, up: true, down: true, span },
            },
            Slow => Fault::Slow { slot, by: dice.between(MS, timeout), span },
            StorePause => Fault::ServerPause { span },
            Restart => Fault::Restart { memory: Memory::Kept, span: span / 2 },
            ReadOnly | Busy => Fault::Refuse { how: Refusing::ReadOnly, span },
            MemoryFull => Fault::Refuse { how: Refusing::MemoryFull, span },
            Mute => Fault::Mute { span },
            ScriptFlush => Fault::ScriptFlush,
            Foreign => Fault::Foreign { lock, queue: dice.chance(300), span },
            ClockBack => Fault::ClockStep { micros: dice.pick(&[-micros, -3_600_000_000]) },
            ClockForward => Fault::ClockStep { micros },
            Forget => match dice.below(2) {
                0 => Fault::Flush,
                _ => Fault::Restart { memory: Memory::Lost, span: span / 2 },
            },
            Evict => Fault::Evict { lock },
            TakeOver => {
                let ahead = dice.between(0, plan.options.clock_slack.as_nanos() as u64);
                Fault::TakeOver { ahead, span: span / 2 }
            }
            Lag => Fault::Failover { lag, skew: 0, span: span / 2 },
            Skew => Fault::Failover { lag, skew: micros, span: span / 2 },
            Double => {
                return vec![Fault::ClockStep { micros: -3_600_000_000 }, Fault::Flush];
            }
        }]
    }
}
