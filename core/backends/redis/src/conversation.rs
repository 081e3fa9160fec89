//! One question after the other.

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

    /// Subscribes, with RESP3, where that is answered by a push; gives why not, if it is refused.
    pub(crate) async fn subscribe<W: AsRef<[u8]>>(
        &mut self,
        words: &[W],
    ) -> Result<Option<String>, NoSession> {
        let mut out = Vec::new();
        session::words(&mut out, words);
        session::words(&mut out, &["PING"]);
        match self.reply(out).await? {
            Value::Error(line) => {
                let line = self.greeted.secrets.hide(&line).into_owned();
                // The answer to PING is behind it.
                self.reply(Vec::new()).await.map(|_| Some(line))
            }
            _ => Ok(None),
        }
    }

    /// Sends one command and waits for its reply.
    pub(crate) async fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Value, NoSession> {
        let mut out = Vec::new();
        session::words(&mut out, words);
        self.reply(out).await
    }

    /// Writes all of it, and gives the next reply.
    async fn reply(&mut self, mut out: Vec<u8>) -> Result<Value, NoSession> {
        loop {
            let frame = self.greeted.incoming.frame();
            match frame.map_err(|garbage| NoSession::misconfigured(garbage.to_string()))? {
                Some(Frame::Reply(value)) => return Ok(value),
                Some(Frame::Push(values)) => self.greeted.early.push(values),
                None => {
                    let read = exchange(&mut self.stream, &out).await?;
                    self.greeted.incoming.extend(&read);
                    out.clear();
                }
            }
        }
    }
}

/// Moves the bytes until the connection is ready.
async fn greet(stream: &mut Stream, mut greeting: Greeting) -> Result<Greeted, NoSession> {
    let mut read = Vec::new();
    loop {
        // Also what has come before can end it.
        if let Some(greeted) = greeting.receive(&read)? {
            return Ok(greeted);
        }
        read = exchange(stream, &greeting.take()).await?;
    }
}

/// Writes all of it, if there is any, and gives what comes next.
pub(crate) async fn exchange(stream: &mut Stream, bytes: &[u8]) -> Result<Vec<u8>, NoSession> {
    if !bytes.is_empty() {
        let sent = async {
            stream.write_all(bytes).await?;
            stream.flush().await
        };
        sent.await.map_err(|error| failed(&error))?;
    }
    let mut read = vec![0; 4096];
    match stream.read(&mut read).await {
        Ok(0) => Err(Greeting::closed()),
        Ok(length) => {
            read.truncate(length);
            Ok(read)
        }
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
