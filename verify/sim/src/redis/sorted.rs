//! A sorted set, as far as the scripts use it: scores are whole numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Members by score, equal ones by their bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sorted {
    scores: BTreeMap<Vec<u8>, i64>,
    order: BTreeSet<(i64, Vec<u8>)>,
}

impl Sorted {
    /// How many members there are.
    pub(crate) fn len(&self) -> usize {
        self.scores.len()
    }

    /// Whether it has the member.
    pub(crate) fn has(&self, member: &[u8]) -> bool {
        self.scores.contains_key(member)
    }

    /// Adds a member or moves it; whether it is new.
    pub(crate) fn add(&mut self, score: i64, member: &[u8]) -> bool {
        let old = self.scores.insert(member.to_vec(), score);
        if let Some(old) = old {
            self.order.remove(&(old, member.to_vec()));
        }
        self.order.insert((score, member.to_vec()));
        old.is_none()
    }

    /// Removes a member; whether it was there.
    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        let Some(score) = self.scores.remove(member) else { return false };
        self.order.remove(&(score, member.to_vec()))
    }

    /// The members from one score to another, each as a command writes it.
    pub(crate) fn between(
        &self,
        least: &[u8],
        most: &[u8],
    ) -> impl DoubleEndedIterator<Item = &Vec<u8>> {
        let (least, most) = (bound(least, true), bound(most, false));
        let least = least.map_or(Bound::Unbounded, |least| Bound::Included((least, Vec::new())));
        let most = most.map_or(Bound::Unbounded, |most| Bound::Excluded((most, Vec::new())));
        self.order.range((least, most)).map(|(_, member)| member)
    }

    /// Every member with its score, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], i64)> {
        self.order.iter().map(|(score, member)| (member.as_slice(), *score))
    }
}

/// The first score within, or the first beyond; none at either end.
fn bound(text: &[u8], least: bool) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    match text.strip_prefix('(') {
        Some(score) => score.parse::<i64>().ok().map(|score| score + i64::from(least)),
        None => text.parse::<i64>().ok().map(|score| score + i64::from(!least)),
    }
}
