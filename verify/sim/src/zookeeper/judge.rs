//! What must hold of a run on ZooKeeper, and its quiet end.

use fencelock_engine::Name;
use fencelock_engine::request::Mode;

use crate::clock::MS;
use crate::cover::Cover;
use crate::world::World;
use crate::zookeeper::curator::Curator;
use crate::zookeeper::pool::Pool;

impl World {
    /// Faults are over: contenders take no new locks.
    pub(crate) fn quieten_zk(&mut self) {
        let Some(mut zk) = self.zk.take() else { return };
        zk.deaf.clear();
        zk.truth.busy = (zk.truth.fired, zk.truth.passed);
        for index in 0..zk.curators.len() {
            let curator = &mut zk.curators[index];
            curator.quiet = true;
            if curator.holds() {
                curator.generation += 1;
                curator.turn_at = Some(self.now + self.dice.below(10 * MS));
            }
            self.after_curator(&mut zk, index);
        }
        self.zk = Some(zk);
    }

    /// Whether every foreign contender has what it wanted and gave it back.
    pub(crate) fn zk_is_idle(&self) -> bool {
        self.zk.as_ref().is_none_or(|zk| zk.curators.iter().all(Curator::idle))
    }

    /// Why it is not idle, for a report.
    pub(crate) fn zk_stuck(&self) -> Vec<String> {
        let stuck = self.zk.iter().flat_map(|zk| zk.curators.iter().filter(|it| !it.idle()));
        stuck.map(|it| format!("{it:?}")).collect()
    }

    /// Looks whether anything is left under the locks.
    pub(crate) fn zk_residue(&mut self) {
        let Some(zk) = &self.zk else { return };
        for _ in 1..zk.ensemble.elections {
            self.cover.add(Cover::ZkElection);
        }
        let tree = &zk.ensemble.newest().tree;
        let mut left = Vec::new();
        for parent in zk.truth.parents() {
            let Some(node) = tree.node(parent) else { continue };
            if node.stat().owner != 0 {
                left.push(parent.clone());
            }
            match self.plan.permits.is_empty() {
                true => left.extend(node.children.iter().map(|name| format!("{parent}/{name}"))),
                false => left.extend(Pool::residue(parent, node, |path| tree.node(path))),
            }
        }
        if let Err(what) = zk.truth.herd() {
            self.checks.fail("no herd", self.now, || what);
        }
        if !left.is_empty() {
            self.checks.fail("no residue", self.now, || format!("left: {left:?}"));
        }
    }

    /// Whether the layout cannot do what a caller of this place may ask: explicit owners, and more
    /// numbers than there are.
    pub(crate) fn zk_refuses(&self) -> bool {
        self.plan.zk.as_ref().is_some_and(|zk| self.plan.explicit > 0 || zk.near_end.is_some())
    }

    /// A lock's name on ZooKeeper: slashes separate.
    pub(crate) fn zk_name(lock: usize) -> Name {
        crate::world::name(&format!("till/no-{lock}"))
    }

    /// A grant reached a caller: what the ensemble really thinks of it.
    pub(crate) fn zk_granted(
        &mut self,
        lock: usize,
        mode: Mode,
        token: u64,
        grant: &fencelock_engine::Grant,
    ) {
        let Some(mut zk) = self.zk.take() else { return };
        if let Some(count) = mode.permits() {
            if let Err((promise, what)) = zk.truth.permitted(lock, count, token / 1024, grant) {
                self.checks.fail(promise, self.now, || what);
            }
            self.zk = Some(zk);
            return;
        }
        // Who joins readers has a check of its own: those whose nodes come next may read, too.
        if grant.how == fencelock_engine::How::Local
            && mode == Mode::Exclusive
            && self.plan.profile == crate::plan::Profile::Calm
        {
            let options = &self.plan.options;
            let slack = 30 * MS + 20 * self.plan.latency.1;
            let span = options.local_run_time.as_nanos() as u64 + slack;
            let run = (options.local_run_grants, span);
            if let Err(what) = zk.truth.handed_locally(self.now, lock, run) {
                self.checks.fail("queue order", self.now, || what);
            }
        }
        let was_first = zk.truth.was_first(lock, token / 1024);
        if !was_first {
            self.checks.fail("queue order", self.now, || {
                format!("lock {lock}: {token} is granted, whose node was never the first")
            });
        }
        if zk.truth.was_given_up(lock, token / 1024) {
            self.checks.fail("exclusion", self.now, || {
                format!("lock {lock}: {token} is granted, whose node its client has deleted")
            });
        }
        let since = zk.truth.first_since(lock, token / 1024);
        let broken = self.checks.exclusion.broken_since(lock, since);
        if let Some(index) = zk.curator_truly_holds(lock, mode == Mode::Shared).filter(|_| !broken)
        {
            self.checks.fail("exclusion", self.now, || {
                format!("lock {lock}: granted {token} while curator {index} holds")
            });
        }
        if let Err(what) = zk.truth.abandoned(lock, token / 1024, grant) {
            self.checks.fail("abandoned", self.now, || what);
        }
        self.zk = Some(zk);
    }
}
