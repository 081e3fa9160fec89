//! One question after the other, while a connection is being made.

use std::io;

use fencelock_engine::redis::Value;
use fencelock_engine::secret::Secrets;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::connect::Stream;
use crate::encode;
use crate::refusal::{NoSession, classify};
use crate::resp::{self, Frame, Garbage, Parsed};
use crate::tls;

/// Bytes that have come and are not yet parsed.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    buffer: Vec<u8>,
    parsed: usize,
    /// No frame ends before the buffer is so long.
    needed: usize,
}

impl Incoming {
    /// The next whole frame.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, Garbage> {
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

    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        if self.parsed == self.buffer.len() {
            self.buffer.clear();
        } else if self.parsed > 0 {
            self.buffer.drain(..self.parsed);
        }
        self.parsed = 0;
        self.buffer.extend_from_slice(bytes);
    }
}

/// A connection on which one side waits for the other.
#[derive(Debug)]
pub(crate) struct Conversation {
    stream: Stream,
    incoming: Incoming,
    pushes: Vec<Vec<Value>>,
    secrets: Secrets,
}

impl Conversation {
    /// `secrets`: what is not to be shown, although the server should say it.
    pub(crate) fn new(stream: Stream, secrets: Secrets) -> Conversation {
        Conversation { stream, incoming: Incoming::default(), pushes: Vec::new(), secrets }
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Turns an error reply into why there is no session.
    pub(crate) fn refuse(&self, step: &str, value: Value) -> Result<Value, NoSession> {
        match value {
            Value::Error(line) => Err(classify(step, &line, &self.secrets)),
            value => Ok(value),
        }
    }

    /// The stream, what came and was not parsed, and pushes that came between.
    pub(crate) fn into_parts(self) -> (Stream, Incoming, Vec<Vec<Value>>) {
        (self.stream, self.incoming, self.pushes)
    }

    /// Sends one command and waits for its reply.
    pub(crate) async fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Value, NoSession> {
        let mut out = Vec::new();
        encode::words(&mut out, words);
        self.send(&out).await?;
        self.reply().await
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), NoSession> {
        let sent = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        sent.await.map_err(|error| failed(&error))
    }

    /// The next reply; pushes before it are kept.
    pub(crate) async fn reply(&mut self) -> Result<Value, NoSession> {
        loop {
            match self.frame().await? {
                Frame::Reply(value) => return Ok(value),
                Frame::Push(values) => self.pushes.push(values),
            }
        }
    }

    pub(crate) async fn frame(&mut self) -> Result<Frame, NoSession> {
        let mut chunk = [0; 4096];
        loop {
            match self.incoming.next() {
                Ok(Some(frame)) => return Ok(frame),
                Ok(None) => {}
                Err(garbage) => return Err(NoSession::misconfigured(garbage.to_string())),
            }
            match self.stream.read(&mut chunk).await {
                Ok(0) => {
                    return Err(NoSession::Later(
                        "the server closed the connection during login; if it expects TLS, use \
                         rediss://"
                            .to_owned(),
                    ));
                }
                Ok(read) => self.incoming.extend(&chunk[..read]),
                Err(error) => return Err(failed(&error)),
            }
        }
    }
}

fn failed(error: &io::Error) -> NoSession {
    tls::explain(error).unwrap_or_else(|| {
        NoSession::Later(format!(
            "the connection broke during login ({error}); if the server expects TLS, use rediss://"
        ))
    })
}
