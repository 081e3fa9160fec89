//! Windows of tries, each on a lock of its own, to be checked for linearizability.
//!
//! In a window every actor tries to get the lock and releases it, a few times. Leases are longer
//! than the window, so that a lock is free only when it was released.

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
    left: usize,
    tag: Option<String>,
    released: bool,
    heard: BTreeSet<String>,
}

impl Windows {
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
            self.players = ready.map(|it| Player::new(it.actor.name(), self.number)).collect();
        }
    }

    /// Whether nobody plays any more.
    pub fn is_over(&self) -> bool {
        self.players.is_empty() && self.late.is_empty()
    }
}

impl Player {
    fn new(name: &str, window: usize) -> Player {
        Player {
            name: name.to_owned(),
            window,
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
        actor.tell(&format!("acquire {tag} c window{window} wait=try lease=60000ms"));
        self.heard.clear();
        (self.tag, self.released) = (Some(tag), false);
        true
    }
}
