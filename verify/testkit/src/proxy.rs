//! A TCP proxy whose faults are set while it runs.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What the proxy does with what passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Fault {
    /// Nothing.
    #[default]
    Pass,
    /// What the client sends is thrown away; the client sees a silent server.
    SwallowRequests,
    /// The server gets the requests; its replies are thrown away.
    SwallowReplies,
    /// Each piece is held back for so long, in both directions.
    Delay(Duration),
    /// New connections are closed at once; those that exist go on.
    Refuse,
}

/// What has passed so far. A piece is what one read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Connections that were accepted and passed on.
    pub connections: u64,
    /// Connections that were refused.
    pub refused: u64,
    /// Pieces passed from clients to the server.
    pub requests: u64,
    /// Pieces passed from the server to clients.
    pub replies: u64,
    /// Pieces from clients that were thrown away.
    pub swallowed_requests: u64,
    /// Pieces from the server that were thrown away.
    pub swallowed_replies: u64,
}

#[derive(Debug, Default)]
struct Tally {
    connections: AtomicU64,
    refused: AtomicU64,
    requests: AtomicU64,
    replies: AtomicU64,
    swallowed_requests: AtomicU64,
    swallowed_replies: AtomicU64,
}

#[derive(Debug)]
struct Inner {
    target: SocketAddr,
    fault: Mutex<Fault>,
    sockets: Mutex<Vec<TcpStream>>,
    tally: Tally,
    over: AtomicBool,
}

/// A TCP proxy whose faults are set while it runs. It ends on drop, with all connections.
#[derive(Debug)]
pub struct Proxy {
    inner: Arc<Inner>,
    address: SocketAddr,
}

#[derive(Clone, Copy)]
enum Direction {
    ToServer,
    ToClient,
}

impl Proxy {
    /// Starts a proxy before `target` on a free port of this machine.
    ///
    /// # Errors
    /// When there is no port, or `target` is no address.
    pub fn start(target: &str) -> io::Result<Proxy> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let inner = Arc::new(Inner {
            target: target.parse().map_err(io::Error::other)?,
            fault: Mutex::default(),
            sockets: Mutex::default(),
            tally: Tally::default(),
            over: AtomicBool::new(false),
        });
        let proxy = Proxy { inner: Arc::clone(&inner), address };
        thread::Builder::new().name("proxy".to_owned()).spawn(move || inner.accept(&listener))?;
        Ok(proxy)
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the fault, for what passes from now on.
    pub fn set(&self, fault: Fault) {
        *lock(&self.inner.fault) = fault;
    }

    /// Cuts every connection that exists.
    pub fn cut(&self) {
        for socket in lock(&self.inner.sockets).drain(..) {
            // It may be closed already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Passes everything again, and cuts every connection that exists before anything passes: one that
    /// lost a piece has a hole, as no connection of TCP has.
    pub fn mend(&self) {
        let mut fault = lock(&self.inner.fault);
        self.cut();
        *fault = Fault::Pass;
    }

    /// What has passed so far.
    pub fn counts(&self) -> Counts {
        let tally = &self.inner.tally;
        let read = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        Counts {
            connections: read(&tally.connections),
            refused: read(&tally.refused),
            requests: read(&tally.requests),
            replies: read(&tally.replies),
            swallowed_requests: read(&tally.swallowed_requests),
            swallowed_replies: read(&tally.swallowed_replies),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.inner.over.store(true, Ordering::SeqCst);
        self.cut();
        // Wakes the thread that accepts, so that it sees the end.
        let _ = TcpStream::connect(self.address);
    }
}

impl Inner {
    fn accept(self: &Arc<Inner>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.over.load(Ordering::SeqCst) {
                return;
            }
            let Ok(client) = client else { continue };
            let refuse = *lock(&self.fault) == Fault::Refuse;
            if refuse || self.connect(client).is_err() {
                count(&self.tally.refused);
            }
        }
    }

    fn connect(self: &Arc<Inner>, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(self.target)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        lock(&self.sockets).extend([client.try_clone()?, server.try_clone()?]);
        count(&self.tally.connections);
        for (from, to, direction) in [
            (client.try_clone()?, server.try_clone()?, Direction::ToServer),
            (server, client, Direction::ToClient),
        ] {
            let inner = Arc::clone(self);
            thread::spawn(move || inner.copy(from, to, direction));
        }
        Ok(())
    }

    fn copy(&self, mut from: TcpStream, mut to: TcpStream, direction: Direction) {
        let mut piece = [0; 64 << 10];
        while let Ok(length @ 1..) = from.read(&mut piece) {
            let fault = *lock(&self.fault);
            if let Fault::Delay(span) = fault {
                thread::sleep(span);
            }
            let tally = &self.tally;
            match (direction, fault) {
                (Direction::ToServer, Fault::SwallowRequests) => {
                    count(&tally.swallowed_requests);
                    continue;
                }
                (Direction::ToClient, Fault::SwallowReplies) => {
                    count(&tally.swallowed_replies);
                    continue;
                }
                (Direction::ToServer, _) => count(&tally.requests),
                (Direction::ToClient, _) => count(&tally.replies),
            }
            if to.write_all(&piece[..length]).is_err() {
                break;
            }
        }
        // Either side's end is the end of both.
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::SeqCst);
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
