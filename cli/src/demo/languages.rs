//! The scene in which programs of several languages sell from one stock, under one lock.

use std::fmt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use fencelock::blocking::Client;

use crate::demo::clock::micros;
use crate::demo::outcome::{Outcome, Scene};
use crate::demo::progress::Progress;
use crate::demo::shop::Books;
use crate::demo::till::{Sold, Till};
use crate::demo::wire::{Abandoned, Deed, Visit};
use crate::failure::Failure;

/// How long nothing at all may happen.
const SILENCE: Duration = Duration::from_secs(60);
/// How often the sellers are looked after.
const LOOK: Duration = Duration::from_millis(10);
/// The demo's own seller.
const OWN: &str = "rust";

/// A language, and something about it: the command of its seller, or why it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Language {
    /// Its name, as the table shows it.
    pub name: String,
    /// The command, or the reason.
    pub about: String,
}

impl FromStr for Language {
    type Err = String;

    fn from_str(text: &str) -> Result<Language, String> {
        let (name, about) = text.split_once('=').ok_or("NAME=TEXT is wanted")?;
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '#' | '.');
        if name.is_empty() || name.len() > 12 || !name.chars().all(fits) {
            return Err("the name is a word of up to 12 letters and digits".to_owned());
        }
        if name == OWN {
            return Err(format!("{OWN} takes part by itself"));
        }
        if about.trim().is_empty() {
            return Err(format!("nothing is said of {name}"));
        }
        Ok(Language { name: name.to_owned(), about: about.to_owned() })
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.about)
    }
}

/// The sale's particulars.
#[derive(Debug)]
pub struct Fair<'a> {
    /// Coupons in stock.
    pub coupons: u32,
    /// Who sells beside Rust.
    pub sellers: &'a [Language],
    /// The lock's store.
    pub store: &'a str,
    /// The lock's name.
    pub lock: &'a str,
    /// The parent's own connection to the store.
    pub probe: &'a Client,
    /// The shop's folder.
    pub place: &'a Path,
}

impl Fair<'_> {
    /// Plays the scene and gives what was seen.
    pub fn play(&self, progress: &Progress) -> Result<Outcome, Failure> {
        let till = Till::create(self.place, self.coupons)?;
        // The sale opens when every seller waits for the lock: a virtual machine starts more slowly
        // than others, and is not to find the shop empty.
        let door = self.probe.lock(self.lock)?.acquire()?;
        let mut crew = Crew::default();
        crew.hire(self, OWN, None)?;
        for seller in self.sellers {
            crew.hire(self, &seller.name, Some(&seller.about))?;
        }
        crew.await_all(self)?;
        let opened = micros();
        door.release()?;
        crew.await_end(&till, progress)?;
        let sales = till.sales()?;
        let remaining = till.stock()?.left.into();
        let names: Vec<String> = crew.members.iter().map(|member| member.name.clone()).collect();
        let visits = visits(&names, &sales, opened)?;
        let share = |process: usize| {
            let own = visits.iter().filter(|(of, _)| *of as usize == process).count();
            u32::try_from(own).unwrap_or(u32::MAX)
        };
        let out_of_order = sales.windows(2).filter(|pair| pair[1].token <= pair[0].token).count();
        Ok(Outcome {
            scene: Scene::Languages,
            failed_over: None,
            coupons: self.coupons,
            books: Books {
                sold: u32::try_from(sales.len()).unwrap_or(u32::MAX),
                twice: 0,
                shares: (0..names.len()).map(share).collect(),
                out_of_order: u32::try_from(out_of_order).unwrap_or(u32::MAX),
                remaining,
            },
            sellers: names,
            ended: sales.last().map_or(opened, |last| last.to),
            visits,
            incident: None,
            opened,
            closed: u64::MAX,
        })
    }
}

/// The sales as visits. A seller asks again as soon as it has sold.
fn visits(names: &[String], sales: &[Sold], opened: u64) -> Result<Vec<(u32, Visit)>, Failure> {
    let mut asked = vec![opened; names.len()];
    let visit = |(line, sold): (usize, &Sold)| {
        let process = names.iter().position(|name| *name == sold.seller).ok_or_else(|| {
            Failure::own(format!("line {} of the sales names {:?}", line + 1, sold.seller))
        })?;
        let asked = std::mem::replace(&mut asked[process], sold.to);
        let visit = Visit {
            worker: 0,
            token: Some(sold.token),
            abandoned: Abandoned::No,
            asked,
            got: sold.from,
            left: sold.to,
            deed: Deed::Sold,
        };
        Ok((u32::try_from(process).unwrap_or(u32::MAX), visit))
    };
    sales.iter().enumerate().map(visit).collect()
}

/// The sellers' processes. They are killed when this is dropped.
#[derive(Debug, Default)]
struct Crew {
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    name: String,
    child: Child,
    ended: bool,
}

impl Crew {
    fn hire(&mut self, fair: &Fair<'_>, name: &str, command: Option<&str>) -> Result<(), Failure> {
        let mut own = Command::new(std::env::current_exe()?);
        own.args(["demo-seller", fair.store, fair.lock]).arg(fair.place).arg(name);
        own.args(command);
        // What it says would spoil the demo's own output; errors are to be seen.
        let child = (own.stdin(Stdio::null()).stdout(Stdio::null()).spawn())
            .map_err(|error| Failure::own(format!("cannot start a process: {error}")))?;
        self.members.push(Member { name: name.to_owned(), child, ended: false });
        Ok(())
    }

    /// Until all of them wait for the lock.
    fn await_all(&mut self, fair: &Fair<'_>) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            let waiting = fair.probe.inspect(fair.lock)?.map_or(0, |lock| lock.waiters.len());
            if waiting >= self.members.len() {
                return Ok(());
            }
            if self.look_after()? > 0 {
                return Err(Failure::own("a seller ended before the sale began"));
            }
            if begun.elapsed() > SILENCE {
                return Err(Failure::own(format!(
                    "after {} s only {waiting} of {} sellers wait for the lock",
                    SILENCE.as_secs(),
                    self.members.len()
                )));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Until all of them have gone.
    fn await_end(&mut self, till: &Till, progress: &Progress) -> Result<(), Failure> {
        let (mut seen, mut moved) = (0, Instant::now());
        loop {
            let gone = self.look_after()?;
            let sold = till.sales()?.len();
            for _ in seen..sold {
                progress.sold();
                moved = Instant::now();
            }
            seen = sold;
            if gone == self.members.len() {
                return Ok(());
            }
            if moved.elapsed() > SILENCE {
                return Err(Failure::own(format!(
                    "nobody has sold anything for {} s; is the store still there? \
                     (fencelock doctor)",
                    SILENCE.as_secs()
                )));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// How many have gone, every one of them well.
    fn look_after(&mut self) -> Result<usize, Failure> {
        for member in self.members.iter_mut().filter(|member| !member.ended) {
            if let Some(status) = member.child.try_wait()? {
                member.ended = true;
                if !status.success() {
                    return Err(Failure::own(format!(
                        "the seller {} failed ({status})",
                        member.name
                    )));
                }
            }
        }
        Ok(self.members.iter().filter(|member| member.ended).count())
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for member in &mut self.members {
            // One that has ended already is no trouble.
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
    }
}

#[cfg(test)]
mod tests;
