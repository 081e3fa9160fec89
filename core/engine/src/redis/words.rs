//! The words of a command.

use crate::id::HoldId;

/// Byte strings, one after the other in one buffer: a renewal of a thousand holds has thousands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Words {
    /// None yet, and room for so many of so many bytes each.
    pub(super) fn with_capacity(words: usize, bytes: usize) -> Words {
        Words { bytes: Vec::with_capacity(words * bytes), ends: Vec::with_capacity(words) }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The one at `at`, counted from zero.
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends.get(at)?;
        Some(&self.bytes[at.checked_sub(1).map_or(0, |before| self.ends[before])..end])
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut begin = 0;
        self.ends.iter().map(move |&end| &self.bytes[std::mem::replace(&mut begin, end)..end])
    }

    /// Adds one that is given in pieces.
    pub(super) fn push<const N: usize>(&mut self, pieces: [&[u8]; N]) {
        for piece in pieces {
            self.bytes.extend_from_slice(piece);
        }
        self.ends.push(self.bytes.len());
    }

    /// Adds a number, in decimal.
    pub(super) fn number(&mut self, number: u64) {
        self.push([itoa::Buffer::new().format(number).as_bytes()]);
    }

    /// Adds a hold.
    pub(super) fn hold(&mut self, hold: HoldId) {
        self.push([&hold.digits()]);
    }

    /// Removes the empty ones at the end.
    pub(super) fn trim(&mut self) {
        while self.get(self.len().wrapping_sub(1)).is_some_and(<[u8]>::is_empty) {
            self.ends.pop();
        }
    }
}

impl<W: AsRef<[u8]>> FromIterator<W> for Words {
    fn from_iter<I: IntoIterator<Item = W>>(from: I) -> Words {
        let mut words = Words::default();
        for word in from {
            words.push([word.as_ref()]);
        }
        words
    }
}
