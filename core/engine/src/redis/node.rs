//! Where one of several servers listens.

use core::fmt;

/// A server's host and port, as others name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Node {
    /// Reads `host:port`; `port` is taken where none is written. An IPv6 address stands in brackets.
    pub fn parse(text: &str, port: u16) -> Option<Node> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let port = match rest.strip_prefix(':') {
            Some(digits) => digits.parse().ok().filter(|port| *port != 0)?,
            None if rest.is_empty() => port,
            None => return None,
        };
        let plain = |c: char| !c.is_whitespace() && !c.is_control() && !"/?#@,=[]".contains(c);
        let sound = !host.is_empty() && host.chars().all(plain);
        sound.then(|| Node { host: host.to_owned(), port })
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_and_a_port_are_read_and_shown() {
        for (text, shown) in [
            ("h", "h:7"),
            ("h:1", "h:1"),
            ("10.0.0.1:26379", "10.0.0.1:26379"),
            ("[::1]", "[::1]:7"),
            ("[::1]:1", "[::1]:1"),
        ] {
            assert_eq!(Node::parse(text, 7).map(|node| node.to_string()).as_deref(), Some(shown));
        }
        for wrong in
            ["", ":1", "h:", "h:0", "h:x", "h:65536", "::1", "[::1", "[::1]1", "[]", "a b", "a@b"]
        {
            assert_eq!(Node::parse(wrong, 7), None, "{wrong}");
        }
    }
}
