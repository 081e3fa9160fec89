//! What happens in each scene.
//!
//! `one` and `two` are processes of the language that is tested, `rust` is one of ours.

pub(crate) mod faults;
pub(crate) mod owners;
pub(crate) mod permits;
pub(crate) mod plain;
pub(crate) mod readers;
pub(crate) mod restart;
pub(crate) mod rules;

use fencelock_nemesis::Record;

use crate::stage::{Player, Stage};

/// Fails a scene with what was expected.
macro_rules! expected {
    ($holds:expr, $($what:tt)+) => {
        if !$holds {
            return Err(format!($($what)+));
        }
    };
}
pub(crate) use expected;

/// Fails a scene unless whoever tries the lock hears that another has it.
pub(crate) fn contended(player: &mut Player, lock: &str, when: &str) -> Result<(), String> {
    let kind = player.tries(lock);
    expected!(kind == "contended", "{when}, a try was answered '{kind}'");
    Ok(())
}

/// Why a scene of a mode cannot be played: the store has none, or the driver does not know the word.
fn lacking(
    stage: &Stage<'_>,
    has: impl Fn(fencelock::Capabilities) -> bool,
) -> Option<&'static str> {
    if !has(stage.observer.capabilities()) {
        return Some("this store does not have it yet");
    }
    (!knows(stage, "modes")).then_some("the driver does not know `mode=` yet")
}

fn knows(stage: &Stage<'_>, word: &str) -> bool {
    stage.role.own || stage.one.knows.split(',').any(|it| it == word)
}

/// Fails a scene unless the store grants in this order, as the tokens say, and as it was heard.
fn in_order(before: &Record, after: &Record, what: &str) -> Result<(), String> {
    let tokens = (before.number("token"), after.number("token"));
    expected!(tokens.0 < tokens.1, "{what}: token {} came after {}", tokens.1, tokens.0);
    expected!(before.at < after.at, "{what}: {after} came before {before}");
    Ok(())
}
