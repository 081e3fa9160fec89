//! Runs with one kind of fault each, on a world like one of the stores': what the table is made of.

use crate::clock::{MS, US};
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
    Lag,
    Skew,
    Double,
}

use Scene::*;

impl Shop {
    /// All of them.
    pub const ALL: [Shop; 3] = [Shop::Memory, Shop::Sqlite, Shop::Redis];

    /// The heading of its table.
    pub fn title(self) -> &'static str {
        match self {
            Shop::Memory => "Memory",
            Shop::Sqlite => "SQLite",
            Shop::Redis => "Redis",
        }
    }

    /// What can happen to it.
    pub fn scenes(self) -> &'static [Scene] {
        match self {
            Shop::Memory => &[Nothing, Suspend],
            Shop::Sqlite => &[Nothing, Suspend, Pause, Crash, Busy, Forget, Lag],
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
                Lag,
                Skew,
                Double,
            ],
        }
    }

    fn model(self) -> StoreKind {
        match self {
            Shop::Memory | Shop::Sqlite => StoreKind::Record,
            Shop::Redis => StoreKind::Redis,
        }
    }
}

impl Scene {
    /// What happens, for users.
    pub fn title(self, shop: Shop) -> &'static str {
        match (self, shop) {
            (Nothing, _) => "nothing but contention, and callers that sleep over their leases",
            (Suspend, _) => "the machine is suspended and resumed",
            (Pause, _) => "a client's process stands still, also past its lease",
            (Crash, _) => "a client's process is killed",
            (ClientClock, _) => "a client's clock runs 0.5 % wrong, or jumps forward",
            (Pushes, _) => "pushes are lost, doubled, late",
            (Messages, _) => "requests and replies are lost, or arrive when nobody waits for them",
            (Cuts, _) => "connections are cut, or let nothing pass, in either direction",
            (Slow, _) => "the way back from the server is slow",
            (StorePause, _) => "the server stands still",
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
            (Lag, _) => "failover to a replica that lags",
            (Skew, _) => "failover to a replica that lags and whose clock is ahead",
            (Double, _) => "the data are lost while the clock is behind (the double fault)",
        }
    }

    fn profile(self) -> Profile {
        match self {
            Nothing => Profile::Calm,
            Pushes => Profile::Pushes,
            Messages | Cuts | Slow => Profile::Network,
            Pause | Crash | ClientClock | Suspend => Profile::Clients,
            StorePause | Restart | ReadOnly | MemoryFull | Busy | Mute | ScriptFlush | Foreign => {
                Profile::Server
            }
            ClockBack | ClockForward => Profile::Clock,
            Forget | Evict | Lag | Skew | Double => Profile::Loss,
        }
    }

    /// The plan of a seed in this scene, and the dice for what follows.
    pub(crate) fn draw(self, shop: Shop, seed: u64) -> (Plan, Dice) {
        let mut dice = Dice::new(seed);
        let mut plan = Plan::draw(seed, shop.model(), &mut dice);
        plan.profile = self.profile();
        plan.faults.clear();
        plan.hazards = Hazards { stale_read: 30, ..Hazards::default() };
        plan.habits = Habits { breaks: 0, ..plan.habits };
        plan.clients = plan.clients.max(2);
        plan.explicit = plan.explicit.max(100);
        // A third of the runs has no naps, so that no hold is lost but by the fault.
        if dice.chance(333) {
            plan.habits.nap = 0;
        }
        let polls = shop == Shop::Sqlite;
        plan.polling = vec![polls; plan.clients];
        plan.client_ppm.resize(plan.clients, 0);
        if shop != Shop::Redis {
            // One machine, one clock, and no network.
            plan.client_ppm.fill(plan.store_ppm);
            plan.push_pipe = false;
            plan.latency = (20 * US, 100 * US);
        }
        match self {
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
            for fault in self.faults(&plan, &mut dice) {
                plan.faults.push((at, fault.within(plan.quiet_at - at)));
            }
        }
        plan.faults.sort_by_key(|(at, _)| *at);
        (plan, dice)
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
            Lag => Fault::Failover { lag, skew: 0, span: span / 2 },
            Skew => Fault::Failover { lag, skew: micros, span: span / 2 },
            Double => {
                return vec![Fault::ClockStep { micros: -3_600_000_000 }, Fault::Flush];
            }
        }]
    }
}
