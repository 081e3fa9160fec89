//! The table at the end, and the same for programs.

use std::path::Path;

use serde::Serialize;

use crate::demo::languages::Language;
use crate::demo::outcome::{Check, Outcome, Scene};
use crate::demo::stats::Stats;
use crate::span;
use crate::table::{Cell, Side, Table};
use crate::view::{BAD, GOOD};

/// The scenes in rows.
pub fn table(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new([
        ("SCENE", Side::Left),
        ("SOLD", Side::Right),
        ("OVERSOLD", Side::Right),
        ("TWICE", Side::Right),
        ("BY PROCESS", Side::Left),
        ("WAIT P50", Side::Right),
        ("P99", Side::Right),
        ("GRANTS/S", Side::Right),
        ("AS PROMISED", Side::Left),
    ]);
    for outcome in outcomes {
        let stats = stats(outcome);
        let wait = |pick: fn(&Stats) -> std::time::Duration| {
            stats.as_ref().map_or("-".into(), |stats| span::show(pick(stats)))
        };
        let share = |(process, share): (u32, &u32)| match outcome.sellers.is_empty() {
            true => share.to_string(),
            false => format!("{} {share}", outcome.seller(process)),
        };
        let shares: Vec<String> = (0..).zip(&outcome.books.shares).map(share).collect();
        let kept = outcome.checks().iter().all(|check| check.ok);
        let count = |n: u32| match n {
            0 => Cell::from(0),
            n => Cell::new(BAD, n.to_string()),
        };
        table.row([
            outcome.scene.title().into(),
            format!("{} of {}", outcome.books.sold, outcome.coupons).into(),
            count(outcome.oversold()),
            // No customers have names there.
            if outcome.scene == Scene::Languages { "-".into() } else { count(outcome.books.twice) },
            shares.join(" ").into(),
            wait(|stats| stats.p50).into(),
            wait(|stats| stats.p99).into(),
            stats.map_or("-".into(), |stats| format!("{:.0}", stats.rate)).into(),
            if kept { Cell::new(GOOD, "✓ yes") } else { Cell::new(BAD, "✗ no") },
        ]);
    }
    table
}

/// Waits and rates mean something only where there is a lock.
fn stats(outcome: &Outcome) -> Option<Stats> {
    if outcome.scene == Scene::NoLock {
        return None;
    }
    Stats::of(outcome.visits.iter().map(|(_, visit)| visit))
}

/// The whole demo, for programs.
#[derive(Debug, Serialize)]
pub struct DemoReport {
    store: String,
    chart: String,
    as_promised: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
    scenes: Vec<SceneReport>,
}

#[derive(Debug, Serialize)]
struct SceneReport {
    scene: Scene,
    coupons: u32,
    sold: u32,
    oversold: u32,
    bought_twice: u32,
    shares: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sellers: Vec<String>,
    wait_p50_us: Option<u64>,
    wait_p99_us: Option<u64>,
    grants_per_second: Option<f64>,
    checks: Vec<Check>,
}

/// Puts the report together.
pub fn report(
    store: &str,
    chart: &Path,
    outcomes: &[Outcome],
    left_out: &[Language],
) -> DemoReport {
    let scenes: Vec<SceneReport> = outcomes.iter().map(scene).collect();
    DemoReport {
        store: store.to_owned(),
        chart: chart.display().to_string(),
        as_promised: scenes.iter().flat_map(|scene| &scene.checks).all(|check| check.ok),
        left_out: left_out.iter().map(Language::to_string).collect(),
        scenes,
    }
}

fn scene(outcome: &Outcome) -> SceneReport {
    let stats = stats(outcome);
    let micros = |span: std::time::Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    SceneReport {
        scene: outcome.scene,
        coupons: outcome.coupons,
        sold: outcome.books.sold,
        oversold: outcome.oversold(),
        bought_twice: outcome.books.twice,
        shares: outcome.books.shares.clone(),
        sellers: outcome.sellers.clone(),
        wait_p50_us: stats.map(|stats| micros(stats.p50)),
        wait_p99_us: stats.map(|stats| micros(stats.p99)),
        grants_per_second: stats.map(|stats| stats.rate),
        checks: outcome.checks(),
    }
}
