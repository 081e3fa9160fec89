//! The scene for which the server is killed under everybody.

use fencelock_nemesis::Role;
use fencelock_nemesis::run::Kind;

use crate::stage::House;
use crate::verdict::Verdict;

/// Everybody waits for a lock of rust's when the server dies; when it is back, everybody is granted.
pub(crate) fn restart(
    house: &mut House,
    cast: &[Role],
    name: &str,
) -> Result<Vec<Verdict>, String> {
    if house.kind == Kind::Sqlite {
        let why = "there is no server that could end";
        return Ok(cast.iter().map(|_| Verdict::Empty(why)).collect());
    }
    let text = |error: std::io::Error| error.to_string();
    let mut rust = house.cast(&Role::own()).map_err(text)?;
    let mut waiting = Vec::new();
    for role in cast {
        let lock = format!("{}-{name}", role.name);
        let (held, _) = rust.acquires(&lock, "");
        let mut player = house.cast(role).map_err(text)?;
        let tag = player.asks(&lock, "");
        waiting.push((player, tag, held));
    }
    house.store.kill().map_err(text)?;
    house.store.restart().map_err(text)?;
    for (_, _, held) in &waiting {
        // Released or lost: a Redis server that was killed has forgotten it.
        rust.actor.tell(&format!("release {held}"));
    }
    for (player, tag, _) in &mut waiting {
        player.granted(tag);
        // Redis may have been asked just before it died, and have forgotten that, too.
        player.actor.tell(&format!("release {tag}"));
    }
    let ended = |player: &crate::stage::Player, tag: &str| {
        player
            .actor
            .said("released", tag)
            .or_else(|| player.actor.said("unreleased", tag))
            .map(drop)
    };
    for (player, tag, held) in &waiting {
        fencelock_testkit::eventually("it has released", || ended(player, tag));
        fencelock_testkit::eventually("rust has released", || ended(&rust, held));
    }
    Ok(cast.iter().map(|_| Verdict::Kept).collect())
}
