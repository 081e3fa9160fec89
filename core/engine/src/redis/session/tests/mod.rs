//! A server of a few words, and the machines before it.

mod channels;
mod greeting;
mod hearing;
mod machine;

use crate::redis::session::{Frame, Greeted, Greeting, Incoming, Protocol, Purpose};
use crate::redis::{Codec, Script, Value};

/// What a server answers to a command, in bytes; nothing at all where it does not.
pub(super) type Answers = fn(&[String]) -> String;

/// A sound server with RESP3.
pub(super) fn sound(words: &[String]) -> String {
    match words[0].as_str() {
        "HELLO" => "%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n".to_owned(),
        "PING" => "+PONG\r\n".to_owned(),
        "ROLE" => "*3\r\n$6\r\nmaster\r\n:5\r\n*0\r\n".to_owned(),
        "SUBSCRIBE" => {
            format!(">3\r\n$9\r\nsubscribe\r\n${}\r\n{}\r\n:1\r\n", words[1].len(), words[1])
        }
        "TIME" => "*2\r\n$10\r\n1700000000\r\n$3\r\n123\r\n".to_owned(),
        "SCRIPT" => {
            format!("$40\r\n{}\r\n", script(&words[2]).sha)
        }
        _ => "+OK\r\n".to_owned(),
    }
}

/// Those of a server alone, of a cluster's, and of one of a quorum.
pub(super) fn all_scripts() -> impl Iterator<Item = &'static Script> {
    Codec::scripts().iter().chain(Codec::sharded_scripts()).chain(Codec::quorum_scripts())
}

/// The script of this text, or that is called by this hash.
pub(super) fn script(word: &str) -> &'static Script {
    all_scripts().find(|script| word == script.text || word == script.sha).unwrap()
}

/// One that knows RESP2 only.
pub(super) fn old(words: &[String]) -> String {
    match words[0].as_str() {
        "HELLO" => "-ERR unknown command 'HELLO', with args beginning with: '3' \r\n".to_owned(),
        _ => sound(words).replacen('>', "*", 1),
    }
}

/// Reads commands, and shows each in one line.
#[derive(Default)]
pub(in crate::redis) struct Reads(Incoming);

impl Reads {
    pub(in crate::redis) fn commands(&mut self, bytes: &[u8]) -> Vec<Vec<String>> {
        self.0.extend(bytes);
        let mut commands = Vec::new();
        while let Some(frame) = self.0.frame().unwrap() {
            let Frame::Reply(Value::Array(words)) = frame else { panic!("{frame:?}") };
            let text = |word| match word {
                Value::Bytes(bytes) => String::from_utf8(bytes).unwrap(),
                word => panic!("{word:?}"),
            };
            commands.push(words.into_iter().map(text).collect());
        }
        commands
    }
}

/// What a connection gives that is only logged in.
pub(in crate::redis) fn greeted() -> Greeted {
    let mut greeting = Greeting::new(Purpose::Questions, Protocol::Auto, None);
    greeting.take();
    greeting.receive(sound(&["HELLO".to_owned()]).as_bytes()).unwrap().unwrap()
}
