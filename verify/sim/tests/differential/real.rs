//! A real server, started for the test and stopped with it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use fencelock_engine::redis::{Codec, Command, Value};

use crate::compare::{Published, Server};
use crate::resp::Connection;

/// Where the scripts of the test read the time.
const CLOCK: &str = "the test's clock";

/// Ends the process with the test, also when the test fails early.
struct Process {
    child: Child,
    folder: PathBuf,
}

pub struct Real {
    _process: Process,
    admin: Connection,
    /// May publish nothing.
    mute: Connection,
    inbox: Connection,
    denied: bool,
    scripts: BTreeMap<&'static str, String>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Real {
    /// `None` when there is no server's binary.
    pub fn start() -> Option<Real> {
        let binary = std::env::var_os("REDIS_SERVER").unwrap_or_else(|| "redis-server".into());
        let folder = std::env::temp_dir().join(format!("fl-differential-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let socket = folder.join("socket");
        let child = std::process::Command::new(binary)
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(&socket)
            .arg("--dir")
            .arg(&folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let process = Process { child, folder };
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut admin = loop {
            match Connection::open(&socket) {
                Ok(connection) => break connection,
                Err(error) if Instant::now() > deadline => {
                    panic!("the server does not listen: {error}")
                }
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        admin.must(&["ACL", "SETUSER", "mute", "on", "nopass", "~*", "+@all", "resetchannels"]);
        let mut mute = Connection::open(&socket).unwrap();
        mute.must(&["AUTH", "mute", "any"]);
        let inbox = Connection::open(&socket).unwrap();
        let scripts = load_scripts(&mut admin);
        Some(Real { _process: process, admin, mute, inbox, denied: false, scripts })
    }

    /// Reads the inbox up to the answer to a ping, which the server sends after all messages.
    fn drain(&mut self) -> Published {
        self.inbox.send(&["PING"]);
        let mut published = Vec::new();
        loop {
            match self.inbox.read() {
                Value::Array(items) => match items.as_slice() {
                    [Value::Bytes(kind), Value::Bytes(channel), Value::Bytes(payload)]
                        if kind == b"message" =>
                    {
                        published.push((channel.clone(), payload.clone()));
                    }
                    [Value::Bytes(kind), ..] if kind == b"pong" => return published,
                    _ => {}
                },
                _ => return published,
            }
        }
    }
}

fn load_scripts(connection: &mut Connection) -> BTreeMap<&'static str, String> {
    let mut loaded = BTreeMap::new();
    for script in Codec::scripts() {
        let clock = format!("call('HMGET', \"{CLOCK}\", 's', 'u')");
        assert_eq!(script.text.matches("call('TIME')").count(), 1, "{}", script.name);
        let text = script.text.replace("call('TIME')", &clock);
        let Value::Bytes(sha) = connection.must(&["SCRIPT", "LOAD", &text]) else { panic!() };
        loaded.insert(script.sha, String::from_utf8(sha).unwrap());
        // As shipped, too: it must compile, and the codec's hash must be the server's.
        let Value::Bytes(sha) = connection.must(&["SCRIPT", "LOAD", script.text]) else { panic!() };
        assert_eq!(sha, script.sha.as_bytes());
    }
    loaded
}

impl Server for Real {
    fn run(&mut self, now: u64, command: &Command) -> (Value, Published) {
        let Command::Script { script, keys, args } = command else { panic!("{command:?}") };
        let (seconds, micros) = (now / 1_000_000, now % 1_000_000);
        // The clock is set past whatever fault is on, as no fault stops a real clock.
        let set = format!("redis.call('HSET', KEYS[1], 's', {seconds}, 'u', {micros})");
        if self.admin.call(&["EVAL", &set, "1", CLOCK]) != Value::Nil {
            let config = |name: &str| ["CONFIG", "GET", name].map(str::to_owned);
            let Value::Array(memory) = self.admin.must(&config("maxmemory")) else { panic!() };
            let Value::Array(role) = self.admin.must(&["ROLE"]) else { panic!() };
            self.set_oom(false);
            self.set_readonly(false);
            self.admin.must(&["EVAL", &set, "1", CLOCK]);
            self.set_oom(memory[1] != Value::Bytes(b"0".to_vec()));
            self.set_readonly(role[0] == Value::Bytes(b"slave".to_vec()));
        }
        let mut words = vec![b"EVALSHA".to_vec(), self.scripts[script.sha].clone().into_bytes()];
        words.push(keys.len().to_string().into_bytes());
        words.extend(keys.iter().chain(args.iter()).map(<[u8]>::to_vec));
        let connection = if self.denied { &mut self.mute } else { &mut self.admin };
        let value = connection.call(&words);
        (value, self.drain())
    }

    fn subscribe(&mut self, channel: &[u8], on: bool) {
        let word: &[u8] = if on { b"SUBSCRIBE" } else { b"UNSUBSCRIBE" };
        self.inbox.send(&[word, channel]);
        self.drain();
    }

    fn flush(&mut self) {
        self.admin.must(&["REPLICAOF", "NO", "ONE"]);
        self.admin.must(&["FLUSHALL"]);
    }

    fn evict(&mut self, key: &[u8]) {
        let word: &[u8] = b"DEL";
        let Value::Array(role) = self.admin.must(&["ROLE"]) else { panic!() };
        self.set_readonly(false);
        self.admin.must(&[word, key]);
        self.set_readonly(role[0] == Value::Bytes(b"slave".to_vec()));
    }

    fn set_oom(&mut self, on: bool) {
        self.admin.must(&["CONFIG", "SET", "maxmemory", if on { "1" } else { "0" }]);
    }

    fn set_readonly(&mut self, on: bool) {
        // A replica of nobody: it refuses writes and keeps its data.
        let master = if on { ["127.0.0.1", "1"] } else { ["NO", "ONE"] };
        self.admin.must(&["REPLICAOF", master[0], master[1]]);
    }

    fn set_publish_denied(&mut self, on: bool) {
        self.denied = on;
    }

    fn hash(&mut self, key: &[u8]) -> Vec<Value> {
        let word: &[u8] = b"HGETALL";
        let Value::Array(items) = self.admin.must(&[word, key]) else { panic!() };
        items
    }

    fn expiry(&mut self, _key: &[u8]) -> Option<Option<u64>> {
        None
    }

    fn sorted(&mut self, key: &[u8]) -> Vec<(Vec<u8>, i64)> {
        let words: [&[u8]; 5] = [b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"];
        let Value::Array(items) = self.admin.must(&words) else { panic!() };
        let pair = |pair: &[Value]| match pair {
            [Value::Bytes(member), Value::Bytes(score)] => {
                let score: f64 = std::str::from_utf8(score).unwrap().parse().unwrap();
                #[allow(clippy::cast_possible_truncation)]
                (member.clone(), score as i64)
            }
            other => panic!("{other:?}"),
        };
        items.chunks_exact(2).map(pair).collect()
    }
}
