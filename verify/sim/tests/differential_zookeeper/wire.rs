//! ZooKeeper's protocol, as much of it as the comparison needs.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Writes a message.
#[derive(Default)]
pub struct Out(Vec<u8>);

impl Out {
    pub fn int(mut self, number: i32) -> Out {
        self.0.extend(number.to_be_bytes());
        self
    }

    pub fn long(mut self, number: i64) -> Out {
        self.0.extend(number.to_be_bytes());
        self
    }

    pub fn flag(mut self, flag: bool) -> Out {
        self.0.push(u8::from(flag));
        self
    }

    pub fn bytes(mut self, bytes: &[u8]) -> Out {
        self.0.extend((bytes.len() as i32).to_be_bytes());
        self.0.extend(bytes);
        self
    }

    pub fn text(self, text: &str) -> Out {
        self.bytes(text.as_bytes())
    }

    pub fn texts(self, texts: &[String]) -> Out {
        let out = self.int(texts.len() as i32);
        texts.iter().fold(out, |out, text| out.text(text))
    }

    /// Anybody may do anything.
    pub fn open_acl(self) -> Out {
        self.int(1).int(31).text("world").text("anyone")
    }
}

/// Reads a message.
pub struct In {
    bytes: Vec<u8>,
    at: usize,
}

impl In {
    fn take(&mut self, count: usize) -> &[u8] {
        self.at += count;
        &self.bytes[self.at - count..self.at]
    }

    pub fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    pub fn long(&mut self) -> i64 {
        i64::from_be_bytes(self.take(8).try_into().unwrap())
    }

    pub fn flag(&mut self) -> bool {
        self.take(1)[0] != 0
    }

    pub fn bytes(&mut self) -> Vec<u8> {
        let length = self.int().max(0) as usize;
        self.take(length).to_vec()
    }

    pub fn text(&mut self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }

    pub fn texts(&mut self) -> Vec<String> {
        (0..self.int()).map(|_| self.text()).collect()
    }
}

/// A connection: messages with their lengths.
pub struct Connection(TcpStream);

impl Connection {
    pub fn open(port: u16) -> io::Result<Connection> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        // The port may be somebody else's, who says nothing.
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        Ok(Connection(stream))
    }

    pub fn send(&mut self, out: Out) -> io::Result<()> {
        let mut message = (out.0.len() as i32).to_be_bytes().to_vec();
        message.extend(out.0);
        self.0.write_all(&message)
    }

    pub fn read(&mut self) -> io::Result<In> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length)?;
        let mut bytes = vec![0; i32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut bytes)?;
        Ok(In { bytes, at: 0 })
    }
}
