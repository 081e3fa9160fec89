//! The log: what the leader decides, how it spreads, and when it is committed.

use std::rc::Rc;

use crate::zookeeper::ensemble::{Ensemble, Env, Event, Message};
use crate::zookeeper::op::{Op, SessionId};
use crate::zookeeper::server::{Entry, Origin, Role, Said, Server};
use crate::zookeeper::tree::{Change, Effect};

impl Ensemble {
    /// A leader takes a message, perhaps its own.
    pub(super) fn lead(&mut self, me: usize, from: usize, message: Message, env: &mut Env<'_>) {
        let Role::Leading(lead) = &mut self.servers[me].role else { return };
        match message {
            Message::Forward { session, origin, op } => match lead.tracker.check(session, from) {
                Ok(()) => {
                    if op == Op::Close {
                        lead.tracker.close(session);
                    }
                    self.propose(me, session, Some(origin), &op, env);
                }
                Err(code) => {
                    self.log(me, session, Some(origin), Effect::Error(code.into()), env);
                }
            },
            Message::Open { origin, timeout } => {
                self.sessions += 1;
                let session = (origin.server as u64 + 1) << 56 | self.sessions;
                lead.tracker.open(env.now, session, timeout, Some(from));
                let changes = vec![Change::OpenSession { timeout }];
                lead.ahead.sessions.insert(session, timeout);
                self.log(me, session, Some(origin), Effect::Changes { changes, many: false }, env);
            }
            Message::Revalidate { session, origin, timeout } => {
                let valid = lead.tracker.touch(env.now, session);
                if valid {
                    lead.tracker.own(session, from);
                }
                let answer = Message::Revalidated { session, origin, timeout, valid };
                self.tell_follower(me, from, answer, env);
            }
            Message::Sync { origin } => {
                let upto = self.servers[me].log.len();
                let Role::Leading(lead) = &mut self.servers[me].role else { return };
                lead.syncs.push((upto, origin));
                self.answer_syncs(me, env);
            }
            Message::Ack { has } => {
                if let Some(member) = lead.members.get_mut(&from) {
                    member.has = member.has.max(has);
                }
                self.advance(me, env);
            }
            Message::Touch { sessions } => {
                for session in sessions {
                    lead.tracker.touch(env.now, session);
                }
            }
            _ => {}
        }
    }

    /// A server takes a message of its leader.
    pub(super) fn follow(&mut self, me: usize, message: Message, env: &mut Env<'_>) {
        let server = &mut self.servers[me];
        match message {
            Message::Propose { entry } => {
                server.log.push(entry);
                let has = server.log.len();
                self.tell_leader(me, Message::Ack { has }, env);
            }
            Message::Commit { upto } => server.commit(me, upto, &mut env.mail),
            Message::Synced { origin } => {
                let done = Ok(crate::zookeeper::op::Answer::Done);
                server.resolve(origin.conn, origin.xid, done, &mut env.mail);
            }
            Message::Revalidated { session, origin, timeout, valid } => {
                if !server.conns.contains_key(&origin.conn) {
                    return;
                }
                if !valid {
                    server.drop_conn(origin.conn);
                    env.mail.push((origin.conn, Said::Connected { session: 0, timeout: 0 }));
                    env.mail.push((origin.conn, Said::Closed));
                    return;
                }
                server.touched.insert(session);
                env.mail.push((origin.conn, Said::Connected { session, timeout }));
            }
            Message::Ping => {
                let sessions = std::mem::take(&mut server.touched).into_iter().collect();
                self.tell_leader(me, Message::Touch { sessions }, env);
            }
            _ => {}
        }
    }

    /// The leader decides a write, and proposes what it came to.
    pub(super) fn propose(
        &mut self,
        me: usize,
        session: SessionId,
        origin: Option<Origin>,
        op: &Op,
        env: &mut Env<'_>,
    ) {
        let Role::Leading(lead) = &mut self.servers[me].role else { return };
        let zxid = lead.epoch << 32 | (lead.counter + 1);
        let effect = lead.ahead.prepare(session, zxid, op);
        self.log(me, session, origin, effect, env);
    }

    pub(super) fn log(
        &mut self,
        me: usize,
        session: SessionId,
        origin: Option<Origin>,
        effect: Effect,
        env: &mut Env<'_>,
    ) {
        let server = &mut self.servers[me];
        let Role::Leading(lead) = &mut server.role else { return };
        lead.counter += 1;
        let zxid = lead.epoch << 32 | lead.counter;
        lead.ahead.zxid = zxid;
        let entry = Rc::new(Entry { zxid, session, origin, effect });
        server.log.push(Rc::clone(&entry));
        let followers: Vec<usize> = lead.members.keys().copied().collect();
        for follower in followers {
            let message = Message::Propose { entry: Rc::clone(&entry) };
            self.tell_follower(me, follower, message, env);
        }
        self.advance(me, env);
    }

    /// Commits what a majority has.
    pub(super) fn advance(&mut self, me: usize, env: &mut Env<'_>) {
        let majority = self.majority();
        let server = &mut self.servers[me];
        let Role::Leading(lead) = &server.role else { return };
        let mut has: Vec<usize> = lead.members.values().map(|it| it.has).collect();
        has.push(server.log.len());
        has.sort_unstable_by(|a, b| b.cmp(a));
        let Some(&upto) = has.get(majority - 1) else { return };
        if upto <= server.applied {
            return;
        }
        self.settle(me, upto, env);
        let Role::Leading(lead) = &self.servers[me].role else { return };
        let followers: Vec<usize> = lead.members.keys().copied().collect();
        for follower in followers {
            self.tell_follower(me, follower, Message::Commit { upto }, env);
        }
        self.answer_syncs(me, env);
    }

    /// The leader applies what is committed.
    pub(super) fn settle(&mut self, me: usize, upto: usize, env: &mut Env<'_>) {
        let server = &mut self.servers[me];
        for entry in &server.log[server.applied..upto] {
            if entry.zxid > self.committed {
                self.committed = entry.zxid;
                self.news.push(Rc::clone(entry));
            }
        }
        let from = server.applied;
        server.commit(me, upto, &mut env.mail);
        let Server { role: Role::Leading(lead), log, applied, tree, .. } = server else { return };
        for entry in &log[from..*applied] {
            if let Effect::Changes { changes, .. } = &entry.effect
                && matches!(changes.first(), Some(Change::CloseSession { .. }))
            {
                lead.tracker.forget(entry.session);
            }
        }
        // A counter that wrapped falls back when its change is committed, as on the real server.
        if *applied == log.len() && lead.ahead.wrapped {
            lead.ahead = tree.clone();
        }
    }

    pub(super) fn answer_syncs(&mut self, me: usize, env: &mut Env<'_>) {
        let server = &mut self.servers[me];
        let applied = server.applied;
        let Role::Leading(lead) = &mut server.role else { return };
        let (ready, rest) =
            std::mem::take(&mut lead.syncs).into_iter().partition(|(upto, _)| *upto <= applied);
        lead.syncs = rest;
        for (_, origin) in ready {
            self.tell_follower(me, origin.server, Message::Synced { origin }, env);
        }
    }

    pub(super) fn tick(&mut self, me: usize, env: &mut Env<'_>) {
        let server = &mut self.servers[me];
        let life = server.life;
        let Role::Leading(lead) = &mut server.role else { return };
        let over = lead.tracker.expire(env.now);
        env.later.push((lead.tracker.next_tick(env.now), Event::Tick { server: me, life }));
        for session in over {
            self.propose(me, session, None, &Op::Close, env);
        }
    }

    pub(super) fn reap(&mut self, me: usize, env: &mut Env<'_>) {
        let server = &self.servers[me];
        let life = server.life;
        let empty = server.tree.empty_containers();
        for path in empty {
            self.propose(me, 0, None, &Op::Reap { path }, env);
        }
        let at = env.now + self.config.reap;
        env.later.push((at, Event::Reap { server: me, life }));
    }
}
