//! Replies and messages as bytes, and commands out of them.

use fencelock_engine::redis::Value;
use fencelock_engine::redis::session::{Frame, Incoming};

/// Commands that come in pieces.
#[derive(Clone, Debug, Default)]
pub(super) struct Reads(Incoming);

impl Reads {
    /// The commands that are whole now, word by word.
    pub fn commands(&mut self, bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
        self.0.extend(bytes);
        let mut commands = Vec::new();
        while let Ok(Some(Frame::Reply(Value::Array(words)))) = self.0.frame() {
            let word = |word| match word {
                Value::Bytes(bytes) => bytes,
                _ => Vec::new(),
            };
            commands.push(words.into_iter().map(word).collect());
        }
        commands
    }
}

fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends a reply.
pub(super) fn reply(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Nil => out.extend_from_slice(b"_\r\n"),
        Value::Int(number) => out.extend_from_slice(format!(":{number}\r\n").as_bytes()),
        Value::Bytes(bytes) => bulk(out, bytes),
        Value::Error(line) => out.extend_from_slice(format!("-{line}\r\n").as_bytes()),
        Value::Array(values) => {
            out.extend_from_slice(format!("*{}\r\n", values.len()).as_bytes());
            values.iter().for_each(|value| reply(out, value));
        }
    }
}

/// What SUBSCRIBE is answered by.
pub(super) fn subscribed(channel: &[u8]) -> Vec<u8> {
    let mut out = b">3\r\n".to_vec();
    bulk(&mut out, b"subscribe");
    bulk(&mut out, channel);
    out.extend_from_slice(b":1\r\n");
    out
}

/// A message on a channel.
pub(super) fn message(channel: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = b">3\r\n".to_vec();
    [b"message", channel, payload].iter().for_each(|word| bulk(&mut out, word));
    out
}

/// Text as a value.
pub(super) fn text(text: impl AsRef<[u8]>) -> Value {
    Value::Bytes(text.as_ref().to_vec())
}
