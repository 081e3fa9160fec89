//! What was seen in a scene, and whether it is what was promised.

use std::time::Duration;

use serde::Serialize;

use crate::demo::shop::Books;
use crate::demo::wire::{Abandoned, Deed, Parked, Visit, Woke, Written};
use crate::span;

/// The scenes, in the order of the play.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scene {
    /// Nobody locks.
    NoLock,
    /// Everybody locks.
    Locked,
    /// A holder is paused past its lease; the ledger checks tokens.
    Paused,
    /// The same, and the ledger does not check.
    Unchecked,
    /// A holder is killed.
    Killed,
    /// Another of the store's servers takes over.
    Failover,
    /// Programs in several languages sell together.
    Languages,
}

impl Scene {
    /// The scenes that every demo has.
    pub const USUAL: [Scene; 5] =
        [Scene::NoLock, Scene::Locked, Scene::Paused, Scene::Unchecked, Scene::Killed];

    /// A short name.
    pub fn title(self) -> &'static str {
        match self {
            Scene::NoLock => "no lock",
            Scene::Locked => "with Fencelock",
            Scene::Paused => "holder paused",
            Scene::Unchecked => "paused, no token check",
            Scene::Killed => "holder killed",
            Scene::Failover => "failover",
            Scene::Languages => "all languages",
        }
    }

    /// What happens, in a sentence.
    pub fn story(self) -> &'static str {
        match self {
            Scene::NoLock => "Every worker reads the stock, waits a little and writes: no lock.",
            Scene::Locked => "The same workers, each sale under the lock.",
            Scene::Paused => {
                "One holder is stopped inside its sale until its lease is over, and wakes up to \
                 write with its old token."
            }
            Scene::Unchecked => "The same pause, but the ledger does not look at tokens.",
            Scene::Killed => "One holder is killed inside its sale.",
            Scene::Failover => {
                "In the middle of the sale the store's server fails, and another takes over."
            }
            Scene::Languages => {
                "Programs in several languages sell from one stock, under one lock."
            }
        }
    }
}

/// What befell one holder.
#[derive(Clone, Debug)]
pub struct Incident {
    /// Which process.
    pub process: u32,
    /// Where it stood.
    pub parked: Parked,
    /// When it was stopped or killed.
    pub stopped: u64,
    /// When it was let go on; none when it was killed.
    pub resumed: Option<u64>,
    /// What it did then.
    pub woke: Option<Woke>,
}

/// Something promised, and whether it was so.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// It was so.
    pub ok: bool,
    /// What was seen.
    pub saw: String,
}

/// All that was seen in a scene.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Which scene.
    pub scene: Scene,
    /// How many coupons there were.
    pub coupons: u32,
    /// The shop's books at the end.
    pub books: Books,
    /// What the sellers are called; empty where their processes only have numbers.
    pub sellers: Vec<String>,
    /// Every visit, with its process, in the order of the lock's grants.
    pub visits: Vec<(u32, Visit)>,
    /// When the failover began.
    pub failed_over: Option<u64>,
    /// What befell a holder.
    pub incident: Option<Incident>,
    /// When the sale opened.
    pub opened: u64,
    /// When the last worker left.
    pub ended: u64,
    /// When the window closed.
    pub closed: u64,
}

impl Outcome {
    /// What a process is called.
    pub fn seller(&self, process: u32) -> String {
        let name = self.sellers.get(process as usize).cloned();
        name.unwrap_or_else(|| format!("process {}", process + 1))
    }

    /// Coupons sold that were not there.
    pub fn oversold(&self) -> u32 {
        self.books.sold.saturating_sub(self.coupons)
    }

    /// The first grant after the one that ended in the incident.
    pub fn successor(&self) -> Option<&(u32, Visit)> {
        let token = self.incident.as_ref()?.parked.token;
        self.visits
            .iter()
            .filter(|(_, visit)| visit.token.is_some_and(|later| later > token))
            .min_by_key(|(_, visit)| visit.token)
    }

    /// How many of the holds began before the one before them had ended.
    fn overlaps(&self) -> usize {
        let mut visits: Vec<&Visit> = self.visits.iter().map(|(_, visit)| visit).collect();
        visits.sort_by_key(|visit| visit.got);
        visits.windows(2).filter(|pair| pair[1].got < pair[0].left).count()
    }

    /// What was promised of this scene.
    pub fn checks(&self) -> Vec<Check> {
        if self.scene == Scene::Languages {
            return self.checks_of_languages();
        }
        let mut checks = Vec::new();
        let mut check = |ok: bool, saw: String| checks.push(Check { ok, saw });
        let (sold, coupons) = (self.books.sold, self.coupons);

        match self.scene {
            Scene::NoLock => check(
                self.oversold() > 0,
                format!("{sold} sold out of {coupons}: {} oversold", self.oversold()),
            ),
            Scene::Unchecked => check(
                self.oversold() > 0,
                format!(
                    "{sold} sold out of {coupons}: {} too many, for one late write",
                    self.oversold()
                ),
            ),
            Scene::Locked | Scene::Paused | Scene::Killed | Scene::Failover | Scene::Languages => {
                check(sold == coupons, format!("{sold} sold out of {coupons}"));
                let twice = self.books.twice;
                check(
                    twice == 0,
                    match twice {
                        0 => "nobody bought twice".into(),
                        n => format!("{n} people bought twice"),
                    },
                );
                check(
                    self.books.out_of_order == 0,
                    match self.books.out_of_order {
                        0 => "tokens in the ledger only grow".into(),
                        n => format!("{n} sales with a token that had been overtaken"),
                    },
                );
                check(
                    self.ended < self.closed,
                    if self.ended < self.closed {
                        "sold out within the sale window".into()
                    } else {
                        "the sale window closed first; this machine is very slow or the store hangs"
                            .into()
                    },
                );
            }
        }
        if self.scene == Scene::NoLock {
            return checks;
        }

        // With a short lease a slow machine may lose a hold; the ledger answers for that.
        if self.scene == Scene::Locked {
            let overlaps = self.overlaps();
            check(
                overlaps == 0,
                match overlaps {
                    0 => format!("{} grants, no two at the same time", self.visits.len()),
                    n => format!("{n} grants began before the hold before them had ended"),
                },
            );
        }

        let pauses = matches!(self.scene, Scene::Paused | Scene::Unchecked);
        let woke = self.incident.as_ref().and_then(|incident| incident.woke.as_ref());
        match (woke, self.scene) {
            (Some(woke), Scene::Paused) => match woke.written {
                Written::Refused { highest } => check(
                    true,
                    format!("the late write was refused: token {} < {highest}", woke.token),
                ),
                Written::Done { was, is } => check(
                    false,
                    format!("the late write went through: the stock went from {was} to {is}"),
                ),
            },
            (Some(woke), Scene::Unchecked) => match woke.written {
                Written::Done { was, is } => check(
                    is >= was,
                    format!("the late write went through: it set the stock from {was} to {is}"),
                ),
                Written::Refused { .. } => {
                    check(false, "the ledger refused, although it was told not to look".into());
                }
            },
            (None, _) if pauses => {
                check(false, "no holder could be paused inside its sale".into());
            }
            _ => {}
        }
        if pauses && let Some(woke) = woke {
            check(
                woke.lost,
                match woke.lost {
                    true => "the woken holder's guard said: lost".into(),
                    false => "the woken holder's guard still said: held".into(),
                },
            );
        }
        if self.scene == Scene::Failover {
            check(self.went_on().is_some(), self.said_of_failover());
        } else if self.scene != Scene::Locked {
            let told = self.successor().map(|(_, visit)| visit.abandoned);
            check(
                told == Some(Abandoned::Yes),
                match told {
                    Some(Abandoned::Yes) => "the next grant said: predecessor abandoned".into(),
                    Some(Abandoned::No) => "the next grant said: predecessor released".into(),
                    Some(Abandoned::Unknown) => "the next grant did not know".into(),
                    None => "nobody was granted the lock after it".into(),
                },
            );
        }
        checks
    }

    /// How many were sold after the failover, and for how long nobody came to sell.
    fn went_on(&self) -> Option<(usize, Duration)> {
        let began = self.failed_over?;
        let later = |visit: &&Visit| visit.deed == Deed::Sold && visit.left > began;
        let sold = self.visits.iter().map(|(_, visit)| visit).filter(later).count();
        let mut came: Vec<u64> = self.visits.iter().map(|(_, visit)| visit.got).collect();
        came.sort_unstable();
        let pause = came.windows(2).filter(|pair| pair[1] > began).map(|pair| pair[1] - pair[0]);
        Some((sold, Duration::from_micros(pause.max()?))).filter(|(sold, _)| *sold > 0)
    }

    fn said_of_failover(&self) -> String {
        match self.went_on() {
            Some((sold, pause)) => {
                format!(
                    "{sold} sold after the failover, for which the sale paused {}",
                    span::show(pause)
                )
            }
            None => "nothing was sold after a failover".into(),
        }
    }

    fn checks_of_languages(&self) -> Vec<Check> {
        let (sold, coupons, left) = (self.books.sold, self.coupons, self.books.remaining);
        let share = |(process, share): (u32, &u32)| format!("{} {share}", self.seller(process));
        let shares: Vec<String> = (0..).zip(&self.books.shares).map(share).collect();
        let overlaps = self.overlaps();
        vec![
            Check {
                ok: sold == coupons && left == 0,
                saw: format!("{sold} sold out of {coupons}, {left} left"),
            },
            Check {
                // Everybody was in the queue when the sale opened.
                ok: self.books.shares.iter().all(|share| *share > 0),
                saw: format!("sold by {}", shares.join(", ")),
            },
            Check {
                ok: self.books.out_of_order == 0,
                saw: match self.books.out_of_order {
                    0 => "tokens only grow, from one language to the next".into(),
                    n => format!("{n} sales with a token that had been overtaken"),
                },
            },
            Check {
                ok: overlaps == 0,
                saw: match overlaps {
                    0 => "no two sales at the same time".into(),
                    n => format!("{n} sales began before the one before them had ended"),
                },
            },
        ]
    }
}
