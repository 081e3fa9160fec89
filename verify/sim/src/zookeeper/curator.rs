//! A foreign contender: what Curator's `InterProcessMutex` does on the same path.

use crate::clock::{Instant, MS, US};
use crate::dice::Dice;
use crate::zookeeper::library::{Library, Lost, Told};
use crate::zookeeper::op::{Answer, Change, Code, Mode, Op};

/// The data by which a holder is asked to let go.
pub const REVOKE: &[u8] = b"__REVOKE__";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Rests until its next turn.
    Idle,
    /// Waits for its node; `true`: looks for one whose creation was not answered.
    Create,
    Find,
    /// Waits for the list, or for its predecessor's data.
    List,
    Look,
    /// Waits for its predecessor to go.
    Wait,
    Hold,
    /// Takes no part: it asks the holder to let go.
    Revoke,
}

/// What a contender did that others must know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// It believes that it holds, by this node.
    Held(String),
    /// It believes so no longer.
    Ended,
}

/// By which recipe a contender takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// `InterProcessMutex`.
    Mutex,
    /// `InterProcessReadWriteLock`, to write.
    Write,
    /// The same, to read.
    Read,
}

impl Recipe {
    fn mark(self) -> &'static str {
        match self {
            Recipe::Mutex => "lock-",
            Recipe::Write => "__WRIT__",
            Recipe::Read => "__READ__",
        }
    }
}

/// How a contender behaves.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// The longest hold.
    pub hold: u64,
    /// The longest rest between two holds.
    pub rest: u64,
    /// In a thousand turns: how often it only asks the holder to let go.
    pub revoke: u64,
    /// It reads and writes, and draws which.
    pub reads: bool,
}

/// A contender.
#[derive(Debug)]
pub struct Curator {
    /// Which lock.
    pub lock: usize,
    /// Its library, by number.
    pub library: usize,
    parent: String,
    stage: Stage,
    /// How it takes part now.
    pub recipe: Recipe,
    reads: bool,
    uuid: u128,
    /// Its node.
    node: Option<String>,
    ahead: Option<String>,
    /// Nodes that could not be deleted.
    owed: Vec<String>,
    /// How the nodes of creates begin that were never answered.
    lost: Vec<String>,
    token: u64,
    /// Deletes carry tokens of their own.
    deletes: Vec<(u64, String)>,
    /// Turns of earlier plans are void.
    pub generation: u64,
    /// When it wants its next turn.
    pub turn_at: Option<Instant>,
    hold: u64,
    rest: u64,
    /// In a thousand turns: how often it only asks the holder to let go.
    revoke: u64,
    /// It takes no new lock.
    pub quiet: bool,
    /// What it did.
    pub acts: Vec<Act>,
    /// Since when it waits.
    pub since: Instant,
    /// How often it was granted.
    pub grants: u64,
}

impl Curator {
    /// A contender for a lock that holds and rests no longer than `habits` say.
    pub fn new(lock: usize, library: usize, parent: String, habits: Habits) -> Curator {
        let Habits { hold, rest, revoke, reads } = habits;
        Curator {
            lock,
            library,
            parent,
            stage: Stage::Idle,
            recipe: Recipe::Mutex,
            reads,
            uuid: 0,
            node: None,
            ahead: None,
            owed: Vec::new(),
            lost: Vec::new(),
            token: 0,
            deletes: Vec::new(),
            generation: 0,
            turn_at: None,
            hold,
            rest,
            revoke,
            quiet: false,
            acts: Vec::new(),
            since: 0,
            grants: 0,
        }
    }

    /// Whether it believes that it holds.
    pub fn holds(&self) -> bool {
        self.stage == Stage::Hold
    }

    /// Whether it wants nothing.
    pub fn idle(&self) -> bool {
        self.stage == Stage::Idle && self.owed.is_empty() && self.deletes.is_empty()
    }

    fn turn_in(&mut self, now: Instant, span: u64) {
        self.generation += 1;
        self.turn_at = Some(now + span);
    }

    fn ask(&mut self, now: Instant, lib: &mut Library, stage: Stage, op: Op) {
        self.token += 1;
        self.stage = stage;
        lib.request(now, self.token, op);
    }

    fn create(&mut self, now: Instant, lib: &mut Library, dice: &mut Dice, anew: bool) {
        if anew {
            if self.node.is_none() && self.uuid != 0 {
                self.lost.push(self.prefix());
            }
            self.uuid = u128::from(dice.bits()) << 64 | u128::from(dice.bits());
            if self.reads {
                let reads = dice.chance(600);
                self.recipe = if reads { Recipe::Read } else { Recipe::Write };
            }
        }
        self.node = None;
        let path = format!("{}/{}{}", self.parent, self.prefix(), self.recipe.mark());
        let data = b"127.0.0.1".to_vec();
        let op = Op::Create { path, data, mode: Mode::EphemeralSequential };
        self.ask(now, lib, Stage::Create, op);
    }

    fn prefix(&self) -> String {
        let hex = format!("{:032x}", self.uuid);
        let [a, b, c, d, e] = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        format!("_c_{a}-{b}-{c}-{d}-{e}-")
    }

    fn list(&mut self, now: Instant, lib: &mut Library) {
        let op = Op::Children { path: self.parent.clone(), watch: false };
        let stage = if self.node.is_none() { Stage::Find } else { Stage::List };
        if stage == Stage::Find {
            // What was sent before the connection went is done by then, or never.
            self.token += 1;
            lib.request(now, self.token, Op::Sync);
        }
        self.ask(now, lib, stage, op);
    }

    fn delete(&mut self, now: Instant, lib: &mut Library, path: String) {
        self.token += 1;
        self.deletes.push((self.token, path.clone()));
        lib.request(now, self.token, Op::Delete { path, version: -1 });
    }

    /// Lets go, or gives up waiting.
    fn leave(&mut self, now: Instant, lib: &mut Library, dice: &mut Dice) {
        if self.stage == Stage::Hold {
            self.acts.push(Act::Ended);
        }
        if let Some(path) = self.node.take() {
            self.delete(now, lib, path);
        }
        self.rest(now, dice);
    }

    fn rest(&mut self, now: Instant, dice: &mut Dice) {
        self.stage = Stage::Idle;
        let span = dice.below(self.rest + 1);
        self.turn_in(now, span);
    }

    /// Its turn: to begin, to let go, or to give up.
    pub fn turn(&mut self, now: Instant, lib: &mut Library, dice: &mut Dice) {
        self.turn_at = None;
        match self.stage {
            Stage::Idle if self.quiet => {}
            Stage::Idle if lib.conn().is_none() => self.turn_in(now, 5 * MS),
            Stage::Idle if dice.chance(self.revoke) => {
                let op = Op::Children { path: self.parent.clone(), watch: false };
                self.ask(now, lib, Stage::Revoke, op);
            }
            Stage::Idle => {
                self.since = now;
                self.create(now, lib, dice, true);
            }
            Stage::Hold => self.leave(now, lib, dice),
            // Patience is over.
            Stage::Wait if !self.quiet => self.leave(now, lib, dice),
            _ => {}
        }
    }

    /// Its library tells something.
    pub fn hear(&mut self, now: Instant, told: Told, lib: &mut Library, dice: &mut Dice) {
        match told {
            Told::Connected { .. } => self.connected(now, lib, dice),
            Told::Reattached => {
                for path in std::mem::take(&mut self.owed) {
                    self.delete(now, lib, path);
                }
                match self.stage {
                    Stage::Idle | Stage::Hold => {}
                    Stage::Revoke => self.rest(now, dice),
                    _ => self.list(now, lib),
                }
            }
            Told::Disconnected => {
                // A careful user lets go at once: it cannot know how long it was cut off.
                if self.stage == Stage::Hold {
                    self.acts.push(Act::Ended);
                    if let Some(path) = self.node.take() {
                        self.owed.push(path);
                    }
                    self.rest(now, dice);
                }
            }
            Told::Expired => {
                self.lost.clear();
                if self.stage == Stage::Hold {
                    self.acts.push(Act::Ended);
                    self.rest(now, dice);
                }
                self.node = None;
                self.owed.clear();
                self.deletes.clear();
            }
            Told::Unreachable => {}
            Told::Result { token, result } => self.result(now, token, result, lib, dice),
            Told::Fired(fired) => {
                if self.stage == Stage::Wait && self.ahead.as_ref() == Some(&fired.path) {
                    self.list(now, lib);
                } else if self.stage == Stage::Hold
                    && fired.change == Change::Data
                    && self.node.as_ref().is_some_and(|path| *path == fired.path)
                {
                    self.leave(now, lib, dice);
                }
            }
        }
    }

    fn connected(&mut self, now: Instant, lib: &mut Library, dice: &mut Dice) {
        match self.stage {
            Stage::Idle | Stage::Revoke => self.rest(now, dice),
            _ => self.create(now, lib, dice, true),
        }
    }

    fn result(
        &mut self,
        now: Instant,
        token: u64,
        result: Result<Answer, Lost>,
        lib: &mut Library,
        dice: &mut Dice,
    ) {
        if let Some(at) = self.deletes.iter().position(|(it, _)| *it == token) {
            let (_, path) = self.deletes.swap_remove(at);
            let lost = is_lost(&result);
            if lost {
                self.owed.push(path);
            }
            return;
        }
        if token != self.token {
            return;
        }
        match (self.stage, result) {
            // It goes on when the connection is back.
            (_, Err(Lost::NotSent)) => {}
            (_, Err(Lost::Failure(it))) if it.code == Code::ConnectionLoss => {}
            (_, Err(Lost::Failure(it)))
                if matches!(it.code, Code::SessionExpired | Code::SessionMoved) => {}
            (Stage::Create, Ok(Answer::Created { path, .. })) => {
                self.node = Some(path);
                self.list(now, lib);
            }
            (Stage::Create, Err(_)) => {
                // The parents are missing. Later tokens void the results of these.
                let mut at = 0;
                while let Some(slash) = self.parent[at + 1..].find('/') {
                    at += 1 + slash;
                    self.token += 1;
                    let op = container(&self.parent[..at]);
                    lib.request(now, self.token, op);
                }
                self.token += 1;
                lib.request(now, self.token, container(&self.parent));
                self.create(now, lib, dice, false);
            }
            (Stage::List | Stage::Find, Ok(Answer::Children { names, .. })) => {
                self.listed(now, names, lib, dice);
            }
            (Stage::List | Stage::Find, Err(_)) => self.create(now, lib, dice, true),
            (Stage::Look, Ok(Answer::Data { .. })) => {
                self.stage = Stage::Wait;
                if dice.chance(100) {
                    let span = dice.below(20 * MS);
                    self.turn_in(now, span);
                }
            }
            (Stage::Look, _) => self.list(now, lib),
            (Stage::Revoke, Ok(Answer::Children { mut names, .. })) if !names.is_empty() => {
                names.sort_by(|a, b| sequence(a).cmp(sequence(b)));
                let path = format!("{}/{}", self.parent, names[0]);
                let op = Op::Set { path, data: REVOKE.to_vec(), version: -1 };
                self.ask(now, lib, Stage::Revoke, op);
            }
            (Stage::Revoke, _) => self.rest(now, dice),
            _ => {}
        }
    }

    fn listed(&mut self, now: Instant, mut names: Vec<String>, lib: &mut Library, dice: &mut Dice) {
        names.sort_by(|a, b| sequence(a).cmp(sequence(b)));
        let orphans: Vec<String> = names
            .iter()
            .filter(|it| self.lost.iter().any(|lost| it.starts_with(lost)))
            .cloned()
            .collect();
        for orphan in orphans {
            let path = format!("{}/{orphan}", self.parent);
            self.delete(now, lib, path);
        }
        let prefix = self.prefix();
        let Some(at) = names.iter().position(|name| name.starts_with(&prefix)) else {
            return self.create(now, lib, dice, true);
        };
        let path = format!("{}/{}", self.parent, names[at]);
        self.node = Some(path.clone());
        // A reader looks at the first writer, everybody else at whoever comes before.
        let ahead = match self.recipe {
            Recipe::Read => names[..at].iter().position(|name| name.contains("__WRIT__")),
            _ => at.checked_sub(1),
        };
        if let Some(ahead) = ahead {
            let ahead = format!("{}/{}", self.parent, names[ahead]);
            self.ahead = Some(ahead.clone());
            return self.ask(now, lib, Stage::Look, Op::Data { path: ahead, watch: true });
        }
        self.token += 1;
        self.stage = Stage::Hold;
        self.grants += 1;
        self.acts.push(Act::Held(path.clone()));
        lib.request(now, self.token, Op::Data { path, watch: true });
        let span = dice.below(if self.quiet { 10 * MS } else { self.hold });
        self.turn_in(now, span.max(10 * US));
    }
}

fn container(path: &str) -> Op {
    Op::Create { path: path.to_owned(), data: Vec::new(), mode: Mode::Container }
}

fn is_lost(result: &Result<Answer, Lost>) -> bool {
    match result {
        Err(Lost::NotSent) => true,
        Err(Lost::Failure(it)) => matches!(it.code, Code::ConnectionLoss),
        Err(Lost::Part(_)) | Ok(_) => false,
    }
}

/// What the contenders sort by: the text after the last `lock-`, or what a read-write lock has there.
fn sequence(name: &str) -> &str {
    let after = |mark| Some(name.rsplit_once(mark)?.1);
    ["lock-", "__WRIT__", "__READ__"].into_iter().find_map(after).unwrap_or(name)
}
