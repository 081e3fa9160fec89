//! The model, with a client for each session.

use std::collections::BTreeMap;

use fencelock_sim::Dice;
use fencelock_sim::zookeeper::{
    Action, Answer, Change, Config, Ensemble, Env, Failure, Inner, Library, Lost, Op, Said,
    SessionId, Stat, Told,
};

use crate::deed::Deed;
use crate::{SESSIONS, Server};

const MS: u64 = 1_000_000;
const TIMEOUT: u64 = 30_000 * MS;

enum Next {
    Inner(Inner),
    Wake(usize, u64),
}

struct Client {
    library: Library,
    session: SessionId,
    fired: Vec<String>,
    results: BTreeMap<u64, Result<Answer, Lost>>,
    up: bool,
}

/// The model of one server. Messages arrive at once; only timers take time.
pub struct Model {
    now: u64,
    dice: Dice,
    ensemble: Ensemble,
    queue: Vec<(u64, u64, Next)>,
    serial: u64,
    clients: Vec<Client>,
    /// Which client a connection belongs to.
    conns: Vec<usize>,
    tokens: u64,
    base: Option<u64>,
}

impl Default for Model {
    fn default() -> Model {
        let mut dice = Dice::new(1);
        let config = Config {
            servers: 1,
            tick: 2_000 * MS,
            sync_limit: 5,
            reap: 86_400_000 * MS,
            latency: (0, 0),
        };
        let mut env = Env::new(0, &mut dice);
        let ensemble = Ensemble::new(config, &mut env);
        let later = env.later;
        let mut model = Model {
            now: 0,
            ensemble,
            queue: Vec::new(),
            serial: 0,
            clients: Vec::new(),
            conns: Vec::new(),
            tokens: 0,
            base: None,
            dice,
        };
        model.plan(later);
        while model.ensemble.leader().is_none() {
            model.step();
        }
        for _ in 0..SESSIONS {
            let client = model.client();
            model.clients.push(client);
        }
        model
    }
}

impl Model {
    fn client(&mut self) -> Client {
        let library = Library::new(self.now, TIMEOUT, 1, &mut self.dice);
        let (fired, results) = (Vec::new(), BTreeMap::new());
        Client { library, session: 0, fired, results, up: false }
    }

    fn plan(&mut self, later: Vec<(u64, Inner)>) {
        for (at, event) in later {
            self.serial += 1;
            self.queue.push((at, self.serial, Next::Inner(event)));
        }
    }

    /// The next timer.
    fn step(&mut self) {
        let first = self.queue.iter().enumerate().min_by_key(|(_, it)| (it.0, it.1));
        let Some((index, _)) = first else { return };
        let (at, _, next) = self.queue.swap_remove(index);
        self.now = self.now.max(at);
        match next {
            Next::Inner(event) => self.with(|ensemble, env| ensemble.take(event, env)),
            Next::Wake(client, generation) => {
                let now = self.now;
                self.clients[client].library.wake(now, generation, &mut self.dice);
                self.serve();
            }
        }
    }

    fn with(&mut self, call: impl FnOnce(&mut Ensemble, &mut Env<'_>)) {
        let mut env = Env::new(self.now, &mut self.dice);
        call(&mut self.ensemble, &mut env);
        let (later, mail) = (env.later, env.mail);
        self.plan(later);
        for (conn, said) in mail {
            self.hear(conn, said);
        }
        self.serve();
    }

    fn hear(&mut self, conn: usize, said: Said) {
        let client = self.conns[conn];
        self.clients[client].library.hear(self.now, conn, said, &mut self.dice);
    }

    /// Does what the libraries want.
    fn serve(&mut self) {
        while let Some(client) =
            (0..self.clients.len()).find(|&it| !self.clients[it].library.actions.is_empty())
        {
            let Some(wish) = self.clients[client].library.actions.pop_front() else { return };
            match wish {
                Action::Connect { .. } => {
                    let conn = self.conns.len();
                    self.conns.push(client);
                    self.clients[client].library.connected(self.now, conn);
                }
                Action::Send { conn, sent } => {
                    self.with(|ensemble, env| ensemble.client(conn, 0, sent, env));
                }
                Action::HangUp { conn } => {
                    self.with(|ensemble, env| ensemble.hang_up(conn, 0, env));
                }
                Action::Wake { at, generation } => {
                    self.serial += 1;
                    self.queue.push((at, self.serial, Next::Wake(client, generation)));
                }
            }
        }
        for client in &mut self.clients {
            while let Some(told) = client.library.told.pop_front() {
                match told {
                    Told::Connected { session, .. } => {
                        client.session = session;
                        client.up = true;
                    }
                    Told::Reattached => client.up = true,
                    Told::Disconnected | Told::Expired | Told::Unreachable => client.up = false,
                    Told::Result { token, result } => {
                        client.results.insert(token, result);
                    }
                    Told::Fired(fired) => {
                        let kind = match fired.change {
                            Change::Created => 1,
                            Change::Deleted => 2,
                            Change::Data => 3,
                            Change::Children => 4,
                        };
                        client.fired.push(format!("{kind} {}", fired.path));
                    }
                }
            }
        }
    }

    fn ask(&mut self, client: usize, op: Op) -> Result<Answer, Lost> {
        self.tokens += 1;
        let token = self.tokens;
        self.clients[client].library.request(self.now, token, op);
        self.serve();
        loop {
            if let Some(result) = self.clients[client].results.remove(&token) {
                return result;
            }
            self.step();
        }
    }

    fn stat(&mut self, stat: Stat) -> String {
        let base = *self.base.get_or_insert(stat.czxid);
        let owner = match stat.owner {
            0 => "none".to_owned(),
            id => match self.clients.iter().position(|it| it.session == id) {
                Some(session) => format!("session {session}"),
                None => "a stranger".to_owned(),
            },
        };
        let from = |zxid: u64| if zxid == 0 { -1 } else { zxid as i64 - base as i64 };
        format!(
            "c{} m{} p{} v{} cv{} {owner} {}B {}",
            from(stat.czxid),
            from(stat.mzxid),
            from(stat.pzxid),
            stat.version,
            stat.cversion,
            stat.length,
            stat.children
        )
    }

    fn answer(&mut self, answer: Answer) -> String {
        match answer {
            Answer::Created { path, stat } => format!("{path} {}", self.stat(stat)),
            Answer::Stat(stat) | Answer::Set(stat) => self.stat(stat),
            Answer::Data { data, stat } => format!("{data:?} {}", self.stat(stat)),
            Answer::Children { mut names, stat } => {
                names.sort();
                format!("{names:?} {}", self.stat(stat))
            }
            Answer::Multi(parts) => {
                let part = |it| match it {
                    Answer::Created { path, .. } => path,
                    it => self.answer(it),
                };
                let parts: Vec<String> = parts.into_iter().map(part).collect();
                format!("{parts:?}")
            }
            Answer::Missing => "error -101".to_owned(),
            Answer::Done => "done".to_owned(),
        }
    }
}

fn failed(lost: Lost) -> String {
    match lost {
        Lost::Failure(Failure { code, .. }) => format!("error {}", code.number()),
        Lost::Part(Failure { code, index }) => format!("failed {index} {}", code.number()),
        Lost::NotSent => "not sent".to_owned(),
    }
}

impl Server for Model {
    fn connect(&mut self, session: usize, again: bool) -> String {
        let now = self.now;
        if again {
            // The connection breaks; the library makes another, and sets its watches again.
            if let Some(conn) = self.clients[session].library.conn() {
                self.with(|ensemble, env| ensemble.hang_up(conn, 0, env));
                let client = &mut self.clients[session];
                client.library.broken(now, Some(conn), &mut self.dice);
            }
        } else {
            if self.clients[session].up {
                self.clients[session].library.close(now);
                self.serve();
            }
            let fired = std::mem::take(&mut self.clients[session].fired);
            self.clients[session] = Client { fired, ..self.client() };
        }
        self.serve();
        while !self.clients[session].up {
            self.step();
        }
        "open true".to_owned()
    }

    fn act(&mut self, session: usize, deed: &Deed) -> String {
        let Deed::Op(op) = deed else { return self.connect(session, false) };
        match self.ask(session, op.clone()) {
            Ok(answer) => self.answer(answer),
            Err(lost) => failed(lost),
        }
    }

    fn fired(&mut self, session: usize) -> Vec<String> {
        std::mem::take(&mut self.clients[session].fired)
    }
}
