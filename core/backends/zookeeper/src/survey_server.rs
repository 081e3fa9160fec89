//! What one server says of itself, before any session: by its command `srvr`, and by the answer to
//! a greeting.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What a server said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// It serves, or at least reads.
    Serves {
        /// Its version.
        version: String,
        /// `leader`, `follower`, `observer`, `standalone`, `read-only`.
        role: String,
    },
    /// It runs, and serves nobody: it has no quorum, or is just starting.
    Idle,
    /// It runs, and refuses `srvr`, or says something else than a server does.
    Untold,
    /// It could not be asked, and why.
    Unreachable(String),
}

/// The session timeouts that a server gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) shortest: Duration,
    pub(crate) longest: Duration,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its `host:port`.
    pub address: String,
    /// What it said.
    pub word: Word,
    pub(crate) bounds: Option<Bounds>,
}

impl Server {
    /// Whether it gave a session, which takes a quorum.
    pub fn serves(&self) -> bool {
        self.bounds.is_some()
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = &self.address;
        match &self.word {
            Word::Serves { role, .. } => write!(f, "{address} {role}"),
            Word::Idle => write!(f, "{address} serves nobody"),
            Word::Untold if self.serves() => write!(f, "{address} serves"),
            Word::Untold => write!(f, "{address} gives no session"),
            Word::Unreachable(why) => write!(f, "{address} {why}"),
        }
    }
}

/// The role of a server that was left without a quorum and goes on reading.
pub(crate) const READ_ONLY: &str = "read-only";

/// Asks one server, within `limit` for each question.
pub(crate) async fn ask(address: &str, limit: Duration) -> Server {
    // A server that is only slow to refuse must not cost the others their time.
    let limit = limit.min(Duration::from_secs(3));
    let within = |answer: Result<io::Result<Word>, _>| match answer {
        Ok(Ok(word)) => word,
        Ok(Err(error)) => Word::Unreachable(error.to_string()),
        Err(_) => Word::Unreachable(format!("does not answer within {limit:?}")),
    };
    let mut word = within(timeout(limit, role(address)).await);
    let mut bounds = None;
    if !matches!(word, Word::Unreachable(_) | Word::Idle) {
        bounds = timeout(limit, negotiate(address)).await.ok().and_then(Result::ok);
    }
    if bounds.is_none() && matches!(&word, Word::Serves { role, .. } if role != READ_ONLY) {
        // It still says what it was; the leader that it needs for a session is gone.
        word = Word::Idle;
    }
    Server { address: address.to_owned(), word, bounds }
}

async fn role(address: &str) -> io::Result<Word> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"srvr").await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(read(&text))
}

/// Reads the answer to `srvr`.
pub(crate) fn read(text: &str) -> Word {
    let field =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    match (field("Zookeeper version"), field("Mode")) {
        (version, Some(role)) => {
            let version = version.unwrap_or_default().split(['-', ',']).next().unwrap_or_default();
            Word::Serves { version: version.to_owned(), role: role.to_owned() }
        }
        _ if text.contains("not currently serving") => Word::Idle,
        _ => Word::Untold,
    }
}

/// Asks for the shortest and for the longest session there can be, and ends both at once.
async fn negotiate(address: &str) -> io::Result<Bounds> {
    let (shortest, longest) = (greet(address, 1).await?, greet(address, i32::MAX).await?);
    Ok(Bounds { shortest, longest })
}

/// Greets the server with a session timeout in milliseconds; gives the one that it answers.
async fn greet(address: &str, wanted: i32) -> io::Result<Duration> {
    let mut stream = TcpStream::connect(address).await?;
    // Length, protocol, last transaction seen, timeout, session, password, read-only.
    let mut hello = Vec::new();
    hello.extend(45_i32.to_be_bytes());
    hello.extend(0_i32.to_be_bytes());
    hello.extend(0_i64.to_be_bytes());
    hello.extend(wanted.to_be_bytes());
    hello.extend(0_i64.to_be_bytes());
    hello.extend(16_i32.to_be_bytes());
    hello.extend([0; 16]);
    hello.push(0);
    stream.write_all(&hello).await?;
    let length = stream.read_i32().await?;
    let mut answer = vec![0; usize::try_from(length).ok().filter(|it| *it < 1024).unwrap_or(0)];
    stream.read_exact(&mut answer).await?;
    let granted =
        answer.get(4..8).and_then(|bytes| Some(i32::from_be_bytes(bytes.try_into().ok()?)));
    let granted = granted.and_then(|it| u64::try_from(it).ok()).filter(|it| *it > 0);
    let granted = granted.ok_or_else(|| io::Error::other("the server gives no session"))?;
    // Ends the session, so that the server need not keep it until it expires.
    let mut end = 8_i32.to_be_bytes().to_vec();
    end.extend(1_i32.to_be_bytes());
    end.extend((-11_i32).to_be_bytes());
    stream.write_all(&end).await?;
    stream.read_to_end(&mut Vec::new()).await?;
    Ok(Duration::from_millis(granted))
}
