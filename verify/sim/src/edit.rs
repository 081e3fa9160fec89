//! Changes to a drawn plan, by which a failing run is made smaller; written and read as text.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::clock::MS;
use crate::dice::Dice;
use crate::fault::Fault;
use crate::plan::{Plan, StoreKind};

/// What a run is made from: a seed, a store, and what is changed of the plan that the seed draws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The seed.
    pub seed: u64,
    /// The store.
    pub store: StoreKind,
    /// The changes.
    pub edits: Edits,
}

/// Changes to a plan: `faults=0+3,clients=2,actors=1,locks=1,until=1200,off=spike+nap,roll=2`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// Only these faults, by their place in the plan.
    pub faults: Option<Vec<usize>>,
    /// So many clients.
    pub clients: Option<usize>,
    /// So many callers of each.
    pub actors: Option<usize>,
    /// So many locks.
    pub locks: Option<usize>,
    /// The quiet part begins after so many milliseconds.
    pub until: Option<u64>,
    /// What is turned off, by name.
    pub off: BTreeSet<&'static str>,
    /// Other draws on the way, from the same plan.
    pub roll: u64,
}

/// One thing that may be turned off in a plan.
type Off = (&'static str, fn(&mut Plan));

/// What may be turned off, from what messages suffer to what callers do.
pub const OFF: [Off; 32] = [
    ("lose_request", |plan| plan.hazards.lose_request = 0),
    ("lose_reply", |plan| plan.hazards.lose_reply = 0),
    ("lose_push", |plan| plan.hazards.lose_push = 0),
    ("double_push", |plan| plan.hazards.double_push = 0),
    ("late_push", |plan| plan.hazards.late_push = 0),
    ("late_reply", |plan| plan.hazards.late_reply = 0),
    ("spike", |plan| plan.hazards.spike = 0),
    ("stale_read", |plan| plan.hazards.stale_read = 0),
    ("attempt", |plan| plan.habits.attempt = 0),
    ("bounded", |plan| plan.habits.bounded = 0),
    ("cancel", |plan| plan.habits.cancel = 0),
    ("lease", |plan| plan.habits.lease = 0),
    ("max_hold", |plan| plan.habits.max_hold = 0),
    ("reenter", |plan| plan.habits.reenter = 0),
    ("extend", |plan| plan.habits.extend = 0),
    ("nap", |plan| plan.habits.nap = 0),
    ("twice", |plan| plan.habits.twice = 0),
    ("dropped", |plan| plan.habits.dropped = 0),
    ("attach", |plan| plan.habits.attach = 0),
    ("breaks", |plan| plan.habits.breaks = 0),
    ("branch", |plan| plan.habits.branch = 0),
    ("forget", |plan| plan.habits.forget = 0),
    ("read", |plan| plan.habits.read = 0),
    ("convert", |plan| plan.habits.convert = 0),
    ("odd", |plan| plan.habits.odd = 0),
    ("resize", |plan| plan.habits.resize = 0),
    ("adopt", |plan| plan.habits.adopt = 0),
    ("explicit", |plan| plan.explicit = 0),
    ("polling", |plan| plan.polling.fill(false)),
    ("push_pipe", |plan| plan.push_pipe = false),
    ("cost", |plan| plan.cost = None),
    ("drift", |plan| {
        plan.client_ppm.fill(0);
        plan.store_ppm = 0;
    }),
];

impl Case {
    /// The plain run of a seed.
    pub fn of(seed: u64, store: StoreKind) -> Case {
        Case { seed, store, edits: Edits::default() }
    }

    /// The plan, and the dice for what follows.
    pub(crate) fn draw(&self) -> (Plan, Dice) {
        let mut dice = Dice::new(self.seed);
        let mut plan = Plan::draw(self.seed, self.store, &mut dice);
        self.edits.apply(&mut plan);
        if self.edits.roll > 0 {
            dice = Dice::new(self.seed.rotate_left(32) ^ self.edits.roll);
        }
        (plan, dice)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--seed {} --store {}", self.seed, self.store.name())?;
        if self.edits == Edits::default() { Ok(()) } else { write!(f, " --edit {}", self.edits) }
    }
}

impl Edits {
    pub(crate) fn apply(&self, plan: &mut Plan) {
        if let Some(keep) = &self.faults {
            let mut place = 0;
            plan.faults.retain(|_| {
                place += 1;
                keep.contains(&(place - 1))
            });
        }
        plan.clients = self.clients.unwrap_or(plan.clients).clamp(1, plan.clients);
        plan.actors = self.actors.unwrap_or(plan.actors).clamp(1, plan.actors);
        plan.locks = self.locks.unwrap_or(plan.locks).clamp(1, plan.locks);
        if let Some(until) = self.until {
            plan.quiet_at = plan.quiet_at.min((until * MS).max(1));
        }
        let (clients, locks, quiet_at) = (plan.clients, plan.locks, plan.quiet_at);
        plan.faults.retain(|(at, fault)| {
            *at < quiet_at
                && fault.slot().is_none_or(|slot| slot < clients)
                && fault.lock().is_none_or(|lock| lock < locks)
        });
        for (at, fault) in &mut plan.faults {
            *fault = fault.within(quiet_at - *at);
        }
        for (_, off) in OFF.iter().filter(|(name, _)| self.off.contains(name)) {
            off(plan);
        }
    }
}

impl Fault {
    /// The client that it strikes.
    fn slot(&self) -> Option<usize> {
        match *self {
            Fault::Cut { slot }
            | Fault::BlackHole { slot, .. }
            | Fault::Slow { slot, .. }
            | Fault::Pause { slot, .. }
            | Fault::Crash { slot, .. }
            | Fault::Jump { slot, .. } => Some(slot),
            _ => None,
        }
    }

    /// The lock that it strikes.
    fn lock(&self) -> Option<usize> {
        match *self {
            Fault::Evict { lock } | Fault::Foreign { lock, .. } => Some(lock),
            _ => None,
        }
    }
}

impl fmt::Display for Edits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(faults) = &self.faults {
            let places: Vec<String> = faults.iter().map(usize::to_string).collect();
            parts.push(format!("faults={}", places.join("+")));
        }
        let sizes = [("clients", self.clients), ("actors", self.actors), ("locks", self.locks)];
        parts.extend(sizes.iter().filter_map(|(name, n)| n.map(|n| format!("{name}={n}"))));
        parts.extend(self.until.map(|until| format!("until={until}")));
        if !self.off.is_empty() {
            let names: Vec<&str> = self.off.iter().copied().collect();
            parts.push(format!("off={}", names.join("+")));
        }
        if self.roll > 0 {
            parts.push(format!("roll={}", self.roll));
        }
        f.write_str(&parts.join(","))
    }
}

impl FromStr for Edits {
    type Err = String;

    fn from_str(text: &str) -> Result<Edits, String> {
        let mut edits = Edits::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let wrong = || format!("the change '{part}' is not understood");
            let (name, value) = part.split_once('=').ok_or_else(wrong)?;
            let number = || value.parse::<usize>().map_err(|_| wrong());
            match name {
                "faults" => {
                    let places = value.split('+').filter(|place| !place.is_empty());
                    let places = places.map(|place| place.parse().map_err(|_| wrong()));
                    edits.faults = Some(places.collect::<Result<_, _>>()?);
                }
                "clients" => edits.clients = Some(number()?),
                "actors" => edits.actors = Some(number()?),
                "locks" => edits.locks = Some(number()?),
                "until" => edits.until = Some(number()? as u64),
                "roll" => edits.roll = number()? as u64,
                "off" => {
                    for word in value.split('+') {
                        let known = OFF.iter().find(|(known, _)| *known == word);
                        edits.off.insert(known.ok_or_else(wrong)?.0);
                    }
                }
                _ => return Err(wrong()),
            }
        }
        Ok(edits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_back() {
        let text = "faults=0+3,clients=2,actors=1,locks=1,until=1200,off=nap+spike,roll=2";
        let edits: Edits = text.parse().unwrap();
        assert_eq!(edits.to_string(), text);
        assert_eq!("faults=".parse::<Edits>().unwrap().faults, Some(Vec::new()));
        assert_eq!("".parse::<Edits>(), Ok(Edits::default()));
        for wrong in ["clients", "clients=x", "off=nothing", "faults=1+x", "more=1"] {
            assert!(wrong.parse::<Edits>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_changed_plan_names_nothing_that_is_not_there() {
        let edits: Edits = "clients=1,locks=1,until=500,off=lose_push".parse().unwrap();
        for seed in 1..200 {
            let case = Case { seed, store: StoreKind::Record, edits: edits.clone() };
            let (plan, _) = case.draw();
            assert!(plan.clients == 1 && plan.locks == 1 && plan.hazards.lose_push == 0);
            for (at, fault) in plan.faults {
                assert!(at < plan.quiet_at, "{fault:?} in the quiet part");
                assert!(fault.slot().unwrap_or(0) == 0 && fault.lock().unwrap_or(0) == 0);
            }
        }
    }
}
