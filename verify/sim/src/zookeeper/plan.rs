//! What a seed draws for a run on ZooKeeper.

use std::time::Duration;

use fencelock_engine::options::Keeping;

use crate::bias::Bias;
use crate::clock::{MS, SEC, US};
use crate::dice::Dice;
use crate::edit::Edits;
use crate::fault::Fault;
use crate::plan::{Plan, Profile};
use crate::zookeeper::ensemble::Config;
use crate::zookeeper::fault::ZkFault;

/// The ensemble of a run, and who else is there.
#[derive(Clone, Debug)]
pub struct ZkPlan {
    /// The ensemble.
    pub ensemble: Config,
    /// The timeout that sessions wish for.
    pub timeout: u64,
    /// How many foreign contenders.
    pub curators: usize,
    /// One ephemeral node for each lock, and everybody watches it.
    pub simple: bool,
    /// In a thousand: who holds is asked to let go.
    pub revoke: u64,
    /// How near the end the counters of sequences begin, if at all.
    pub near_end: Option<i32>,
}

impl Plan {
    /// Draws what is ZooKeeper's own, in place of what no ensemble has.
    pub(crate) fn draw_zookeeper(&mut self, dice: &mut Dice) {
        let tick = dice.pick(&[30, 50, 100]) * MS;
        let timeout = tick * dice.pick(&[2, 2, 3, 5, 10]);
        let servers = dice.pick(&[1, 3, 3, 3, 5]) as usize;
        let link = dice.pick(&[200 * US, MS, 4 * MS]).min(tick / 20);
        let simple = dice.chance(120);
        self.latency.1 = self.latency.1.min(tick / 20).max(self.latency.0);
        self.options.lease = Duration::from_nanos(timeout).max(Duration::from_millis(100));
        self.options.claim = self.options.claim.min(self.options.lease);
        self.options.keeping = Keeping::Session;
        self.polling.fill(false);
        self.push_pipe = false;
        self.habits.breaks = if self.profile == Profile::All { dice.pick(&[0, 10]) } else { 0 };
        self.hazards.lose_push = 0;
        self.hazards.double_push = 0;
        self.hazards.late_push = 0;
        if !dice.chance(400) {
            self.explicit = 0;
        }
        let curators = if simple { 0 } else { dice.pick(&[0, 0, 1, 3]) as usize };
        self.zk = Some(ZkPlan {
            ensemble: Config {
                servers,
                tick,
                sync_limit: dice.between(2, 8),
                reap: dice.pick(&[tick, 3 * tick, 20 * tick]),
                latency: (50 * US, link),
            },
            timeout,
            curators,
            simple,
            revoke: dice.pick(&[0, 0, 40]),
            near_end: (!simple && dice.chance(60)).then(|| {
                // What the counter does at its very end, Curator does not survive either.
                let below = if curators > 0 { 1_000_000 } else { dice.pick(&[0, 1_000_000]) };
                i32::MAX - below - dice.below(60) as i32
            }),
        });
        // Elections and sessions take their time; an ensemble's runs are long enough without
        // callers who do nothing else.
        self.quiet_at = dice.between(5, 30) * tick + 2 * timeout + 300 * MS;
        self.habits.hold = self.habits.hold.max(2 * MS);
        self.habits.rest = self.habits.rest.max(5 * MS);
        self.faults.clear();
        self.draw_zk_faults(dice);
    }

    /// Several hold a name together, on few names.
    pub(crate) fn share_on_zookeeper(&mut self, bias: Bias, dice: &mut Dice) {
        self.bias = bias;
        if bias == Bias::Permits {
            self.draw_permits(dice);
        } else {
            self.draw_readers(dice);
        }
        Edits { locks: Some(2), ..Edits::default() }.apply(self);
        if let Some(zk) = &mut self.zk {
            zk.simple = false;
            // Those of the model want a lock, not permits.
            zk.curators = if bias == Bias::Permits { 0 } else { zk.curators };
        }
    }

    fn draw_zk_faults(&mut self, dice: &mut Dice) {
        if self.profile == Profile::Calm {
            return;
        }
        for _ in 0..dice.between(1, 8) {
            let at = dice.between(10 * MS, self.quiet_at - 1);
            if let Some(fault) = self.draw_zk_fault(dice) {
                self.faults.push((at, fault.within(self.quiet_at - at)));
            }
        }
        // An owner with several holds on one node, of which some answers are never heard.
        if self.explicit > 0 && dice.chance(500) {
            self.owners = 1;
            for _ in 0..dice.between(2, 6) {
                let at = dice.between(10 * MS, self.quiet_at - 1);
                let slot = dice.below(self.clients as u64) as u8;
                let fault = match dice.chance(500) {
                    true => ZkFault::LoseCreate { slot },
                    false => ZkFault::LoseRelease { slot },
                };
                self.faults.push((at, Fault::Zk(fault)));
            }
        }
        self.faults.sort_by_key(|(at, _)| *at);
    }

    fn draw_zk_fault(&self, dice: &mut Dice) -> Option<Fault> {
        let zk = self.zk.as_ref()?;
        let (tick, timeout) = (zk.ensemble.tick, zk.timeout);
        let profile = match self.profile {
            Profile::All => dice.pick(&Profile::ALL),
            other => other,
        };
        let slot = dice.below(self.clients as u64) as usize;
        let server = dice.below(zk.ensemble.servers as u64) as u8;
        let long = timeout.max(zk.ensemble.sync_limit * tick);
        let zk_fault = match profile {
            Profile::Calm => return None,
            Profile::Pushes if dice.chance(400) => ZkFault::SlowCreate { slot: slot as u8 },
            Profile::Pushes => ZkFault::Lag {
                server,
                by: dice.between(MS, timeout / 2),
                span: dice.between(MS, 2 * long),
            },
            Profile::Network => {
                let span = dice.between(MS, 2 * timeout);
                return Some(match dice.below(5) {
                    4 => Fault::Zk(ZkFault::LoseRelease { slot: slot as u8 }),
                    3 => Fault::Zk(ZkFault::LagLeader {
                        slot: slot as u8,
                        by: dice.between(MS, timeout / 2),
                        span,
                    }),
                    0 => Fault::Cut { slot },
                    1 => Fault::BlackHole { slot, up: true, down: dice.chance(500), span },
                    _ => Fault::BlackHole { slot, up: false, down: true, span },
                });
            }
            Profile::Clients => {
                return Some(match dice.below(8) {
                    7 => Fault::Zk(ZkFault::Orphan { slot: slot as u8 }),
                    5 | 6 => Fault::Zk(ZkFault::GiveUp { slot: slot as u8 }),
                    0 => Fault::Crash { slot, span: dice.between(MS, 2 * timeout) },
                    1 => Fault::Jump { slot, by: dice.between(MS, timeout) },
                    _ => Fault::Pause { slot, span: dice.between(MS, 3 * timeout) },
                });
            }
            Profile::Server => match dice.below(3) {
                0 => ZkFault::Pause { server, span: dice.between(MS, 2 * long) },
                1 => ZkFault::PauseCurator { index: server, span: dice.between(MS, 3 * timeout) },
                _ => ZkFault::Crash { server, span: dice.between(MS, 3 * long) },
            },
            Profile::Clock => {
                let span = dice.between(MS, 4 * long);
                match dice.below(3) {
                    0 => ZkFault::PartHolder { lock: dice.below(self.locks as u64) as u8, span },
                    1 => ZkFault::PartLeader { span },
                    _ => ZkFault::Part {
                        island: dice.between(1, (1 << zk.ensemble.servers) - 1) as u8,
                        span,
                    },
                }
            }
            Profile::Loss => match dice.below(4) {
                0 => ZkFault::CrashAll { span: dice.between(MS, 2 * long) },
                1 => ZkFault::DeleteHolder { lock: dice.below(self.locks as u64) as u8 },
                _ => ZkFault::CrashLeader { span: dice.between(MS, 3 * long) },
            },
            Profile::All => return None,
        };
        Some(Fault::Zk(zk_fault))
    }

    /// By how much longer the quiet part may take on ZooKeeper.
    pub(crate) fn zk_patience(&self) -> u64 {
        self.zk.as_ref().map_or(0, |zk| {
            6 * zk.timeout
                + 2 * zk.ensemble.sync_limit * zk.ensemble.tick
                + 10 * zk.ensemble.tick
                + zk.curators as u64 * 40 * MS
                + 3 * SEC
        })
    }
}
