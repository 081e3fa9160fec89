//! The connection of the grants that replicas confirm, beside that of the other requests.

use std::pin::Pin;
use std::task::{Context, Poll};

use fencelock_engine::event::Event;
use fencelock_engine::redis::Codec;
use fencelock_engine::redis::session::{Asked, Greeted, Guarded, Heard, Hearing};
use fencelock_engine::redis::sync::Terms;
use fencelock_engine::time::Time;
use fencelock_engine::{ClientId, Error};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connect::Stream;
use crate::options::Options;
use crate::pump::taken;
use crate::shared::Shared;

/// What replicas are to confirm, and a codec for what is asked there.
pub(crate) fn terms(options: &Options, client: &ClientId) -> Result<Option<(Terms, Codec)>, Error> {
    let codec = |terms| Ok((terms, Codec::new(client.clone(), &options.prefix)?));
    options.sync().map(codec).transpose()
}

/// What is asked on this connection.
struct Beside<'a>(&'a Shared);

impl Guarded for Beside<'_> {
    fn with<R>(&self, act: impl FnOnce(&mut Asked) -> R) -> R {
        match self.0.confirming(|confirming, _| act(confirming.asked())) {
            Some(result) => result,
            None => unreachable!("a connection for grants that nobody is to confirm"),
        }
    }
}

/// The connection while it is up. Only the pump writes to it: whoever asks waits for replicas anyway.
pub(crate) struct Line {
    stream: Stream,
    hearing: Hearing,
    /// What is being written, and how much of it is.
    writing: Option<(Vec<u8>, usize)>,
    begun: bool,
}

impl Line {
    pub(crate) fn new(stream: Stream, codec: Codec, greeted: Greeted, cluster: bool) -> Line {
        // What is under way when it is closed is not delivered late.
        stream.forsake();
        let hearing = Hearing::new(Time::ZERO, codec, greeted, None).beside();
        let hearing = if cluster { hearing.in_cluster() } else { hearing };
        Line { stream, hearing, writing: None, begun: false }
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Why it is of no more use, if so.
    pub(crate) fn spent(&self) -> Option<String> {
        self.hearing.spent()
    }

    /// Asks what is to be asked, and hears what came; ready when there was something.
    pub(crate) fn poll(
        &mut self,
        now: Time,
        shared: &Shared,
        events: &mut Vec<Event>,
        chunk: &mut [u8],
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), String>> {
        let asked_at = shared.now();
        shared.confirming(|confirming, main| confirming.advance(asked_at, main));
        if let Poll::Ready(Err(error)) = self.write(shared, cx) {
            return Poll::Ready(Err(format!("writing failed: {error}")));
        }
        let mut buffer = ReadBuf::new(chunk);
        if self.begun {
            let polled = Pin::new(&mut self.stream).poll_read(cx, &mut buffer);
            match taken(polled, &buffer) {
                Poll::Ready(Ok(())) => {}
                other => return other,
            }
        }
        // What came in the same breath as the greeting's last word is heard first.
        self.begun = true;
        if let Err(reason) = self.hearing.receive(now, buffer.filled(), &Beside(shared)) {
            return Poll::Ready(Err(reason));
        }
        self.pass(shared, events);
        Poll::Ready(Ok(()))
    }

    /// Writes as far as the socket takes it.
    fn write(&mut self, shared: &Shared, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        loop {
            let (buffer, mut written) = match self.writing.take() {
                Some(writing) => writing,
                None => match shared.confirming(|it, _| it.outbox().take()) {
                    Some(buffer) if !buffer.is_empty() => (buffer, 0),
                    _ => return Pin::new(&mut self.stream).poll_flush(cx),
                },
            };
            while written < buffer.len() {
                match Pin::new(&mut self.stream).poll_write(cx, &buffer[written..]) {
                    Poll::Ready(Ok(0)) => {
                        return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into()));
                    }
                    Poll::Ready(Ok(bytes)) => written += bytes,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {
                        self.writing = Some((buffer, written));
                        return Poll::Pending;
                    }
                }
            }
            shared.confirming(|it, _| it.outbox().keep(buffer));
        }
    }

    /// Passes on what need not wait for replicas, and what they have confirmed, or have not.
    fn pass(&mut self, shared: &Shared, events: &mut Vec<Event>) {
        let came = std::mem::take(&mut self.hearing.events);
        let answers = std::mem::take(&mut self.hearing.aside);
        if let Some(passed) = shared.confirming(|it, _| it.hear(came, answers)) {
            events.extend(passed);
        }
        let (redirected, suspect) = (self.hearing.redirected(), self.hearing.is_suspect());
        if suspect || !redirected.is_empty() {
            shared.sent_on(redirected, suspect);
        }
    }

    /// Calls who has polled for a while; gives when to do so again.
    pub(crate) fn call_due(
        &mut self,
        now: Time,
        shared: &Shared,
        events: &mut Vec<Event>,
    ) -> Option<Time> {
        let next = self.hearing.call_due(now, &Beside(shared));
        self.pass(shared, events);
        next
    }

    /// What a log may tell.
    pub(crate) fn heard(&mut self) -> Vec<Heard> {
        std::mem::take(&mut self.hearing.heard)
    }

    /// The connection has ended.
    pub(crate) fn end(mut self, shared: &Shared, events: &mut Vec<Event>) {
        self.pass(shared, events);
        self.hearing.end_beside(events);
    }
}
