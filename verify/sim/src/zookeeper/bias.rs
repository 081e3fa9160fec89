//! Plans on ZooKeeper bent towards what seldom comes together by chance.
//!
//! Drawn from dice of their own, for every sixth seed: the other seeds' runs know nothing of it.

use std::time::Duration;

use fencelock_engine::Options;

use crate::clock::{MS, SEC};
use crate::dice::Dice;
use crate::fault::Fault;
use crate::plan::{Plan, Profile};
use crate::zookeeper::fault::ZkFault;

/// What a plan is bent towards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZkBias {
    /// The simple recipe's one name: an operator breaks, replaces the node's data, and answers are
    /// lost.
    OneName,
    /// Creates of unknown outcome are looked for over connections that come and go.
    Seeking,
    /// Whoever waits is away while the whole lock is emptied and its container removed.
    Emptied,
    /// In sessions of two ticks, holders stand still, or their server is cut off, until the end.
    CutOff,
    /// An owner's holds share a node in short sessions, beside ordinary ones.
    Sharing,
}

impl ZkBias {
    /// The bias of a seed, if any.
    pub(crate) fn of(seed: u64) -> (Option<ZkBias>, Dice) {
        const KINDS: [ZkBias; 6] = [
            ZkBias::OneName,
            ZkBias::Seeking,
            ZkBias::CutOff,
            ZkBias::OneName,
            ZkBias::Emptied,
            ZkBias::Sharing,
        ];
        let bias = seed.is_multiple_of(6).then(|| KINDS[(seed / 6 % 6) as usize]);
        (bias, Dice::new(seed ^ 0x7a6b_6269 << 32))
    }

    /// Bends a plan.
    pub(crate) fn bend(self, plan: &mut Plan, dice: &mut Dice) {
        let Some(mut zk) = plan.zk.take() else { return };
        (zk.simple, zk.near_end, zk.curators) = (false, None, 0);
        plan.profile = Profile::Network;
        plan.faults.clear();
        if self == ZkBias::CutOff {
            plan.quiet_at = plan.quiet_at.max(4 * SEC);
        }
        let (clients, end) = (plan.clients.max(2), plan.quiet_at);
        let slot = |dice: &mut Dice| dice.below(clients as u64) as usize;
        let at = |dice: &mut Dice| dice.between(10 * MS, end - 1);
        let mut faults = Vec::new();
        match self {
            ZkBias::OneName => {
                zk.simple = true;
                zk.revoke = dice.pick(&[0, 40]);
                (plan.locks, plan.actors) = (1, plan.actors.max(3));
                plan.explicit = dice.pick(&[0, 0, 300]);
                plan.options.local_run_grants = dice.pick(&[0, 2]);
                plan.habits.hold = dice.pick(&[2, 30]) * MS;
                plan.hazards.lose_reply = dice.pick(&[10, 60]);
                // Either the node goes, or what it says.
                let most = if zk.revoke > 0 { 2 } else { 30 };
                for _ in 0..dice.between(most / 6, most) {
                    faults.push((at(dice), Fault::Zk(ZkFault::DeleteHolder { lock: 0 })));
                }
                for _ in 0..dice.between(0, 8) {
                    let slot = slot(dice) as u8;
                    faults.push((at(dice), Fault::Zk(ZkFault::LoseCreate { slot })));
                }
            }
            ZkBias::Seeking => {
                let slow = dice.chance(500);
                if slow {
                    // A create takes long only where servers must agree.
                    zk.ensemble.servers = zk.ensemble.servers.max(3);
                } else {
                    zk.shorten(&mut plan.options);
                }
                plan.locks = 1;
                plan.habits.cancel = 700;
                plan.habits.hold = 2 * MS;
                plan.hazards.lose_reply = dice.pick(&[10, 60]);
                for _ in 0..dice.between(4, 12) {
                    let (at, slot) = (at(dice), slot(dice));
                    if slow {
                        let fault = ZkFault::SlowCreate { slot: slot as u8 };
                        faults.push((at, Fault::Zk(fault)));
                        continue;
                    }
                    let fault = ZkFault::LoseCreate { slot: slot as u8 };
                    faults.push((at, Fault::Zk(fault)));
                    for _ in 0..dice.between(1, 6) {
                        let later = at + dice.below(8 * zk.timeout);
                        faults.push((later.min(end - 1), Fault::Cut { slot }));
                    }
                }
            }
            ZkBias::Emptied => {
                let tick = zk.ensemble.tick;
                zk.timeout = 10 * tick;
                zk.ensemble.reap = tick;
                plan.options.lease = Duration::from_nanos(zk.timeout);
                (plan.clients, plan.actors, plan.locks) = (2, 1, 1);
                plan.habits.hold = plan.habits.hold.max(30 * MS);
                plan.habits.rest = 4 * tick;
                for _ in 0..dice.between(3, 8) {
                    let (at, slot) = (at(dice), slot(dice));
                    let span = dice.between(3 * tick, 6 * tick);
                    faults.push((at, Fault::BlackHole { slot, up: true, down: true, span }));
                    let other =
                        Fault::BlackHole { slot: 1 - slot.min(1), up: true, down: true, span };
                    faults.push((at, other));
                    for _ in 0..4 {
                        let later = (at + dice.below(tick)).min(end - 1);
                        faults.push((later, Fault::Zk(ZkFault::DeleteHolder { lock: 0 })));
                    }
                }
            }
            ZkBias::CutOff => {
                zk.ensemble.tick = 100 * MS;
                zk.ensemble.servers = 3;
                zk.timeout = 2 * zk.ensemble.tick;
                plan.options.lease = Duration::from_nanos(zk.timeout);
                (plan.locks, plan.explicit) = (1, 0);
                plan.habits.hold = 300 * MS;
                plan.habits.rest = 5 * MS;
                plan.habits.lease = 0;
                for _ in 0..dice.between(12, 24) {
                    let (at, slot) = (at(dice), slot(dice));
                    let span = dice.between(zk.timeout, zk.timeout * 3 / 2);
                    if dice.chance(100) {
                        faults.push((at, Fault::Zk(ZkFault::PartHolder { lock: 0, span })));
                        continue;
                    }
                    faults.push((at, Fault::Pause { slot, span }));
                    // What it does first when it wakes is long on its way.
                    if dice.chance(500) {
                        let by = dice.between(zk.timeout / 4, zk.timeout / 2);
                        let late = ZkFault::LateRequest { slot: slot as u8, by };
                        faults.push(((at + span / 2).min(end - 1), Fault::Zk(late)));
                    }
                }
            }
            ZkBias::Sharing => {
                if dice.chance(500) {
                    zk.shorten(&mut plan.options);
                }
                (plan.owners, plan.explicit, plan.locks) = (1, 600, 1);
                plan.actors = plan.actors.max(3);
                plan.habits.hold = dice.pick(&[2, 30]) * MS;
                plan.habits.extend = dice.pick(&[200, 600]);
                plan.habits.lease = dice.pick(&[0, 300]);
                plan.hazards.lose_request = dice.pick(&[0, 40, 200]);
                plan.hazards.lose_reply = dice.pick(&[0, 40, 200]);
                for _ in 0..dice.below(6) {
                    let slot = slot(dice) as u8;
                    let fault = match dice.chance(500) {
                        true => ZkFault::LoseCreate { slot },
                        false => ZkFault::LoseRelease { slot },
                    };
                    faults.push((at(dice), Fault::Zk(fault)));
                }
            }
        }
        plan.clients = if self == ZkBias::Emptied { 2 } else { clients };
        plan.client_ppm.resize(plan.clients, 0);
        plan.polling = vec![false; plan.clients];
        // A round trip within the ensemble takes a small part of a tick.
        let slow = zk.ensemble.tick / 20;
        zk.ensemble.latency.1 = zk.ensemble.latency.1.min(slow);
        plan.latency.1 = plan.latency.1.min(slow).max(plan.latency.0);
        plan.faults = faults.into_iter().map(|(at, fault)| (at, fault.within(end - at))).collect();
        plan.faults.sort_by_key(|(at, _)| *at);
        plan.zk = Some(zk);
    }
}

impl crate::zookeeper::ZkPlan {
    /// Sessions of two of the shortest ticks.
    fn shorten(&mut self, options: &mut Options) {
        self.ensemble.tick = 30 * MS;
        self.timeout = 2 * self.ensemble.tick;
        self.ensemble.reap = 20 * self.ensemble.tick;
        options.lease = Duration::from_millis(100);
        options.claim = options.lease;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::StoreKind;

    #[test]
    fn five_of_six_plans_are_as_they_were_drawn() {
        let mut bent = 0;
        for seed in 1..=2_400 {
            let store = StoreKind::ZooKeeper;
            let (bias, _) = ZkBias::of(seed);
            bent += u32::from(bias.is_some());
            let drawn = format!("{:?}", Plan::draw(seed, store, &mut Dice::new(seed)));
            let plain = format!("{:?}", Plan::plain(seed, store, &mut Dice::new(seed)));
            assert_eq!(drawn == plain, bias.is_none(), "seed {seed}");
        }
        assert_eq!(bent, 400);
    }
}
