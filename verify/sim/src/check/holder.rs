//! Promise 3: a release or a renewal touches its own hold and no other.

use fencelock_engine::HoldId;
use fencelock_engine::reply::{HoldInfo, LockInfo};
use fencelock_engine::request::{Mode, Op};

/// A late copy of a renewal leaves its hold's end alone: `shown` is the highest token that an
/// earlier one showed as given out under the same hold. An explicit owner's holds pass to nobody else.
pub(crate) fn copies(
    op: &Op,
    before: &LockInfo,
    after: Option<&LockInfo>,
    shown: u64,
) -> Result<(), String> {
    let Op::Beat(beats) = op else { return Ok(()) };
    let [beat] = &beats[..] else { return Ok(()) };
    // Whoever shares a lock hands it to nobody.
    let passes = |it: &HoldInfo| it.hold == beat.hold && it.mode == Mode::Exclusive;
    if beat.used >= shown
        || shown < before.token
        || before.owner.is_some()
        || !before.holds.iter().any(passes)
    {
        return Ok(());
    }
    let end =
        |info: &LockInfo| info.holds.iter().find(|it| it.hold == beat.hold).map(|it| it.expires_in);
    match (end(before), after.and_then(end)) {
        (Some(before), Some(after)) if before != after => {
            Err(format!("{}: {before:?} were left, and {after:?} are by {beat:?}", beat.lock))
        }
        _ => Ok(()),
    }
}

/// Compares a lock before and after a request.
pub(crate) fn only_holder(
    op: &Op,
    before: &LockInfo,
    after: Option<&LockInfo>,
) -> Result<(), String> {
    let named: &[HoldId] = match op {
        Op::Release(release) => &[release.hold],
        Op::Beat(beats) => &[beats[0].hold],
        _ => return Ok(()),
    };
    let none = Vec::new();
    let after = after.map_or(&none, |info| &info.holds);
    for hold in &before.holds {
        if named.contains(&hold.hold) || hold.expires_in.is_zero() {
            continue;
        }
        let what = match after.iter().find(|it| it.hold == hold.hold) {
            None => "ended",
            Some(it) if it.expires_in > hold.expires_in => "was renewed",
            Some(_) => continue,
        };
        return Err(format!("{}: {:?} {what} by {op:?}", before.name, hold.hold));
    }
    Ok(())
}
