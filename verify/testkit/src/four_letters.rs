//! What a ZooKeeper server says of itself: the commands of four letters on its client port.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(2);

/// What a server does in its ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It orders the writes.
    Leader,
    /// It follows a leader.
    Follower,
    /// It is alone by configuration.
    Standalone,
    /// It runs without a quorum and answers reads only.
    ReadOnly,
}

/// Sends `word` and reads all that comes back.
pub(crate) fn ask(server: SocketAddr, word: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(word.as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// The value behind `name` in an answer, whatever stands between them.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim_start_matches([':', '=', '\t', ' ']).trim_end())
}

/// The role that `srvr` tells; none while the server serves nobody.
pub(crate) fn role(text: &str) -> Option<Role> {
    match field(text, "Mode")? {
        "leader" => Some(Role::Leader),
        "follower" => Some(Role::Follower),
        "standalone" => Some(Role::Standalone),
        "read-only" => Some(Role::ReadOnly),
        _ => None,
    }
}
