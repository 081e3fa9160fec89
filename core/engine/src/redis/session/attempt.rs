//! One attempt to connect: the login, the connection of the requests, and, without RESP3, that of the
//! subscription.

use std::time::Duration;

use crate::error::Error;
use crate::redis::node::Node;
use crate::redis::session::greeting::{Greeted, Greeting, Purpose};
use crate::redis::session::login::{Login, Protocol};
use crate::redis::session::machine::{Server, Session, Terms, Wire};
use crate::redis::session::refusal::NoSession;
use crate::redis::{Codec, Inbox};
use crate::time::Time;

/// What the attempt wants next.
#[derive(Debug)]
pub(super) enum Step {
    Login,
    Dial(Wire),
    Say(Wire, Vec<u8>),
    Ready(Box<Session>),
}

#[derive(Debug)]
pub(super) struct Attempt {
    terms: Terms,
    since: Time,
    /// How long it may take.
    pub(super) limit: Duration,
    /// The server that was named for it, where it has to be found.
    pub(super) node: Option<Node>,
    login: Option<Login>,
    /// The connections that are ready, and which one is being made.
    main: Option<Greeted>,
    apart: Option<Greeted>,
    wire: Wire,
    /// The first words on the connection that is being made.
    greeting: Option<Greeting>,
}

impl Attempt {
    pub(super) fn new(terms: &Terms, since: Time, limit: Duration) -> Attempt {
        let terms = terms.clone();
        let (main, apart, wire) = (None, None, Wire::Main);
        Attempt { terms, since, limit, node: None, login: None, main, apart, wire, greeting: None }
    }

    fn codec(&self) -> Result<Codec, NoSession> {
        let codec = Codec::new(self.terms.client.clone(), &self.terms.prefix);
        codec.map_err(NoSession::Misconfigured)
    }

    pub(super) fn until(&self) -> Time {
        self.since + self.limit
    }

    /// The server, as errors name it.
    pub(super) fn server(&self) -> String {
        match (&self.node, &self.terms.server) {
            (Some(node), _) => node.to_string(),
            (None, Server::Fixed(name) | Server::Sought(name)) => name.clone(),
        }
    }

    /// Whether it waits to hear which server is meant.
    pub(super) fn seeks(&self) -> bool {
        self.node.is_none() && matches!(self.terms.server, Server::Sought(_))
    }

    /// The reason, with the server that it is about, where there may be several.
    pub(super) fn named(&self, why: NoSession) -> NoSession {
        if self.node.is_none() && !self.terms.cluster {
            return why;
        }
        let server = self.server();
        let named = |reason: &str| match reason.contains(&server) {
            true => reason.to_owned(),
            false => format!("{server}: {reason}"),
        };
        match why {
            NoSession::Later(reason) => NoSession::Later(named(&reason)),
            NoSession::Misconfigured(error) => {
                NoSession::Misconfigured(Error::new(error.kind(), named(error.message())))
            }
        }
    }

    pub(super) fn found(&mut self, node: Node) -> Result<Step, NoSession> {
        self.node = Some(node);
        Ok(Step::Login)
    }

    pub(super) fn login(&mut self, login: Option<Login>) -> Result<Step, NoSession> {
        self.login = login;
        Ok(Step::Dial(Wire::Main))
    }

    pub(super) fn dialled(&mut self) -> Result<Step, NoSession> {
        let channel = self.codec()?.channel().to_vec();
        let (client, db, protocol) =
            (self.terms.client.clone(), self.terms.db, self.terms.protocol);
        let sought = matches!(self.terms.server, Server::Sought(_));
        let master = (sought || self.terms.cluster) && !planted!(RoleNotAsked);
        let (cluster, charter) = (self.terms.cluster, self.terms.charter.clone());
        let (purpose, protocol) = match (self.wire, self.terms.sync) {
            (Wire::Sync, Some(terms)) => (Purpose::Grants { client, db, master, terms }, protocol),
            (Wire::Apart, _) => (Purpose::Pushes { channel }, Protocol::Resp2),
            _ => (Purpose::Requests { client, channel, db, master, cluster, charter }, protocol),
        };
        let mut greeting = Greeting::new(purpose, protocol, self.login.clone());
        let out = greeting.take();
        self.greeting = Some(greeting);
        Ok(Step::Say(self.wire, out))
    }

    pub(super) fn received(&mut self, bytes: &[u8]) -> Result<Step, NoSession> {
        let wire = self.wire;
        let Some(greeting) = &mut self.greeting else { return Ok(Step::Say(wire, Vec::new())) };
        let Some(greeted) = greeting.receive(bytes)? else {
            return Ok(Step::Say(wire, greeting.take()));
        };
        self.greeting = None;
        let apart = wire == Wire::Main && !greeted.resp3 && greeted.inbox == Inbox::Polling;
        let mut sync = None;
        match wire {
            Wire::Main => self.main = Some(greeted),
            Wire::Apart => self.apart = Some(greeted),
            Wire::Sync => sync = Some(greeted),
        }
        let next = match sync {
            None if apart => Some(Wire::Apart),
            None if self.terms.sync.is_some() => Some(Wire::Sync),
            _ => None,
        };
        if let Some(wire) = next {
            self.wire = wire;
            return Ok(Step::Dial(wire));
        }
        let (Some(main), apart) = (self.main.take(), self.apart.take()) else {
            return Err(NoSession::Later("no connection was made".to_owned()));
        };
        let subscription = apart.as_ref().unwrap_or(&main);
        let (inbox, denied) = (subscription.inbox, subscription.denied.clone());
        let codec = || {
            let mut codec = self.codec()?;
            codec.set_inbox(inbox);
            codec.set_secrets(main.secrets.clone());
            codec.set_birth(main.birth.clone());
            Ok(codec)
        };
        let sync = sync.map(|greeted| Ok((codec()?, greeted))).transpose()?;
        let codec = codec()?;
        let apart = apart.filter(|_| inbox == Inbox::Subscribed);
        let node = self.node.clone();
        Ok(Step::Ready(Box::new(Session { node, codec, main, apart, sync, inbox, denied })))
    }
}
