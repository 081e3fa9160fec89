//! What is compared, one function each.

use std::thread;
use std::time::{Duration, Instant};

use crate::Result;
use crate::compare::peers::{Entrant, Part};
use crate::compare::server::{Load, Nested, Server};
use crate::compare::table::{Better, Row, Table};
use crate::compare::team::{Team, Turn};
use crate::peer::nanos;
use crate::stats::Spread;
use crate::weight::weight;

/// How long a turn lasts, and how many each entrant has.
#[derive(Clone, Copy, Debug)]
pub struct Dose {
    /// How many rounds.
    pub rounds: usize,
    /// A turn, in milliseconds.
    pub span: u64,
    /// How many single hand-offs an entrant does.
    pub handoffs: usize,
    /// How long waiters get to queue and to come to rest.
    pub rest: Duration,
    /// After so long without a holder, nobody is waited for any more.
    pub patience: Duration,
}

/// How long another process gets to come to wait.
const SETTLE: Duration = Duration::from_millis(30);
/// The lease where all have the same, in milliseconds.
const LEASE: u64 = 3000;
/// How many coupons are sold: about as many as an entrant sells in this time, within bounds.
const SALE: (f64, u64, u64) = (1.0, 50, 5000);

/// An order with the entrant's own key in it.
pub type Order = fn(&Team, u64) -> String;

/// What a measure of rates asks of whom.
#[derive(Clone, Copy)]
pub struct Rates {
    /// The table's name.
    pub name: &'static str,
    /// It has one caller, and is measured on one processor too.
    pub single: bool,
    /// How many processes of each.
    pub processes: usize,
    /// Turns are so many times as long: where who waits asks again a few times a second.
    pub longer: u64,
    /// What each is told.
    pub order: Order,
    /// Who takes part.
    pub who: fn(&Entrant) -> bool,
}

/// Everyone with a lock for one, or what looks like it.
fn all(entrant: &Entrant) -> bool {
    entrant.part != Part::Shared
}

/// Those whose lock it is.
fn locks(entrant: &Entrant) -> bool {
    all(entrant) && entrant.part != Part::Bare
}

/// Those for whom there is one caller at a time.
fn handing(entrant: &Entrant) -> bool {
    all(entrant) && entrant.library != "fencelock-no-handoff"
}

/// Those with a read-write lock. One of ours whose driver does not offer it says so.
fn reading(entrant: &Entrant) -> bool {
    entrant.part == Part::Ours || entrant.library.ends_with("read-write")
}

/// Those with permits.
fn permitting(entrant: &Entrant) -> bool {
    entrant.part == Part::Ours || entrant.library.ends_with("permits")
}

/// Locks, one caller at a time.
fn rival(entrant: &Entrant) -> bool {
    locks(entrant) && handing(entrant)
}

fn rivals(entrants: &[Entrant]) -> impl Iterator<Item = &Entrant> {
    entrants.iter().filter(|it| rival(it))
}

/// The measures of rates.
pub const RATES: [Rates; 9] = [
    Rates {
        name: "a pair, one caller",
        single: true,
        processes: 1,
        longer: 1,
        order: |team, span| format!("pairs {} {span}", team.key("pair")),
        who: handing,
    },
    Rates {
        name: "64 callers on 64 keys",
        single: false,
        processes: 1,
        longer: 1,
        order: |team, span| format!("keys 64 {} {span}", team.key("keys")),
        who: handing,
    },
    Rates {
        name: "one key, 16 callers in one process",
        single: false,
        processes: 1,
        longer: 3,
        order: |team, span| format!("hot 16 {} {span}", team.key("hot")),
        who: all,
    },
    Rates {
        name: "one key, 4 processes with 4 callers each",
        single: false,
        processes: 4,
        longer: 5,
        order: |team, span| format!("hot 4 {} {span}", team.key("hot4")),
        who: all,
    },
    Rates {
        name: "one key, 4 processes with 64 callers each",
        single: false,
        processes: 4,
        longer: 3,
        order: |team, span| format!("hot 64 {} {span}", team.key("hot64")),
        who: all,
    },
    Rates {
        name: "re-entry",
        single: true,
        processes: 1,
        longer: 1,
        order: |team, span| format!("reenter {} 1 {span}", team.key("reentry")),
        who: rival,
    },
    Rates {
        name: "a read-write lock, 90 of 100 read, 4 processes with 4 callers each",
        single: false,
        processes: 4,
        longer: 5,
        order: |team, span| format!("read 4 90 {} {span}", team.key("read4")),
        who: reading,
    },
    Rates {
        name: "a read-write lock, 16 readers in one process",
        single: false,
        processes: 1,
        longer: 3,
        order: |team, span| format!("read 16 100 {} {span}", team.key("read16")),
        who: reading,
    },
    Rates {
        name: "a semaphore of 4, 4 processes with 4 callers each",
        single: false,
        processes: 4,
        longer: 5,
        order: |team, span| format!("permits 4 4 {} {span}", team.key("permits4")),
        who: permitting,
    },
];

/// Pairs a second, side by side.
///
/// # Errors
/// When a driver or the server does not answer.
pub fn rates(rates: Rates, entrants: &[Entrant], server: &mut Server, dose: Dose) -> Result<Table> {
    let taking_part = entrants.iter().filter(|it| (rates.who)(it));
    let mut teams = Team::start(taking_part, rates.processes, server.url())?;
    let mut turns = vec![Vec::<(Turn, Load)>::new(); teams.len()];
    let mut nested = vec![Nested::default(); teams.len()];
    // The first round warms up, and tells which commands a library's scripts call.
    for round in 0..=dose.rounds {
        for step in 0..teams.len() {
            let at = if round % 2 == 0 { step } else { teams.len() - 1 - step };
            let order = (rates.order)(&teams[at], dose.span * rates.longer);
            if round == 0 {
                let watch = server.watch()?;
                teams[at].turn(&order)?;
                nested[at] = server.seen(watch)?;
                continue;
            }
            server.count_anew()?;
            if let Some(turn) = teams[at].turn(&order)? {
                turns[at].push((turn, server.load(&nested[at])?));
            }
        }
    }
    let rows = teams.iter().zip(&turns).filter(|it| !it.1.is_empty()).map(|(team, turns)| {
        let mut row = Row::new(&team.entrant, turns.iter().map(|it| it.0.rate).collect());
        let pairs: f64 = turns.iter().map(|it| it.0.count as f64).sum();
        let of = |load: fn(&Load) -> f64| turns.iter().map(|it| load(&it.1)).sum::<f64>() / pairs;
        if turns.iter().any(|it| !it.0.median.is_zero()) {
            let medians = turns.iter().map(|it| it.0.median.as_secs_f64() * 1e6);
            row.more("median of a pair, µs", Spread::of(medians).median);
        }
        row.more("commands a pair", of(|it| it.commands));
        row.more("in commands, µs a pair", of(|it| it.in_commands));
        row.more("server's processor, µs a pair", of(|it| it.micros));
        row.more("bytes a pair", of(|it| it.bytes));
        if turns.iter().any(|it| it.0.most > 0) {
            let share = turns.iter().map(|it| it.0.least as f64 / it.0.most.max(1) as f64);
            row.more("smallest / largest share", Spread::of(share).median);
            let longest = turns.iter().map(|it| it.0.longest.as_secs_f64() * 1e3);
            row.more("longest wait, ms", longest.fold(0.0, f64::max));
        }
        row
    });
    Ok(Table::new(rates.name, "pairs a second", Better::More, rows.collect()))
}

/// From the release in one process to the grant in another.
///
/// # Errors
/// When a driver does not answer.
pub fn handoff(entrants: &[Entrant], url: &str, dose: Dose) -> Result<Table> {
    let mut teams = Team::start(rivals(entrants), 2, url)?;
    let mut took = vec![Vec::new(); teams.len()];
    for sample in 0..=dose.handoffs {
        for (team, took) in teams.iter_mut().zip(&mut took) {
            let key = team.key("handoff");
            let [one, other] = team.members() else { return Err("two processes hand over".into()) };
            one.ask(&format!("acquire a {key} default"), "granted a");
            other.ask(&format!("acquire b {key} default"), "asked b");
            // Each in another moment of the pause after which who has no message asks again.
            thread::sleep(SETTLE + Duration::from_millis(sample as u64 * 7 % 100));
            one.tell("release a");
            let granted = instant(&other.wait_for("granted b"))?;
            let released = instant(&one.wait_for("released a"))?;
            other.ask("release b", "released b");
            if sample > 0 {
                took.push(granted.saturating_sub(released) as f64 / 1e3);
            }
        }
    }
    let rows = teams.iter().zip(took).map(|(team, mut took)| {
        took.sort_by(f64::total_cmp);
        let late = took[(took.len() * 99 / 100).min(took.len() - 1)];
        let mut row = Row::new(&team.entrant, took);
        row.more("99th of 100, µs", late);
        row
    });
    Ok(Table::new("hand-off between processes", "µs", Better::Less, rows.collect()))
}

/// Four processes with four callers each sell what is left, under the lock.
///
/// # Errors
/// When a driver does not answer, or more was sold than there was.
pub fn sale(entrants: &[Entrant], server: &mut Server, dose: Dose) -> Result<Table> {
    let mut rows = Vec::new();
    let taking_part = entrants.iter().filter(|it| handing(it));
    for mut team in Team::start(taking_part, 4, server.url())? {
        let trial = format!("hot 4 {} {}", team.key("sale"), dose.span);
        let rate = team.turn(&trial)?.map_or(0.0, |it| it.rate);
        let stock = ((rate * SALE.0) as u64).clamp(SALE.1, SALE.2);
        let mut rates = Vec::new();
        let mut oversold = 0;
        for _ in 0..dose.rounds.div_ceil(2) {
            server.set_stock(stock)?;
            let order = format!("sell 4 {}", team.key("sale"));
            for member in team.members() {
                member.tell(&order);
            }
            let (mut sold, mut took) = (0, 0);
            for member in team.members() {
                let (0, said) = member.wait_for_any(["sold", "cannot"]) else { continue };
                let (count, nanos) = said.trim().split_once(' ').ok_or("sold what?")?;
                sold += count.parse::<u64>()?;
                took = took.max(nanos.parse::<u64>()?);
            }
            if took > 0 {
                rates.push(sold as f64 * 1e9 / took as f64);
                oversold += sold.abs_diff(stock);
            }
        }
        if !rates.is_empty() {
            let mut row = Row::new(&team.entrant, rates);
            row.more("sold too many", oversold as f64);
            rows.push(row);
        }
    }
    Ok(Table::new(
        "the flash sale, 4 processes with 4 callers each",
        "coupons a second",
        Better::More,
        rows,
    ))
}

/// How long after a holder was killed the next one runs, all at once.
///
/// # Errors
/// When a driver does not answer.
pub fn killed(entrants: &[Entrant], url: &str, dose: Dose) -> Result<Table> {
    let mut rows: Vec<Row> = Vec::new();
    for (at, lease) in ["default".to_owned(), LEASE.to_string()].iter().enumerate() {
        let mut teams = Team::start(rivals(entrants), 2, url)?;
        let mut deaths = Vec::new();
        for team in &mut teams {
            // Of its own: without a lease the other one is never free again.
            let key = team.key(&format!("killed-{lease}"));
            let [one, other] = team.members() else { return Err("two processes".into()) };
            one.ask(&format!("acquire a {key} {lease}"), "granted a");
            other.ask(&format!("acquire b {key} {lease}"), "asked b");
        }
        thread::sleep(SETTLE * 10);
        for team in &mut teams {
            deaths.push(nanos());
            team.members()[0].kill();
        }
        let begun = Instant::now();
        while begun.elapsed() < dose.patience
            && !teams.iter_mut().all(|team| team.members()[1].has_said("granted b"))
        {
            thread::sleep(Duration::from_millis(100));
        }
        for (team, died) in teams.iter_mut().zip(deaths) {
            let next = &team.members()[1];
            let after = match next.has_said("granted b") {
                true => instant(&next.wait_for("granted b"))?.saturating_sub(died) as f64 / 1e9,
                false => f64::INFINITY,
            };
            let entrant = &team.entrant;
            let row = rows.iter_mut().find(|it| it.is_of(entrant));
            match (at, row) {
                (0, _) => rows.push(Row::new(&team.entrant, vec![after])),
                (_, Some(row)) => row.more("with a lease of 3 s, s", after),
                _ => {}
            }
        }
    }
    Ok(Table::new(
        "a holder is killed: until the next one runs, by default",
        "s",
        Better::Less,
        rows,
    ))
}

/// What ten thousand waiters in one process weigh.
///
/// # Errors
/// When a driver does not answer.
pub fn waiters(entrants: &[Entrant], url: &str, dose: Dose) -> Result<Table> {
    let mut rows = Vec::new();
    for mut team in Team::start(rivals(entrants), 2, url)? {
        let key = team.key("waiters");
        let [holder, crowd] = team.members() else { return Err("two processes".into()) };
        holder.ask(&format!("acquire a {key} default"), "granted a");
        // What the library makes for its first waiter is not counted.
        crowd.tell(&format!("wait 1 {key}"));
        let (0, _) = crowd.wait_for_any(["waiting", "cannot"]) else { continue };
        thread::sleep(dose.rest);
        let before = weight(crowd.pid())?;
        crowd.ask(&format!("wait 10000 {key}"), "waiting");
        thread::sleep(dose.rest);
        let after = weight(crowd.pid())?;
        let megabytes = after.0.saturating_sub(before.0) as f64 / 1e6;
        let mut row = Row::new(&team.entrant, vec![megabytes]);
        row.more("threads for them", after.1.saturating_sub(before.1) as f64);
        rows.push(row);
    }
    Ok(Table::new("10,000 waiters in one process", "MB", Better::Less, rows))
}

fn instant(said: &str) -> Result<u64> {
    Ok(said.trim().parse()?)
}
