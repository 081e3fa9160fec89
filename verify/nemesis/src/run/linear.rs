//! Windows of tries, each on a lock of its own, to be checked for linearizability.
//!
//! In a window every actor tries to get the lock and releases it, a few times. Leases are longer
//! than the window, so that a lock is free only when it was released. Where several may hold a name
//! together, one window in three is of a read-write lock, and one of a semaphore.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::actor::Actor;
use crate::history::History;
use crate::run::crew::Crew;

/// How often each actor tries in a window.
const ROUNDS: usize = 3;
/// How long a window waits for an actor that does not answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// The windows of a run.
#[derive(Default)]
pub(crate) struct Windows {
    shares: bool,
    number: usize,
    since: Option<Instant>,
    players: Vec<Player>,
    /// Those of earlier windows that have not heard of their last try yet.
    late: Vec<Player>,
    seen: usize,
}

/// What an actor does in a window.
struct Player {
    name: String,
    window: usize,
    /// How many play before it.
    place: usize,
    shares: bool,
    left: usize,
    tag: Option<String>,
    released: bool,
    heard: BTreeSet<String>,
}

impl Windows {
    /// `shares`: some are of names that several hold together.
    pub fn new(shares: bool) -> Windows {
        Windows { shares, ..Windows::default() }
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
                member.is_some_and(|member| player.plays(&mut member.actor))
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
            let (window, shares) = (self.number, self.shares);
            let player = |(place, name)| Player::new(name, window, place, shares);
            self.players = ready.map(|it| it.actor.name()).enumerate().map(player).collect();
        }
    }

    /// Whether nobody plays any more.
    pub fn is_over(&self) -> bool {
        self.players.is_empty() && self.late.is_empty()
    }
}

impl Player {
    fn new(name: &str, window: usize, place: usize, shares: bool) -> Player {
        Player {
            name: name.to_owned(),
            window,
            place,
            shares,
            left: ROUNDS,
            tag: None,
            released: false,
            heard: BTreeSet::new(),
        }
    }

    /// Does the next thing; gives whether there is more to do.
    fn plays(&mut self, actor: &mut Actor) -> bool {
        if let Some(tag) = &self.tag {
            if self.heard.contains("granted") && !self.released {
                actor.tell(&format!("release {tag}"));
                self.released = true;
                return true;
            }
            let ends: &[&str] =
                if self.released { &["released", "unreleased"] } else { &["failed"] };
            if !ends.iter().any(|end| self.heard.contains(*end)) {
                return true;
            }
            self.tag = None;
        }
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let (window, left) = (self.window, self.left);
        let tag = format!("w{window}.{}.{left}", self.name);
        let mode = self.mode();
        actor.tell(&format!("acquire {tag} c window{window} wait=try lease=60000ms{mode}"));
        self.heard.clear();
        (self.tag, self.released) = (Some(tag), false);
        true
    }

    /// How it asks the next time.
    fn mode(&self) -> String {
        let turn = self.place + self.left;
        match self.window % 3 {
            1 if self.shares && !turn.is_multiple_of(3) => " mode=shared".to_owned(),
            2 if self.shares => format!(" mode=permits:{}/3", 1 + turn % 2),
            _ => String::new(),
        }
    }
}
