//! The search for a smaller run that breaks the same promise.

use crate::edit::{Case, Edits, OFF};
use crate::plan::Plan;
use crate::runner::Runner;
use crate::trace::Trace;

/// How many runs a search may take.
pub const TRIES: u64 = 3_000;
/// How many other draws are tried of each smaller plan: what is left happens in another order.
const ROLLS: u64 = 3;
/// How many other draws are tried of the smallest plan.
const LAST_ROLLS: u64 = 200;

/// The smallest failing run that was found.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// How to run it again.
    pub case: Case,
    /// The promise that it breaks.
    pub promise: &'static str,
    /// Calls into engines until then.
    pub steps: u64,
    /// How many runs the search took.
    pub tried: u64,
}

/// Makes a failing run smaller: fewer faults, clients, callers and locks, less that messages suffer
/// and callers do, a shorter run, other draws. `None` when the case does not fail.
///
/// The bugs planted in this thread stay planted.
pub fn shrink(runner: &mut Runner, case: &Case, tries: u64) -> Option<Shrunk> {
    let mut search = Search { runner, best: None, tried: 0, tries };
    search.attempt(case.clone());
    search.best.as_ref()?;
    loop {
        let before = search.size();
        search.faults();
        search.sizes();
        search.span();
        search.off();
        search.rolls(ROLLS * 4);
        if search.size() >= before || search.tried >= search.tries {
            break;
        }
    }
    search.rolls(LAST_ROLLS);
    search.span();
    let tried = search.tried;
    search.best.map(|best| Shrunk { tried, ..best.found })
}

struct Best {
    found: Shrunk,
    plan: Plan,
    /// When the promise was broken, in milliseconds.
    at: u64,
    size: u64,
}

struct Search<'a> {
    runner: &'a mut Runner,
    best: Option<Best>,
    tried: u64,
    tries: u64,
}

impl Search<'_> {
    fn size(&self) -> u64 {
        self.best.as_ref().map_or(u64::MAX, |best| best.size)
    }

    /// Runs a case; keeps it when it breaks the same promise and is smaller.
    fn attempt(&mut self, case: Case) -> bool {
        if self.tried >= self.tries {
            return false;
        }
        self.tried += 1;
        let run = self.runner.play(&case, Trace::silent());
        let Some(violation) = run.violation else { return false };
        let parts = run.plan.faults.len() + run.plan.clients * run.plan.actors + run.plan.locks;
        let on = OFF.len() - case.edits.off.len();
        let size = run.steps + 10 * parts as u64 + on as u64;
        let smaller = match &self.best {
            None => true,
            Some(best) => best.found.promise == violation.promise && size < best.size,
        };
        if smaller {
            let (promise, steps) = (violation.promise, run.steps);
            let found = Shrunk { case, promise, steps, tried: 0 };
            let at = violation.at / crate::clock::MS + 1;
            self.best = Some(Best { found, plan: run.plan, at, size });
        }
        smaller
    }

    /// The best case with a change, with its own draws and then with a few others.
    fn change(&mut self, change: impl Fn(&mut Edits)) -> bool {
        let Some(best) = &self.best else { return false };
        let mut case = best.found.case.clone();
        change(&mut case.edits);
        if case == best.found.case {
            return false;
        }
        let first = case.edits.roll;
        (first..=first + ROLLS).any(|roll| {
            case.edits.roll = roll;
            self.attempt(case.clone())
        })
    }

    /// Leaves faults out: all, halves, and then one after the other.
    fn faults(&mut self) {
        let drawn =
            |best: &Best| Case { edits: Edits::default(), ..best.found.case.clone() }.draw();
        let Some(all) = self.best.as_ref().map(|best| drawn(best).0.faults.len()) else { return };
        let mut chunk = all;
        while chunk > 0 {
            let mut from = 0;
            while from < all {
                let left_out = from..(from + chunk).min(all);
                self.change(|edits| {
                    let now = edits.faults.clone().unwrap_or_else(|| (0..all).collect());
                    let keep = now.into_iter().filter(|place| !left_out.contains(place));
                    edits.faults = Some(keep.collect());
                });
                from += chunk;
            }
            chunk /= 2;
        }
    }

    /// Fewer clients, callers and locks.
    fn sizes(&mut self) {
        let sizes = |best: &Best| (best.plan.clients, best.plan.actors, best.plan.locks);
        let Some((clients, actors, locks)) = self.best.as_ref().map(sizes) else { return };
        let _ = (1..clients).any(|n| self.change(|edits| edits.clients = Some(n)));
        let _ = (1..actors).any(|n| self.change(|edits| edits.actors = Some(n)));
        let _ = (1..locks).any(|n| self.change(|edits| edits.locks = Some(n)));
    }

    /// A shorter run: not much longer than until the promise is broken, or only a half of that.
    fn span(&mut self) {
        for part in [8, 4, 2, 1] {
            let Some(at) = self.best.as_ref().map(|best| best.at) else { return };
            if self.change(|edits| edits.until = Some((at / part).max(1))) {
                return;
            }
        }
    }

    /// Turns off what is not needed: all of it, or one after the other.
    fn off(&mut self) {
        self.change(|edits| edits.off.extend(OFF.iter().map(|(name, _)| *name)));
        for (name, _) in OFF {
            self.change(|edits| {
                edits.off.insert(name);
            });
        }
    }

    /// The same plan with other draws.
    fn rolls(&mut self, rolls: u64) {
        let Some(best) = &self.best else { return };
        let case = best.found.case.clone();
        for roll in 1..=rolls {
            let edits = Edits { roll, ..case.edits.clone() };
            self.attempt(Case { edits, ..case.clone() });
        }
    }
}
