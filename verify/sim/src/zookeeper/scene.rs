//! Runs on ZooKeeper with one kind of fault each.

use std::time::Duration;

use crate::clock::MS;
use crate::cover::Cover;
use crate::dice::Dice;
use crate::fault::Fault;
use crate::plan::{Plan, Profile};
use crate::scene::Scene;
use crate::world::World;
use crate::zookeeper::fault::ZkFault;

impl Scene {
    /// Makes a plan one of this scene: nothing that is drawn for a run at random is left but the
    /// sizes.
    pub(crate) fn bend_zookeeper(self, plan: &mut Plan, dice: &mut Dice) {
        // Half of the runs ask for nothing that the layout cannot do; in the others an owner has
        // several holds on one node, beside ordinary ones.
        (plan.explicit, plan.owners) = if dice.chance(500) { (0, plan.owners) } else { (600, 1) };
        let Some(zk) = &mut plan.zk else { return };
        let tick = zk.ensemble.tick;
        (zk.simple, zk.near_end, zk.revoke, zk.curators) = (false, None, 0, 0);
        zk.ensemble.reap = 20 * tick;
        // With the two ticks that are the least, a slow round trip is as good as a fault.
        zk.timeout = zk.timeout.max(5 * tick);
        let lease = Duration::from_nanos(zk.timeout);
        plan.options.lease = plan.options.lease.max(lease);
        match self.fault() {
            Scene::FollowerLag | Scene::FollowerCut | Scene::Leader | Scene::Moved => {
                zk.ensemble.servers = zk.ensemble.servers.max(3);
            }
            Scene::Reaped => {
                // Often nobody wants the lock, for longer than a look at empty containers takes.
                zk.ensemble.reap = tick;
                plan.habits.hold = plan.habits.hold.min(tick / 4);
                plan.habits.rest = 4 * tick;
                (plan.clients, plan.actors, plan.locks) = (2, 1, 3);
                plan.client_ppm.truncate(2);
                plan.polling.truncate(2);
            }
            Scene::Curator | Scene::CuratorPause => {
                zk.curators = dice.pick(&[1, 2, 3]);
                zk.revoke = dice.pick(&[0, 40]);
            }
            Scene::Messages => {
                plan.hazards.lose_request = dice.pick(&[40, 200]);
                plan.hazards.lose_reply = dice.pick(&[40, 200]);
            }
            _ => {}
        }
    }

    /// What happens once in this scene.
    pub(crate) fn zk_faults(self, plan: &Plan, dice: &mut Dice) -> Vec<Fault> {
        let Some(zk) = &plan.zk else { return Vec::new() };
        let (tick, timeout) = (zk.ensemble.tick, zk.timeout);
        let long = timeout.max(zk.ensemble.sync_limit * tick);
        let slot = dice.below(plan.clients as u64) as usize;
        let lock = dice.below(plan.locks as u64) as u8;
        let server = dice.below(zk.ensemble.servers as u64) as u8;
        let span = dice.between(MS, 2 * timeout);
        let fault = match self.fault() {
            Scene::Pause => Fault::Pause { slot, span: dice.between(MS, 3 * timeout) },
            Scene::Crash => Fault::Crash { slot, span },
            Scene::ClientClock => Fault::Jump { slot, by: dice.between(MS, timeout) },
            Scene::Cuts => match dice.below(4) {
                0 => Fault::Cut { slot },
                1 => Fault::BlackHole { slot, up: true, down: false, span },
                2 => Fault::BlackHole { slot, up: false, down: true, span },
                _ => Fault::BlackHole { slot, up: true, down: true, span },
            },
            Scene::Expired => match dice.below(3) {
                0 => Fault::Zk(ZkFault::GiveUp { slot: slot as u8 }),
                _ => {
                    let span = timeout + 2 * tick + dice.below(timeout);
                    Fault::BlackHole { slot, up: true, down: true, span }
                }
            },
            Scene::StorePause => {
                Fault::Zk(ZkFault::Pause { server, span: dice.between(MS, 2 * long) })
            }
            Scene::FollowerLag => {
                let by = dice.between(MS, timeout / 2);
                Fault::Zk(ZkFault::Lag { server, by, span: dice.between(MS, 2 * long) })
            }
            Scene::FollowerCut => {
                Fault::Zk(ZkFault::PartHolder { lock, span: dice.between(MS, 4 * long) })
            }
            Scene::Leader => match dice.below(2) {
                0 => Fault::Zk(ZkFault::CrashLeader { span: dice.between(MS, 3 * long) }),
                _ => Fault::Zk(ZkFault::PartLeader { span: dice.between(MS, 4 * long) }),
            },
            Scene::Restart => Fault::Zk(ZkFault::CrashAll { span: dice.between(MS, 2 * long) }),
            Scene::Moved => {
                let by = dice.between(MS, timeout / 2);
                Fault::Zk(ZkFault::LagLeader { slot: slot as u8, by, span })
            }
            Scene::Deleted => Fault::Zk(ZkFault::DeleteHolder { lock }),
            Scene::CuratorPause => {
                let index = dice.below(8) as u8;
                Fault::Zk(ZkFault::PauseCurator { index, span: dice.between(MS, 3 * timeout) })
            }
            _ => return Vec::new(),
        };
        vec![fault]
    }
}

impl World {
    /// On ZooKeeper a client has its locks by read-write handles where foreign contenders do; otherwise
    /// every other one, as others may.
    pub(crate) fn pair_locks(&mut self, slot: usize) {
        let Some(zk) = self.plan.zk.as_ref().filter(|_| self.plan.shares()) else { return };
        if zk.curators > 0 || slot.is_multiple_of(2) {
            let client = &mut self.clients[slot];
            for lock in &client.locks {
                client.engine.set_read_write(*lock);
            }
        }
    }

    /// Whether local hand-offs on ZooKeeper were judged in this run: where nothing is in the way.
    pub(crate) fn zk_strict(&self) -> bool {
        self.zk.is_some() && self.plan.profile == Profile::Calm
    }

    /// A client hears that its session has expired: its nodes are gone, and with them the places
    /// of those who wait.
    pub(super) fn expired_zk(&mut self, slot: usize) {
        self.cover.add(Cover::ZkExpired);
        if self.clients[slot].actors.iter().any(|actor| actor.waiting().is_some()) {
            self.checks.waive("queue order");
        }
    }
}
