//! A byte stream to the server.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use fencelock_engine::redis::Node;
use fencelock_engine::redis::session::NoSession;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio_rustls::client::TlsStream;

use crate::options::{Address, Options};
use crate::quiet::Quiet;
use crate::tls;

/// How long a silent connection is left alone before the system probes it.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(15);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);

/// How long an address may be silent before the next one is tried beside it, as in RFC 8305.
const HEAD_START: Duration = Duration::from_millis(250);

/// A byte stream to the server.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Tls(Box<TlsStream<Quiet>>),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Stream {
    /// See [`forsake`].
    pub(crate) fn forsake(&self) {
        match self {
            Stream::Tcp(stream) => forsake(stream),
            Stream::Tls(stream) => forsake(&stream.get_ref().0.0),
            #[cfg(unix)]
            Stream::Unix(_) => {}
        }
    }

    /// Its descriptor, where sockets have one.
    pub(crate) fn descriptor(&self) -> Option<i32> {
        #[cfg(unix)]
        {
            use std::os::fd::AsRawFd as _;
            Some(match self {
                Stream::Tcp(stream) => stream.as_raw_fd(),
                Stream::Tls(stream) => stream.get_ref().0.0.as_raw_fd(),
                Stream::Unix(stream) => stream.as_raw_fd(),
            })
        }
        #[cfg(not(unix))]
        None
    }
}

/// Connects to `node`, and does the TLS handshake if `tls`.
pub(crate) async fn reach(options: &Options, node: &Node, tls: bool) -> Result<Stream, NoSession> {
    let stream = tcp(options, node).await?;
    Ok(match tls {
        true => Stream::Tls(Box::new(tls::wrap(&options.tls, &node.host, stream).await?)),
        false => Stream::Tcp(stream),
    })
}

/// Connects as the options say: to `node`, if that is which server was found.
pub(crate) async fn dial(options: &Options, node: Option<Node>) -> Result<Stream, NoSession> {
    match (&options.address, node) {
        (Address::Sentinel(sentinel), Some(node)) => reach(options, &node, sentinel.tls).await,
        (Address::Sentinel(_), None) => {
            Err(NoSession::Later("the Sentinels have not been asked".to_owned()))
        }
        (Address::Cluster(cluster), node) => {
            let Some(node) = node.as_ref().or(cluster.nodes.first()) else {
                return Err(NoSession::Later("no server of the cluster is named".to_owned()));
            };
            reach(options, node, cluster.tls).await
        }
        (Address::Quorum(quorum), node) => {
            let Some(node) = node.as_ref().or(quorum.nodes.first()) else {
                return Err(NoSession::Later("no server of the quorum is named".to_owned()));
            };
            reach(options, quorum.map.get(node).unwrap_or(node), quorum.tls).await
        }
        (Address::Tcp { host, port }, _) => {
            reach(options, &Node { host: host.clone(), port: *port }, false).await
        }
        (Address::Tls { host, port }, _) => {
            reach(options, &Node { host: host.clone(), port: *port }, true).await
        }
        #[cfg(unix)]
        (Address::Unix(path), _) => UnixStream::connect(path)
            .await
            .map(Stream::Unix)
            .map_err(|error| NoSession::Later(format!("{}: {error}", path.display()))),
        #[cfg(not(unix))]
        (Address::Unix(_), _) => Err(NoSession::misconfigured(
            "unix sockets are not supported on this system: use redis://host:port",
        )),
    }
}

async fn tcp(options: &Options, node: &Node) -> Result<TcpStream, NoSession> {
    let host = node.host.as_str();
    let addresses: Vec<_> = tokio::net::lookup_host((host, node.port))
        .await
        .map_err(|error| NoSession::Later(format!("cannot find the host '{host}': {error}")))?
        .collect();
    if addresses.is_empty() {
        return Err(NoSession::Later(format!("the host '{host}' has no address")));
    }
    race(addresses, options.connect_timeout)
        .await
        .map_err(|reason| NoSession::Later(format!("cannot connect to {node}: {reason}")))
}

/// Connects to the address that answers first. An address that swallows packets must not keep the
/// others from their turn: the system would wait for it for minutes.
pub(crate) async fn race(addresses: Vec<SocketAddr>, limit: Duration) -> Result<TcpStream, String> {
    let several = addresses.len() > 1;
    // However short the limit, half of it is left when the last one begins.
    let share = u32::try_from(addresses.len().max(1)).map_or(Duration::ZERO, |n| limit / n / 2);
    let pause = HEAD_START.min(share);
    let mut rest = addresses.into_iter();
    let mut dials = JoinSet::new();
    let mut failures = Vec::new();
    loop {
        if let Some(address) = rest.next() {
            dials.spawn(async move {
                let stream = TcpStream::connect(address).await;
                let stream = stream.and_then(|stream| tune(&stream).map(|()| stream));
                stream.map_err(|error| match several {
                    true => format!("{address}: {error}"),
                    false => error.to_string(),
                })
            });
        }
        let ended = if rest.len() > 0 {
            match tokio::time::timeout(pause, dials.join_next()).await {
                Ok(ended) => ended,
                Err(_) => continue,
            }
        } else {
            dials.join_next().await
        };
        match ended.map(|dial| dial.unwrap_or_else(|error| Err(error.to_string()))) {
            Some(Ok(stream)) => return Ok(stream),
            Some(Err(failure)) => failures.push(failure),
            None => return Err(failures.join("; ")),
        }
    }
}

fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_AFTER).with_interval(KEEPALIVE_EVERY);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// What is still in the system's buffers is thrown away when the socket closes, not delivered
/// late.
pub(crate) fn forsake(stream: &TcpStream) {
    // It fails only on a socket that is closed already.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

macro_rules! each {
    ($self:expr, $stream:ident => $body:expr) => {
        match $self.get_mut() {
            Stream::Tcp($stream) => {
                let $stream = Pin::new($stream);
                $body
            }
            Stream::Tls($stream) => {
                let $stream = Pin::new($stream.as_mut());
                $body
            }
            #[cfg(unix)]
            Stream::Unix($stream) => {
                let $stream = Pin::new($stream);
                $body
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => stream.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_shutdown(cx))
    }
}
