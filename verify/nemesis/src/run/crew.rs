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
use crate::run::{Modes, Plan};
use crate::shim::WrongClock;

/// The ledger's file in the run's folder.
const LEDGER: &str = "ledger.db";
/// How many locks each wants at a time.
const HANDS: usize = 2;
/// How often one is asked how far it trusts a hold that does not say so by itself.
const LOOK: Duration = Duration::from_millis(100);
/// How many of a hundred holds that may be are converted, and how many of these once more.
const TURNS: u64 = 35;
const AGAIN: u64 = 40;

/// One actor and its way to the store.
pub(crate) struct Member {
    pub actor: Actor,
    pub role: Role,
    /// A proxy before each server that it reaches over a network.
    pub ways: Vec<Proxy>,
    pub clock: WrongClock,
    pub stopped: bool,
    url: String,
    /// The id under which the store knows its client, once it is open.
    pub client: Option<String>,
    /// It knows how to convert a hold.
    converts: bool,
    /// What the store has.
    modes: Modes,
    hands: [Hand; HANDS],
    history: History,
}

#[derive(Clone, Debug)]
enum Hand {
    Idle { until: Instant },
    Asked { tag: String, part: Part, cancel: Option<Instant>, short: bool, turns: bool },
    Held(Held),
    Releasing { tag: String },
}

/// What a hand has.
#[derive(Clone, Debug)]
struct Held {
    tag: String,
    part: Part,
    lock: String,
    token: u64,
    until: Instant,
    look: Instant,
    /// When it is to be converted.
    turn: Option<Instant>,
    /// It has been asked for, and not been answered.
    converting: bool,
}

/// The actors of a run.
pub(crate) struct Crew {
    pub members: Vec<Member>,
    history: History,
    folder: PathBuf,
    /// What they want.
    wants: Vec<Want>,
    modes: Modes,
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
        plan: &Plan,
    ) -> io::Result<Crew> {
        let mut crew = Crew {
            members: Vec::new(),
            history: history.clone(),
            folder: folder.to_owned(),
            wants: plan.wants(),
            modes: plan.kind.modes(),
            ledger: Ledger::open(&folder.join(LEDGER)).map_err(io::Error::other)?,
            seen: 0,
            tags: 0,
            born: 0,
        };
        for role in &plan.cast {
            let (ways, url) = store.way()?;
            let member = crew.born(role.clone(), store, ways, url)?;
            crew.members.push(member);
        }
        Ok(crew)
    }

    fn born(
        &mut self,
        role: Role,
        store: &Store,
        ways: Vec<Proxy>,
        url: String,
    ) -> io::Result<Member> {
        self.born += 1;
        let name = format!("{}{}", role.name, self.born);
        let clock = WrongClock::new(&store.shim, &self.folder.join(format!("{name}-clock")))?;
        let mut actor = Actor::start_as(&self.history, &name, &role, clock.environment());
        actor.tell(&format!("open c {url}"));
        let idle = || Hand::Idle { until: Instant::now() };
        let hands = std::array::from_fn(|_| idle());
        Ok(Member {
            actor,
            ways,
            clock,
            stopped: false,
            url,
            client: None,
            converts: role.own,
            role,
            modes: self.modes,
            hands,
            history: self.history.clone(),
        })
    }

    /// Kills one, and starts another in its place, on the same way.
    pub fn kill(&mut self, index: usize, store: &Store) -> io::Result<()> {
        let member = &mut self.members[index];
        member.actor.kill();
        let (ways, url) = (std::mem::take(&mut member.ways), member.url.clone());
        let role = member.role.clone();
        self.members[index] = self.born(role, store, ways, url)?;
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
                if record.is("granted") || record.is("lost") || record.is("converted") {
                    // The lost one writes all the same, now and then.
                    if dice.chance(if record.is("lost") { 50 } else { 60 }) {
                        member.writes(record, &self.folder, &mut self.ledger);
                    }
                }
            }
        }
        let now = Instant::now();
        for member in self.members.iter_mut().filter(|it| it.client.is_some()) {
            for index in 0..HANDS {
                let wants = more.then_some(&*self.wants);
                member.act(index, now, dice, wants, &mut self.tags);
            }
        }
        Ok(())
    }

    /// Whom to hurt: mostly one who holds something, and who then often holds it for longer.
    pub fn victim(&mut self, dice: &mut Dice) -> usize {
        let holds = |it: &Member| it.hands.iter().any(|hand| matches!(hand, Hand::Held(_)));
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
            if let Hand::Held(held) = hand {
                held.until = Instant::now() + span;
            }
        }
    }

    /// A name that they want.
    pub fn wanted(&self, dice: &mut Dice) -> &'static str {
        let (Want::Lock(name) | Want::ReadWrite(name) | Want::Semaphore(name, _)) =
            dice.pick(&self.wants);
        name
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
    fn writes(&mut self, record: &Record, folder: &Path, ledger: &mut Ledger) {
        let tag = &record.tag;
        let mine = |it: &&Hand| it.tag() == Some(tag);
        let Some(Hand::Held(Held { lock, part, token, .. })) = self.hands.iter().find(mine) else {
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
        let fields = vec![("accepted".to_owned(), format!("{accepted:?}"))];
        self.says(event, tag, fields);
    }

    /// Whether it, and the store, can do what is asked of one who reads, or of one who writes.
    pub fn can_convert(&self, reads: bool) -> bool {
        self.converts && if reads { self.modes.upgrades } else { self.modes.downgrades }
    }

    /// Tells it to convert what it has under a tag: a reader to a writer, or the other way.
    pub fn convert(&mut self, tag: &str, reads: bool) {
        if reads && !self.role.own {
            // Drivers of other languages do not say it by themselves.
            self.says("upgrade-asked", tag, Vec::new());
        }
        let verb = if reads { "upgrade" } else { "downgrade" };
        self.actor.tell(&format!("{verb} {tag}"));
    }

    /// Adds to the history what it does not say itself.
    fn says(&self, event: &str, tag: &str, fields: Vec<(String, String)>) {
        self.history.push(Record {
            at: crate::boot(),
            wall: crate::wall(),
            who: self.actor.name().into(),
            event: event.to_owned(),
            tag: tag.to_owned(),
            fields,
        });
    }

    fn hears(&mut self, record: &Record, dice: &mut Dice) {
        if record.is("opened") {
            self.client = record.get("id").map(str::to_owned);
            let knows = record.get("knows").unwrap_or_default();
            self.converts = self.role.own || knows.split(',').any(|it| it == "conversions");
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
            ("granted", Hand::Asked { part, turns, .. }) => {
                let (part, turns) = (*part, *turns);
                // Now and then for longer than an explicit lease, or than one that is renewed.
                let short = matches!(hand, Hand::Asked { short: true, .. });
                let millis = match dice.below(100) {
                    0..=1 => dice.between(3000, 6000),
                    2..=9 => dice.between(200, 2500),
                    10..=49 if short => 1500,
                    _ => dice.below(60),
                };
                let until = now + Duration::from_millis(millis);
                let turn = (turns && dice.chance(TURNS))
                    .then(|| now + Duration::from_millis(dice.below(millis + 1)));
                *hand = Hand::Held(Held {
                    tag: record.tag.clone(),
                    part,
                    lock: record.get("lock").unwrap_or_default().to_owned(),
                    token: record.number("token"),
                    until,
                    look: now,
                    turn,
                    converting: false,
                });
            }
            ("failed" | "cancelled" | "released" | "unreleased" | "dropped", _) => {
                *hand = Hand::Idle { until: now + pause };
            }
            ("lost", _) => {
                if let Hand::Held(held) = hand {
                    (held.until, held.turn) = (now + pause, None);
                }
            }
            ("converted" | "unconverted", _) => {
                if let Hand::Held(held) = hand {
                    held.converted(record);
                    // And back, or once more.
                    held.turn = (held.turn.is_none() && dice.chance(AGAIN)).then(|| now + pause);
                }
            }
            _ => {}
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
        let can = [false, true].map(|reads| self.can_convert(reads));
        let hand = &mut self.hands[index];
        match hand {
            Hand::Idle { until } if *until <= now => {
                let Some(wants) = wanted else { return };
                *tags += 1;
                let tag = format!("t{tags}");
                let want = dice.pick(wants);
                let (mut line, part) = want.asked(&tag, dice);
                let turns = want.turns();
                if turns && own && part == Part::Writer {
                    // On ZooKeeper a plain lock's hold is not converted. Drivers of other languages
                    // write by that.
                    line += " mode=write";
                }
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
                *hand = Hand::Asked { tag, part, cancel, short, turns };
            }
            Hand::Asked { tag, cancel: cancel @ Some(_), .. }
                if cancel.is_some_and(|it| it <= now) =>
            {
                self.actor.tell(&format!("cancel {tag}"));
                *cancel = None;
            }
            Hand::Held(held) if held.turn.is_some_and(|it| it <= now) => {
                held.turn = None;
                let (tag, reads) = (held.tag.clone(), held.part == Part::Reader);
                if can[usize::from(reads)] {
                    // It writes no more from now on.
                    (held.part, held.converting) = (Part::Reader, true);
                    self.convert(&tag, reads);
                }
            }
            Hand::Held(held) if held.until <= now && !held.converting => {
                let verb = if !own || dice.chance(80) { "release" } else { "drop" };
                self.actor.tell(&format!("{verb} {}", held.tag));
                *hand = Hand::Releasing { tag: held.tag.clone() };
            }
            Hand::Held(held) if !own && held.look <= now => {
                self.actor.tell(&format!("look {}", held.tag));
                held.look = now + LOOK;
            }
            _ => {}
        }
    }
}

impl Hand {
    fn tag(&self) -> Option<&String> {
        match self {
            Hand::Idle { .. } => None,
            Hand::Held(held) => Some(&held.tag),
            Hand::Asked { tag, .. } | Hand::Releasing { tag } => Some(tag),
        }
    }
}

impl Held {
    /// Hears what came of a conversion.
    fn converted(&mut self, record: &Record) {
        self.converting = false;
        if record.is("converted") {
            self.token = record.number("token");
            let writes = record.get("mode") == Some("exclusive");
            self.part = if writes { Part::Writer } else { Part::Reader };
        }
    }
}
