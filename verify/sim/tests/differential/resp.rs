//! Just enough of RESP2 over a unix socket to see a server's replies byte for byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use fencelock_engine::redis::Value;

pub struct Connection {
    reader: BufReader<UnixStream>,
}

impl Connection {
    pub fn open(path: &Path) -> std::io::Result<Connection> {
        Ok(Connection { reader: BufReader::new(UnixStream::connect(path)?) })
    }

    pub fn send<T: AsRef<[u8]>>(&mut self, words: &[T]) {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            let word = word.as_ref();
            bytes.extend(format!("${}\r\n", word.len()).bytes());
            bytes.extend(word);
            bytes.extend(b"\r\n");
        }
        self.reader.get_mut().write_all(&bytes).expect("the server takes it");
    }

    pub fn read(&mut self) -> Value {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("the server answers");
        let (kind, text) = line.trim_end().split_at(1);
        match kind {
            "+" => Value::Bytes(text.as_bytes().to_vec()),
            "-" => Value::Error(text.to_owned()),
            ":" => Value::Int(text.parse().unwrap()),
            "$" if text == "-1" => Value::Nil,
            "$" => {
                let mut bytes = vec![0; text.parse::<usize>().unwrap() + 2];
                self.reader.read_exact(&mut bytes).expect("the whole string");
                bytes.truncate(bytes.len() - 2);
                Value::Bytes(bytes)
            }
            "*" if text == "-1" => Value::Nil,
            "*" => Value::Array((0..text.parse().unwrap()).map(|_| self.read()).collect()),
            _ => panic!("not RESP2: {line:?}"),
        }
    }

    pub fn call<T: AsRef<[u8]>>(&mut self, words: &[T]) -> Value {
        self.send(words);
        self.read()
    }

    /// A call that must succeed.
    pub fn must<T: AsRef<[u8]>>(&mut self, words: &[T]) -> Value {
        match self.call(words) {
            Value::Error(text) => panic!("{text}"),
            value => value,
        }
    }
}
