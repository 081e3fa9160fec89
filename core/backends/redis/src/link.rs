//! The writing half of a connection.

use std::io;
use std::task::{Context, Poll};

use tokio::net::tcp;
#[cfg(unix)]
use tokio::net::unix;

use crate::connect;

/// The writing half of a connection, as a caller's thread may use it.
#[derive(Debug)]
pub(crate) enum Writer {
    Tcp(tcp::OwnedWriteHalf),
    #[cfg(unix)]
    Unix(unix::OwnedWriteHalf),
    /// Only the pump writes: what goes out passes through its TLS state.
    Pump,
}

impl Writer {
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Writer::Tcp(half) => half.try_write(bytes),
            #[cfg(unix)]
            Writer::Unix(half) => half.try_write(bytes),
            Writer::Pump => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Writes as far as the socket takes it; gives how far that was.
    pub(crate) fn write(&self, buffer: &[u8]) -> (usize, io::Result<()>) {
        let mut written = 0;
        while written < buffer.len() {
            match self.try_write(&buffer[written..]) {
                Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (written, Err(error)),
            }
        }
        (written, Ok(()))
    }

    /// Whether the socket takes bytes again; wakes the task otherwise.
    pub(crate) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Writer::Tcp(half) => half.as_ref().poll_write_ready(cx),
            #[cfg(unix)]
            Writer::Unix(half) => half.as_ref().poll_write_ready(cx),
            Writer::Pump => Poll::Ready(Ok(())),
        }
    }
}

/// The socket's two halves close together, without a farewell that would flush what is abandoned.
#[derive(Debug)]
pub(crate) struct Link(Option<Writer>);

impl Link {
    pub(crate) fn new(writer: Writer) -> Link {
        Link(Some(writer))
    }

    pub(crate) fn writer(&self) -> &Writer {
        self.0.as_ref().unwrap_or(&Writer::Pump)
    }

    /// Closes without waiting for what the other side has not taken.
    pub(crate) fn forsake(&self) {
        if let Some(Writer::Tcp(half)) = &self.0 {
            connect::forsake(half.as_ref());
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        match self.0.take() {
            Some(Writer::Tcp(half)) => half.forget(),
            #[cfg(unix)]
            Some(Writer::Unix(half)) => half.forget(),
            Some(Writer::Pump) | None => {}
        }
    }
}
