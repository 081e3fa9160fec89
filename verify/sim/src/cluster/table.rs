//! The table of a cluster's promises and faults that users read, made from runs.

use std::fmt::Write as _;

use crate::cluster::scene::Scene;
use crate::cluster::world::{Outcome, run};
use crate::redis::ModelRedis;

/// How many promises there are.
const PROMISES: usize = 14;

/// The checks that judge each promise here. What is judged on one server alone, as it comes out of the same
/// scripts and the same client, is not judged again.
const CHECKS: [(usize, &str, &[&str]); 9] = [
    (1, "exclusion", &["exclusion"]),
    (2, "fencing", &["fencing", "one token"]),
    (7, "watchdog", &["watchdog"]),
    (8, "loss is told in time", &["lost in time"]),
    (9, "waiting, in order", &["order"]),
    (11, "cancel and drop", &["no residue"]),
    (12, "abandoned is told", &["abandoned"]),
    (13, "liveness", &["liveness"]),
    (14, "errors", &["errors"]),
];

/// Why a promise is not kept in a scene.
fn reason(promise: usize, scene: Scene) -> Option<&'static str> {
    Some(match (promise, scene) {
        (1, Scene::ClockAhead) => {
            "the new master believes that leases are over whose holders still count on them, and \
             grants the lock again. Its token is higher: the resource refuses the first holder's writes"
        }
        (1, Scene::TwoMasters | Scene::SilentReplaced) => {
            "both masters grant the lock: the one that was cut off, or stood still, until it notices"
        }
        (1, Scene::Lags | Scene::MovedAndLost | Scene::Empty | Scene::BrokenOff) => {
            "the hold is not where the lock is granted next, and its holder hears of that later. Its \
             token is lower: the resource refuses its writes"
        }
        (2, Scene::TwoMasters) => {
            "each master takes tokens from its own clock: of two grants within the clocks' difference \
             the later one may have the lower token"
        }
        (7, scene) if scene != Scene::Calm => {
            "a hold that was not with the server that serves it next, or that nobody could renew for \
             its whole lease, is lost; so is one that was handed over just before, and whose claim \
             ended meanwhile. Its holder is told so"
        }
        (9, scene) if scene != Scene::Calm => {
            "a waiter that was not heard from for its silence, since its server was away or its slot \
             moved, is passed over. It stays queued at its place, or comes back with its ticket"
        }
        (12, Scene::Lags | Scene::TwoMasters | Scene::MovedAndLost | Scene::BrokenOff) => {
            "the server that serves next does not know the holder that was lost, and says 'no' of the \
             one before"
        }
        _ => return None,
    })
}

/// The table as text for the page, of so many runs of each scene.
///
/// # Errors
/// A run in which a promise was broken that nothing excuses, or one that is broken and has no reason here.
pub fn table(runs: u64) -> Result<String, String> {
    let mut redis = ModelRedis::new();
    let mut out = "### Redis Cluster\n\n| under | runs |".to_owned();
    for number in 1..=PROMISES {
        let _ = write!(out, " {number} |");
    }
    let _ = write!(out, "\n| --- | ---: |{}\n", " :-: |".repeat(PROMISES));
    let mut reasons: Vec<(usize, &str, Vec<String>)> = Vec::new();
    for scene in Scene::ROWS {
        let mut outcomes: Vec<Outcome> = Vec::new();
        for seed in 1..=runs {
            let (back, done) = run(redis, scene, seed);
            redis = back;
            outcomes.push(done?);
        }
        let _ = write!(out, "| {} | {runs} |", scene.title());
        for number in 1..=PROMISES {
            let Some((_, _, checks)) = CHECKS.iter().find(|it| it.0 == number) else {
                out.push_str(" – |");
                continue;
            };
            let of = |outcome: &Outcome| {
                let found = checks.iter().filter_map(|check| outcome.checks.get(check));
                found.fold((0, 0), |all, it| (all.0 + it.0, all.1 + it.1))
            };
            let looked: u64 = outcomes.iter().map(|outcome| of(outcome).0).sum();
            let broken = outcomes.iter().filter(|outcome| of(outcome).1 > 0).count();
            if broken == 0 {
                out.push_str(if looked > 0 { " yes |" } else { " – |" });
                continue;
            }
            out.push_str(" **no** |");
            let why = reason(number, scene).ok_or(format!(
                "promise {number} was not kept in {broken} of {runs} runs with {scene:?}, and \
                 cluster/table.rs has no reason for it"
            ))?;
            let seen = format!("{} ({broken} of {runs} runs)", scene.title());
            match reasons.iter_mut().find(|it| it.0 == number && it.1 == why) {
                Some(it) => it.2.push(seen),
                None => reasons.push((number, why, vec![seen])),
            }
        }
        out.push('\n');
    }
    out.push_str("\nWhere it says **no**:\n\n");
    reasons.sort_by_key(|it| it.0);
    for (number, why, seen) in reasons {
        let name = CHECKS.iter().find(|it| it.0 == number).map_or("", |it| it.1);
        let _ = writeln!(out, "- **{number}, {name}**: {why}. Seen with: {}.", seen.join("; "));
    }
    out.push('\n');
    Ok(out)
}
