//! Scenes of a semaphore.

use crate::scenes::{expected, in_order, knows, lacking};
use crate::stage::{Player, Stage};
use crate::verdict::Verdict;

type Played = Result<Verdict, String>;

/// There are three permits: who wants what is not there waits, and gets those of one who was killed.
pub(crate) fn counted(stage: &mut Stage<'_>) -> Played {
    if let Some(why) = lacking(stage, |it| it.permits) {
        return Ok(Verdict::Empty(why));
    }
    let lock = stage.lock();
    let mut victim = stage.house.cast(stage.role).map_err(|error| error.to_string())?;
    victim.acquires(&lock, "mode=permits:2/3");
    let (one, _) = stage.one.acquires(&lock, "mode=permits:1/3 wait=try");
    for player in [&mut stage.one, &mut stage.two, &mut stage.rust] {
        refuses(player, &lock, "mode=permits:1/3 wait=try", "contended")?;
    }
    let waits = stage.rust.asks(&lock, "mode=permits:2/3");
    stage.waiting(1);
    victim.actor.kill();
    stage.rust.granted(&waits);
    refuses(&mut stage.two, &lock, "mode=permits:1/3 wait=try", "contended")?;
    let (trusted, seen) = stage.one.trusts(&one);
    expected!(trusted, "a permit was lost by the death of another's holder: {seen}");
    stage.one.releases(&one);
    let (last, _) = stage.two.acquires(&lock, "mode=permits:1/3 wait=try");
    stage.two.releases(&last);
    stage.rust.releases(&waits);
    Ok(Verdict::Kept)
}

/// One permit is free, and nobody passes who waits for three.
pub(crate) fn weights(stage: &mut Stage<'_>) -> Played {
    if let Some(why) = lacking(stage, |it| it.permits) {
        return Ok(Verdict::Empty(why));
    }
    let lock = stage.lock();
    for (large, small) in [(true, false), (false, true)] {
        let (held, _) = stage.one.acquires(&lock, "mode=permits:2/3");
        let all = pick(stage, large).asks(&lock, "mode=permits:3/3");
        stage.waiting(1);
        refuses(pick(stage, small), &lock, "mode=permits:1/3 wait=try", "contended")?;
        let single = pick(stage, small).asks(&lock, "mode=permits:1/3");
        stage.waiting(2);
        stage.one.releases(&held);
        let of_all = pick(stage, large).granted(&all);
        pick(stage, large).releases(&all);
        let of_single = pick(stage, small).granted(&single);
        in_order(&of_all, &of_single, "one permit behind three")?;
        pick(stage, small).releases(&single);
    }
    Ok(Verdict::Kept)
}

/// Numbers that disagree are refused while anybody holds, with both; a lock is no semaphore.
pub(crate) fn numbers(stage: &mut Stage<'_>) -> Played {
    if let Some(why) = lacking(stage, |it| it.permits) {
        return Ok(Verdict::Empty(why));
    }
    let lock = stage.lock();
    let (held, _) = stage.rust.acquires(&lock, "mode=permits:1/3");
    let said = refuses(&mut stage.one, &lock, "mode=permits:1/5", "misconfigured")?;
    let both = said.contains('3') && said.contains('5');
    expected!(both, "another number of permits was refused with '{said}'");
    refuses(&mut stage.one, &lock, "", "misconfigured")?;
    refuses(&mut stage.one, &lock, "mode=permits:4/3", "invalid_argument")?;
    refuses(&mut stage.one, &lock, "mode=permits:0/3", "invalid_argument")?;
    stage.rust.releases(&held);
    // Nobody holds: the next one says how many there are.
    let (held, _) = stage.one.acquires(&lock, "mode=permits:4/5");
    refuses(&mut stage.rust, &lock, "mode=permits:2/5 wait=try", "contended")?;
    stage.one.releases(&held);
    Ok(Verdict::Kept)
}

/// Of more permits, who waits gets one; of fewer, nobody loses any. Who adopts need not know of it.
pub(crate) fn resized(stage: &mut Stage<'_>) -> Played {
    if let Some(why) = lacking(stage, |it| it.permits) {
        return Ok(Verdict::Empty(why));
    }
    if !knows(stage, "resize") {
        return Ok(Verdict::Empty("the driver does not know `resize` yet"));
    }
    let lock = stage.lock();
    resizes(&mut stage.one, &lock, 2, "no")?;
    let (two, _) = stage.rust.acquires(&lock, "mode=permits:2/2");
    let waits = stage.two.asks(&lock, "mode=permits:1/2");
    stage.waiting(1);
    resizes(&mut stage.one, &lock, 3, "yes")?;
    stage.two.granted(&waits);
    let said = refuses(&mut stage.one, &lock, "mode=permits:1/2", "misconfigured")?;
    let both = said.contains('2') && said.contains('3');
    expected!(both, "the old number of permits was refused with '{said}'");
    let adopting = "mode=permits:2/2 adopt=yes";
    refuses(&mut stage.one, &lock, &format!("{adopting} wait=try"), "contended")?;
    stage.rust.releases(&two);
    let (adopted, _) = stage.one.acquires(&lock, adopting);
    let doomed = stage.two.asks(&lock, "mode=permits:3/3");
    stage.waiting(1);
    resizes(&mut stage.rust, &lock, 1, "yes")?;
    let kind = stage.two.refused(&doomed);
    expected!(kind == "invalid_argument", "a wait for three of one was answered '{kind}'");
    let (trusted, seen) = stage.one.trusts(&adopted);
    expected!(trusted, "permits were lost by a resize: {seen}");
    stage.one.releases(&adopted);
    stage.two.releases(&waits);
    Ok(Verdict::Kept)
}

/// Gives a semaphore so many permits, and hears whether anybody held or waited.
fn resizes(player: &mut Player, lock: &str, of: u32, used: &str) -> Result<(), String> {
    let said = player.resizes(lock, of);
    expected!(said.get("used") == Some(used), "a resize to {of} was answered: {said}");
    Ok(())
}

/// Asks in vain; gives the words of the error.
fn refuses(player: &mut Player, lock: &str, options: &str, wanted: &str) -> Result<String, String> {
    let tag = player.asks(lock, options);
    let kind = player.refused(&tag);
    expected!(kind == wanted, "'{options}' was answered '{kind}' instead of '{wanted}'");
    let said = player.actor.said("failed", &tag);
    Ok(said.and_then(|it| it.get("why").map(str::to_owned)).unwrap_or_default())
}

fn pick<'a>(stage: &'a mut Stage<'_>, rust: bool) -> &'a mut Player {
    if rust { &mut stage.rust } else { &mut stage.two }
}
