//! What happens in each scene.
//!
//! `one` and `two` are processes of the language that is tested, `rust` is one of ours.

pub(crate) mod faults;
pub(crate) mod owners;
pub(crate) mod plain;
pub(crate) mod restart;
pub(crate) mod rules;

use crate::stage::Player;

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
