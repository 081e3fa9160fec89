//! One client's connection to a file.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use fencelock_engine::request::Request;
use fencelock_engine::store::Caller;
use fencelock_engine::transport::{Capabilities, Doubt, Sink, Transport};
use fencelock_engine::{ClientId, Error, ErrorKind};

use crate::clock::Clock;
use crate::fork;
use crate::options::Options;
use crate::peers::Peer;
use crate::queue::Queue;
use crate::store::Store;
use crate::worker::{Schedule, Worker};

/// What this store can do.
pub const CAPABILITIES: Capabilities = Capabilities {
    store: "sqlite",
    processes: true,
    durable: true,
    owners: true,
    leases: true,
    abandoned: true,
    paths: false,
    shared: true,
    permits: true,
};

/// Opens a file, on the caller's thread, and starts the client's own, which first delivers
/// [`Event::Up`](fencelock_engine::Event::Up).
///
/// # Errors
/// [`ErrorKind::Misconfigured`] says what to do about the path, the file or a boot that cannot be
/// known, [`ErrorKind::Unavailable`] who keeps it locked, or until when a hold of another boot may
/// live, [`ErrorKind::InvalidArgument`] which option is
/// out of its range.
pub fn open(
    options: Options,
    client: ClientId,
    sink: Arc<dyn Sink>,
) -> Result<Arc<SqliteTransport>, Error> {
    options.check()?;
    // Absolute, for the process may change its directory before the file is opened again.
    let path = std::path::absolute(&options.path).unwrap_or_else(|_| options.path.clone());
    let queue = Arc::new(Queue::default());
    let clock = Clock::of_machine().map_err(|fault| fault.error(&path))?;
    let store = {
        let _inside = fork::enter();
        Store::open(path.clone(), &options, clock.clone(), &queue.stop)
            .map_err(|fault| fault.error(&path))?
    };
    let file = path.canonicalize().unwrap_or_else(|_| path.clone());
    let worker = Worker {
        peer: Peer::join(file, client.id(), Arc::clone(&queue)),
        // The rules may publish: every client looks at the file, and so hears it.
        caller: Caller { client, polling: false },
        queue: Arc::clone(&queue),
        sink,
        options,
        clock,
        path,
        store: Some(store),
        watch: Default::default(),
        schedule: Schedule::default(),
    };
    let thread = std::thread::Builder::new()
        .name("fencelock-sqlite".to_owned())
        .spawn(move || {
            SERVED.set(Arc::as_ptr(&worker.queue));
            worker.run();
        })
        .map_err(|error| {
            let message = format!("no thread could be started for the SQLite store: {error}");
            Error::new(ErrorKind::Unavailable, message)
        })?;
    Ok(Arc::new(SqliteTransport { queue, thread: Mutex::new(Some(thread)) }))
}

thread_local! {
    /// What a client's thread serves.
    static SERVED: Cell<*const Queue> = const { Cell::new(std::ptr::null()) };
}

/// One client's connection to a file.
pub struct SqliteTransport {
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Transport for SqliteTransport {
    fn enqueue(&self, request: Request) {
        self.queue.push(request);
    }

    fn flush(&self) {
        self.queue.flush();
    }

    /// Gives up nothing. The client's thread executes one request after the other and answers each, so
    /// it is silent only while the file stands still under it; by the time that it could open the file
    /// again, the file has answered. What a caller enqueued and did not come to flush is executed.
    fn reconnect(&self, _: Doubt) {
        self.queue.flush();
    }

    /// Waits for the client's thread, unless called by it: call it without any lock that the sink
    /// may want.
    fn close(&self) {
        self.queue.stop();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Asked so, as a thread that is ending has no id of its own.
        let own = SERVED.get() == Arc::as_ptr(&self.queue);
        if let Some(thread) = thread
            && !own
        {
            // A panic of that thread was reported where it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for SqliteTransport {
    fn drop(&mut self) {
        self.close();
    }
}
