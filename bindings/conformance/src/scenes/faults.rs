//! Scenes in which something goes wrong.

use std::thread::sleep;
use std::time::Duration;

use fencelock_testkit::Fault;

use crate::scenes::{contended, expected};
use crate::stage::Stage;
use crate::verdict::Verdict;

type Played = Result<Verdict, String>;

pub(crate) const NO_NETWORK: &str = "there is no network between a process and its file";

/// A holder that was stopped past its lease comes back, and releases what another has by now.
pub(crate) fn late_release(stage: &mut Stage<'_>) -> Played {
    let lock = stage.lock();
    let (stale, _) = stage.one.acquires(&lock, "");
    let waits = stage.rust.asks(&lock, "");
    stage.waiting(1);
    stage.one.actor.stop();
    stage.rust.granted(&waits);
    stage.one.actor.cont();
    let (trusted, seen) = stage.one.trusts(&stale);
    expected!(!trusted, "it trusts a hold that another has: {seen}");
    let kind = stage.one.releases_badly(&stale);
    expected!(kind == "lost", "the release of a lost hold was answered '{kind}'");
    let (trusted, seen) = stage.rust.trusts(&waits);
    expected!(trusted, "a late release took rust's hold away: {seen}");
    contended(&mut stage.two, &lock, "after a late release")?;
    stage.rust.releases(&waits);
    Ok(Verdict::Kept)
}

/// A request is carried out, and its answer lost.
pub(crate) fn lost_reply(stage: &mut Stage<'_>) -> Played {
    if stage.one.ways.is_empty() {
        return Ok(Verdict::Empty(NO_NETWORK));
    }
    let lock = stage.lock();
    stage.one.way(Fault::SwallowReplies);
    let held = stage.one.asks(&lock, "");
    // Longer than a request may take: it is sent again.
    sleep(Duration::from_millis(700));
    stage.one.mended();
    stage.one.granted(&held);
    stage.one.releases(&held);
    // It counted once.
    let (held, _) = stage.rust.acquires(&lock, "");
    contended(&mut stage.one, &lock, "while rust had the lock")?;
    stage.rust.releases(&held);
    Ok(Verdict::Kept)
}

/// A holder is cut off, or cannot renew: it is told, and no longer trusts what another has. That its
/// trust ended before the other's grant, the checks of the history say.
pub(crate) fn cut_off(stage: &mut Stage<'_>) -> Played {
    let lock = stage.lock();
    let lease = if stage.one.ways.is_empty() { "lease=400ms" } else { "" };
    let (held, _) = stage.one.acquires(&lock, lease);
    let waits = stage.rust.asks(&lock, "");
    stage.waiting(1);
    stage.one.way(Fault::SwallowRequests);
    stage.rust.granted(&waits);
    stage.one.actor.wait_for("lost", &held);
    let (trusted, seen) = stage.one.trusts(&held);
    expected!(!trusted, "it trusts a hold of whose loss it was told: {seen}");
    stage.one.mended();
    let kind = stage.one.releases_badly(&held);
    expected!(kind == "lost", "the release of a lost hold was answered '{kind}'");
    stage.rust.releases(&waits);
    Ok(Verdict::Kept)
}

/// A holder is killed; who follows is told, and who follows a release is not told so. Then it may be
/// unknown: ZooKeeper forgets a lock that nobody wants for a moment.
pub(crate) fn killed(stage: &mut Stage<'_>) -> Played {
    let lock = stage.lock();
    let mut victim = stage.house.cast(stage.role).map_err(|error| error.to_string())?;
    victim.acquires(&lock, "");
    let waits = stage.one.asks(&lock, "");
    stage.waiting(1);
    victim.actor.kill();
    let after_death = stage.one.granted(&waits);
    let said = |record: &fencelock_nemesis::Record| {
        record.get("abandoned").unwrap_or_default().to_ascii_lowercase()
    };
    expected!(said(&after_death) == "yes", "after a killed holder it heard {after_death}");
    stage.one.releases(&waits);
    let (held, after_release) = stage.rust.acquires(&lock, "");
    expected!(said(&after_release) != "yes", "after its release rust heard {after_release}");
    stage.rust.releases(&held);
    Ok(Verdict::Kept)
}
