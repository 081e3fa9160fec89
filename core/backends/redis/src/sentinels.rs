//! The connections to Sentinels, beside that to the server.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fencelock_engine::redis::Node;
use fencelock_engine::redis::sentinel::{Input, Machine, Output, Terms};
use fencelock_engine::redis::session::{Greeting, NoSession};
use fencelock_engine::redis::sync::Replicas;
use fencelock_engine::time::Time;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::connect::{self, Stream};
use crate::options::{Options, Sentinel};
use crate::tls;

/// What Sentinels have to say.
#[derive(Debug)]
pub(crate) enum Word {
    Found(Node),
    Replicas(u32),
    Nobody(NoSession),
    Moved(String),
}

const READ: usize = 4 << 10;

type Dial = Pin<Box<dyn Future<Output = Result<Stream, NoSession>> + Send>>;

enum Line {
    Closed,
    Dialling(Dial),
    /// What is to be written, and how far that has come.
    Open(Stream, Vec<u8>, usize),
}

/// Does what the engine's machine wants of each Sentinel.
pub(crate) struct Sentinels {
    options: Arc<Options>,
    tls: bool,
    nodes: Vec<Node>,
    machine: Machine,
    since: Instant,
    lines: Vec<Line>,
    chunk: Box<[u8]>,
    /// When the machine wants to be woken.
    alarm: Option<(Time, Pin<Box<Sleep>>)>,
}

impl Sentinels {
    pub(crate) fn new(options: &Arc<Options>, sentinel: &Sentinel) -> Sentinels {
        let terms = Terms {
            sentinels: sentinel.nodes.clone(),
            master: sentinel.master.clone(),
            login: sentinel.login.clone(),
            protocol: options.protocol,
            tls: sentinel.sentinel_tls,
            replicas: options.sync_replicas == Some(Replicas::All),
            map: sentinel.map.clone(),
            connect_timeout: options.connect_timeout,
            backoff_min: options.backoff_min,
            backoff_max: options.backoff_max,
        };
        let mut seed = [0; 32];
        fastrand::fill(&mut seed);
        Sentinels {
            options: Arc::clone(options),
            tls: sentinel.sentinel_tls,
            nodes: sentinel.nodes.clone(),
            machine: Machine::new(Time::ZERO, terms, seed),
            since: Instant::now(),
            lines: sentinel.nodes.iter().map(|_| Line::Closed).collect(),
            chunk: vec![0; READ].into_boxed_slice(),
            alarm: None,
        }
    }

    fn now(&self) -> Time {
        Time::ZERO + self.since.elapsed()
    }

    /// A connection is to be made: who is the master?
    pub(crate) fn seek(&mut self) {
        self.machine.handle(self.now(), Input::Seek);
    }

    /// The session is with this server from now on, or there is none.
    pub(crate) fn with(&mut self, node: Option<Node>) {
        self.machine.handle(self.now(), Input::With(node));
    }

    /// Does what there is to do, until there is something to say.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Word> {
        loop {
            while let Some(output) = self.machine.poll_output() {
                match output {
                    Output::Dial(at) => self.lines[at] = Line::Dialling(self.dial(at)),
                    Output::Say(at, bytes) => {
                        if let Line::Open(_, out, _) = &mut self.lines[at] {
                            out.extend(bytes);
                        }
                    }
                    Output::Close(at) => self.lines[at] = Line::Closed,
                    Output::Found(node) => return Poll::Ready(Word::Found(node)),
                    Output::Replicas(count) => return Poll::Ready(Word::Replicas(count)),
                    Output::Nobody(why) => return Poll::Ready(Word::Nobody(why)),
                    Output::Moved(reason) => return Poll::Ready(Word::Moved(reason)),
                }
            }
            let mut progress = self.poll_alarm(cx).is_ready();
            for at in 0..self.lines.len() {
                progress |= self.poll_line(at, cx).is_ready();
            }
            if !progress {
                return Poll::Pending;
            }
        }
    }

    fn dial(&self, at: usize) -> Dial {
        let (options, tls, node) = (Arc::clone(&self.options), self.tls, self.nodes[at].clone());
        Box::pin(async move { connect::reach(&options, &node, tls).await })
    }

    /// Wakes the machine when it wants to be.
    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.machine.next_wake() else {
            self.alarm = None;
            return Poll::Pending;
        };
        let (_, sleep) = match &mut self.alarm {
            Some((set, sleep)) if *set == at => (set, sleep),
            alarm => {
                let passed = Time::ZERO + self.since.elapsed();
                let sleep = Box::pin(tokio::time::sleep(at.since(passed)));
                let (set, sleep) = alarm.insert((at, sleep));
                (set, sleep)
            }
        };
        if sleep.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.alarm = None;
        self.machine.wake(self.now().max(at));
        Poll::Ready(())
    }

    /// Moves what one Sentinel has to say or to hear; ready when the machine was told something.
    fn poll_line(&mut self, at: usize, cx: &mut Context<'_>) -> Poll<()> {
        let result = match &mut self.lines[at] {
            Line::Closed => return Poll::Pending,
            Line::Dialling(dial) => match dial.as_mut().poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(stream)) => {
                    self.lines[at] = Line::Open(stream, Vec::new(), 0);
                    self.machine.handle(self.now(), Input::Dialled(at));
                    return Poll::Ready(());
                }
                Poll::Ready(Err(why)) => Err(why),
            },
            Line::Open(stream, out, written) => {
                let mut buffer = ReadBuf::new(&mut self.chunk);
                match write(stream, out, written, cx) {
                    Poll::Ready(Err(error)) => Err(failed(&error)),
                    _ => match Pin::new(stream).poll_read(cx, &mut buffer) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(Err(error)) => Err(failed(&error)),
                        Poll::Ready(Ok(())) if buffer.filled().is_empty() => {
                            Err(Greeting::closed())
                        }
                        Poll::Ready(Ok(())) => Ok(buffer.filled().len()),
                    },
                }
            }
        };
        match result {
            Ok(length) => {
                self.machine.handle(self.now(), Input::Received(at, &self.chunk[..length]))
            }
            Err(why) => {
                self.lines[at] = Line::Closed;
                tracing::debug!(sentinel = %self.nodes[at], ?why, "no connection to a Sentinel");
                self.machine.handle(self.now(), Input::Failed(at, why));
            }
        }
        Poll::Ready(())
    }
}

/// Writes as far as the socket takes it.
fn write(
    stream: &mut Stream,
    out: &mut Vec<u8>,
    written: &mut usize,
    cx: &mut Context<'_>,
) -> Poll<std::io::Result<()>> {
    while *written < out.len() {
        match Pin::new(&mut *stream).poll_write(cx, &out[*written..]) {
            Poll::Ready(Ok(0)) => return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into())),
            Poll::Ready(Ok(bytes)) => *written += bytes,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        }
    }
    out.clear();
    *written = 0;
    Pin::new(stream).poll_flush(cx)
}

fn failed(error: &std::io::Error) -> NoSession {
    tls::explain(error)
        .unwrap_or_else(|| NoSession::Later(format!("the connection broke ({error})")))
}
