//! The actors of a run, and what they want.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fencelock_history::Record;
use fencelock_testkit::Proxy;

use crate::actor::Actor;
use crate::dice::Dice;
use crate::history::History;
use crate::ledger::Ledger;
use crate::role::Role;
use crate::run::store::Store;
use crate::run::want::{Role as Part, Want};
use crate::shim::WrongClock;

/// The ledger's file in the run's folder.
const LEDGER: &str = "ledger.db";
/// How many locks each wants at a time.
const HANDS: usize = 2;
/// How often one is asked how far it trusts a hold that does not say so by itself.
const LOOK: Duration = Duration::from_millis(100);

/// One actor and its way to the store.
pub(crate) struct Member {
    pub actor: Actor,
    role: Role,
    pub proxy: Option<Proxy>,
    pub clock: WrongClock,
    pub stopped: bool,
    url: String,
    /// The id under which the store knows its client, once it is open.
    pub client: Option<String>,
    hands: [Hand; HANDS],
}

#[derive(Clone, Debug)]
enum Hand {
    Idle { until: Instant },
    Asked { tag: String, part: Part, cancel: Option<Instant>, short: bool },
    Held { tag: String, part: Part, lock: String, token: u64, until: Instant, look: Instant },
    Releasing { tag: String },
}

/// The actors of a run.
pub(crate) struct Crew {
    pub members: Vec<Member>,
    history: History,
    folder: PathBuf,
    /// What they want.
    wants: Vec<Want>,
    /// By which those write who cannot write themselves.
    ledger: Ledger,
    seen: usize,
    tags: u64,
    born: u64,
}

impl Crew {
    /// One actor for each of the cast.
    pub fn start(
        history: &History,
        folder: &Path,
        store: &mut Store,
        cast: &[Role],
        wants: &[Want],
    ) -> io::Result<Crew> {
        let mut crew = Crew {
            members: Vec::new(),
            history: history.clone(),
            folder: folder.to_owned(),
            wants: wants.to_vec(),
            ledger: Ledger::open(&folder.join(LEDGER)).map_err(io::Error::other)?,
            seen: 0,
            tags: 0,
            born: 0,
        };
        for role in cast {
            let (proxy, url) = store.way()?;
            let member = crew.born(role.clone(), store, proxy, url)?;
            crew.members.push(member);
        }
        Ok(crew)
    }

    fn born(
        &mut self,
        role: Role,
        store: &Store,
        proxy: Option<Proxy>,
        url: String,
    ) -> io::Result<Member> {
        self.born += 1;
        let name = format!("{}{}", role.name, self.born);
        let clock = WrongClock::new(&store.shim, &self.folder.join(format!("{name}-clock")))?;
        let mut actor = Actor::start_as(&self.history, &name, &role, clock.environment());
        actor.tell(&format!("open c {url}"));
        let idle = || Hand::Idle { until: Instant::now() };
        let hands = std::array::from_fn(|_| idle());
        Ok(Member { actor, role, proxy, clock, stopped: false, url, client: None, hands })
    }

    /// Kills one, and starts another in its place, on the same way.
    pub fn kill(&mut self, index: usize, store: &Store) -> io::Result<()> {
        let member = &mut self.members[index];
        member.actor.kill();
        let (proxy, url) = (member.proxy.take(), member.url.clone());
        let role = member.role.clone();
        self.members[index] = self.born(role, store, proxy, url)?;
        Ok(())
    }

    /// Hears what has happened, and lets each do the next thing. `more`: they may want more.
    pub fn turn(&mut self, dice: &mut Dice, more: bool) -> io::Result<()> {
        let news = self.history.since(self.seen);
        self.seen += news.len();
        for record in &news {
            if let Some(member) = self.members.iter_mut().find(|it| it.actor.name() == &*record.who)
            {
                member.hears(record, dice);
                if record.is("granted") || record.is("lost") {
                    // The lost one writes all the same, now and then.
                    if dice.chance(if record.is("lost") { 50 } else { 60 }) {
                        member.writes(record, &self.folder, &mut self.ledger, &self.history);
                    }
                }
            }
        }
        let now = Instant::now();
        for member in self.members.iter_mut().filter(|it| it.client.is_some()) {
            for index in 0..HANDS {
                member.act(index, now, dice, more.then_some(&*self.wants), &mut self.tags);
            }
        }
        Ok(())
    }

    /// Whom to hurt: mostly one who holds something, and who then often holds it for longer.
    pub fn victim(&mut self, dice: &mut Dice) -> usize {
        let holds = |it: &Member| it.hands.iter().any(|hand| matches!(hand, Hand::Held { .. }));
        let holders: Vec<usize> =
            (0..self.members.len()).filter(|index| holds(&self.members[*index])).collect();
        if holders.is_empty() || dice.chance(30) {
            return dice.below(self.members.len() as u64) as usize;
        }
        let victim = dice.pick(&holders);
        if dice.chance(60) {
            self.linger(victim, Duration::from_millis(dice.between(300, 4000)));
        }
        victim
    }

    /// Makes one hold what it holds for so long from now on.
    pub fn linger(&mut self, index: usize, span: Duration) {
        for hand in &mut self.members[index].hands {
            if let Hand::Held { until, .. } = hand {
                *until = Instant::now() + span;
            }
        }
    }

    /// Whether nobody has or wants anything.
    pub fn is_idle(&self) -> bool {
        self.seen == self.history.len()
            && self.members.iter().all(|member| {
                member.client.is_some()
                    && member.hands.iter().all(|hand| matches!(hand, Hand::Idle { .. }))
            })
    }

    /// What somebody still has or wants.
    pub fn unfinished(&self) -> String {
        let left: BTreeMap<&str, Vec<String>> = self
            .members
            .iter()
            .map(|member| {
                let hands = member.hands.iter().filter(|it| !matches!(it, Hand::Idle { .. }));
                let open = member.client.is_none().then(|| "not connected".to_owned());
                let hands = hands.map(|hand| format!("{hand:?}")).chain(open).collect();
                (member.actor.name(), hands)
            })
            .collect();
        format!("{left:?}")
    }

    /// The ids of the clients that live.
    pub fn living(&self) -> BTreeSet<String> {
        self.members.iter().filter_map(|it| it.client.clone()).collect()
    }

    /// Sends everybody home; what they said is in the history.
    pub fn dismiss(&mut self) {
        self.members.clear();
    }
}

impl Member {
    /// Writes to the ledger under the hold that a record tells of, if it is still there.
    fn writes(&mut self, record: &Record, folder: &Path, ledger: &mut Ledger, history: &History) {
        let tag = &record.tag;
        let held = |it: &&Hand| matches!(it, Hand::Held { .. }) && it.tag() == Some(tag);
        let Some(Hand::Held { lock, part, token, .. }) = self.hands.iter().find(held) else {
            return;
        };
        let (verb, event) = match part {
            Part::Writer => ("write", "wrote"),
            Part::Reader => ("read", "read"),
            // Those are no fence.
            Part::Permits => return,
        };
        if self.role.own {
            self.actor.tell(&format!("{verb} {tag} {}", folder.join(LEDGER).display()));
            return;
        }
        let accepted = match part {
            Part::Reader => ledger.read(lock, *token),
            _ => ledger.write(lock, *token),
        };
        // Judged by whether the hold is still trusted after the write.
        history.push(Record {
            at: crate::boot(),
            wall: crate::wall(),
            who: self.actor.name().into(),
            event: event.to_owned(),
            tag: tag.clone(),
            fields: vec![("accepted".to_owned(), format!("{accepted:?}"))],
        });
    }

    fn hears(&mut self, record: &Record, dice: &mut Dice) {
        if record.is("opened") {
            self.client = record.get("id").map(str::to_owned);
        }
        if record.is("refused") {
            // The store was away for longer than it takes to connect.
            self.actor.tell(&format!("open c {}", self.url));
        }
        let now = Instant::now();
        let Some(hand) = self.hands.iter_mut().find(|it| it.tag() == Some(&record.tag)) else {
            return;
        };
        let pause = Duration::from_millis(dice.below(60));
        match (record.event.as_str(), &hand) {
            ("granted", Hand::Asked { part, .. }) => {
                let part = *part;
                // Now and then for longer than an explicit lease, or than one that is renewed.
                let short = matches!(hand, Hand::Asked { short: true, .. });
                let millis = match dice.below(100) {
                    0..=1 => dice.between(3000, 6000),
                    2..=9 => dice.between(200, 2500),
                    10..=49 if short => 1500,
                    _ => dice.below(60),
                };
                let until = now + Duration::from_millis(millis);
                *hand = Hand::Held {
                    tag: record.tag.clone(),
                    part,
                    lock: record.get("lock").unwrap_or_default().to_owned(),
                    token: record.number("token"),
                    until,
                    look: now,
                };
            }
            ("failed" | "cancelled" | "released" | "unreleased" | "dropped", _) => {
                *hand = Hand::Idle { until: now + pause };
            }
            _ => {
                if let ("lost", Hand::Held { until, .. }) = (record.event.as_str(), hand) {
                    *until = now + pause;
                }
            }
        }
    }

    /// `wanted`: of what it may want more.
    fn act(
        &mut self,
        index: usize,
        now: Instant,
        dice: &mut Dice,
        wanted: Option<&[Want]>,
        tags: &mut u64,
    ) {
        let own = self.role.own;
        let hand = &mut self.hands[index];
        match hand {
            Hand::Idle { until } if *until <= now => {
                let Some(wants) = wanted else { return };
                *tags += 1;
                let tag = format!("t{tags}");
                let (mut line, part) = dice.pick(wants).asked(&tag, dice);
                let mut cancel = None;
                match dice.below(10) {
                    0..=4 if dice.chance(20) => {
                        cancel = Some(now + Duration::from_millis(dice.below(400)));
                    }
                    0..=4 => {}
                    5..=7 => line += &format!(" wait={}ms", dice.between(1, 800)),
                    _ => line += " wait=try",
                }
                let short = dice.chance(15);
                if short {
                    line += &format!(" lease={}ms", dice.between(200, 900));
                }
                self.actor.tell(&line);
                *hand = Hand::Asked { tag, part, cancel, short };
            }
            Hand::Asked { tag, cancel: cancel @ Some(_), .. }
                if cancel.is_some_and(|it| it <= now) =>
            {
                self.actor.tell(&format!("cancel {tag}"));
                *cancel = None;
            }
            Hand::Held { tag, until, .. } if *until <= now => {
                let verb = if !own || dice.chance(80) { "release" } else { "drop" };
                self.actor.tell(&format!("{verb} {tag}"));
                *hand = Hand::Releasing { tag: tag.clone() };
            }
            Hand::Held { tag, look, .. } if !own && *look <= now => {
                self.actor.tell(&format!("look {tag}"));
                *look = now + LOOK;
            }
            _ => {}
        }
    }
}

impl Hand {
    fn tag(&self) -> Option<&String> {
        match self {
            Hand::Idle { .. } => None,
            Hand::Asked { tag, .. } | Hand::Held { tag, .. } | Hand::Releasing { tag } => Some(tag),
        }
    }
}
