//! The scenes: one promise each, staged with every language.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{io, thread};

use fencelock_history::check;
use fencelock_nemesis::run::Kind;
use fencelock_nemesis::{LIMIT, Role};
use tempfile::TempDir;

use crate::scenes;
use crate::stage::{House, Stage};
use crate::verdict::{Column, Matrix, Verdict};

/// One scene.
pub struct Scene {
    /// What it is about.
    pub column: Column,
    /// A word for it, which is in its lock's name.
    pub name: &'static str,
    play: Play,
}

type Alone = fn(&mut Stage<'_>) -> Result<Verdict, String>;
type Together = fn(&mut House, &[Role], &str) -> Result<Vec<Verdict>, String>;

/// How a scene is played.
enum Play {
    /// By one language, beside the others.
    Alone(Alone),
    /// By all languages at once, since what is done is done to all: a verdict for each.
    Together(Together),
}

const fn scene(promise: u8, name: &'static str, play: Alone) -> Scene {
    Scene { column: Column::Promise(promise), name, play: Play::Alone(play) }
}

const fn readers(name: &'static str, play: Alone) -> Scene {
    Scene { column: Column::Readers, name, play: Play::Alone(play) }
}

const fn permits(name: &'static str, play: Alone) -> Scene {
    Scene { column: Column::Permits, name, play: Play::Alone(play) }
}

/// All of them.
pub const SCENES: [Scene; 32] = [
    scene(1, "exclusion", scenes::plain::exclusion),
    scene(2, "tokens", scenes::plain::tokens),
    scene(3, "late-release", scenes::faults::late_release),
    scene(4, "lost-reply", scenes::faults::lost_reply),
    scene(5, "re-entry", scenes::owners::reentry),
    scene(5, "relay", scenes::rules::relay),
    scene(6, "owners", scenes::owners::processes),
    scene(6, "tickets", scenes::owners::tickets),
    scene(7, "watchdog", scenes::plain::watchdog),
    scene(8, "cut-off", scenes::faults::cut_off),
    scene(9, "order", scenes::plain::order),
    scene(9, "queue", scenes::rules::queue),
    scene(10, "hand-off", scenes::plain::hand_off),
    scene(11, "cancel", scenes::plain::cancel),
    scene(11, "brief", scenes::rules::brief),
    scene(11, "dropped", scenes::rules::dropped),
    scene(12, "killed", scenes::faults::killed),
    scene(12, "end", scenes::rules::end),
    Scene {
        column: Column::Promise(13),
        name: "restart",
        play: Play::Together(scenes::restart::restart),
    },
    scene(14, "errors", scenes::plain::errors),
    scene(14, "close", scenes::rules::close),
    scene(14, "waits", scenes::rules::waits),
    scene(14, "arguments", scenes::rules::arguments),
    readers("readers", scenes::readers::together),
    readers("turns", scenes::readers::turns),
    readers("dead-reader", scenes::readers::dead_reader),
    readers("would-deadlock", scenes::readers::would_deadlock),
    readers("conversions", scenes::readers::conversions),
    permits("permits", scenes::permits::counted),
    permits("weights", scenes::permits::weights),
    permits("numbers", scenes::permits::numbers),
    permits("resized", scenes::permits::resized),
];

/// What has a scene, in order.
pub fn columns() -> Vec<Column> {
    let mut columns: Vec<Column> = SCENES.iter().map(|scene| scene.column).collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// Plays the scenes that are named, or all, on one store, the languages at the same time.
///
/// # Errors
/// When the store cannot be started.
pub fn play(kind: Kind, cast: &[Role], names: &[String]) -> io::Result<Matrix> {
    let wanted: Vec<&Scene> = SCENES
        .iter()
        .filter(|scene| names.is_empty() || names.iter().any(|it| it == scene.name))
        .collect();
    let folder = TempDir::with_prefix("conformance-")?;
    let mut house = House::open(kind, folder.path())?;
    let mut matrix = Matrix::default();
    thread::scope(|scope| {
        let (house, wanted) = (&house, &wanted);
        let playing: Vec<_> = cast
            .iter()
            .map(|role| (role, scope.spawn(move || language(house, role, wanted))))
            .collect();
        for (role, playing) in playing {
            for (column, verdict) in playing.join().unwrap_or_default() {
                matrix.put(&role.name, column, verdict);
            }
        }
    });
    for scene in &wanted {
        let Play::Together(play) = scene.play else { continue };
        let played = guarded(|| play(&mut house, cast, scene.name));
        let verdicts = played.unwrap_or_else(|error| vec![Verdict::Broken(error); cast.len()]);
        for (role, verdict) in cast.iter().zip(verdicts) {
            matrix.put(&role.name, scene.column, verdict);
        }
    }
    let records = house.history.since(0);
    if let Err(broken) = check::all(&records) {
        for what in broken.0 {
            let culprit = cast.iter().find(|role| what.contains(&format!("{}-", role.name)));
            let language = culprit.map_or("all", |role| &role.name);
            matrix.put(language, Column::Promise(promise_of(&what)), Verdict::Broken(what.clone()));
        }
    }
    if !matrix.broken().is_empty() {
        let name = format!("conformance-{kind}-{}.history", std::process::id());
        let path = std::env::temp_dir().join(name);
        house.history.save(&path)?;
        println!("conformance: the history is in {}", path.display());
    }
    Ok(matrix)
}

/// Plays the scenes with one language. One that fails does not stop the next.
fn language(house: &House, role: &Role, scenes: &[&Scene]) -> Vec<(Column, Verdict)> {
    let mut stage = None;
    let mut verdicts = Vec::new();
    for scene in scenes {
        let Play::Alone(play) = scene.play else { continue };
        let played = guarded(|| {
            let stage = match &mut stage {
                Some(stage) => stage,
                empty => empty.insert(Stage::set(house, role)?),
            };
            stage.begin(scene.name);
            play(stage)
        });
        let verdict = played.unwrap_or_else(|error| {
            // Whoever is in an unknown state plays no longer.
            stage = None;
            Verdict::Broken(format!("{}: {error}", scene.name))
        });
        verdicts.push((scene.column, verdict));
    }
    verdicts
}

/// A scene that waits for something in vain panics, and says for what.
fn guarded<T>(play: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(play)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()));
        Err(text.unwrap_or_else(|| format!("nothing happened for {LIMIT:?}")))
    })
}

/// Which promise a judgement of the history is about.
fn promise_of(what: &str) -> u8 {
    check::JUDGEMENTS.iter().find(|(check, _)| what.starts_with(check)).map_or(14, |it| it.1)
}
