//! Runs that mix faults by a seed.

mod crew;
mod fault;
mod kind;
mod linear;
mod several;
mod store;
pub mod table;
mod want;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{io, thread};

use fencelock_history::Record;
use fencelock_history::check::{self, Found};
use tempfile::TempDir;

use crate::dice::Dice;
use crate::history::{History, LIMIT};
use crate::role::Role;

use crew::Crew;
use fault::Faults;
pub use kind::{Kind, Modes};
use linear::Windows;
pub(crate) use several::Several;
pub use store::{LEASE, Store};
use want::Want;

/// One run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which faults, when, and what the actors do. Processes are not told when to run, so that the
    /// same seed gives the same plan but not the same history.
    pub seed: u64,
    /// How long faults go on.
    pub span: Duration,
    /// On which store.
    pub kind: Kind,
    /// This fault and no other, or all of them mixed.
    pub only: Option<&'static str>,
    /// Who takes part, one actor for each.
    pub cast: Vec<Role>,
    /// The locks that they want.
    pub locks: Vec<&'static str>,
    /// The read-write locks that they want.
    pub read_write: Vec<&'static str>,
    /// The semaphores that they want, and how many permits each has.
    pub semaphores: Vec<(&'static str, u32)>,
}

impl Plan {
    /// Five of our own actors that want a few locks, a read-write lock and a semaphore where the store
    /// has them, under all faults of the store.
    #[must_use]
    pub fn new(seed: u64, span: Duration, kind: Kind) -> Plan {
        let (cast, locks) = (vec![Role::own(); 5], vec!["stock", "report", "invoice"]);
        let modes = kind.modes();
        let read_write = if modes.read_write { vec!["prices"] } else { vec![] };
        let semaphores = if modes.permits { vec![("mailers", 4)] } else { vec![] };
        Plan { seed, span, kind, only: None, cast, locks, read_write, semaphores }
    }

    fn wants(&self) -> Vec<Want> {
        let locks = self.locks.iter().map(|it| Want::Lock(it));
        let read_write = self.read_write.iter().map(|it| Want::ReadWrite(it));
        let semaphores = self.semaphores.iter().map(|it| Want::Semaphore(it.0, it.1));
        locks.chain(read_write).chain(semaphores).collect()
    }
}

/// The faults of a store, by name.
#[must_use]
pub fn faults(kind: Kind) -> Vec<&'static str> {
    fault::of(kind).iter().map(|it| it.0).collect()
}

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What the history has in it.
    pub found: Found,
    /// How often each fault was done.
    pub faults: BTreeMap<&'static str, usize>,
    /// Windows of tries that are linearizable.
    pub windows: usize,
    /// Their operations.
    pub operations: usize,
    /// Windows in which the store forgot, so that they show nothing.
    pub spoiled: usize,
    /// The promises that were broken.
    pub broken: Vec<String>,
    /// Where the history is, if any was broken.
    pub history: Option<PathBuf>,
    /// The history, for those who want to know more of it.
    pub records: Vec<Record>,
}

impl Outcome {
    /// Adds another run's.
    pub fn add(&mut self, other: Outcome) {
        let (found, more) = (&mut self.found, other.found);
        found.asked += more.asked;
        found.grants += more.grants;
        found.lost += more.lost;
        found.killed += more.killed;
        found.abandoned += more.abandoned;
        found.together += more.together;
        found.converted += more.converted;
        found.excused += more.excused;
        found.doubled += more.doubled;
        found.refused_writes += more.refused_writes;
        found.latest_word = found.latest_word.max(more.latest_word);
        for (fault, count) in other.faults {
            *self.faults.entry(fault).or_default() += count;
        }
        self.windows += other.windows;
        self.operations += other.operations;
        self.spoiled += other.spoiled;
        self.broken.extend(other.broken);
        self.history = self.history.take().or(other.history);
    }
}

/// Does a run.
///
/// # Errors
/// When what it needs cannot be started; a broken promise is in the outcome.
pub fn run(plan: Plan) -> io::Result<Outcome> {
    let folder = TempDir::with_prefix("nemesis-")?;
    let history = History::watched();
    let mut dice = Dice::new(plan.seed);
    let mut store = Store::start(plan.kind, folder.path(), &history)?;
    let mut crew = Crew::start(&history, folder.path(), &mut store, &plan)?;
    let mut faults = Faults::new(plan.kind, plan.only);
    let mut windows = Windows::new(&plan);
    let end = Instant::now() + plan.span;
    while Instant::now() < end {
        faults.turn(&mut dice, &mut store, &mut crew)?;
        crew.turn(&mut dice, true)?;
        windows.turn(&history, &mut crew, true);
        thread::sleep(Duration::from_millis(1));
    }
    faults.mend(&mut store, &mut crew)?;
    history.note("quiet", "all", &[]);
    let mut broken = Vec::new();
    let end = Instant::now() + LIMIT;
    while !(crew.is_idle() && windows.is_over()) {
        crew.turn(&mut dice, false)?;
        windows.turn(&history, &mut crew, false);
        thread::sleep(Duration::from_millis(1));
        if Instant::now() > end {
            broken.push(format!("liveness: 30 s after the last fault: {}", crew.unfinished()));
            break;
        }
    }
    if broken.is_empty() {
        broken.extend(store.residue(&plan.wants(), &crew.living()));
    }
    // What they still have to say, they have said.
    crew.dismiss();
    let records = history.since(0);
    let (linear, wrong) = fencelock_history::linear::judge(&records, plan.kind.tries());
    broken.extend(wrong);
    let mut outcome = Outcome {
        faults: faults.counts,
        windows: linear.windows,
        operations: linear.operations,
        spoiled: linear.spoiled,
        ..Outcome::default()
    };
    match check::all(&records) {
        Ok(found) => outcome.found = found,
        Err(more) => broken.extend(more.0),
    }
    if !broken.is_empty() {
        let name = format!("nemesis-{}-{}-{}.history", plan.kind, plan.seed, std::process::id());
        let path = std::env::temp_dir().join(name);
        history.save(&path)?;
        outcome.history = Some(path);
    }
    (outcome.broken, outcome.records) = (broken, records);
    Ok(outcome)
}
