//! What is to be written to a connection, and how much of it may have left.

use std::mem;

/// Bytes that are to be written, and how many of them may have left: what has not is known not to have been
/// executed.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Encoded, and not yet taken by a writer.
    bytes: Vec<u8>,
    /// How much of the front of `bytes` is written already.
    written: usize,
    /// An empty buffer, kept for its space.
    spare: Vec<u8>,
    /// All bytes ever encoded for this connection.
    encoded: u64,
    /// How many of them may have left.
    left: u64,
}

/// Buffers above this are not kept.
const KEEP: usize = 256 << 10;

impl Outbox {
    /// Begins to count anew, for a new connection.
    pub fn renew(&mut self) {
        self.clear();
        self.encoded = 0;
        self.left = 0;
    }

    /// Forgets what is not written.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.written = 0;
    }

    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Adds a command; gives where its first byte stands in all that was ever encoded.
    pub fn push(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> u64 {
        let (start, before) = (self.encoded, self.bytes.len());
        encode(&mut self.bytes);
        self.encoded += (self.bytes.len() - before) as u64;
        start
    }

    /// Whether what begins there may have left.
    pub fn may_have_left(&self, start: u64) -> bool {
        start < self.left
    }

    /// All of it may leave from now on.
    pub fn take(&mut self) -> Vec<u8> {
        let mut buffer = mem::replace(&mut self.bytes, mem::take(&mut self.spare));
        if self.written > 0 {
            buffer.drain(..self.written);
            self.written = 0;
        }
        self.left += buffer.len() as u64;
        buffer
    }

    /// What came while `done` was being written; `None`, with `done` kept, when nothing did.
    pub fn next(&mut self, done: Vec<u8>) -> Option<Vec<u8>> {
        self.keep(done);
        if self.bytes.is_empty() { None } else { Some(self.take()) }
    }

    /// Only the first `written` bytes of `buffer` have left.
    pub fn put_back(&mut self, mut buffer: Vec<u8>, written: usize) {
        self.left -= (buffer.len() - written) as u64;
        buffer.extend_from_slice(&self.bytes);
        self.bytes = buffer;
        self.written = written;
    }

    /// Keeps a written buffer for its space.
    pub fn keep(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() <= KEEP {
            buffer.clear();
            self.spare = buffer;
        }
    }
}
