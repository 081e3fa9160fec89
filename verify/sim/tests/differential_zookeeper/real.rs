//! A real server, started for the test and stopped with it.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fencelock_sim::zookeeper::{Mode, Op};

use crate::deed::Deed;
use crate::wire::{Connection, In, Out};
use crate::{SESSIONS, Server};

/// Where Debian's package puts what runs a server.
const JARS: [&str; 4] = ["zookeeper", "slf4j-simple", "netty-codec", "netty-resolver"];
const PATIENCE: Duration = Duration::from_secs(30);

struct Process {
    child: Child,
    folder: PathBuf,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[derive(Default)]
struct Session {
    connection: Option<Connection>,
    id: i64,
    password: Vec<u8>,
    seen: i64,
    xid: i32,
    fired: Vec<String>,
    watches: [Vec<String>; 3],
}

pub struct Real {
    _process: Process,
    port: u16,
    sessions: [Session; SESSIONS],
    /// The first transaction that the comparison counts from.
    base: Option<i64>,
}

impl Real {
    /// `None` when there is no server to start.
    pub fn start() -> Option<Real> {
        let jars: Vec<String> =
            JARS.iter().map(|jar| format!("/usr/share/java/{jar}.jar")).collect();
        if !std::path::Path::new(&jars[0]).exists() {
            return None;
        }
        let deadline = Instant::now() + PATIENCE;
        let mut tries = 0;
        loop {
            tries += 1;
            let port = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
            let name = format!("fl-zookeeper-{}-{tries}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&folder).ok()?;
            let child = Command::new("java")
                .args(["-Xmx256m", "-Dzookeeper.admin.enableServer=false"])
                .arg("-Dzookeeper.forceSync=no")
                // No container is reaped while the two are compared.
                .arg("-Dznode.container.checkIntervalMs=86400000")
                .args(["-cp", &jars.join(":"), "org.apache.zookeeper.server.ZooKeeperServerMain"])
                .arg(port.to_string())
                .arg(&folder)
                .args(["2000"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .ok()?;
            let mut process = Process { child, folder };
            // It serves when a session can be had; the port may have gone to somebody else.
            while matches!(process.child.try_wait(), Ok(None)) {
                assert!(Instant::now() < deadline, "the server does not come up");
                let mut probe = Session::default();
                if open(&mut probe, port).is_some() {
                    end(&mut probe);
                    let sessions = Default::default();
                    return Some(Real { _process: process, port, sessions, base: None });
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            assert!(Instant::now() < deadline, "the server ends at once");
        }
    }

    fn stat(&mut self, input: &mut In) -> String {
        let (czxid, mzxid) = (input.long(), input.long());
        let _times = (input.long(), input.long());
        let (version, cversion, _aversion) = (input.int(), input.int(), input.int());
        let owner = input.long();
        let (length, children) = (input.int(), input.int());
        let pzxid = input.long();
        let base = *self.base.get_or_insert(czxid);
        let owner = match owner {
            0 => "none".to_owned(),
            id => match self.sessions.iter().position(|it| it.id == id) {
                Some(session) => format!("session {session}"),
                None => "a stranger".to_owned(),
            },
        };
        let from = |zxid: i64| if zxid == 0 { -1 } else { zxid - base };
        format!(
            "c{} m{} p{} v{version} cv{cversion} {owner} {length}B {children}",
            from(czxid),
            from(mzxid),
            from(pzxid)
        )
    }

    fn answer(&mut self, op: &Op, input: &mut In) -> String {
        match op {
            Op::Create { .. } => {
                let path = input.text();
                format!("{path} {}", self.stat(input))
            }
            Op::Set { .. } | Op::Exists { .. } => self.stat(input),
            Op::Data { .. } => {
                let data = input.bytes();
                format!("{data:?} {}", self.stat(input))
            }
            Op::Children { .. } => {
                let mut names = input.texts();
                names.sort();
                format!("{names:?} {}", self.stat(input))
            }
            Op::Multi(ops) => self.parts(ops, input),
            _ => "done".to_owned(),
        }
    }

    fn parts(&mut self, ops: &[Op], input: &mut In) -> String {
        let mut parts = Vec::new();
        let mut failed = None;
        for (index, op) in ops.iter().enumerate() {
            let (kind, _done, _error) = (input.int(), input.flag(), input.int());
            if kind == -1 {
                let code = input.int();
                // 0 and -2 stand before and after the one that failed.
                if code != 0 && code != -2 {
                    failed = Some(format!("failed {index} {code}"));
                }
            } else if kind == 1 {
                // Of a node made by a multi only the path is told.
                parts.push(input.text());
            } else {
                parts.push(self.answer(op, input));
            }
        }
        failed.unwrap_or_else(|| format!("{parts:?}"))
    }
}

/// Opens or takes up a session; `None` when nobody answers.
fn open(session: &mut Session, port: u16) -> Option<bool> {
    let mut connection = Connection::open(port).ok()?;
    let password = if session.id == 0 { vec![0; 16] } else { session.password.clone() };
    let hello = Out::default()
        .int(0)
        .long(session.seen)
        .int(30_000)
        .long(session.id)
        .bytes(&password)
        .flag(false);
    connection.send(hello).ok()?;
    let mut input = connection.read().ok()?;
    let (_version, _timeout) = (input.int(), input.int());
    session.id = input.long();
    session.password = input.bytes();
    session.connection = Some(connection);
    Some(session.id != 0)
}

fn end(session: &mut Session) {
    if let Some(mut connection) = session.connection.take() {
        let _ = connection.send(Out::default().int(1_000_000).int(-11));
        // The server answers and then closes.
        while connection.read().is_ok() {}
    }
    *session = Session { fired: std::mem::take(&mut session.fired), ..Session::default() };
}

fn encode(out: Out, op: &Op) -> Out {
    match op {
        Op::Create { path, data, mode } => {
            let flags = match mode {
                Mode::Persistent => 0,
                Mode::Ephemeral => 1,
                Mode::PersistentSequential => 2,
                Mode::EphemeralSequential => 3,
                Mode::Container => 4,
            };
            out.text(path).bytes(data).open_acl().int(flags)
        }
        Op::Delete { path, version } | Op::Check { path, version } => out.text(path).int(*version),
        Op::Set { path, data, version } => out.text(path).bytes(data).int(*version),
        Op::Data { path, watch } | Op::Exists { path, watch } | Op::Children { path, watch } => {
            out.text(path).flag(*watch)
        }
        Op::Sync => out.text("/"),
        Op::Multi(ops) => {
            let out =
                ops.iter().fold(out, |out, op| encode(out.int(kind(op)).flag(false).int(-1), op));
            out.int(-1).flag(true).int(-1)
        }
        Op::SetWatches { since, data, exist, child } => {
            out.long(*since as i64).texts(data).texts(exist).texts(child)
        }
        Op::Close | Op::Reap { .. } => out,
    }
}

fn kind(op: &Op) -> i32 {
    match op {
        Op::Create { mode: Mode::Container, .. } => 19,
        Op::Create { .. } => 15,
        Op::Delete { .. } => 2,
        Op::Exists { .. } => 3,
        Op::Data { .. } => 4,
        Op::Set { .. } => 5,
        Op::Sync => 9,
        Op::Children { .. } => 12,
        Op::Check { .. } => 13,
        Op::Multi(_) => 14,
        Op::SetWatches { .. } => 101,
        Op::Close => -11,
        Op::Reap { .. } => 0,
    }
}

impl Session {
    /// Sends a request and reads up to its answer.
    fn ask(&mut self, op: &Op) -> (i32, In) {
        self.xid += 1;
        let xid = if matches!(op, Op::SetWatches { .. }) { -8 } else { self.xid };
        let connection = self.connection.as_mut().expect("a connection");
        connection.send(encode(Out::default().int(xid).int(kind(op)), op)).expect("a server");
        loop {
            let mut input = self.connection.as_mut().unwrap().read().expect("an answer");
            let (answers, zxid, error) = (input.int(), input.long(), input.int());
            if zxid > 0 {
                self.seen = self.seen.max(zxid);
            }
            if answers == -1 {
                let (kind, _state, path) = (input.int(), input.int(), input.text());
                self.forget(kind, &path);
                self.fired.push(format!("{kind} {path}"));
            } else if answers == xid {
                self.note(op, error);
                return (error, input);
            }
        }
    }

    /// Keeps account of its watches, to set them again.
    fn note(&mut self, op: &Op, error: i32) {
        let (table, path) = match op {
            Op::Data { path, watch: true } if error == 0 => (0, path),
            Op::Exists { path, watch: true } if error == 0 => (0, path),
            Op::Exists { path, watch: true } if error == -101 => (1, path),
            Op::Children { path, watch: true } if error == 0 => (2, path),
            _ => return,
        };
        if !self.watches[table].contains(path) {
            self.watches[table].push(path.clone());
        }
    }

    fn forget(&mut self, kind: i32, path: &str) {
        let tables: &[usize] = match kind {
            2 => &[0, 1, 2],
            4 => &[2],
            _ => &[0, 1],
        };
        for &table in tables {
            self.watches[table].retain(|it| it != path);
        }
    }
}

impl Server for Real {
    fn connect(&mut self, session: usize, again: bool) -> String {
        let it = &mut self.sessions[session];
        if again {
            it.connection = None;
        } else {
            end(it);
        }
        let open = open(it, self.port).expect("a server");
        if again && it.watches.iter().any(|table| !table.is_empty()) {
            let [data, exist, child] = it.watches.clone();
            it.watches = Default::default();
            // Those that fire are forgotten as they do.
            it.watches = [data.clone(), exist.clone(), child.clone()];
            let op = Op::SetWatches { since: it.seen as u64, data, exist, child };
            it.ask(&op);
        }
        format!("open {open}")
    }

    fn act(&mut self, session: usize, deed: &Deed) -> String {
        let Deed::Op(op) = deed else { return self.connect(session, false) };
        let (error, mut input) = self.sessions[session].ask(op);
        if error != 0 {
            return format!("error {error}");
        }
        self.answer(op, &mut input)
    }

    fn fired(&mut self, session: usize) -> Vec<String> {
        // What fired before is sent before the answer.
        self.sessions[session].ask(&Op::Exists { path: "/".to_owned(), watch: false });
        std::mem::take(&mut self.sessions[session].fired)
    }
}
