//! Bytes that have come and are not yet read.

use crate::redis::session::resp::{self, Frame, Garbage, Parsed};

/// Bytes that have come, in pieces of any size, and are not yet read.
#[derive(Clone, Debug, Default)]
pub struct Incoming {
    buffer: Vec<u8>,
    parsed: usize,
    /// No frame ends before the buffer is so long.
    needed: usize,
}

impl Incoming {
    /// The next whole frame; `None` until more has come.
    ///
    /// # Errors
    /// When the other side does not speak RESP.
    pub fn frame(&mut self) -> Result<Option<Frame>, Garbage> {
        let rest = &self.buffer[self.parsed..];
        if rest.is_empty() || rest.len() < self.needed {
            return Ok(None);
        }
        match resp::parse(rest)? {
            Parsed::Frame(frame, length) => {
                self.parsed += length;
                self.needed = 0;
                Ok(Some(frame))
            }
            Parsed::Partial(needed) => {
                self.needed = needed;
                Ok(None)
            }
        }
    }

    /// Takes what has come.
    pub fn extend(&mut self, bytes: &[u8]) {
        if self.parsed == self.buffer.len() {
            self.buffer.clear();
        } else if self.parsed > 0 {
            self.buffer.drain(..self.parsed);
        }
        self.parsed = 0;
        self.buffer.extend_from_slice(bytes);
    }
}
