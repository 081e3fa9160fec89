//! One question after the other, while a connection is being made.

use std::io;

use fencelock_engine::redis::Value;
use fencelock_engine::redis::session::{self, Frame, Greeted, Greeting, NoSession};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::connect::Stream;
use crate::tls;

/// A connection on which one side waits for the other.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) stream: Stream,
    pub(crate) greeted: Greeted,
}

impl Conversation {
    /// Says the first words on a connection that has just been made.
    pub(crate) async fn begin(
        mut stream: Stream,
        greeting: Greeting,
    ) -> Result<Conversation, NoSession> {
        let greeted = greet(&mut stream, greeting).await?;
        Ok(Conversation { stream, greeted })
    }

    /// Says more of them.
    pub(crate) async fn go_on(&mut self, greeting: Greeting) -> Result<(), NoSession> {
        self.greeted = greet(&mut self.stream, greeting).await?;
        Ok(())
    }

    /// Turns an error reply into why there is no session.
    pub(crate) fn refuse(&self, step: &str, value: Value) -> Result<Value, NoSession> {
        session::refuse(step, value, &self.greeted.secrets)
    }

    /// Sends one command and waits for its reply.
    pub(crate) async fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Value, NoSession> {
        let mut out = Vec::new();
        session::words(&mut out, words);
        send(&mut self.stream, &out).await?;
        let mut chunk = [0; 4096];
        loop {
            let frame = self.greeted.incoming.next();
            match frame.map_err(|garbage| NoSession::misconfigured(garbage.to_string()))? {
                Some(Frame::Reply(value)) => return Ok(value),
                Some(Frame::Push(values)) => self.greeted.early.push(values),
                None => {
                    let read = read(&mut self.stream, &mut chunk).await?;
                    self.greeted.incoming.extend(read);
                }
            }
        }
    }
}

/// Moves the bytes until the connection is ready.
async fn greet(stream: &mut Stream, mut greeting: Greeting) -> Result<Greeted, NoSession> {
    let mut chunk = [0; 4096];
    let mut read: &[u8] = &[];
    loop {
        // Also what has come before can end it.
        if let Some(greeted) = greeting.receive(read)? {
            return Ok(greeted);
        }
        let out = greeting.take();
        if !out.is_empty() {
            send(stream, &out).await?;
        }
        read = self::read(stream, &mut chunk).await?;
    }
}

async fn send(stream: &mut Stream, bytes: &[u8]) -> Result<(), NoSession> {
    let sent = async {
        stream.write_all(bytes).await?;
        stream.flush().await
    };
    sent.await.map_err(|error| failed(&error))
}

async fn read<'a>(stream: &mut Stream, chunk: &'a mut [u8]) -> Result<&'a [u8], NoSession> {
    match stream.read(chunk).await {
        Ok(0) => Err(Greeting::closed()),
        Ok(read) => Ok(&chunk[..read]),
        Err(error) => Err(failed(&error)),
    }
}

fn failed(error: &io::Error) -> NoSession {
    tls::explain(error).unwrap_or_else(|| {
        NoSession::Later(format!(
            "the connection broke during login ({error}); if the server expects TLS, use rediss://"
        ))
    })
}
