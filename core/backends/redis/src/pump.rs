//! The task that reads replies and pushes, and writes what callers could not.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fencelock_engine::redis::Codec;
use fencelock_engine::redis::session::{Greeted, Heard, Hearing};
use fencelock_engine::time::Time;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::tcp;
#[cfg(unix)]
use tokio::net::unix;
use tokio::time::{Instant, Sleep};

use crate::connect::{self, Stream};
use crate::link::{Link, Writer};
use crate::quiet::Quiet;
use crate::shared::Shared;
use crate::sync::Line;

const READ: usize = 16 << 10;

/// The half of a connection that only the pump touches.
#[derive(Debug)]
enum Reader {
    Tcp(tcp::OwnedReadHalf),
    #[cfg(unix)]
    Unix(unix::OwnedReadHalf),
    Tls(Box<tokio_rustls::client::TlsStream<Quiet>>),
}

/// One connection while it is up.
pub(crate) struct Pump {
    shared: Arc<Shared>,
    hearing: Hearing,
    reader: Reader,
    link: Arc<Link>,
    /// The connection of the subscription, when it is not the same.
    inbox: Option<Stream>,
    /// The connection of the grants that replicas confirm.
    sync: Option<Line>,
    sockets: Vec<i32>,
    chunk: Box<[u8]>,
    /// What the socket did not take at once, and how much of it is written.
    writing: Option<(Vec<u8>, usize)>,
    since: Instant,
    /// What came in the same breath as the last word of the greeting has been heard.
    begun: bool,
    /// When who polls is to be called, in a cluster.
    alarm: Option<(Time, Pin<Box<Sleep>>)>,
}

/// The halves of a stream: the writing one goes to the callers' threads.
fn split(stream: Stream) -> (Reader, Link) {
    match stream {
        Stream::Tcp(stream) => {
            let (reader, writer) = stream.into_split();
            (Reader::Tcp(reader), Link::new(Writer::Tcp(writer)))
        }
        #[cfg(unix)]
        Stream::Unix(stream) => {
            let (reader, writer) = stream.into_split();
            (Reader::Unix(reader), Link::new(Writer::Unix(writer)))
        }
        Stream::Tls(stream) => {
            connect::forsake(&stream.get_ref().0.0);
            (Reader::Tls(stream), Link::new(Writer::Pump))
        }
    }
}

impl Pump {
    pub(crate) fn new(
        shared: Arc<Shared>,
        codec: Codec,
        (stream, main): (Stream, Greeted),
        apart: Option<(Stream, Greeted)>,
        sync: Option<Line>,
    ) -> Pump {
        let (inbox, apart) = apart.unzip();
        let streams = std::iter::once(&stream).chain(inbox.as_ref());
        let streams = streams.chain(sync.as_ref().map(Line::stream));
        let sockets = streams.filter_map(Stream::descriptor).collect();
        let (reader, link) = split(stream);
        let hearing = Hearing::new(Time::ZERO, codec, main, apart);
        Pump {
            hearing: if shared.is_in_cluster() { hearing.in_cluster() } else { hearing },
            shared,
            reader,
            link: Arc::new(link),
            inbox,
            sync,
            sockets,
            chunk: vec![0; READ].into_boxed_slice(),
            writing: None,
            since: Instant::now(),
            begun: false,
            alarm: None,
        }
    }

    pub(crate) fn link(&self) -> Arc<Link> {
        Arc::clone(&self.link)
    }

    fn now(&self) -> Time {
        Time::ZERO + self.since.elapsed()
    }

    /// The descriptors on which answers and pushes come.
    pub(crate) fn sockets(&self) -> Vec<i32> {
        self.sockets.clone()
    }

    /// Answers for what is under way, and says why.
    pub(crate) fn finish(mut self, reason: String) {
        self.send_on();
        let mut unread = Vec::new();
        if let Some(sync) = self.sync.take() {
            sync.end(&self.shared, &mut unread);
        }
        unread.extend(self.shared.down(|asked| self.hearing.end(reason, asked)));
        // The engine hears of each before it hears that the connection is gone.
        self.shared.deliver(&mut unread);
        self.shared.deliver(&mut self.hearing.events);
    }

    /// Does what there is to do; ready, with the reason, when the connection has ended.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<String> {
        loop {
            let shared = Arc::clone(&self.shared);
            if shared.is_in_cluster() {
                self.call(cx);
            }
            shared.deliver(&mut self.hearing.events);
            self.send_on();
            self.log();
            if let Some(reason) = self.hearing.spent() {
                return Poll::Ready(reason);
            }
            if let Some(sync) = &mut self.sync
                && let Some(reason) = sync.spent()
            {
                return Poll::Ready(reason);
            }
            shared.waker.register(cx.waker());
            if shared.take_attention() || self.writing.is_some() {
                if let Some(reason) = shared.end() {
                    return Poll::Ready(reason);
                }
                if let Err(reason) = self.write(cx) {
                    return Poll::Ready(reason);
                }
            }
            let mut progress = false;
            if !self.begun {
                self.begun = true;
                progress = true;
                if let Err(reason) = self.begin() {
                    return Poll::Ready(reason);
                }
            }
            match self.read_main(cx) {
                Poll::Ready(Err(reason)) => return Poll::Ready(reason),
                Poll::Ready(Ok(())) => progress = true,
                Poll::Pending => {}
            }
            match self.poll_sync(cx) {
                Poll::Ready(Err(reason)) => return Poll::Ready(reason),
                Poll::Ready(Ok(())) => progress = true,
                Poll::Pending => {}
            }
            match self.read_inbox(cx) {
                Poll::Ready(Err(reason)) => return Poll::Ready(reason),
                Poll::Ready(Ok(())) => progress = true,
                Poll::Pending => {}
            }
            if !progress {
                return Poll::Pending;
            }
        }
    }

    /// Hears what came behind the greeting.
    fn begin(&mut self) -> Result<(), String> {
        let now = self.now();
        self.hearing.receive(now, &[], &*self.shared)?;
        self.hearing.receive_apart(&[])
    }

    /// Calls who has polled for a while, now and whenever there is one.
    fn call(&mut self, cx: &mut Context<'_>) {
        loop {
            let now = self.shared.now();
            // Whoever polls is asked for where it asks.
            let next = match &mut self.sync {
                Some(sync) => sync.call_due(now, &self.shared, &mut self.hearing.events),
                None => self.hearing.call_due(now, &*self.shared),
            };
            let Some(next) = next else {
                self.alarm = None;
                return;
            };
            if self.alarm.as_ref().is_none_or(|(at, _)| *at != next) {
                self.alarm = Some((next, Box::pin(tokio::time::sleep(next.since(now)))));
            }
            let alarm = self.alarm.as_mut();
            if alarm.is_none_or(|(_, sleep)| sleep.as_mut().poll(cx).is_pending()) {
                return;
            }
            self.alarm = None;
        }
    }

    /// What the server of a cluster sent elsewhere is answered for by who keeps the map.
    fn send_on(&mut self) {
        let (redirected, suspect) = (self.hearing.redirected(), self.hearing.is_suspect());
        if suspect || !redirected.is_empty() {
            self.shared.sent_on(redirected, suspect);
        }
    }

    fn log(&mut self) {
        let aside = self.sync.as_mut().map(Line::heard).unwrap_or_default();
        for heard in self.hearing.heard.drain(..).chain(aside) {
            match heard {
                Heard::Forgotten(script) => {
                    tracing::info!(script, "the server forgot a script: loading it");
                }
                Heard::NoAsking(said) => {
                    tracing::warn!(%said, "ASKING is refused: a lock whose slot moves is not served");
                }
                Heard::NoChannels(said) => {
                    tracing::warn!(%said, "may not subscribe to channels of locks: waiting polls instead");
                }
                Heard::Strange(bytes) => tracing::debug!(bytes, "a message that is not ours"),
                Heard::NoMessage(parts) => tracing::trace!(parts, "a push that is no message"),
            }
        }
    }

    /// Writes as far as the socket takes it.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), String> {
        loop {
            let (buffer, written) = match self.writing.take() {
                Some(writing) => writing,
                None => match self.shared.take_for_pump() {
                    Some(buffer) => (buffer, 0),
                    None => return Ok(()),
                },
            };
            let mut at = written;
            let result = loop {
                if at == buffer.len() {
                    break self.poll_flush(cx);
                }
                match self.poll_write(cx, &buffer[at..]) {
                    Poll::Ready(Ok(0)) => {
                        break Poll::Ready(Err(std::io::ErrorKind::WriteZero.into()));
                    }
                    Poll::Ready(Ok(bytes)) => at += bytes,
                    Poll::Ready(Err(error)) => break Poll::Ready(Err(error)),
                    Poll::Pending => break Poll::Pending,
                }
            };
            match result {
                // Also when all is handed over, and TLS has yet to pass it on.
                Poll::Pending => {
                    self.writing = Some((buffer, at));
                    return Ok(());
                }
                Poll::Ready(Ok(())) => {
                    if !self.shared.wrote_for_pump(buffer, at) {
                        return Ok(());
                    }
                }
                Poll::Ready(Err(error)) => {
                    self.shared.wrote_for_pump(buffer, at);
                    return Err(format!("writing failed: {error}"));
                }
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        match (&mut self.reader, self.link.writer()) {
            (Reader::Tls(stream), _) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
            (_, writer) => loop {
                match writer.poll_ready(cx) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => return Poll::Pending,
                }
                match writer.try_write(bytes) {
                    // Readiness is cleared by this: ask again, and be woken.
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                    result => return Poll::Ready(result),
                }
            },
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match &mut self.reader {
            Reader::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// One read, and all events that it gives.
    fn read_main(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        let mut buffer = ReadBuf::new(&mut self.chunk);
        let polled = match &mut self.reader {
            Reader::Tcp(half) => Pin::new(half).poll_read(cx, &mut buffer),
            #[cfg(unix)]
            Reader::Unix(half) => Pin::new(half).poll_read(cx, &mut buffer),
            Reader::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, &mut buffer),
        };
        match taken(polled, &buffer) {
            Poll::Ready(Ok(())) => {}
            other => return other,
        }
        let now = Time::ZERO + self.since.elapsed();
        match self.hearing.receive(now, buffer.filled(), &*self.shared) {
            Ok(true) => self.shared.flush(),
            Ok(false) => {}
            Err(reason) => return Poll::Ready(Err(reason)),
        }
        Poll::Ready(Ok(()))
    }

    fn poll_sync(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        let now = self.now();
        let Some(sync) = &mut self.sync else { return Poll::Pending };
        sync.poll(now, &self.shared, &mut self.hearing.events, &mut self.chunk, cx)
    }

    fn read_inbox(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        let Some(stream) = &mut self.inbox else { return Poll::Pending };
        let mut buffer = ReadBuf::new(&mut self.chunk);
        let polled = Pin::new(stream).poll_read(cx, &mut buffer);
        match taken(polled, &buffer) {
            Poll::Ready(Ok(())) => Poll::Ready(self.hearing.receive_apart(buffer.filled())),
            other => other,
        }
    }
}

/// What a read gave: nothing is the end.
pub(crate) fn taken(
    polled: Poll<std::io::Result<()>>,
    buffer: &ReadBuf<'_>,
) -> Poll<Result<(), String>> {
    match polled {
        Poll::Pending => Poll::Pending,
        Poll::Ready(Err(error)) => Poll::Ready(Err(match crate::tls::explain(&error) {
            Some(why) => why.into_error().to_string(),
            None => format!("reading failed: {error}"),
        })),
        Poll::Ready(Ok(())) if buffer.filled().is_empty() => {
            Poll::Ready(Err("the server closed the connection".to_owned()))
        }
        Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
    }
}
