//! Scenes in which nothing goes wrong.

use std::time::Duration;

use fencelock_nemesis::run::LEASE;

use crate::scenes::{contended, expected};
use crate::stage::Stage;
use crate::verdict::Verdict;

type Played = Result<Verdict, String>;

pub(crate) fn exclusion(stage: &mut Stage<'_>) -> Played {
    let lock = stage.lock();
    let (held, _) = stage.one.acquires(&lock, "");
    let tries = [("from rust", &mut stage.rust), ("from the other", &mut stage.two)];
    for (who, player) in tries {
        contended(player, &lock, who)?;
    }
    stage.one.releases(&held);
    let (held, _) = stage.rust.acquires(&lock, "");
    contended(&mut stage.one, &lock, "while rust had the lock")?;
    stage.rust.releases(&held);
    Ok(Verdict::Kept)
}

pub(crate) fn tokens(stage: &mut Stage<'_>) -> Played {
    let lock = stage.lock();
    let mut last = 0;
    for _ in 0..3 {
        for player in [&mut stage.one, &mut stage.rust, &mut stage.two] {
            let (held, granted) = player.acquires(&lock, "");
            let token = granted.number("token");
            expected!(token > last, "token {token} came after {last}");
            last = token;
            player.releases(&held);
        }
    }
    Ok(Verdict::Kept)
}

pub(crate) fn watchdog(stage: &mut Stage<'_>) -> Played {
    let lock = stage.lock();
    let (held, granted) = stage.one.acquires(&lock, "");
    let enough = granted.at + 3 * LEASE.as_nanos() as u64;
    loop {
        let (trusted, seen) = stage.one.trusts(&held);
        expected!(trusted, "it lost a lock that nobody disturbed: {seen}");
        if seen.at > enough {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    contended(&mut stage.rust, &lock, "after three leases")?;
    stage.one.releases(&held);
    Ok(Verdict::Kept)
}

pub(crate) fn order(stage: &mut Stage<'_>) -> Played {
    let lock = stage.lock();
    let (held, _) = stage.one.acquires(&lock, "");
    let second = stage.two.asks(&lock, "");
    stage.waiting(1);
    let third = stage.rust.asks(&lock, "");
    stage.waiting(2);
    stage.one.releases(&held);
    let of_two = stage.two.granted(&second);
    stage.two.releases(&second);
    let of_rust = stage.rust.granted(&third);
    stage.rust.releases(&third);
    expected!(of_two.at < of_rust.at, "rust came before one who had waited longer");
    // And the other way round.
    let (held, _) = stage.two.acquires(&lock, "");
    let second = stage.rust.asks(&lock, "");
    stage.waiting(1);
    let third = stage.one.asks(&lock, "");
    stage.waiting(2);
    stage.two.releases(&held);
    let of_rust = stage.rust.granted(&second);
    stage.rust.releases(&second);
    let of_one = stage.one.granted(&third);
    stage.one.releases(&third);
    expected!(of_rust.at < of_one.at, "it came before rust, who had waited longer");
    Ok(Verdict::Kept)
}

pub(crate) fn hand_off(stage: &mut Stage<'_>) -> Played {
    let lock = stage.lock();
    let (held, first) = stage.one.acquires(&lock, "");
    let waits = stage.one.asks(&lock, "");
    // It waits inside its own process, where the store does not see it: until it has been asked for.
    stage.one.trusts(&held);
    std::thread::sleep(Duration::from_millis(50));
    stage.one.releases(&held);
    let second = stage.one.granted(&waits);
    let (before, after) = (first.number("token"), second.number("token"));
    expected!(after > before, "token {after} came after {before}");
    // The tokens of one grant of the store are next to each other.
    expected!(after - before < 1024, "the store was asked: {before}, then {after}");
    // Whoever waits elsewhere gets it in the end.
    let elsewhere = stage.rust.asks(&lock, "");
    stage.waiting(1);
    stage.one.releases(&waits);
    stage.rust.granted(&elsewhere);
    stage.rust.releases(&elsewhere);
    Ok(Verdict::Kept)
}

pub(crate) fn cancel(stage: &mut Stage<'_>) -> Played {
    if stage.one.lacks == "cancel" {
        return Ok(Verdict::Empty("a wait of this language cannot be cancelled from outside"));
    }
    let lock = stage.lock();
    let (held, _) = stage.rust.acquires(&lock, "");
    let waits = stage.one.asks(&lock, "");
    stage.waiting(1);
    stage.one.actor.tell(&format!("cancel {waits}"));
    if stage.role.own {
        stage.one.actor.wait_for("cancelled", &waits);
    } else {
        let kind = stage.one.refused(&waits);
        expected!(kind == "cancelled", "a cancelled wait ended with '{kind}'");
    }
    stage.waiting(0);
    stage.rust.releases(&held);
    // Nothing was left behind that would have to run out first.
    let (held, _) = stage.rust.acquires(&lock, "wait=try");
    stage.rust.releases(&held);
    Ok(Verdict::Kept)
}

pub(crate) fn errors(stage: &mut Stage<'_>) -> Played {
    let lock = stage.lock();
    let (held, _) = stage.rust.acquires(&lock, "");
    let waits = stage.one.asks(&lock, "wait=100ms");
    let kind = stage.one.refused(&waits);
    expected!(kind == "timed_out", "a bounded wait ended with '{kind}'");
    stage.rust.releases(&held);
    let strange = stage.one.asks(&lock, "lease=1ms");
    let kind = stage.one.refused(&strange);
    expected!(kind == "invalid_argument", "a lease of 1 ms was answered '{kind}'");
    let actor = &mut stage.one.actor;
    let said = actor.ask("open bird carrier-pigeon://roof", "refused", "bird");
    expected!(said.get("kind") == Some("invalid_argument"), "a strange URL was answered {said}");
    let url = stage.one.url.clone();
    actor.ask(&format!("open closing {url}"), "opened", "closing");
    actor.ask("close closing", "closed", "closing");
    let said = actor.ask(&format!("acquire late closing {lock}"), "failed", "late");
    expected!(said.get("kind") == Some("closed"), "a closed client answered {said}");
    Ok(Verdict::Kept)
}
