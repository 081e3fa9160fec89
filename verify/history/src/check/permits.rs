//! Promise 1 for permits: never more than there are.

use crate::check::found::Found;
use crate::check::holds::Story;
use crate::check::judge::beyond;
use crate::check::mode::Mode;
use crate::check::numbers::Numbers;
use crate::check::stretch::Stretch;

/// Counts the permits that are out with one more grant, against the most that there may be.
pub(crate) fn enough(
    story: &Story,
    trusted: &[&Stretch<'_>],
    next: &Stretch<'_>,
    numbers: &Numbers<'_>,
    found: &mut Found,
    broken: &mut Vec<String>,
) {
    let Mode::Permits { count, .. } = next.mode else { return };
    let (mut sure, mut forgiven, mut since) = (count, 0, next.since);
    for hold in trusted.iter().filter(|it| it.mode.count() > 0) {
        if beyond(story, hold, next, next.from) {
            forgiven += hold.mode.count();
        } else {
            sure += hold.mode.count();
            since = since.max(hold.since);
        }
    }
    // The last of these grants was after each was asked for, and before this one was heard of.
    let of = numbers.most(since.min(next.from), next.from);
    if sure > of {
        broken.push(format!(
            "exclusion: {sure} permits of {} are held when {} has {} (#{}) at {}, and there are {of}",
            next.lock, next.who, next.tag, next.token, next.from
        ));
    } else if sure + forgiven > of {
        found.excused += 1;
    } else if numbers.change() && !fits_within(story, next, numbers) {
        broken.push(format!(
            "exclusion: from {} to {}, when {} has {} of {} (#{}), there were never as many permits free",
            next.since, next.from, next.who, next.tag, next.lock, next.token
        ));
    }
}

/// Whether there is a moment, from when it was asked for to when it was heard of, at which one grant fits beside those
/// who are known to hold.
fn fits_within(story: &Story, next: &Stretch<'_>, numbers: &Numbers<'_>) -> bool {
    let others: Vec<&Stretch<'_>> = numbers
        .holds
        .iter()
        .filter(|it| it.who != next.who || it.tag != next.tag)
        .filter(|it| it.mode.count() > 0 && !it.is_over() && !beyond(story, it, next, next.from))
        .collect();
    let within = |at: &u64| (next.since..next.from).contains(at);
    let mut turns: Vec<u64> = others.iter().flat_map(|it| [it.from, it.trusted]).collect();
    turns.retain(within);
    turns.push(next.since);
    turns.sort_unstable();
    turns.iter().enumerate().any(|(index, &from)| {
        let to = turns.get(index + 1).copied().unwrap_or(next.from);
        let held = others.iter().filter(|it| it.from <= from && from < it.trusted);
        held.map(|it| it.mode.count()).sum::<u64>() + next.mode.count() <= numbers.most(from, to)
    })
}
