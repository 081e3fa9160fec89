//! What goes wrong with an ensemble.

use crate::cover::Cover;
use crate::world::World;
use crate::zookeeper::ensemble::Env;
use crate::zookeeper::op::{Answer, Mode, Op};
use crate::zookeeper::server::{ConnId, Said, Sent};
use crate::zookeeper::site::{Happening, Site, User};

/// A fault of the ensemble. Spans are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ZkFault {
    /// A server stands still.
    Pause { server: u8, span: u64 },
    /// A foreign contender stands still.
    PauseCurator { index: u8, span: u64 },
    /// A server dies and starts again.
    Crash { server: u8, span: u64 },
    /// The leader dies.
    CrashLeader { span: u64 },
    /// All servers die, and keep their logs.
    CrashAll { span: u64 },
    /// What goes to a server from the others is late.
    Lag { server: u8, by: u64, span: u64 },
    /// The servers of the island (a bit for each) are cut off from the others; clients reach all.
    Part { island: u8, span: u64 },
    /// The leader is cut off from the others.
    PartLeader { span: u64 },
    /// The server that a lock's holder is connected to is cut off from the others.
    PartHolder { lock: u8, span: u64 },
    /// A client's library gives its session up by its own clock; the servers keep it a while.
    GiveUp { slot: u8 },
    /// A client's next node is made, and the answer lost; it gives its session up over that, as
    /// after a sleep; the same happens to the first node in its new session, over which only the
    /// connection is lost. So one hold's node is there twice, once of a session that the client
    /// has left.
    Orphan { slot: u8 },
    /// A client's next release is done, and the answer lost; the connection ends later.
    LoseRelease { slot: u8 },
    /// The same of the next node that is made.
    LoseCreate { slot: u8 },
    /// A client loses its connection while its next node is being made, which takes the servers
    /// long: it comes back before that is committed.
    SlowCreate { slot: u8 },
    /// What a client sends next takes so long to its server.
    LateRequest { slot: u8, by: u64 },
    /// The leader hears the others late, and a client changes its server a few times meanwhile.
    LagLeader { slot: u8, by: u64, span: u64 },
    /// An administrator deletes the first node of a lock.
    DeleteHolder { lock: u8 },
}

impl ZkFault {
    /// The same, lasting no longer than `most`.
    pub(crate) fn within(mut self, most: u64) -> ZkFault {
        if let Some(span) = self.span_mut() {
            *span = most.min(*span);
        }
        self
    }

    fn span_mut(&mut self) -> Option<&mut u64> {
        match self {
            ZkFault::Pause { span, .. }
            | ZkFault::PauseCurator { span, .. }
            | ZkFault::Crash { span, .. }
            | ZkFault::CrashLeader { span }
            | ZkFault::CrashAll { span }
            | ZkFault::Lag { span, .. }
            | ZkFault::Part { span, .. }
            | ZkFault::LagLeader { span, .. }
            | ZkFault::PartLeader { span }
            | ZkFault::PartHolder { span, .. }
            | ZkFault::LateRequest { by: span, .. } => Some(span),
            ZkFault::DeleteHolder { .. }
            | ZkFault::GiveUp { .. }
            | ZkFault::Orphan { .. }
            | ZkFault::LoseRelease { .. }
            | ZkFault::LoseCreate { .. }
            | ZkFault::SlowCreate { .. } => None,
        }
    }

    /// How long it troubles renewals by itself.
    pub(crate) fn span(mut self) -> u64 {
        self.span_mut().map_or(0, |span| *span)
    }
}

impl World {
    /// Lets a fault of the ensemble happen.
    pub(crate) fn strike_zk(&mut self, fault: ZkFault) {
        let Some(mut zk) = self.zk.take() else { return };
        let config = zk.ensemble.config().clone();
        // Afterwards an election, and new connections.
        let after = config.tick * (config.sync_limit + 4) + self.zk_timeout();
        self.trouble(fault.span() + after);
        zk.rough_until = zk.rough_until.max(self.now + fault.span() + after);
        let servers = config.servers;
        let leader = zk.ensemble.leader();
        let mut env = Env::new(self.now, &mut self.dice);
        match fault {
            ZkFault::Pause { server, span } => {
                self.cover.add(Cover::ServerPaused);
                zk.ensemble.pause(usize::from(server) % servers, self.now + span);
            }
            ZkFault::PauseCurator { index, span } => {
                let count = zk.curators.len();
                if count > 0 {
                    let library = zk.curators[usize::from(index) % count].library;
                    zk.users[library].paused_until = self.now + span;
                }
            }
            ZkFault::Crash { server, span } => {
                zk.ensemble.crash(usize::from(server) % servers, span, &mut env);
            }
            ZkFault::CrashLeader { span } => {
                if let Some(leader) = leader {
                    zk.ensemble.crash(leader, span, &mut env);
                }
            }
            ZkFault::CrashAll { span } => {
                for server in 0..servers {
                    let more = env.dice.below(config.tick);
                    zk.ensemble.crash(server, span + more, &mut env);
                }
            }
            ZkFault::Lag { server, by, span } => {
                let server = usize::from(server) % servers;
                self.cover.add(Cover::ZkLagged);
                zk.ensemble.lag(server, by);
                zk.mends.push((self.now + span, Mend::Lag(server)));
            }
            ZkFault::Part { island, span } => {
                let island: Vec<usize> = (0..servers).filter(|it| island >> it & 1 == 1).collect();
                zk.part(&island, self.now, span, &mut env);
            }
            ZkFault::PartLeader { span } => {
                if let Some(leader) = leader {
                    zk.part(&[leader], self.now, span, &mut env);
                }
            }
            ZkFault::PartHolder { lock, span } => {
                if let Some(server) = zk.server_of_holder(usize::from(lock)) {
                    self.cover.add(Cover::ZkCutOff);
                    zk.part(&[server], self.now, span, &mut env);
                }
            }
            ZkFault::Orphan { slot } => {
                zk.deaf.insert(usize::from(slot), Deaf::BothCreates);
            }
            ZkFault::LoseRelease { slot } => {
                zk.deaf.insert(usize::from(slot), Deaf::Release);
            }
            ZkFault::LoseCreate { slot } => {
                zk.deaf.insert(usize::from(slot), Deaf::Create);
            }
            ZkFault::SlowCreate { slot } => {
                zk.deaf.insert(usize::from(slot), Deaf::SlowCreate);
            }
            ZkFault::LateRequest { slot, by } => {
                zk.late.insert(usize::from(slot), by);
            }
            ZkFault::GiveUp { slot } => zk.give_up(usize::from(slot), self.now, env.dice),
            ZkFault::LagLeader { slot, by, span } => {
                if let Some(leader) = leader {
                    zk.ensemble.lag(leader, by);
                    zk.mends.push((self.now + span, Mend::Lag(leader)));
                    for _ in 0..4 {
                        let at = self.now + env.dice.below(span);
                        zk.mends.push((at, Mend::Cut(slot)));
                    }
                }
            }
            ZkFault::DeleteHolder { lock } => zk.delete_holder(usize::from(lock), self.now),
        }
        let (later, mail) = (env.later, env.mail);
        self.post(&mut zk, later, mail);
        for (at, mend) in std::mem::take(&mut zk.mends) {
            self.queue.push(at, crate::event::Event::Zk(Happening::Mend(mend)));
        }
        self.zk = Some(zk);
        self.serve_libraries();
    }

    /// A request reaches a server: perhaps one over which its client is to lose the connection.
    pub(super) fn slow_create(&mut self, zk: &mut Site, conn: ConnId, sent: &Sent) {
        let Sent::Request { op: Op::Create { mode, .. }, .. } = sent else { return };
        let library = zk.pipes[conn].library;
        let User::Client { slot, .. } = zk.users[library].user else { return };
        if *mode != Mode::EphemeralSequential || zk.deaf.get(&slot) != Some(&Deaf::SlowCreate) {
            return;
        }
        let Some(leader) = zk.ensemble.leader() else { return };
        zk.deaf.remove(&slot);
        let timeout = self.zk_timeout();
        let by = self.dice.between(timeout / 16, timeout / 4);
        let until = self.now + 3 * by;
        for server in (0..zk.ensemble.servers().len()).filter(|it| *it != leader) {
            zk.ensemble.lag(server, by);
            let mend = Happening::Mend(Mend::Lag(server));
            self.queue.push(until, crate::event::Event::Zk(mend));
        }
        zk.rough_until = zk.rough_until.max(until + timeout);
        self.trouble(3 * by + self.plan.zk_patience() / 2);
        zk.pipes[conn].lost_down = true;
        let at = self.now + self.delay();
        let end = Happening::ClientEnd { library, conn: Some(conn) };
        self.queue.push(at, crate::event::Event::Zk(end));
        self.queue.push(at, crate::event::Event::Zk(Happening::ServerEnd { conn }));
    }

    /// Whether this answer is lost to a client that is deaf to it; what that leads to is planned.
    pub(super) fn is_deaf(&mut self, zk: &mut Site, conn: ConnId, said: &Said) -> bool {
        let Said::Reply { result: Ok(answer), .. } = said else { return false };
        let library = zk.pipes[conn].library;
        let User::Client { slot, .. } = zk.users[library].user else { return false };
        let Some(deaf) = zk.deaf.get(&slot).copied() else { return false };
        let hit = match deaf {
            Deaf::Release => matches!(answer, Answer::Multi(_)),
            _ => match answer {
                Answer::Created { path, .. } if self.zk_is_simple() => {
                    zk.truth.parents().contains(path)
                }
                Answer::Created { path, .. } => path.contains("lock-"),
                _ => false,
            },
        };
        if !hit || deaf == Deaf::SlowCreate {
            return false;
        }
        zk.deaf.remove(&slot);
        zk.pipes[conn].lost_down = true;
        self.trouble(self.plan.zk_patience() / 2);
        if matches!(deaf, Deaf::Create | Deaf::Release) {
            self.end_later(zk, conn);
            return true;
        }
        let event = if deaf == Deaf::BothCreates {
            zk.deaf.insert(slot, Deaf::SecondCreate);
            Happening::Mend(Mend::GiveUp(slot as u8))
        } else {
            self.cover.add(Cover::ZkOrphaned);
            Happening::ClientEnd { library, conn: Some(conn) }
        };
        let at = self.now + self.dice.between(0, self.zk_timeout() / 8);
        self.queue.push(at, crate::event::Event::Zk(event));
        self.queue.push(at, crate::event::Event::Zk(Happening::ServerEnd { conn }));
        true
    }

    /// Undoes a fault that lasted.
    pub(crate) fn mend_zk(&mut self, mend: Mend) {
        let Some(mut zk) = self.zk.take() else { return };
        let mut env = Env::new(self.now, &mut self.dice);
        match mend {
            Mend::Lag(server) => zk.ensemble.lag(server, 0),
            Mend::Cut(slot) => {
                self.zk = Some(zk);
                return self.cut_zk(usize::from(slot), 0);
            }
            Mend::GiveUp(slot) => {
                zk.give_up(usize::from(slot), self.now, env.dice);
            }
            Mend::Part(island) => {
                let island: Vec<usize> = (0..8).filter(|it| island >> it & 1 == 1).collect();
                zk.ensemble.part(&island, false, &mut env);
            }
        }
        let (later, mail) = (env.later, env.mail);
        self.post(&mut zk, later, mail);
        self.zk = Some(zk);
        self.serve_libraries();
    }
}

/// What a client does not hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deaf {
    /// That its node was made; nor the same in its next session.
    BothCreates,
    /// The second of these.
    SecondCreate,
    /// That its node was made.
    Create,
    /// The same, and the servers are long about it.
    SlowCreate,
    /// That its node was deleted, with a note.
    Release,
}

/// What follows a fault later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Mend {
    Lag(usize),
    /// Not an end, but a part that comes later.
    Cut(u8),
    /// See above: a client gives its session up.
    GiveUp(u8),
    Part(u8),
}
