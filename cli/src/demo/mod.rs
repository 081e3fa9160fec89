//! `fencelock demo`: a flash sale, with and without a lock.

mod chart;
mod clock;
mod customers;
pub mod languages;
mod outcome;
mod progress;
mod scene;
pub mod seller;
mod shop;
mod stats;
mod summary;
mod team;
mod till;
mod wire;
pub mod worker;

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use fencelock::blocking::Client;
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::{Common, Demo};
use crate::demo::chart::Head;
use crate::demo::languages::Fair;
use crate::demo::outcome::{Outcome, Scene};
use crate::demo::progress::Progress;
use crate::demo::scene::Cast;
use crate::failure::Failure;
use crate::view::{BAD, BOLD, GOOD, ODD, View};
use crate::{exit, store};

/// Plays every scene, and says whether each showed what it promised.
pub fn demo(common: &Common, demo: &Demo) -> Result<u8, Failure> {
    let view = View::new(common);
    let place = tempfile::Builder::new().prefix("fencelock-demo-").tempdir()?;
    tidy_when_told_to_end(place.path().to_owned())?;
    let (url, shown) = match &common.store {
        Some(url) => (url.clone(), store::shown(url)?),
        None => {
            let file = place.path().join("locks.sqlite");
            (format!("sqlite:{}", file.display()), "embedded SQLite, no server".to_owned())
        }
    };
    let probe = Client::builder(&url).label("fencelock demo").connect_blocking()?;
    if !probe.capabilities().processes {
        return Err(Failure::own(
            "the demo sells from several processes, and this store serves only one; leave out \
             --store, or name one such as redis://localhost",
        ));
    }
    let prefix = format!("demo/flash-sale/{:x}", moment());
    let cast = Cast {
        coupons: demo.coupons,
        processes: demo.processes,
        workers: demo.workers,
        seed: demo.seed,
        store: &url,
        prefix: &prefix,
        probe: &probe,
        place: place.path(),
        failover: demo.failover.as_deref(),
    };
    let mut progress = Progress::new(view);
    progress.say(&format!(
        "{}\n",
        view.paint(
            BOLD,
            format!(
                "A flash sale: {} coupons, one per person, sold by {} processes of {} workers each",
                demo.coupons, demo.processes, demo.workers
            )
        )
    ))?;
    progress.say(&format!("The lock's store: {shown}\n"))?;

    let mut outcomes: Vec<Outcome> = Vec::new();
    let more = demo.failover.is_some().then_some(Scene::Failover);
    for (number, scene) in (1..).zip(Scene::USUAL.into_iter().chain(more)) {
        progress.begin(number, scene, demo.coupons)?;
        let outcome = cast.play(scene, &mut progress)?;
        progress.end(&outcome)?;
        outcomes.push(outcome);
    }
    if !demo.seller.is_empty() || !demo.left_out.is_empty() {
        progress.begin(outcomes.len() + 1, Scene::Languages, demo.coupons)?;
        let fair = Fair {
            coupons: demo.coupons,
            sellers: &demo.seller,
            store: &url,
            lock: &format!("{prefix}/languages"),
            probe: &probe,
            place: &place.path().join("languages"),
        };
        let outcome = fair.play(&progress)?;
        progress.end(&outcome)?;
        outcomes.push(outcome);
    }
    probe.close();

    std::fs::create_dir_all(&demo.out)
        .map_err(|error| Failure::own(format!("cannot make {}: {error}", demo.out.display())))?;
    let file = demo.out.join("flash-sale.svg");
    let head = Head {
        coupons: demo.coupons,
        processes: demo.processes,
        workers: demo.workers,
        store: &shown,
    };
    std::fs::write(&file, chart::draw(&head, &outcomes))
        .map_err(|error| Failure::own(format!("cannot write {}: {error}", file.display())))?;

    let missed = outcomes.iter().flat_map(Outcome::checks).filter(|check| !check.ok).count();
    if view.json {
        view.print_json(&summary::report(&shown, &file, &outcomes, &demo.left_out))?;
    } else {
        progress.say(&format!("\n{}", summary::table(&outcomes).render(view)))?;
        progress.say(&format!("\nWho held the lock when: {}\n", file.display()))?;
        let end = match missed {
            0 => view.paint(GOOD, "Every scene showed what it promised."),
            n => view.paint(BAD, format!("Not as promised: {n}, marked ✗ above.")),
        };
        let left_out: Vec<String> = demo.left_out.iter().map(ToString::to_string).collect();
        let left_out = match left_out.len() {
            0 => String::new(),
            1 => format!(" 1 language left out: {}.", left_out[0]),
            n => format!(" {n} languages left out: {}.", left_out.join(", ")),
        };
        progress.say(&format!("{end}{}\n", view.paint(ODD, left_out)))?;
    }
    Ok(if missed == 0 { exit::DONE } else { exit::NO })
}

/// Removes the shops when the demo is interrupted. Its processes end with it by themselves.
fn tidy_when_told_to_end(place: PathBuf) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // What cannot be removed is left to the system's own tidying.
            let _ = std::fs::remove_dir_all(place);
            std::process::exit(exit::of_signal(signal).into());
        }
    });
    Ok(())
}

/// Makes the names of two demos on one store differ.
fn moment() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros())
}
