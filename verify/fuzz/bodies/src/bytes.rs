//! Decisions out of bytes; when they run out, everything is zero.

/// The bytes that are left.
#[derive(Clone)]
pub(crate) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    pub(crate) fn flip(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// A number below `bound`, or 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { usize::from(self.byte()) % bound }
    }

    /// A number of any size, small ones more often.
    pub(crate) fn number(&mut self) -> u64 {
        let length = self.below(9);
        (0..length).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    /// So many bytes, or what is left.
    pub(crate) fn slice(&mut self, length: usize) -> &'a [u8] {
        let (slice, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        slice
    }

    pub(crate) fn text(&mut self, length: usize) -> String {
        String::from_utf8_lossy(self.slice(length)).into_owned()
    }
}
