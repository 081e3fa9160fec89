//! Scenes of the rules that all languages share; the table is in `docs/design.md`.

use std::time::Duration;

use fencelock_nemesis::run::Kind;
use fencelock_testkit::{Fault, eventually};

use crate::scenes::faults::NO_NETWORK;
use crate::scenes::{contended, expected};
use crate::stage::{Player, Stage};
use crate::verdict::Verdict;

type Played = Result<Verdict, String>;

/// What is a custom of one language, by the name of its driver.
struct Custom {
    /// What a close without a drain says when it loses a hold.
    losing: &'static str,
    /// What a negative wait comes to while another has the lock; `None` where it cannot be said.
    negative: Option<&'static str>,
    /// Numbers below 0 can be asked for.
    signed: bool,
    /// Its texts can be none of UTF-8.
    any_text: bool,
    /// A process that ends closes its clients.
    closes: bool,
    /// An acquire belongs to who calls it, whoever awaits it.
    calls: bool,
}

impl Custom {
    fn of(name: &str) -> Custom {
        let usual = Custom {
            losing: "no",
            negative: Some("invalid_argument"),
            signed: true,
            any_text: true,
            closes: true,
            calls: false,
        };
        match name {
            "rust" => {
                Custom { negative: None, signed: false, any_text: false, closes: false, ..usual }
            }
            "c" => Custom { losing: "silent", signed: false, closes: false, calls: true, ..usual },
            "java" => Custom { losing: "silent", negative: Some("contended"), ..usual },
            "kotlin" => Custom { negative: Some("contended"), ..usual },
            "asyncio" => Custom { calls: true, ..usual },
            _ => usual,
        }
    }
}

/// Opens a client of its own, which a scene may close.
fn opens(player: &mut Player, client: &str) {
    let url = player.url.clone();
    player.actor.ask(&format!("open {client} {url}"), "opened", client);
}

/// A close says whether anything was lost by it; who loses is told; a drain that fails closes as well.
pub(crate) fn close(stage: &mut Stage<'_>) -> Played {
    let custom = Custom::of(&stage.role.name);
    let (lock, player) = (stage.lock(), &mut stage.one);
    opens(player, "idle");
    let said = player.actor.ask("close idle", "closed", "idle");
    let kept = if custom.losing == "no" { "yes" } else { custom.losing };
    expected!(said.get("all") == Some(kept), "an idle client's close said {said}");

    opens(player, "losing");
    let held = player.asks_of("losing", &lock, "");
    player.granted(&held);
    let said = player.actor.ask("close losing", "closed", "losing");
    expected!(said.get("all") == Some(custom.losing), "a close that lost a hold said {said}");
    let lost = player.actor.wait_for("lost", &held);
    let reason = lost.get("reason").unwrap_or_default().to_ascii_lowercase();
    expected!(reason == "closed", "the holder heard {lost}");
    let kind = player.releases_badly(&held);
    expected!(kind == "lost", "the release after a close was answered '{kind}'");

    opens(player, "late");
    let held = player.asks_of("late", &lock, "");
    player.granted(&held);
    let said = player.actor.ask("close late drain=50ms", "closed", "late");
    expected!(said.get("all") == Some("no"), "a drain in vain said {said}");
    let after = player.asks_of("late", &lock, "wait=try");
    let kind = player.refused(&after);
    expected!(kind == "closed", "after a drain in vain an acquire was answered '{kind}'");
    player.releases_badly(&held);

    opens(player, "patient");
    let held = player.asks_of("patient", &lock, "");
    player.granted(&held);
    player.actor.tell("close patient drain=endless");
    player.releases(&held);
    let said = player.actor.wait_for("closed", "patient");
    expected!(said.get("all") == Some("yes"), "a drain without end said {said}");
    Ok(Verdict::Kept)
}

/// A wait without end goes on; one below zero is refused, or does not wait.
pub(crate) fn waits(stage: &mut Stage<'_>) -> Played {
    let lock = stage.lock();
    let (held, _) = stage.rust.acquires(&lock, "");
    let waits = stage.one.asks(&lock, "wait=endless");
    stage.waiting(1);
    if let Some(wanted) = Custom::of(&stage.role.name).negative {
        let negative = stage.two.asks(&lock, "wait=-50ms");
        let kind = stage.two.refused(&negative);
        expected!(kind == wanted, "a negative wait was answered '{kind}'");
        opens(&mut stage.two, "negative");
        let said = eventually_closed(&mut stage.two, "close negative drain=-50ms", "negative");
        let refused = said.get("kind") == Some("invalid_argument");
        expected!(
            refused == (wanted == "invalid_argument"),
            "a negative drain was answered {said}"
        );
        let open = stage.two.asks_of("negative", &lock, "wait=try");
        let kind = stage.two.refused(&open);
        let usual = if refused { "contended" } else { "closed" };
        expected!(kind == usual, "after a negative drain a try was answered '{kind}'");
    }
    stage.rust.releases(&held);
    stage.one.granted(&waits);
    stage.one.releases(&waits);
    Ok(Verdict::Kept)
}

/// Waits for either answer to a close.
fn eventually_closed(player: &mut Player, line: &str, client: &str) -> fencelock_nemesis::Record {
    player.actor.tell(line);
    let actor = &player.actor;
    eventually("the close is answered", || {
        actor.said("closed", client).or_else(|| actor.said("failed", client))
    })
}

/// A listing has one or more; a name has 1 to 512 bytes of UTF-8 without NUL.
pub(crate) fn arguments(stage: &mut Stage<'_>) -> Played {
    let custom = Custom::of(&stage.role.name);
    let lock = stage.lock();
    let (held, _) = stage.rust.acquires(&lock, "");
    let actor = &mut stage.one.actor;
    let said = actor.ask("list some c 1", "listed", "some");
    expected!(said.get("count") == Some("1"), "a list of one was answered {said}");
    let limits: &[i8] = if custom.signed { &[0, -1] } else { &[0] };
    for limit in limits {
        let said =
            actor.ask(&format!("list none{limit} c {limit}"), "failed", &format!("none{limit}"));
        let kind = said.get("kind").unwrap_or_default();
        expected!(kind == "invalid_argument", "a list of {limit} was answered {said}");
    }
    let names: &[&str] =
        if custom.any_text { &["empty", "nul", "long", "half"] } else { &["empty", "nul", "long"] };
    for name in names {
        let said = actor.ask(&format!("name {name} c {name}"), "failed", name);
        let kind = said.get("kind").unwrap_or_default();
        expected!(kind == "invalid_argument", "the name '{name}' was answered {said}");
    }
    stage.rust.releases(&held);
    Ok(Verdict::Kept)
}

/// A process that ends by itself gives back what it holds, long before the lease is over.
pub(crate) fn end(stage: &mut Stage<'_>) -> Played {
    if !Custom::of(&stage.role.name).closes {
        return Ok(Verdict::Empty(
            "nothing closes a client at the end of a process in this language",
        ));
    }
    let lock = stage.lock();
    let mut victim = stage.house.cast(stage.role).map_err(|error| error.to_string())?;
    victim.acquires(&lock, "lease=300000ms");
    victim.actor.tell("leave now");
    expected!(victim.actor.ended(), "it did not end as a program should");
    // For the history: what it held is over.
    victim.actor.kill();
    let (held, granted) = stage.one.acquires(&lock, "wait=20000ms");
    let said = granted.get("abandoned").unwrap_or_default().to_ascii_lowercase();
    expected!(said != "no", "after a holder whose process ended it heard {granted}");
    stage.one.releases(&held);
    Ok(Verdict::Kept)
}

/// A wait that is shorter than the way to the store and back is over in time, and leaves nothing.
pub(crate) fn brief(stage: &mut Stage<'_>) -> Played {
    if stage.one.ways.is_empty() {
        return Ok(Verdict::Empty(NO_NETWORK));
    }
    let lock = stage.lock();
    stage.one.way(Fault::Delay(Duration::from_millis(150)));
    let waits = stage.one.asks(&lock, "wait=20ms");
    let kind = stage.one.refused(&waits);
    expected!(kind == "timed_out", "a wait shorter than a round trip ended with '{kind}'");
    stage.one.way(Fault::Pass);
    let observer = &stage.observer;
    eventually("nothing is left of it", || match observer.inspect(&*lock) {
        Ok(None) => Some(()),
        Ok(Some(info)) => (info.holds.is_empty() && info.waiters.is_empty()).then_some(()),
        Err(_) => None,
    });
    let (held, _) = stage.rust.acquires(&lock, "wait=try");
    stage.rust.releases(&held);
    Ok(Verdict::Kept)
}

/// Nine clients in three processes, each of which asks once: they are served as they came.
pub(crate) fn queue(stage: &mut Stage<'_>) -> Played {
    let lock = stage.lock();
    let (held, _) = stage.one.acquires(&lock, "");
    let mut asked = Vec::new();
    for round in 0..3 {
        for place in 0..3 {
            let client = format!("queue{round}");
            let player = seat(stage, place);
            opens(player, &client);
            asked.push((place, player.asks_of(&client, &lock, ""), client));
            stage.waiting(asked.len());
        }
    }
    stage.one.releases(&held);
    let mut last = 0;
    for (place, tag, client) in asked {
        let player = seat(stage, place);
        let token = player.granted(&tag).number("token");
        expected!(token > last, "who came later was served before: {token} after {last}");
        last = token;
        player.releases(&tag);
        player.actor.ask(&format!("close {client}"), "closed", &client);
    }
    Ok(Verdict::Kept)
}

fn seat<'a>(stage: &'a mut Stage<'_>, place: usize) -> &'a mut Player {
    match place {
        0 => &mut stage.one,
        1 => &mut stage.two,
        _ => &mut stage.rust,
    }
}

/// A hold that nobody can reach any more is given back, although its client lives and renews.
pub(crate) fn dropped(stage: &mut Stage<'_>) -> Played {
    let lock = stage.lock();
    let (held, _) = stage.one.acquires(&lock, "");
    let waits = stage.rust.asks(&lock, "");
    stage.waiting(1);
    stage.one.actor.tell(&format!("drop {held}"));
    stage.rust.granted(&waits);
    stage.rust.releases(&waits);
    Ok(Verdict::Kept)
}

/// An acquire that is begun by one and awaited by another belongs to who began it.
pub(crate) fn relay(stage: &mut Stage<'_>) -> Played {
    if !Custom::of(&stage.role.name).calls {
        return Ok(Verdict::Empty(
            "an acquire of this language belongs to nobody, or to who runs it",
        ));
    }
    let lock = stage.lock();
    let player = &mut stage.one;
    player.actor.tell(&format!("relay outer c {lock}"));
    let first = player.granted("outer");
    let again = player.granted("outer-again");
    expected!(again.get("reentry") == Some("true"), "who began it did not re-enter: {again}");
    let tokens = (first.number("token"), again.number("token"));
    expected!(tokens.0 == tokens.1, "a re-entry has another token: {tokens:?}");
    player.releases("outer-again");
    contended(&mut stage.rust, &lock, "with one level left")?;
    stage.one.releases("outer");
    let by_try = if stage.house.kind == Kind::ZooKeeper { "" } else { "wait=try" };
    let (held, _) = stage.rust.acquires(&lock, by_try);
    stage.rust.releases(&held);
    Ok(Verdict::Kept)
}
