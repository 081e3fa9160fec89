//! One judgement for each promise.

use crate::check::found::Found;
use crate::check::holds::{End, Hold, Span, Story};
use crate::check::mode::Mode;
use crate::check::numbers::Numbers;
use crate::check::permits;
use crate::check::stretch::Stretch;
use crate::record::Record;

/// How long after the end of its trust a process that runs may be told on a busy machine.
const WORD: u64 = 2_000_000_000;

/// Promise 1: of holds of different owners that do not go together, one is over before the next is granted;
/// permits are never more than there are.
pub(crate) fn exclusion(
    story: &Story,
    holds: &[Stretch<'_>],
    numbers: &Numbers<'_>,
    found: &mut Found,
    broken: &mut Vec<String>,
) {
    let mut trusted: Vec<&Stretch<'_>> = Vec::new();
    for next in holds {
        trusted.retain(|hold| hold.trusted > next.from);
        // One that is over when its holder hears of it is trusted by nobody.
        if next.is_over() {
            trusted.push(next);
            continue;
        }
        permits::enough(story, &trusted, next, numbers, found, broken);
        let beside = |it: &&&Stretch<'_>| !it.shares(next) && it.mode.fits(next.mode);
        found.together += trusted.iter().filter(beside).count();
        for hold in trusted.iter().filter(|hold| !hold.shares(next) && !hold.mode.fits(next.mode)) {
            if beyond(story, hold, next, next.from) {
                found.excused += 1;
            } else {
                broken.push(format!(
                    "exclusion: {} trusts its hold {} of {} (#{}) until {}, and {} has {} (#{}) \
                     at {}",
                    hold.who,
                    hold.tag,
                    hold.lock,
                    hold.token,
                    hold.trusted,
                    next.who,
                    next.tag,
                    next.token,
                    next.from
                ));
            }
        }
        trusted.push(next);
    }
}

/// Whether the store broke what exclusion rests on, from the first of two grants to `until`.
pub(super) fn beyond(story: &Story, earlier: &Hold, later: &Hold, until: u64) -> bool {
    let since = earlier.since.min(later.since);
    let touches = |it: &&Span| it.to >= since && it.from <= until;
    story.forgot.iter().chain(&story.forward).any(|it| touches(&it))
}

/// Promise 2: tokens rise in the order of the grants. Readers who are in together may share one, and are heard
/// of in any order; permits each have their own.
pub(crate) fn tokens(
    story: &Story,
    holds: &[Stretch<'_>],
    found: &mut Found,
    broken: &mut Vec<String>,
) {
    for (index, later) in holds.iter().enumerate() {
        if later.is_over() || !later.sure {
            continue;
        }
        for earlier in &holds[..index] {
            if earlier.is_over() || !earlier.sure {
                continue;
            }
            let mut forgot = story
                .forgot
                .iter()
                .filter(|it| it.to >= earlier.since.min(later.since) && it.from <= later.from)
                .peekable();
            // A grant that was on its way while the store forgot, or while its clock ended the lease, may
            // arrive after its successor.
            let since = earlier.since.min(later.since);
            let mut leapt = story.forward.iter().filter(|it| it.to >= since);
            let between = forgot.peek().is_some();
            let overtaken =
                forgot.any(|it| it.from <= earlier.from) || leapt.any(|it| it.from <= earlier.from);
            // The double fault: the counter is lost, and the clock is behind.
            let double = between && story.back.is_some_and(|back| back <= later.from);
            // One who still trusts an older grant enters it again, after exclusion was lost.
            let overtaken = overtaken || !later.first && beyond(story, earlier, later, later.from);
            let rises = match (earlier.mode, later.mode) {
                (Mode::Shared, Mode::Shared) => true,
                (Mode::Permits { .. }, Mode::Permits { .. }) => later.token != earlier.token,
                _ => {
                    later.token > earlier.token
                        || (later.token == earlier.token && later.shares(earlier))
                }
            };
            found.doubled += usize::from(!rises && !overtaken && double);
            if !rises && !overtaken && !double {
                broken.push(format!(
                    "token order: {} has {} of {} under #{} at {}, after {} had {} under #{} at {}",
                    later.who,
                    later.tag,
                    later.lock,
                    later.token,
                    later.from,
                    earlier.who,
                    earlier.tag,
                    earlier.token,
                    earlier.from
                ));
            }
        }
    }
}

/// Promise 12: who follows a holder that was lost is told so. Of readers and permits nobody is told, but readers
/// are told of writers.
pub(crate) fn abandoned(story: &Story, holds: &[Stretch<'_>], broken: &mut Vec<String>) {
    let mut writer = None;
    for later in holds {
        if later.mode.count() > 0 {
            if later.abandoned == "yes" {
                broken.push(format!(
                    "abandoned: {} has {} of {}, which are permits, and is told 'yes'",
                    later.who, later.tag, later.lock
                ));
            }
            continue;
        }
        let before = writer;
        if later.mode.is_alone() {
            writer = Some(later);
        }
        let Some(earlier) = before.filter(|_| later.told) else { continue };
        if earlier.owner.is_some()
            || later.owner.is_some()
            || earlier.shares(later)
            || beyond(story, earlier, later, later.from)
            || later.is_over()
        {
            continue;
        }
        let said = later.abandoned.as_str();
        let lost = earlier.lost.as_ref().is_some_and(|it| it.1 != "closed" && it.1 != "broken");
        let wrong = match earlier.end {
            End::Killed => said == "no",
            End::Lost | End::Unreleased(_) if lost => said == "no",
            // What was granted in between and heard by nobody may have been lost; and who went away
            // from between the two leaves it open.
            End::Released if said == "no" || story.faults => false,
            End::Released => said == "yes" || !story.left_between(earlier, later),
            _ => false,
        };
        if wrong {
            broken.push(format!(
                "abandoned: {} has {} of {} at {} and is told '{said}', after {} had {}, which \
                 ended as {:?}",
                later.who, later.tag, later.lock, later.from, earlier.who, earlier.tag, earlier.end
            ));
        }
    }
}

/// Promises 8 and 14: every acquisition and every loss is told, in time.
pub(crate) fn told(story: &Story, found: &mut Found, broken: &mut Vec<String>) {
    for asked in story.asked.iter().filter(|it| !it.answered) {
        let gone = story.killed.contains_key(&*asked.who)
            || story.closed.contains(&(asked.who.clone(), asked.client.clone()));
        if !gone {
            broken.push(format!(
                "answers: {} asked for {} at {} and never heard of it",
                asked.who, asked.tag, asked.at
            ));
        }
    }
    for hold in &story.holds {
        // When it was told, or gave up without having been told.
        let end = match (&hold.lost, hold.releasing) {
            (Some((at, _)), _) => *at,
            (None, Some((at, false))) => at,
            _ => continue,
        };
        // Its process did not run for a part of the time.
        let stopped = story.stopped.get(&*hold.who).into_iter().flatten();
        let mut stopped = stopped.chain(&story.stalled);
        if stopped.any(|it| it.from <= end && it.to >= hold.until) {
            continue;
        }
        let late = end.saturating_sub(hold.until.max(hold.granted));
        if late > WORD {
            let heard = if hold.lost.is_some() { "hears" } else { "has not heard" };
            broken.push(format!(
                "told in time: {} {heard} at {end} that {} of {} is lost, {} ms after the end of \
                 its trust",
                hold.who,
                hold.tag,
                hold.lock,
                late / 1_000_000
            ));
        }
        found.latest_word = found.latest_word.max(late / 1000);
    }
}

/// Promise 3: only its holder ends a hold. One that its store no longer knew while it was trusted, or
/// that was broken, was taken away by somebody, and an operator's doing would be in the history.
pub(crate) fn taken_away(story: &Story, broken: &mut Vec<String>) {
    for hold in &story.holds {
        let (at, reason) = match (&hold.lost, &hold.end, hold.answered) {
            (Some((at, reason)), ..) => (*at, reason.as_str()),
            // It learned of it by its release.
            (None, End::Unreleased(kind), Some(at)) if kind == "lost" => (at, "gone"),
            _ => continue,
        };
        let early = at < hold.until && reason == "gone" && !beyond(story, hold, hold, at);
        let operator = story.operated.iter().any(|(lock, when)| *lock == hold.lock && *when <= at);
        if (early || reason == "broken") && !operator {
            broken.push(format!(
                "taken away: {} trusted its hold {} of {} until {}, and hears at {at} that it is \
                 {reason}",
                hold.who, hold.tag, hold.lock, hold.until
            ));
        }
    }
}

/// Promise 8: the release of a lost hold says so.
pub(crate) fn releases(story: &Story, broken: &mut Vec<String>) {
    for hold in &story.holds {
        if hold.end == End::Released && hold.releasing.is_some_and(|(_, valid)| !valid) {
            broken.push(format!(
                "releases: {} released {} of {}, which was over, and was told that all is well",
                hold.who, hold.tag, hold.lock
            ));
        }
        if hold.end == End::Open && !story.closed.iter().any(|it| it.0 == hold.who) {
            broken.push(format!(
                "releases: {} still has {} of {} at the end",
                hold.who, hold.tag, hold.lock
            ));
        }
    }
}

/// Promise 2 as the resource sees it: who is trusted may write, or read.
pub(crate) fn writes(story: &Story, records: &[Record], broken: &mut Vec<String>) {
    for write in records.iter().filter(|it| it.is("wrote") || it.is("read")) {
        let hold = story.holds.iter().find(|it| it.who == write.who && it.tag == write.tag);
        let Some(hold) = hold else { continue };
        let refused = write.get("accepted") != Some("Ok(true)");
        let excused = story
            .forgot
            .iter()
            .chain(&story.forward)
            .any(|it| it.to >= hold.since && it.from <= write.at)
            || (story.back.is_some() && !story.forgot.is_empty());
        if refused && write.at < hold.trusted() && !excused {
            broken.push(format!(
                "fencing: {} holds {} of {} under #{} until {}, and its {} at {} was answered \
                 {}",
                hold.who,
                hold.tag,
                hold.lock,
                hold.token,
                hold.until,
                if write.is("read") { "read" } else { "write" },
                write.at,
                write.get("accepted").unwrap_or_default()
            ));
        }
    }
}
