//! The first words on a connection: who we are, and what we need before the first request.

use std::collections::VecDeque;

use crate::id::ClientId;
use crate::redis::decode;
use crate::redis::script::BIRTH_AT;
use crate::redis::session::incoming::Incoming;
use crate::redis::session::login::{Login, Protocol};
use crate::redis::session::pack;
use crate::redis::session::refusal::{NoSession, classify};
use crate::redis::session::resp::Frame;
use crate::redis::sync::{self, Naming, Question, Replicas};
use crate::redis::{Birth, Charter, Codec, Inbox, Script, Value, run_of};
use crate::secret::Secrets;

/// What a connection is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// For requests, and for pushes as well if the server speaks RESP3.
    Requests {
        /// Who asks: the server shows its name to people.
        client: ClientId,
        /// The channel to subscribe to.
        channel: Vec<u8>,
        /// The database's number.
        db: u32,
        /// Only a master will do: one that others named may have become a replica.
        master: bool,
        /// It is of a cluster: where it has sharded channels, these are used and not `channel`.
        cluster: bool,
        /// It is a server of such a quorum.
        charter: Option<Charter>,
    },
    /// For requests whose grants replicas confirm, beside a connection for requests, which has loaded the
    /// scripts.
    Grants {
        /// Who asks.
        client: ClientId,
        /// The database's number.
        db: u32,
        /// Only a master will do.
        master: bool,
        /// What counts as confirmed.
        terms: sync::Terms,
    },
    /// For pushes alone, beside a connection without RESP3.
    Pushes {
        /// The channel to subscribe to.
        channel: Vec<u8>,
    },
    /// For questions of whoever made it: it is only logged in.
    Questions,
}

/// A connection that is ready for its purpose.
#[derive(Clone, Debug)]
pub struct Greeted {
    /// Whether pushes come on this connection.
    pub resp3: bool,
    /// Whether it is subscribed.
    pub inbox: Inbox,
    /// Why it may not subscribe, in the server's words.
    pub denied: Option<String>,
    /// The server's time, in microseconds; 0 where it was not asked.
    pub now: u64,
    /// What the server said of itself, where it is one of a quorum.
    pub birth: Option<Birth>,
    /// How many replicas were named; 0 where that was not asked.
    pub replicas: u32,
    /// What came after the last answer.
    pub incoming: Incoming,
    /// Pushes that came between the answers.
    pub early: Vec<Vec<Value>>,
    /// What no text may show, whatever the server says.
    pub secrets: Secrets,
}

/// What the next reply answers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Asked {
    Hello,
    Auth,
    Ping,
    Version,
    Role,
    Name,
    Select,
    Script(usize),
    Subscribe,
    Time,
    Info,
    /// Of this run.
    Birth(String),
    /// Whether the server can wait for replicas.
    Waits,
    Replicas(Question),
}

/// The first words on one connection, without I/O: write what [`Greeting::take`] gives, hand
/// what comes to [`Greeting::receive`], until that gives the connection, or says why there is none.
#[derive(Clone, Debug)]
pub struct Greeting {
    purpose: Purpose,
    login: Option<Login>,
    out: Vec<u8>,
    asked: VecDeque<Asked>,
    greeted: Greeted,
}

impl Greeting {
    /// Begins, on a connection that has just been made.
    pub fn new(purpose: Purpose, protocol: Protocol, login: Option<Login>) -> Greeting {
        let mut secrets = Secrets::default();
        if let Some(login) = &login {
            secrets.add(&login.password);
        }
        let mut greeting = Greeting {
            purpose,
            login,
            out: Vec::new(),
            asked: VecDeque::new(),
            greeted: Greeted {
                resp3: false,
                inbox: Inbox::Polling,
                denied: None,
                now: 0,
                birth: None,
                replicas: 0,
                incoming: Incoming::default(),
                early: Vec::new(),
                secrets,
            },
        };
        match protocol {
            // A connection for pushes alone is needed only without RESP3.
            Protocol::Auto if !matches!(greeting.purpose, Purpose::Pushes { .. }) => {
                greeting.hello();
            }
            _ => greeting.log_in(),
        }
        greeting
    }

    /// Asks for what another purpose needs, on a connection that is ready for one.
    pub fn further(greeted: Greeted, purpose: Purpose) -> Greeting {
        let (out, asked) = (Vec::new(), VecDeque::new());
        let mut greeting = Greeting { purpose, login: None, out, asked, greeted };
        greeting.set_up();
        greeting
    }

    /// What is to be written now, in whole.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Takes what has come; gives the connection once it is ready, and must not be called after that.
    ///
    /// # Errors
    /// Why there is no connection.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Option<Greeted>, NoSession> {
        self.greeted.incoming.extend(bytes);
        while let Some(asked) = self.asked.front() {
            let frame = self.greeted.incoming.frame();
            let frame = frame.map_err(|garbage| NoSession::misconfigured(garbage.to_string()))?;
            let reply = match frame {
                None => return Ok(None),
                // RESP3 answers SUBSCRIBE, and nothing else, by a push.
                Some(Frame::Push(values)) if *asked == Asked::Subscribe && is_answer(&values) => {
                    Value::Array(values)
                }
                Some(Frame::Push(values)) => {
                    self.greeted.early.push(values);
                    continue;
                }
                Some(Frame::Reply(value)) => value,
            };
            let Some(asked) = self.asked.pop_front() else { break };
            self.answered(asked, reply)?;
        }
        Ok(Some(self.greeted.clone()))
    }

    /// Why there is no connection, when the server closed it.
    pub fn closed() -> NoSession {
        NoSession::Later(
            "the server closed the connection during login; if it expects TLS, use rediss://"
                .to_owned(),
        )
    }

    fn ask<W: AsRef<[u8]>>(&mut self, asked: Asked, words: &[W]) {
        pack::words(&mut self.out, words);
        self.asked.push_back(asked);
    }

    fn hello(&mut self) {
        let mut words = vec!["HELLO".to_owned(), "3".to_owned()];
        if let Some(Login { user, password }) = &self.login {
            let user = user.as_deref().unwrap_or("default");
            words.extend(["AUTH".to_owned(), user.to_owned(), password.clone()]);
        }
        self.ask(Asked::Hello, &words);
    }

    /// Logs in without HELLO.
    fn log_in(&mut self) {
        match self.login.clone() {
            Some(Login { user: Some(user), password }) => {
                self.ask(Asked::Auth, &["AUTH", &user, &password]);
            }
            Some(Login { user: None, password }) => self.ask(Asked::Auth, &["AUTH", &password]),
            // Asked apart, since a server hangs up on who sends a script without having logged in.
            None => self.ask(Asked::Ping, &["PING"]),
        }
    }

    fn is_of_cluster(&self) -> bool {
        matches!(self.purpose, Purpose::Requests { cluster: true, .. })
    }

    /// Logged in without HELLO: a server of a cluster is asked for its version all the same.
    fn logged_in(&mut self) {
        match self.is_of_cluster() {
            true => self.ask(Asked::Version, &["HELLO"]),
            false => self.set_up(),
        }
    }

    /// What HELLO says. Without RESP3 the channels would take a connection of their own, and one answer at
    /// a time: there the client polls.
    fn versed(&mut self, reply: &Value) {
        if self.is_of_cluster() && has_shards(reply) {
            self.greeted.inbox = Inbox::Sharded(self.greeted.resp3);
        }
        self.set_up();
    }

    fn scripts(&self) -> &'static [Script] {
        if self.charter().is_some() {
            return Codec::quorum_scripts();
        }
        match self.greeted.inbox {
            Inbox::Sharded(_) => Codec::sharded_scripts(),
            Inbox::Subscribed | Inbox::Polling => Codec::scripts(),
        }
    }

    /// Asks for all that the purpose needs, in one go.
    fn set_up(&mut self) {
        match self.purpose.clone() {
            Purpose::Questions => {}
            Purpose::Pushes { channel } => {
                self.ask(Asked::Subscribe, &[&b"SUBSCRIBE"[..], &channel]);
            }
            Purpose::Requests { client, channel, db, master, cluster: _, charter } => {
                if master {
                    self.ask(Asked::Role, &["ROLE"]);
                }
                self.ask(Asked::Name, &["CLIENT", "SETNAME", &shown_name(&client)]);
                if db != 0 {
                    self.ask(Asked::Select, &["SELECT", &db.to_string()]);
                }
                for (at, script) in self.scripts().iter().enumerate() {
                    self.ask(Asked::Script(at), &["SCRIPT", "LOAD", script.text]);
                }
                if planted!(SubscribedElsewhere) {
                    self.greeted.inbox = Inbox::Subscribed;
                } else if self.greeted.resp3 && self.greeted.inbox == Inbox::Polling {
                    self.ask(Asked::Subscribe, &[&b"SUBSCRIBE"[..], &channel]);
                }
                if charter.is_some() {
                    self.ask(Asked::Info, &["INFO", "server"]);
                }
                self.ask(Asked::Time, &["TIME"]);
            }
            Purpose::Grants { client, db, master, terms } => {
                if master {
                    self.ask(Asked::Role, &["ROLE"]);
                }
                self.ask(Asked::Name, &["CLIENT", "SETNAME", &shown_name(&client)]);
                if db != 0 {
                    self.ask(Asked::Select, &["SELECT", &db.to_string()]);
                }
                self.ask(Asked::Waits, terms.probe());
                if terms.replicas == Replicas::All {
                    self.ask(Asked::Replicas(Question::Role), Question::Role.words());
                    if terms.naming == Naming::Nodes {
                        self.ask(Asked::Replicas(Question::Nodes), Question::Nodes.words());
                    }
                }
            }
        }
    }

    fn answered(&mut self, asked: Asked, reply: Value) -> Result<(), NoSession> {
        match asked {
            Asked::Hello => match &reply {
                Value::Error(line) if !is_soft(line) => {
                    return Err(classify("HELLO", line, &self.greeted.secrets));
                }
                Value::Error(_) => self.log_in(),
                _ => {
                    self.greeted.resp3 = true;
                    self.versed(&reply);
                }
            },
            Asked::Auth => {
                self.refuse("AUTH", reply)?;
                self.logged_in();
            }
            Asked::Ping => {
                if let Value::Error(line) = &reply
                    && line.starts_with("NOAUTH")
                {
                    return Err(classify("PING", line, &self.greeted.secrets));
                }
                self.logged_in();
            }
            // One that does not know HELLO is older than sharded channels.
            Asked::Version => self.versed(&reply),
            Asked::Role => {
                let reply = self.refuse("ROLE", reply)?;
                let role = reply.array().and_then(|parts| parts.first()?.text());
                if role != Some("master") {
                    let role = role.unwrap_or("something else");
                    return Err(NoSession::Later(format!("it is no master but a {role}")));
                }
            }
            // It is for people; a user who may not set it goes without.
            Asked::Name => {}
            Asked::Select => drop(self.refuse("SELECT", reply)?),
            Asked::Script(at) => {
                let script = &self.scripts()[at];
                match self.refuse("SCRIPT LOAD", reply)? {
                    Value::Bytes(sha) if sha == script.sha.as_bytes() => {}
                    _ => {
                        return Err(NoSession::misconfigured(format!(
                            "the server changed the script '{}' (it answered with another hash): \
                             connect without the proxy in between",
                            script.name
                        )));
                    }
                }
            }
            Asked::Waits => self.waits(reply)?,
            Asked::Replicas(question) => {
                let reply = self.refuse(question.words()[0], reply)?;
                let named = match question {
                    Question::Nodes => sync::named_in_cluster(&reply),
                    _ => sync::named_in_role(&reply),
                };
                self.greeted.replicas = self.greeted.replicas.max(named.unwrap_or(0));
            }
            Asked::Subscribe => self.subscribed(&reply)?,
            Asked::Time => {
                let reply = self.refuse("TIME", reply)?;
                self.greeted.now = time(&reply)?;
                Codec::check_time(self.greeted.now).map_err(NoSession::Misconfigured)?;
            }
            Asked::Info => {
                let reply = self.refuse("INFO", reply)?;
                let run = reply.text().and_then(run_of).map(str::to_owned).ok_or_else(|| {
                    NoSession::misconfigured(
                        "INFO tells no run_id: a quorum cannot tell whether this server has forgotten",
                    )
                })?;
                self.ask_birth(run);
            }
            Asked::Birth(run) => self.born(&run, reply)?,
        }
        Ok(())
    }

    fn charter(&self) -> Option<&Charter> {
        match &self.purpose {
            Purpose::Requests { charter, .. } => charter.as_ref(),
            _ => None,
        }
    }

    fn ask_birth(&mut self, run: String) {
        let Some(charter) = self.charter().cloned() else { return };
        let (sha, marker) = (self.scripts()[BIRTH_AT].sha, charter.marker());
        let words: [&[u8]; 6] = [
            b"EVALSHA",
            sha.as_bytes(),
            b"1",
            marker,
            run.as_bytes(),
            charter.fingerprint().as_bytes(),
        ];
        self.ask(Asked::Birth(run.clone()), &words);
    }

    fn born(&mut self, run: &str, reply: Value) -> Result<(), NoSession> {
        let Some(charter) = self.charter() else { return Ok(()) };
        let reply = self.refuse("the birth marker", reply)?;
        let read = charter.read(run, &reply).ok_or_else(|| {
            let key = String::from_utf8_lossy(charter.marker());
            NoSession::misconfigured(format!(
                "the birth marker in the key {key} cannot be read: if another program wrote it, choose \
                 another prefix; then run 'fencelock quorum init'"
            ))
        })?;
        let (now, birth) = read.map_err(|other| {
            NoSession::misconfigured(format!(
                "the server belongs to a quorum of another list of servers, or another max_lease (its \
                 fingerprint is {other}, that of this URL {}): write the same in every client's URL, \
                 or, if the quorum was changed while all clients were stopped, run 'fencelock quorum \
                 init'",
                charter.fingerprint()
            ))
        })?;
        (self.greeted.now, self.greeted.birth) = (now, Some(birth));
        Ok(())
    }

    /// A server that cannot wait as it is to is of no use, however many replicas it has.
    fn waits(&self, reply: Value) -> Result<(), NoSession> {
        let disk = matches!(&self.purpose, Purpose::Grants { terms, .. } if terms.disk);
        let why = match &reply {
            Value::Error(line) if disk && line.contains("unknown command") => {
                "sync_disk=yes needs WAITAOF, which Redis has from 7.2 on and this server has not: \
                 upgrade the servers, or leave sync_disk out"
            }
            Value::Error(line) if disk && line.contains("appendonly") => {
                "sync_disk=yes needs the append-only file, which is off at this server: set 'appendonly \
                 yes' there and at its replicas, or leave sync_disk out"
            }
            _ => return self.refuse(if disk { "WAITAOF" } else { "WAIT" }, reply).map(drop),
        };
        Err(NoSession::misconfigured(why))
    }

    /// A user who may not subscribe polls.
    fn subscribed(&mut self, reply: &Value) -> Result<(), NoSession> {
        match reply {
            Value::Error(line) => match classify("SUBSCRIBE", line, &self.greeted.secrets) {
                NoSession::Misconfigured(_) => {
                    self.greeted.denied = Some(self.greeted.secrets.hide(line).into_owned());
                }
                later => return Err(later),
            },
            Value::Array(values) if is_answer(values) => self.greeted.inbox = Inbox::Subscribed,
            _ => {}
        }
        Ok(())
    }

    /// Turns an error reply into why there is no connection.
    fn refuse(&self, step: &str, reply: Value) -> Result<Value, NoSession> {
        refuse(step, reply, &self.greeted.secrets)
    }
}

/// Turns an error reply to `step` into why there is no connection.
///
/// # Errors
/// When the reply is one.
pub fn refuse(step: &str, reply: Value, secrets: &Secrets) -> Result<Value, NoSession> {
    match reply {
        Value::Error(line) => Err(classify(step, &line, secrets)),
        reply => Ok(reply),
    }
}

/// The server's time in microseconds, out of TIME's reply.
///
/// # Errors
/// When it is no time.
pub fn time(reply: &Value) -> Result<u64, NoSession> {
    decode::time(reply)
        .ok_or_else(|| NoSession::misconfigured("TIME was answered with something that is no time"))
}

/// Whether HELLO says that the server has sharded channels, as they came with version 7.
fn has_shards(reply: &Value) -> bool {
    let pairs = reply.array().unwrap_or_default().chunks_exact(2);
    let mut version = pairs.filter(|pair| pair[0].text() == Some("version"));
    let major = version.next().and_then(|pair| pair[1].text()?.split('.').next()?.parse().ok());
    major.is_some_and(|major: u32| major >= 7)
}

/// Whether RESP2 will do: an older server, a proxy, or a user who may not say HELLO.
fn is_soft(line: &str) -> bool {
    let code = line.split(' ').next().unwrap_or_default();
    matches!(code, "NOPROTO" | "ERR" | "NOPERM" | "NOAUTH") && !is_about_login(line)
}

/// Whether an answer to HELLO is about the login, which AUTH would only repeat. A server that
/// wants a login says NOAUTH to HELLO, whether or not it knows the command.
fn is_about_login(line: &str) -> bool {
    line.contains("password configured")
        || (line.starts_with("NOAUTH") && !line.contains("Authentication required"))
        || line.contains("max number of clients")
}

/// Whether it is the answer to SUBSCRIBE.
fn is_answer(values: &[Value]) -> bool {
    matches!(values.first(), Some(Value::Bytes(kind)) if kind == b"subscribe")
}

/// What `CLIENT LIST` shows: the server takes no spaces and nothing outside printable ASCII.
fn shown_name(client: &ClientId) -> String {
    let label = client.label();
    let mut name = format!("fencelock:{}", client.id());
    if !label.is_empty() {
        name.push(':');
        name.extend(label.chars().map(|c| if c.is_ascii_graphic() { c } else { '_' }));
    }
    name
}
