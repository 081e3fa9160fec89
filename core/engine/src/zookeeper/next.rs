//! The node that follows one's own: a lock that nobody has wanted since it was released here need
//! not be listed.

use crate::id::HoldId;
use crate::reply::Abandoned;
use crate::zookeeper::machine::{Machine, TOKENS};
use crate::zookeeper::name::is_worn;
use crate::zookeeper::place::Place;

/// So many locks are remembered at the most.
const MOST: usize = 1_000;

/// How this session last released a lock: as the first in its queue, with its node certainly gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Last {
    sequence: i32,
    /// The transaction that made the node.
    czxid: i64,
    /// What the note says.
    abandoned: Abandoned,
}

impl Last {
    /// Whether a node of this number and transaction was the next to be made after ours.
    ///
    /// A number counts the nodes that were made below its parent, so nobody came in between: unless
    /// the container was made anew and counts anew. Then our deletion, the container's, its making
    /// and that of one node for each number before this one have had a transaction each.
    fn precedes(self, sequence: i32, czxid: i64) -> bool {
        let same_epoch = self.czxid >> 32 == czxid >> 32;
        let between = czxid.saturating_sub(self.czxid);
        let same_count = same_epoch && between < i64::from(self.sequence) + 5;
        let next = self.sequence.checked_add(1) == Some(sequence) && !is_worn(sequence);
        next && (same_count || planted!(ZkNumberBelieved)) || planted!(ZkLastReleaseBelieved)
    }
}

impl Machine {
    /// The hold's node is gone, by its own release. Where it had to wait, others want the lock: then
    /// a list that leaves with the next node is quicker than one that follows it.
    pub(super) fn note_last(&mut self, place: &Place) {
        let Some(node) = &place.node else { return };
        // What was turned took a number of its own.
        if node.given.is_some() {
            return;
        }
        if !place.held || !place.leads && node.kind.reads() || place.waited || self.is_simple() {
            return;
        }
        if self.lasts.len() >= MOST {
            self.lasts.clear();
        }
        let last = Last {
            sequence: node.sequence,
            czxid: i64::try_from(node.token / TOKENS).unwrap_or(0),
            abandoned: self.word_of(place).unwrap_or(Abandoned::Unknown),
        };
        self.lasts.insert(place.parent.clone(), last);
    }

    /// The node was made, and nobody was asked who comes before: whether nobody can.
    pub(super) fn follows_last(&mut self, hold: HoldId) -> bool {
        let Some(place) = self.places.get_mut(&hold) else { return false };
        let (Some(last), Some(node)) = (place.last.take(), &place.node) else { return false };
        let czxid = i64::try_from(node.token / TOKENS).unwrap_or(0);
        if !last.precedes(node.sequence, czxid) {
            return false;
        }
        place.others = 0;
        place.leads = true;
        place.verdict = last.abandoned;
        true
    }
}
