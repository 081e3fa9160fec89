//! Many seeds, one after the other.

use std::collections::BTreeMap;

use crate::cover::Coverage;
use crate::plan::{Profile, StoreKind};
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
        let place = match kind {
            StoreKind::Record => &mut self.record,
            StoreKind::Redis => &mut self.redis,
        };
        let store = place.take().unwrap_or_else(|| match kind {
            StoreKind::Record => Box::new(RecordStore::default()),
            StoreKind::Redis => Box::new(RedisStore::default()),
        });
        let (run, store) = World::run(seed, kind, store, trace);
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
