//! The table of promises, faults and stores that users read, made from runs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::chronicle::Chronicle;
use crate::cover::{Cover, Coverage};
use crate::runner::Runner;
use crate::scene::{Scene, Shop};
use crate::trace::Trace;

/// Where the table begins on the page, and where it ends.
pub const MARKS: [&str; 2] = ["<!-- table: begin -->", "<!-- table: end -->"];

/// A promise: the checkers that judge it, and what must have been met to say that it was kept.
struct Promise {
    name: &'static str,
    checks: &'static [&'static str],
    met: &'static [Cover],
    /// It is judged only in runs in which nothing may disturb the order among clients.
    strict: bool,
}

const fn promise(
    name: &'static str,
    checks: &'static [&'static str],
    met: &'static [Cover],
) -> Promise {
    Promise { name, checks, met, strict: false }
}

/// The promises, in the order of their numbers.
const PROMISES: [Promise; 14] = [
    promise("exclusion", &["exclusion"], &[Cover::GrantByReply, Cover::Contended]),
    promise("fencing", &["token order", "fencing"], &[Cover::StaleWriteRefused]),
    promise("only the holder releases", &["only the holder releases"], &[Cover::GrantByReply]),
    promise("a retry is harmless", &["count", "no residue"], &[Cover::AcquireRepeated]),
    promise("re-entry", &["count", "lease arithmetic"], &[Cover::Reentry]),
    promise("owners", &["owners"], &[Cover::SharedOwner]),
    promise("watchdog", &["watchdog"], &[Cover::Renewed]),
    promise("loss is told in time", &["lost in time"], &[Cover::LostTold]),
    promise("waiting, in order", &["queue order"], &[Cover::TimedOut, Cover::CancelWhileWaiting]),
    Promise {
        name: "local hand-off",
        checks: &["local hand-off"],
        met: &[Cover::LocalHandOff],
        strict: true,
    },
    promise(
        "cancel and drop",
        &["cancel", "one completion", "no residue"],
        &[Cover::CancelWhileWaiting, Cover::CancelWhileGranted],
    ),
    promise("abandoned is told", &["abandoned"], &[Cover::AbandonedYes]),
    promise("liveness", &["liveness"], &[Cover::GrantByReply]),
    promise("errors", &["errors", "one completion"], &[Cover::Contended, Cover::TimedOut]),
];

/// What must have been met on this store to say that a promise was kept.
fn met(number: usize, shop: Shop) -> &'static [Cover] {
    match (number, shop) {
        // There a write of unknown outcome is looked for before it is repeated.
        (4, Shop::ZooKeeper) => &[Cover::ZkLostWrite],
        _ => PROMISES[number - 1].met,
    }
}

/// What a fault does to a promise that does not hold under it, and what holds nevertheless.
fn reason(number: usize, shop: Shop, scene: Scene) -> Option<&'static str> {
    let scene = scene.fault();
    if shop == Shop::ZooKeeper {
        return zookeeper_reason(number, scene);
    }
    Some(match (number, scene) {
        (1, Scene::ClockForward | Scene::Skew) => {
            "the server believes that leases are over whose holders still count on them, and grants \
             the lock again. Their tokens are lower: the resource refuses their writes"
        }
        (1, Scene::Forget | Scene::Evict | Scene::Foreign | Scene::Lag | Scene::Double) => {
            "the store has lost the hold that it had acknowledged, and grants the lock again, until \
             the first holder hears of it. Its token is lower: the resource refuses its writes"
        }
        (2, Scene::Double) => {
            "the one way in which tokens go back: the counter is gone, and the clock that would \
             replace it reads less than tokens that were given out. Nobody can tell the holders \
             apart then"
        }
        (7, scene) if scene != Scene::Nothing => {
            "a hold whose renewals do not get through for a whole lease, or find nothing at the \
             store, is lost. Its holder is told so at the latest when the lease ends by its own clock"
        }
        // Without any fault there is no excuse.
        (9, scene) if scene != Scene::Nothing => {
            "a waiter that the store has not heard from for its silence, or could not reach, is \
             passed over. It stays queued at its place, or comes back with its ticket, and is \
             granted in its turn"
        }
        (12, Scene::Lag | Scene::Skew) => {
            "what was copied before does not know the holder that was lost afterwards, and says 'no' \
             of the one before"
        }
        _ => return None,
    })
}

/// The same on ZooKeeper.
fn zookeeper_reason(number: usize, scene: Scene) -> Option<&'static str> {
    Some(match (number, scene) {
        (1, Scene::Deleted) => {
            "who deletes the holder's node gives the lock away. Its holder is told when it hears of \
             it; until then another may hold the lock, too. Its token is lower: the resource \
             refuses its writes"
        }
        (6, _) => {
            "the layout is Curator's and knows no owners. Within one client an explicit owner's \
             holds share a node and go together; in another process the same owner waits like \
             anybody else, and its ticket is refused as unsupported"
        }
        (7, Scene::Deleted) => {
            "a hold whose node somebody deletes is lost, and its holder is told so"
        }
        // Without any fault there is no excuse.
        (7, scene) if !is_calm(scene) => {
            "holds last as long as their client's session. One that no server with a majority \
             behind it has heard from for its timeout is expired, and its holds are lost. Their \
             holder stops trusting them before, and is told so"
        }
        (9, scene) if !is_calm(scene) => {
            "a waiter whose session expires loses its node, and its place with it: it queues again, \
             behind those that came meanwhile"
        }
        _ => return None,
    })
}

/// Whether nothing happens to clients and servers in this scene.
fn is_calm(scene: Scene) -> bool {
    matches!(scene, Scene::Nothing | Scene::Reaped | Scene::Curator)
}

/// What the runs of one fault on one store showed of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Kept in every run, and met.
    Yes,
    /// Not kept in so many runs.
    No(u64),
    /// Not met, or not judged.
    Untested,
}

/// What the runs of one fault on one store showed.
#[derive(Clone, Debug)]
pub struct Line {
    /// The fault.
    pub scene: Scene,
    /// How many runs.
    pub runs: u64,
    /// The promises, by their numbers.
    pub verdicts: [Verdict; 14],
}

/// Does `runs` runs of each fault on each store, or half as many on the slower model.
///
/// # Errors
/// A run that broke a promise which the table says is kept: no fault excuses it.
pub fn measure(runs: u64) -> Result<Vec<(Shop, Vec<Line>)>, String> {
    let mut runner = Runner::default();
    let (mut tables, mut wrong) = (Vec::new(), Vec::new());
    for shop in Shop::ALL {
        let runs = if shop == Shop::Redis { runs.div_ceil(2) } else { runs };
        let mut lines = Vec::new();
        for scene in shop.scenes() {
            match line(&mut runner, shop, *scene, runs) {
                Ok(line) => lines.push(line),
                Err(what) => wrong.push(what),
            }
        }
        tables.push((shop, lines));
    }
    if wrong.is_empty() { Ok(tables) } else { Err(wrong.join("\n")) }
}

fn line(runner: &mut Runner, shop: Shop, scene: Scene, runs: u64) -> Result<Line, String> {
    let mut cover = Coverage::default();
    let mut strict = Coverage::default();
    let mut waived: BTreeMap<&'static str, u64> = BTreeMap::new();
    for seed in 1..=runs {
        let (plan, dice) = scene.draw(shop, seed);
        let run = runner.go(plan, dice, Trace::silent(), Chronicle::default());
        if let Some(it) = run.violation {
            return Err(format!(
                "{}: {}; replay it with: fencelock-sim scene {shop:?} {scene:?} {seed}",
                it.promise, it.what
            ));
        }
        cover.merge(&run.cover);
        if run.strict {
            strict.merge(&run.cover);
        }
        for promise in run.waived.keys() {
            *waived.entry(promise).or_default() += 1;
        }
    }
    if scene.shown_by(shop).is_some_and(|case| cover.count(case) == 0) {
        return Err(format!("{shop:?}, {scene:?}: the fault never struck in {runs} runs"));
    }
    let verdicts = std::array::from_fn(|index| {
        let promise = &PROMISES[index];
        let broken: u64 = promise.checks.iter().filter_map(|check| waived.get(check)).sum();
        let cases = if promise.strict { &strict } else { &cover };
        match broken {
            0 if met(index + 1, shop).iter().all(|case| cases.count(*case) > 0) => Verdict::Yes,
            0 => Verdict::Untested,
            broken => Verdict::No(broken),
        }
    });
    Ok(Line { scene, runs, verdicts })
}

/// Replays one run of the table, with its trace, and gives what the checkers say of it.
///
/// # Errors
/// When there is no such scene.
pub fn replay(shop: &str, scene: &str, seed: u64) -> Result<String, String> {
    let found = Shop::ALL.iter().find(|it| format!("{it:?}") == shop).and_then(|shop| {
        let scene = shop.scenes().iter().find(|it| format!("{it:?}") == scene)?;
        Some((*shop, *scene))
    });
    let (shop, scene) = found.ok_or(format!("there is no scene {scene} on {shop}"))?;
    let (plan, dice) = scene.draw(shop, seed);
    let run = Runner::default().go(plan, dice, Trace::printed(), Chronicle::default());
    let end = run.violation.map_or("clean".to_owned(), |it| {
        format!("BROKEN at {:.6}: {}: {}", it.at as f64 / 1e9, it.promise, it.what)
    });
    Ok(format!("not kept, and excused: {:?}\n{end}", run.waived))
}

/// The tables as text for the page.
///
/// # Errors
/// A 'no' that nobody has explained.
pub fn render(tables: &[(Shop, Vec<Line>)]) -> Result<String, String> {
    let (mut out, mut unexplained) = (String::new(), Vec::new());
    for (shop, lines) in tables {
        let mut reasons: Vec<(usize, &str, String)> = Vec::new();
        let _ = write!(out, "### {}\n\n| under | runs |", shop.title());
        for number in 1..=PROMISES.len() {
            let _ = write!(out, " {number} |");
        }
        let _ = write!(out, "\n| --- | ---: |{}\n", " :-: |".repeat(PROMISES.len()));
        for line in lines {
            let _ = write!(out, "| {} | {} |", line.scene.title(*shop), line.runs);
            for (index, verdict) in line.verdicts.iter().enumerate() {
                let number = index + 1;
                match verdict {
                    Verdict::Yes => out.push_str(" yes |"),
                    Verdict::Untested => out.push_str(" – |"),
                    Verdict::No(broken) => {
                        out.push_str(" **no** |");
                        let Some(why) = reason(number, *shop, line.scene) else {
                            unexplained.push(format!(
                                "promise {number} was not kept in {broken} of {} runs with {:?} on \
                                 {shop:?}, and table.rs has no reason for it",
                                line.runs, line.scene
                            ));
                            continue;
                        };
                        let seen =
                            format!("{} ({broken} of {} runs)", line.scene.title(*shop), line.runs);
                        match reasons.iter_mut().find(|it| it.0 == number && it.1 == why) {
                            Some(it) => {
                                let _ = write!(it.2, "; {seen}");
                            }
                            None => reasons.push((number, why, seen)),
                        }
                    }
                }
            }
            out.push('\n');
        }
        reasons.sort_by_key(|it| it.0);
        if !reasons.is_empty() {
            out.push_str("\nWhere it says **no**:\n\n");
        }
        for (number, why, seen) in reasons {
            let name = PROMISES[number - 1].name;
            let _ = writeln!(out, "- **{number}, {name}**: {why}. Seen with: {seen}.");
        }
        out.push('\n');
    }
    if unexplained.is_empty() { Ok(out) } else { Err(unexplained.join("\n")) }
}

/// Puts tables on a page, between its marks.
///
/// # Errors
/// A page without marks.
pub fn put(page: &str, tables: &str) -> Result<String, String> {
    fencelock_history::page::put(page, MARKS, tables)
}

/// The shape of a page's table: every row and its verdicts, without the figures.
#[must_use]
pub fn shape(page: &str) -> Vec<String> {
    let [begin, end] = MARKS;
    let inside = page.split_once(begin).and_then(|(_, rest)| rest.split_once(end));
    let lines = inside.map_or("", |(inside, _)| inside).lines();
    let without_figures = |line: &str| {
        let cells = line.split('|').map(str::trim);
        let figures = |cell: &&str| cell.chars().any(|c| c.is_ascii_digit()) && cell.len() < 6;
        cells.filter(|cell| !figures(cell)).collect::<Vec<_>>().join("|")
    };
    let kept = lines.filter(|line| line.starts_with('|') || line.starts_with('#'));
    kept.map(without_figures).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_no_on_the_page_was_seen_and_has_a_reason() {
        let lines = vec![
            Line { scene: Scene::Nothing, runs: 3, verdicts: [Verdict::Yes; 14] },
            Line {
                scene: Scene::ClockForward,
                runs: 3,
                verdicts: std::array::from_fn(|index| match index {
                    0 => Verdict::No(2),
                    1 => Verdict::Untested,
                    _ => Verdict::Yes,
                }),
            },
        ];
        let text = render(&[(Shop::Redis, lines.clone())]).unwrap();
        assert!(text.contains("is set forward | 3 | **no** | – | yes |"), "{text}");
        assert!(text.contains("(2 of 3 runs)"), "{text}");
        let page = put(&format!("a\n{}\nold\n{}\nb\n", MARKS[0], MARKS[1]), &text).unwrap();
        assert!(page.starts_with("a\n") && page.ends_with("\nb\n") && !page.contains("\nold\n"));
        // Other figures are the same shape, another verdict is not.
        assert_eq!(shape(&page), shape(&page.replace("| 3 |", "| 90 |")));
        assert_ne!(shape(&page), shape(&page.replacen("yes", "**no**", 1)));
        assert_eq!(shape(&page).len(), 5, "{:#?}", shape(&page));
        let mut odd = lines;
        odd[0].verdicts[2] = Verdict::No(1);
        assert!(render(&[(Shop::Redis, odd)]).unwrap_err().contains("no reason"));
    }
}
