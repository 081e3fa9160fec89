//! How many permits a semaphore has, by what was asked for and answered.
//!
//! Who finds it free says how many there are. A resize says so anew, at one moment between its call and its
//! answer, for as long as somebody holds.

use crate::check::holds::{Asked, Resize, Story};
use crate::check::mode::Mode;
use crate::check::stretch::Stretch;

/// The numbers that one name may have had.
pub(crate) struct Numbers<'a> {
    /// All that asked for it said this one, and nobody changed it.
    same: Option<u64>,
    asked: Vec<(&'a Asked, u64)>,
    resizes: Vec<&'a Resize>,
    pub holds: &'a [Stretch<'a>],
}

impl<'a> Numbers<'a> {
    pub fn read(story: &'a Story, lock: &str, holds: &'a [Stretch<'a>]) -> Numbers<'a> {
        let of = |it: &Asked| if let Mode::Permits { of, .. } = it.mode { Some(of) } else { None };
        let asked = story.asked.iter().filter(|it| it.lock == lock && !it.refused);
        let asked: Vec<_> = asked.filter_map(|it| Some((it, of(it)?))).collect();
        let resizes: Vec<_> = story.resizes.iter().filter(|it| it.lock == lock).collect();
        let first = asked.first().map_or(0, |it| it.1);
        let same = resizes.is_empty() && asked.iter().all(|it| it.1 == first);
        Numbers { same: same.then_some(first), asked, resizes, holds }
    }

    /// Whether it may have had more than one.
    pub fn change(&self) -> bool {
        self.same.is_none()
    }

    /// The most that there may have been at some moment of a stretch of time, its ends included.
    pub fn most(&self, from: u64, to: u64) -> u64 {
        if let Some(same) = self.same {
            return same;
        }
        let begun = self.asked.iter().filter(|(asked, of)| {
            let since = asked.at.max(self.others_since(*of, from));
            self.is_free_within(since, asked.over().min(to), asked)
        });
        let set = self.resizes.iter().filter(|it| {
            it.used != Some(false) && it.from <= to && it.to >= self.others_since(it.of, from)
        });
        begun.map(|it| it.1).chain(set.map(|it| it.of)).max().unwrap_or(0)
    }

    /// The last moment before which it had another number than `of` for certain, as far as was heard of
    /// before `now`. Nothing that is over by then explains that it has `of`.
    fn others_since(&self, of: u64, now: u64) -> u64 {
        let resized = self.resizes.iter().filter(|it| it.used == Some(true));
        let resized = resized.map(|it| (it.of, it.from, it.to));
        // Who does not adopt is granted what it says, or nothing.
        let granted = self.asked.iter().filter(|it| !it.0.adopts);
        let granted = granted.filter_map(|(it, of)| Some((*of, it.at, it.granted?)));
        let known = resized.chain(granted).filter(|it| it.0 != of && it.2 < now);
        known.map(|it| it.1).max().unwrap_or(0)
    }

    /// Whether there is a moment at which nobody but one who asks is known to hold.
    fn is_free_within(&self, from: u64, to: u64, but: &Asked) -> bool {
        let others = || self.holds.iter().filter(|it| it.who != but.who || it.tag != but.tag);
        let mut at = from;
        while let Some(held) = others().find(|it| it.from <= at && at < it.trusted) {
            at = held.trusted;
        }
        at <= to
    }
}
