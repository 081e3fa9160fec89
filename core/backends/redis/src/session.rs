//! Does what the engine's machine wants: connects, runs the connection, and connects again, until closed.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use fencelock_engine::ClientId;
use fencelock_engine::event::Event;
use fencelock_engine::redis::session::{
    Input, Login, Machine, NoSession, Note, Output, Server, Session, Terms, Wire,
};
use fencelock_engine::time::Time;
use fencelock_engine::transport::caught;
use tokio::time::{Instant, Sleep};

use crate::connect::{self, Stream};
use crate::conversation;
use crate::handshake;
use crate::options::{Address, Options};
use crate::pump::Pump;
use crate::sentinels::{Sentinels, Word};
use crate::shared::Shared;
use crate::sync::Line;

/// What one errand brought.
enum Brought {
    Login(Option<Login>),
    Stream(Wire, Stream),
    Bytes(Wire, Stream, Vec<u8>),
}

type Errand<'a> = Pin<Box<dyn Future<Output = Result<Brought, NoSession>> + Send + 'a>>;

/// What happened next.
enum Turn {
    Lost(String),
    Doubt(bool),
    Done(Result<Brought, NoSession>),
    Said(Word),
    Wake,
}

struct Host<'a> {
    options: &'a Options,
    sentinels: Option<Sentinels>,
    /// The server of the session that is up, or was last, and the one that was dialled last.
    server: String,
    dialled: String,
    shared: Arc<Shared>,
    machine: Machine,
    since: Instant,
    /// What the machine asked for last.
    errand: Option<Errand<'a>>,
    main: Option<Stream>,
    apart: Option<Stream>,
    sync: Option<Stream>,
    pump: Option<Pump>,
}

pub(crate) async fn run(options: Options, client: ClientId, shared: Arc<Shared>) {
    let options = Arc::new(options);
    let name = options.address.to_string();
    let (server, sentinels) = match &options.address {
        Address::Sentinel(sentinel) => {
            let sought = format!("the master '{}'", sentinel.master);
            (Server::Sought(sought), Some(Sentinels::new(&options, sentinel)))
        }
        _ => (Server::Fixed(name.clone()), None),
    };
    let terms = Terms {
        client,
        prefix: options.prefix.clone(),
        db: options.db,
        protocol: options.protocol,
        server,
        cluster: shared.is_in_cluster(),
        charter: shared.charter().cloned(),
        sync: shared.sync_terms(),
        tls: options.address.is_tls(),
        connect_timeout: options.connect_timeout,
        backoff_min: options.backoff_min,
        backoff_max: options.backoff_max,
    };
    let mut seed = [0; 32];
    fastrand::fill(&mut seed);
    let mut host = Host {
        options: &options,
        sentinels,
        server: name.clone(),
        dialled: name,
        machine: Machine::new(Time::ZERO, terms, seed),
        since: Instant::now(),
        errand: None,
        main: None,
        apart: None,
        sync: None,
        pump: None,
        shared,
    };
    while !host.shared.is_closed() {
        host.obey();
        // Out here the machine and the pump outlive a panic, and answer for what is under way.
        let turn = caught(host.turn()).await.unwrap_or_else(|panic| {
            let why = format!("the connection's task panicked: {panic}; please report it");
            match host.pump {
                Some(_) => Turn::Lost(why),
                None => Turn::Done(Err(NoSession::Later(why))),
            }
        });
        host.take(turn);
    }
}

impl<'a> Host<'a> {
    fn now(&self) -> Time {
        Time::ZERO + self.since.elapsed()
    }

    /// Waits for what happens next.
    async fn turn(&mut self) -> Turn {
        let wake = self.machine.next_wake().map(|at| tokio::time::sleep(at.since(self.now())));
        let mut wake = pin!(wake);
        std::future::poll_fn(|cx| self.poll(wake.as_mut(), cx)).await
    }

    fn poll(&mut self, wake: Pin<&mut Option<Sleep>>, cx: &mut Context<'_>) -> Poll<Turn> {
        if let Some(pump) = &mut self.pump {
            if let Poll::Ready(reason) = pump.poll(cx) {
                return Poll::Ready(Turn::Lost(reason));
            }
            let doubted = self.shared.is_doubted();
            if doubted != self.machine.is_doubting() {
                return Poll::Ready(Turn::Doubt(doubted));
            }
        }
        if let Some(errand) = &mut self.errand
            && let Poll::Ready(done) = errand.as_mut().poll(cx)
        {
            return Poll::Ready(Turn::Done(done));
        }
        if let Some(sentinels) = &mut self.sentinels
            && let Poll::Ready(word) = sentinels.poll(cx)
        {
            return Poll::Ready(Turn::Said(word));
        }
        match wake.as_pin_mut() {
            Some(sleep) => sleep.poll(cx).map(|()| Turn::Wake),
            None => Poll::Pending,
        }
    }

    /// Tells the machine.
    fn take(&mut self, turn: Turn) {
        let now = self.now();
        let input = match turn {
            Turn::Wake => return self.machine.wake(now),
            Turn::Doubt(doubted) => Input::Doubt(doubted),
            Turn::Said(Word::Found(node)) => Input::Found(node),
            Turn::Said(Word::Replicas(count)) => {
                self.shared.confirming(|it, _| it.name(count));
                return;
            }
            Turn::Said(Word::Nobody(why)) => Input::Failed(why),
            Turn::Said(Word::Moved(reason)) => Input::Moved(reason),
            Turn::Lost(reason) => {
                tracing::warn!(server = %self.server, %reason, "connection lost");
                self.finish(reason);
                Input::Lost
            }
            Turn::Done(done) => {
                self.errand = None;
                match done {
                    Err(why) => Input::Failed(why),
                    Ok(Brought::Login(login)) => Input::Login(login),
                    Ok(Brought::Stream(wire, stream)) => {
                        *self.wire(wire) = Some(stream);
                        Input::Dialled
                    }
                    Ok(Brought::Bytes(wire, stream, bytes)) => {
                        *self.wire(wire) = Some(stream);
                        return self.machine.handle(now, Input::Received(&bytes));
                    }
                }
            }
        };
        self.machine.handle(now, input);
    }

    fn wire(&mut self, wire: Wire) -> &mut Option<Stream> {
        match wire {
            Wire::Main => &mut self.main,
            Wire::Apart => &mut self.apart,
            Wire::Sync => &mut self.sync,
        }
    }

    /// Does what the machine wants.
    fn obey(&mut self) {
        let (options, address) = (self.options, &self.options.address);
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Seek => {
                    if let Some(sentinels) = &mut self.sentinels {
                        sentinels.seek();
                    }
                }
                Output::Login => {
                    self.errand = Some(Box::pin(async move {
                        Ok(Brought::Login(handshake::login(options).await?))
                    }));
                }
                Output::Dial(wire, node) => {
                    if let Some(node) = &node {
                        self.dialled = node.to_string();
                    }
                    self.errand = Some(Box::pin(async move {
                        Ok(Brought::Stream(wire, connect::dial(options, node).await?))
                    }));
                }
                Output::Say(wire, bytes) => {
                    let Some(mut stream) = self.wire(wire).take() else { continue };
                    self.errand = Some(Box::pin(async move {
                        let read = conversation::exchange(&mut stream, &bytes).await?;
                        Ok(Brought::Bytes(wire, stream, read))
                    }));
                }
                Output::Abandon => {
                    self.errand = None;
                    (self.main, self.apart, self.sync) = (None, None, None);
                }
                Output::GiveUp(reason) => {
                    tracing::warn!(server = %self.server, %reason, "connection given up");
                    self.finish(reason);
                }
                Output::Up(session) => self.up(*session),
                Output::Event(event) => {
                    match &event {
                        Event::Down { reason } => {
                            tracing::warn!(%address, %reason, "cannot connect, will try again");
                        }
                        Event::Misconfigured(error) => {
                            tracing::error!(%address, %error, "cannot connect until this is mended");
                        }
                        _ => {}
                    }
                    self.shared.deliver(&mut vec![event]);
                }
                Output::Note(note) => log(note),
            }
        }
    }

    /// The session that is up ends, for this reason.
    fn finish(&mut self, reason: String) {
        let Some(pump) = self.pump.take() else { return };
        if let Some(sentinels) = &mut self.sentinels {
            sentinels.with(None);
        }
        let several = self.sentinels.is_some() || self.shared.is_in_cluster();
        pump.finish(if several { format!("{}: {reason}", self.server) } else { reason });
    }

    /// The session that was made takes requests from now on.
    fn up(&mut self, session: Session) {
        let Session { node, mut codec, main, apart, sync, inbox, denied } = session;
        codec.set_wide(self.shared.wide());
        let birth = codec.birth().cloned();
        let replicas = sync.as_ref().map_or(0, |(_, greeted)| greeted.replicas);
        let confirmed = self.sync.take().zip(sync).map(|(stream, (mut codec, greeted))| {
            codec.set_wide(self.shared.wide());
            Line::new(stream, codec, greeted, self.shared.is_in_cluster())
        });
        handshake::told(denied.as_deref());
        self.server.clone_from(&self.dialled);
        let (stream, pushes) = (self.main.take(), self.apart.take());
        let Some(stream) = stream else { return };
        if let Some(sentinels) = &mut self.sentinels {
            sentinels.with(node);
        }
        let apart = pushes.zip(apart);
        tracing::info!(server = %self.server, ?inbox, separate = apart.is_some(), "connected");
        let pump = Pump::new(Arc::clone(&self.shared), codec, (stream, main), apart, confirmed);
        self.shared.up(pump.link(), pump.sockets(), inbox, birth, replicas);
        self.pump = Some(pump);
    }
}

fn log(note: Note) {
    match note {
        Note::Silent => {
            tracing::warn!("the server is silent: looking whether it answers another connection");
        }
        Note::Answers => tracing::info!("the server answers again"),
        Note::Unanswered(reason) => {
            tracing::debug!(%reason, "another connection is not answered either");
        }
    }
}
