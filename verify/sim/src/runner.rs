//! Many seeds, one after the other.

use std::collections::BTreeMap;

use crate::chronicle::Chronicle;
use crate::cover::Coverage;
use crate::dice::Dice;
use crate::edit::Case;
use crate::plan::{Plan, Profile, StoreKind};
use crate::store::{RecordStore, RedisStore, Store};
use crate::trace::Trace;
use crate::world::{Run, World};

/// Runs seeds, and keeps a store of each kind to run them on.
#[derive(Default)]
pub struct Runner {
    record: Option<Box<dyn Store>>,
    redis: Option<Box<dyn Store>>,
}

impl std::fmt::Debug for Runner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner").finish_non_exhaustive()
    }
}

/// What many runs add up to.
#[derive(Debug, Default)]
pub struct Tally {
    /// Runs.
    pub runs: u64,
    /// Calls into engines.
    pub steps: u64,
    /// The hard cases met.
    pub cover: Coverage,
    /// Runs of each profile.
    pub profiles: BTreeMap<Profile, u64>,
    /// The seeds that broke a promise, and which.
    pub broken: Vec<(u64, StoreKind, &'static str, String)>,
}

impl Runner {
    /// A runner whose Redis has bugs in its scripts.
    pub fn with_patches(patches: &[(&str, &str)]) -> Runner {
        Runner { record: None, redis: Some(Box::new(RedisStore::patched(patches))) }
    }

    /// Runs one seed.
    pub fn run(&mut self, seed: u64, kind: StoreKind, trace: Trace) -> Run {
        self.play(&Case::of(seed, kind), trace)
    }

    /// Runs a seed whose plan is changed.
    pub fn play(&mut self, case: &Case, trace: Trace) -> Run {
        self.record(case, trace, Chronicle::default())
    }

    /// Runs a seed whose plan may be changed, and keeps its history.
    pub fn record(&mut self, case: &Case, trace: Trace, chronicle: Chronicle) -> Run {
        let (plan, dice) = case.draw();
        self.go(plan, dice, trace, chronicle)
    }

    /// Runs a plan.
    pub(crate) fn go(&mut self, plan: Plan, dice: Dice, trace: Trace, chronicle: Chronicle) -> Run {
        let kind = plan.store;
        let place = match kind {
            // An ensemble is set up anew for each run.
            StoreKind::Record | StoreKind::ZooKeeper => &mut self.record,
            StoreKind::Redis => &mut self.redis,
        };
        let store = place.take().unwrap_or_else(|| match kind {
            StoreKind::Record | StoreKind::ZooKeeper => Box::new(RecordStore::default()),
            StoreKind::Redis => Box::new(RedisStore::patched(&[])),
        });
        let (run, store) = World::play(plan, dice, store, trace, chronicle);
        *place = Some(store);
        run
    }
}

impl Tally {
    /// Adds a run.
    pub fn add(&mut self, run: &Run) {
        self.runs += 1;
        self.steps += run.steps;
        self.cover.merge(&run.cover);
        *self.profiles.entry(run.plan.profile).or_default() += 1;
        if let Some(violation) = &run.violation {
            let what = violation.what.clone();
            self.broken.push((run.plan.seed, run.plan.store, violation.promise, what));
        }
    }
}
