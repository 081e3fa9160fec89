//! Windows of tries, each on a lock of its own, to be checked for linearizability.
//!
//! In a window every actor tries to get the lock and releases it, a few times. Leases are longer
//! than the window, so that a lock is free only when it was released. Where several may hold a name
//! together, one window in three is of a read-write lock, and one of a semaphore. Who has the first is
//! converted before it releases it, every other time.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::history::History;
use crate::run::crew::{Crew, Member};
use crate::run::{Modes, Plan};

/// How often each actor tries in a window.
const ROUNDS: usize = 3;
/// How long a window waits for an actor that does not answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// The windows of a run.
pub(crate) struct Windows {
    modes: Modes,
    number: usize,
    since: Option<Instant>,
    players: Vec<Player>,
    /// Those of earlier windows that have not heard of their last try yet.
    late: Vec<Player>,
    seen: usize,
}

/// How far an actor is with a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Asked,
    Converting,
    Releasing,
}

/// What an actor does in a window.
struct Player {
    name: String,
    window: usize,
    /// How many play before it.
    place: usize,
    modes: Modes,
    left: usize,
    tag: Option<String>,
    stage: Stage,
    heard: BTreeSet<String>,
}

impl Windows {
    /// Of all kinds of names that the plan has.
    pub fn new(plan: &Plan) -> Windows {
        let modes = Modes {
            read_write: !plan.read_write.is_empty(),
            permits: !plan.semaphores.is_empty(),
            ..plan.kind.modes()
        };
        let (players, late) = (Vec::new(), Vec::new());
        Windows { modes, number: 0, since: None, players, late, seen: 0 }
    }

    /// Lets each player do the next thing. `more`: a new window may begin.
    pub fn turn(&mut self, history: &History, crew: &mut Crew, more: bool) {
        let news = history.since(self.seen);
        self.seen += news.len();
        for record in &news {
            for player in self.players.iter_mut().chain(&mut self.late) {
                if player.tag.as_ref() == Some(&record.tag) {
                    player.heard.insert(record.event.clone());
                }
            }
        }
        for players in [&mut self.players, &mut self.late] {
            // Whoever died, or is done, plays no longer.
            players.retain_mut(|player| {
                let member = crew.members.iter_mut().find(|it| it.actor.name() == player.name);
                member.is_some_and(|member| player.plays(member))
            });
        }
        if self.since.is_some_and(|since| since.elapsed() > PATIENCE) {
            self.players.iter_mut().for_each(|it| it.left = 0);
            self.late.append(&mut self.players);
        }
        if self.players.is_empty() && more {
            self.number += 1;
            self.since = Some(Instant::now());
            let ready = crew.members.iter().filter(|it| it.client.is_some() && !it.stopped);
            let (window, modes) = (self.number, self.modes);
            let player = |(place, name)| Player::new(name, window, place, modes);
            self.players = ready.map(|it| it.actor.name()).enumerate().map(player).collect();
        }
    }

    /// Whether nobody plays any more.
    pub fn is_over(&self) -> bool {
        self.players.is_empty() && self.late.is_empty()
    }
}

impl Player {
    fn new(name: &str, window: usize, place: usize, modes: Modes) -> Player {
        Player {
            name: name.to_owned(),
            window,
            place,
            modes,
            left: ROUNDS,
            tag: None,
            stage: Stage::Asked,
            heard: BTreeSet::new(),
        }
    }

    /// Does the next thing; gives whether there is more to do.
    fn plays(&mut self, member: &mut Member) -> bool {
        if let Some(tag) = &self.tag {
            let heard = |events: &[&str]| events.iter().any(|it| self.heard.contains(*it));
            match self.stage {
                Stage::Asked if heard(&["granted"]) => {
                    self.stage = Stage::Releasing;
                    if self.converts() && member.can_convert(self.reads()) {
                        self.stage = Stage::Converting;
                        member.convert(tag, self.reads());
                    } else {
                        member.actor.tell(&format!("release {tag}"));
                    }
                    return true;
                }
                Stage::Converting if heard(&["converted", "unconverted"]) => {
                    self.stage = Stage::Releasing;
                    member.actor.tell(&format!("release {tag}"));
                    return true;
                }
                Stage::Asked if heard(&["failed"]) => {}
                Stage::Releasing if heard(&["released", "unreleased"]) => {}
                _ => return true,
            }
            self.tag = None;
        }
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let (window, left) = (self.window, self.left);
        let tag = format!("w{window}.{}.{left}", self.name);
        let mode = self.mode(member.role.own);
        let line = format!("acquire {tag} c window{window} wait=try lease=60000ms{mode}");
        member.actor.tell(&line);
        self.heard.clear();
        (self.tag, self.stage) = (Some(tag), Stage::Asked);
        true
    }

    /// How it asks the next time; `own` says whether it is an actor of this library.
    fn mode(&self, own: bool) -> String {
        match self.window % 3 {
            1 if self.reads() => " mode=shared".to_owned(),
            1 if own && self.modes.read_write => " mode=write".to_owned(),
            2 if self.modes.permits => format!(" mode=permits:{}/3", 1 + self.turn() % 2),
            _ => String::new(),
        }
    }

    /// What differs from player to player, and from time to time.
    fn turn(&self) -> usize {
        self.place + self.left
    }

    /// Whether it asks to read.
    fn reads(&self) -> bool {
        self.modes.read_write && self.window % 3 == 1 && !self.turn().is_multiple_of(3)
    }

    /// Whether it is converted before it releases.
    fn converts(&self) -> bool {
        let here = self.modes.read_write && self.window % 3 == 1;
        here && (self.window / 3 + self.turn()).is_multiple_of(2)
    }
}
