//! The task that reads replies and pushes, and writes what callers could not.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use fencelock_engine::event::Event;
use fencelock_engine::redis::session::{Frame, Incoming};
use fencelock_engine::redis::{Codec, Command, ListStep, Listing, Value};
use fencelock_engine::reply::{Failure, Refusal, RefusalKind, Reply};
use fencelock_engine::request::{Op, RequestId};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::tcp;
#[cfg(unix)]
use tokio::net::unix;
use tokio::time::Instant;

use crate::connect::{self, Stream};
use crate::conversation::Conversation;
use crate::link::{Link, Writer};
use crate::quiet::Quiet;
use crate::shared::{Awaited, Shared};

const READ: usize = 16 << 10;

/// After a failover the host's name may lead to the new master: a connection to a server that
/// refuses to write is given up, but not more often than so.
const DEMOTED_AFTER: Duration = Duration::from_secs(1);

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
    codec: Codec,
    reader: Reader,
    link: Arc<Link>,
    incoming: Incoming,
    /// The connection of the subscription, when it is not the same.
    inbox: Option<(Stream, Incoming)>,
    sockets: Vec<i32>,
    chunk: Box<[u8]>,
    events: Vec<Event>,
    /// Whose answer is being read: a panic there must not swallow it.
    reading: Option<RequestId>,
    /// What the socket did not take at once, and how much of it is written.
    writing: Option<(Vec<u8>, usize)>,
    since: Instant,
    /// The server refused to write, and this connection is not new.
    demoted: bool,
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
        main: Conversation,
        inbox: Option<Conversation>,
    ) -> Pump {
        let Conversation { stream, greeted } = main;
        let inbox = inbox.map(|talk| (talk.stream, talk.greeted.incoming));
        let streams = std::iter::once(&stream).chain(inbox.as_ref().map(|(stream, _)| stream));
        let sockets = streams.filter_map(Stream::descriptor).collect();
        let (reader, link) = split(stream);
        let mut pump = Pump {
            shared,
            codec,
            reader,
            link: Arc::new(link),
            incoming: greeted.incoming,
            inbox,
            sockets,
            chunk: vec![0; READ].into_boxed_slice(),
            events: Vec::new(),
            reading: None,
            writing: None,
            since: Instant::now(),
            demoted: false,
        };
        for values in greeted.early {
            pump.push(&values);
        }
        pump
    }

    pub(crate) fn link(&self) -> Arc<Link> {
        Arc::clone(&self.link)
    }

    /// How long it has been up.
    pub(crate) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// The descriptors on which answers and pushes come.
    pub(crate) fn sockets(&self) -> Vec<i32> {
        self.sockets.clone()
    }

    /// Says that it is up. What came early is heard after that.
    pub(crate) fn begin(&mut self, up: Event) {
        self.events.insert(0, up);
    }

    /// Answers for what is under way, and says why.
    pub(crate) fn finish(mut self, reason: String) {
        if let Some(request) = self.reading {
            self.events.push(Event::Reply { request, result: Err(Failure::Unknown) });
        }
        self.shared.down(&mut self.events);
        self.events.push(Event::Down { reason });
        self.shared.deliver(&mut self.events);
    }

    /// Does what there is to do; ready, with the reason, when the connection has ended.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<String> {
        loop {
            let shared = Arc::clone(&self.shared);
            shared.deliver(&mut self.events);
            if self.demoted {
                return Poll::Ready("the server became a replica; connecting anew".to_owned());
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
            match self.read_main(cx) {
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
        match take(polled, &buffer, &mut self.incoming) {
            Poll::Ready(Ok(())) => {}
            other => return other,
        }
        let mut asked = false;
        loop {
            match self.incoming.next() {
                Ok(Some(Frame::Reply(value))) => match self.shared.answered() {
                    Some(Awaited::Request(id, op)) => asked |= self.reply(id, &op, value),
                    Some(Awaited::Round(id, op, listing)) => {
                        asked |= self.round(id, op, listing, value);
                    }
                    Some(Awaited::Script(_, requests)) => self.loaded(&requests, &value),
                    None => {
                        return Poll::Ready(Err(format!(
                            "the server answered what nobody asked: {value:?}"
                        )));
                    }
                },
                Ok(Some(Frame::Push(values))) => self.push(&values),
                Ok(None) => break,
                Err(garbage) => return Poll::Ready(Err(garbage.to_string())),
            }
        }
        if asked {
            self.shared.flush();
        }
        Poll::Ready(Ok(()))
    }

    fn read_inbox(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        let Some((stream, incoming)) = &mut self.inbox else { return Poll::Pending };
        let mut buffer = ReadBuf::new(&mut self.chunk);
        let polled = Pin::new(stream).poll_read(cx, &mut buffer);
        match take(polled, &buffer, incoming) {
            Poll::Ready(Ok(())) => {}
            other => return other,
        }
        loop {
            let Some((_, incoming)) = &mut self.inbox else { return Poll::Pending };
            match incoming.next() {
                Ok(Some(Frame::Push(values) | Frame::Reply(Value::Array(values)))) => {
                    self.push(&values);
                }
                Ok(Some(Frame::Reply(_))) => {}
                Ok(None) => return Poll::Ready(Ok(())),
                Err(garbage) => return Poll::Ready(Err(garbage.to_string())),
            }
        }
    }

    /// Takes one answer; true when it led to another question.
    fn reply(&mut self, request: RequestId, op: &Op, value: Value) -> bool {
        self.reading = Some(request);
        if let Value::Error(line) = &value
            && line.starts_with("NOSCRIPT")
            && let Command::Script { script, .. } = self.codec.encode(op)
        {
            tracing::info!(script = script.name, "the server forgot a script: loading it");
            self.shared.load(script, request);
            self.reading = None;
            return true;
        }
        self.demoted |= matches!(&value, Value::Error(line) if line.starts_with("READONLY"))
            && self.since.elapsed() >= DEMOTED_AFTER;
        let result = self.codec.decode(op, value);
        self.answer(request, result);
        false
    }

    /// Takes one round of a listing; true when another one follows.
    fn round(&mut self, request: RequestId, op: Op, mut listing: Listing, value: Value) -> bool {
        self.reading = Some(request);
        let result = match self.codec.list_step(&op, &mut listing, value) {
            Ok(ListStep::Send(command)) => {
                self.shared.ask_on(Awaited::Round(request, op, listing), &command);
                self.reading = None;
                return true;
            }
            Ok(ListStep::Done(reply)) => Ok(reply),
            Err(failure) => Err(failure),
        };
        self.answer(request, result);
        false
    }

    fn answer(&mut self, request: RequestId, result: Result<Reply, Failure>) {
        self.events.push(Event::Reply { request, result });
        self.reading = None;
    }

    /// A script that was forgotten is there again, or is refused.
    fn loaded(&mut self, requests: &[RequestId], value: &Value) {
        let (kind, message) = match value {
            Value::Error(line) if line.starts_with("NOPERM") => {
                let said = self.codec.shown(line);
                (RefusalKind::Misconfigured, format!("the script cannot be loaded: {said}"))
            }
            Value::Error(line) => {
                let said = self.codec.shown(line);
                (RefusalKind::Retry, format!("the script cannot be loaded: {said}"))
            }
            _ => (RefusalKind::Again, "the script was forgotten, and is loaded again".to_owned()),
        };
        for &request in requests {
            let refusal = Refusal { kind, message: message.clone() };
            self.events.push(Event::Reply { request, result: Err(Failure::Refused(refusal)) });
        }
    }

    fn push(&mut self, values: &[Value]) {
        match values {
            [Value::Bytes(kind), Value::Bytes(_), Value::Bytes(payload)] if kind == b"message" => {
                match self.codec.decode_push(payload) {
                    Some(push) => self.events.push(Event::Push(push)),
                    None => tracing::debug!(bytes = payload.len(), "a message that is not ours"),
                }
            }
            _ => tracing::trace!(parts = values.len(), "a push that is no message"),
        }
    }
}

fn take(
    polled: Poll<std::io::Result<()>>,
    buffer: &ReadBuf<'_>,
    incoming: &mut Incoming,
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
        Poll::Ready(Ok(())) => {
            incoming.extend(buffer.filled());
            Poll::Ready(Ok(()))
        }
    }
}
