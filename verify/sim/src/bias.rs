//! Plans bent towards what seldom comes together by chance.
//!
//! Drawn from dice of their own, for some three seeds in ten: the other seeds' runs know nothing of it.
//! Names that several hold together have seeds of their own, beyond all others.

use std::time::Duration;

use fencelock_engine::Options;

use crate::clock::{MS, SEC};
use crate::cost::Cost;
use crate::dice::Dice;
use crate::edit::Edits;
use crate::fault::Fault;
use crate::plan::{Hazards, Plan, Profile, StoreKind};

/// What a plan is bent towards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bias {
    /// Nothing.
    #[default]
    None,
    /// Acquires arrive late, after their hold was released, lost by the next one, and released
    /// again.
    Strays,
    /// Acquires arrive late beside other holds of their explicit owner, some of which are lost.
    Joins,
    /// Waits are cancelled while their acquire is unaccounted for, and the release's reply is long
    /// under way.
    LateReplies,
    /// The machine on which everything runs is suspended.
    Suspensions,
    /// Callers of one client come at the same instant of its clock, and what they join is lost.
    Ties,
    /// Clients take turns after short runs of their callers, pushes come twice or late, and what goes
    /// out with a release comes too late.
    Echoes,
    /// Locks rest for longer than the store keeps them, and its clock is set back, at times by more than
    /// that.
    Rests,
    /// Callers of one client re-enter long holds of which some end long before their lease would.
    Shortened,
    /// Many clients on one lock, taking turns or only waiting, at a store whose work takes time and
    /// that has, for a while, more of it than it can do.
    Crowd,
    /// The store is so far away that its claims are over before their answers come.
    Far,
    /// Locks are read by several at once, and written by one.
    Readers,
    /// Names are semaphores.
    Permits,
    /// Servers take over from each other that lack nothing, and whose clocks differ by no more than clients
    /// allow for.
    TakeOvers,
    /// The same of servers that lack what was not confirmed: grants count once a replica has them.
    Confirmed,
}

/// Each of [`Bias::APART`] has so many seeds: from once, twice, and so on this number on.
const APART_SEEDS: u64 = 1_000_000_000_000;
/// What else their plans are bent towards, now and then.
const BESIDES: [Bias; 7] = [
    Bias::Strays,
    Bias::Joins,
    Bias::LateReplies,
    Bias::Echoes,
    Bias::Rests,
    Bias::Shortened,
    Bias::Suspensions,
];

impl Bias {
    /// Those whose seeds are no other plan's.
    pub const APART: [Bias; 4] = [Bias::Readers, Bias::Permits, Bias::TakeOvers, Bias::Confirmed];

    /// The bias that a name stands for.
    pub fn named(name: &str) -> Option<Bias> {
        Some(match name {
            "strays" => Bias::Strays,
            "joins" => Bias::Joins,
            "late-replies" => Bias::LateReplies,
            "suspensions" => Bias::Suspensions,
            "ties" => Bias::Ties,
            "crowd" => Bias::Crowd,
            "echoes" => Bias::Echoes,
            "rests" => Bias::Rests,
            "shortened" => Bias::Shortened,
            "far" => Bias::Far,
            "readers" => Bias::Readers,
            "permits" => Bias::Permits,
            "take-overs" => Bias::TakeOvers,
            "confirmed" => Bias::Confirmed,
            _ => return None,
        })
    }

    /// Whether several may hold a name together.
    pub fn shares(self) -> bool {
        matches!(self, Bias::Readers | Bias::Permits)
    }

    /// The stores that such runs are played on without being asked for one.
    pub fn stores(self) -> &'static [StoreKind] {
        match self {
            Bias::TakeOvers | Bias::Confirmed => &[StoreKind::Record, StoreKind::Redis],
            _ => &[StoreKind::Record, StoreKind::Redis, StoreKind::ZooKeeper],
        }
    }

    /// The first seed from `seed` on that is bent so. Of those [`APART`](Bias::APART) it is the one that
    /// stands where `seed` stands among its kind.
    pub fn next(self, seed: u64) -> u64 {
        if let Some(kind) = Bias::APART.iter().position(|it| *it == self) {
            return APART_SEEDS * (kind as u64 + 1) + seed % APART_SEEDS;
        }
        (seed..).find(|seed| Bias::of(*seed).0 == self).unwrap_or(u64::MAX)
    }

    /// The bias of a seed, on stores other than ZooKeeper.
    pub fn of_seed(seed: u64) -> Bias {
        Bias::of(seed).0
    }

    /// The bias of a seed.
    pub(crate) fn of(seed: u64) -> (Bias, Dice) {
        let mut dice = Dice::new(seed ^ 0x6269_6173 << 32);
        let kind = (seed / APART_SEEDS).checked_sub(1).map(|kind| kind as usize);
        if let Some(bias) = kind.and_then(|kind| Bias::APART.get(kind)) {
            return (*bias, dice);
        }
        let bias = match dice.below(24) {
            0 | 4 => Bias::Strays,
            1 => Bias::LateReplies,
            2 => Bias::Joins,
            3 => Bias::Ties,
            5 => Bias::Suspensions,
            // Its runs take long.
            6 if dice.chance(125) => Bias::Crowd,
            7 if dice.chance(250) => Bias::Far,
            9 => Bias::Echoes,
            10 => Bias::Rests,
            11 => Bias::Shortened,
            _ => Bias::None,
        };
        (bias, dice)
    }

    /// Bends a plan.
    pub(crate) fn bend(self, plan: &mut Plan, dice: &mut Dice) {
        if self.shares() {
            bend_shared(plan, dice);
        }
        plan.bias = self;
        let (hazards, habits, options) = (&mut plan.hazards, &mut plan.habits, &mut plan.options);
        match self {
            Bias::None => {}
            Bias::Strays => {
                plan.profile = Profile::Network;
                options.claim = Duration::from_millis(500);
                options.lease = options.lease.max(options.claim);
                options.request_timeout = Duration::from_millis(dice.between(150, 350));
                hazards.lose_request = 200;
                hazards.lose_reply = 250;
                hazards.stray = 800;
                habits.lease = 600;
                habits.nap = 200;
                habits.cancel = 20;
                habits.hold = dice.pick(&[2, 10, 30]) * MS;
                habits.rest = MS;
                plan.explicit = 0;
                plan.latency.1 = plan.latency.0 + MS / 2;
                let few =
                    Edits { clients: Some(3), actors: Some(1), locks: Some(1), ..Edits::default() };
                few.apply(plan);
            }
            Bias::Joins => {
                plan.profile = Profile::Network;
                options.claim = Duration::from_millis(500);
                options.lease = options.lease.max(options.claim);
                options.request_timeout = Duration::from_millis(dice.between(150, 350));
                hazards.lose_request = 80;
                hazards.lose_reply = 150;
                hazards.stray = 800;
                habits.cancel = 200;
                habits.lease = 0;
                habits.max_hold = 1_000;
                habits.nap = 100;
                habits.hold = 10 * MS;
                habits.rest = 5 * MS;
                plan.latency.1 = 12 * MS;
                (plan.clients, plan.actors, plan.locks, plan.owners) = (5, 2, 1, 1);
                plan.explicit = 600;
                plan.client_ppm.resize(plan.clients, 0);
                plan.polling.resize(plan.clients, false);
                plan.faults.clear();
            }
            Bias::LateReplies => {
                plan.profile = Profile::Network;
                options.claim = Duration::from_millis(100);
                options.request_timeout = Duration::from_millis(dice.between(600, 1_000));
                hazards.lose_request = 150;
                hazards.stray = 800;
                hazards.late_reply = 300;
                habits.attempt = 50;
                habits.cancel = 500;
                plan.latency.1 = plan.latency.0 + MS / 2;
            }
            Bias::Ties => {
                plan.profile = Profile::Network;
                options.claim = Duration::from_millis(100);
                options.lease = Duration::from_millis(dice.between(200, 400));
                options.local_run_grants = 64;
                hazards.stale_read = 600;
                hazards.lose_request = 300;
                hazards.lose_reply = 300;
                habits.attempt = 20;
                habits.cancel = 500;
                habits.lease = 900;
                habits.reenter = 800;
                habits.nap = 100;
                habits.hold = 100 * MS;
                habits.rest = 20 * MS;
                plan.actors = 6;
                plan.explicit = 0;
                let few = Edits { clients: Some(2), locks: Some(1), ..Edits::default() };
                few.apply(plan);
            }
            Bias::Echoes => {
                plan.profile = Profile::Network;
                options.claim = Duration::from_millis(100);
                options.request_timeout = Duration::from_millis(dice.between(100, 400));
                options.local_run_grants = dice.pick(&[0, 1, 2]);
                options.local_run_time = Duration::from_millis(1);
                hazards.lose_request = 100;
                hazards.lose_reply = 100;
                hazards.double_push = 600;
                hazards.late_push = 400;
                habits.attempt = 20;
                habits.cancel = 100;
                (habits.branch, habits.forget, habits.nap) = (0, 0, 5);
                habits.hold = 2 * MS;
                habits.rest = MS;
                plan.push_pipe = true;
                plan.explicit = 0;
                plan.actors = 4;
                let few = Edits { clients: Some(3), locks: Some(1), ..Edits::default() };
                few.apply(plan);
            }
            Bias::Rests => bend_rests(plan, dice),
            Bias::TakeOvers => bend_take_overs(plan, dice),
            Bias::Confirmed => bend_confirmed(plan, dice),
            Bias::Readers => {
                plan.draw_readers(dice);
                if plan.seed.is_multiple_of(16) {
                    bend_conversions(plan, dice);
                }
            }
            Bias::Permits => plan.draw_permits(dice),
            Bias::Shortened => {
                plan.profile = Profile::Calm;
                plan.hazards = Hazards::default();
                plan.faults.clear();
                options.lease = Duration::from_secs(2);
                (habits.lease, habits.breaks) = (100, 0);
                habits.max_hold = 360;
                habits.reenter = 400;
                habits.hold = 300 * MS;
                plan.explicit = 0;
                plan.polling.fill(false);
            }
            Bias::Crowd => bend_crowd(plan, dice),
            Bias::Far => {
                plan.profile = Profile::Server;
                options.claim = Duration::from_millis(dice.between(100, 200));
                options.lease = Duration::from_secs(3);
                options.request_timeout = Duration::from_secs(1);
                *hazards = Hazards::default();
                habits.lease = 0;
                habits.nap = 0;
                let claim = options.claim.as_nanos() as u64;
                plan.latency = (claim * 6 / 10, claim * 11 / 10);
                plan.faults.clear();
            }
            Bias::Suspensions => {
                if matches!(plan.profile, Profile::Calm | Profile::Pushes) {
                    plan.profile = Profile::Clients;
                }
                let lease = plan.options.lease.as_nanos() as u64;
                for _ in 0..dice.between(1, 3) {
                    let at = dice.between(10 * MS, plan.quiet_at - 1);
                    let by = dice.between(MS, 3 * lease);
                    plan.faults.push((at, Fault::Suspend { by }));
                }
                plan.faults.sort_by_key(|(at, _)| *at);
            }
        }
    }
}

impl Plan {
    /// Some read, others write.
    pub(crate) fn draw_readers(&mut self, dice: &mut Dice) {
        self.habits.read = dice.pick(&[300, 600, 600, 850]);
        self.habits.breaks = dice.pick(&[0, 0, 10]);
        self.habits.convert = dice.pick(&[0, 100, 300]);
    }

    /// Names are semaphores.
    pub(crate) fn draw_permits(&mut self, dice: &mut Dice) {
        self.permits = (0..self.locks).map(|_| dice.pick(&[1, 2, 3, 3, 5])).collect();
        self.habits.odd = dice.pick(&[0, 0, 20, 100]);
        self.habits.breaks = dice.pick(&[0, 0, 10]);
        self.habits.resize = dice.pick(&[0, 0, 20, 100]);
        self.habits.adopt = dice.pick(&[0, 0, 100, 500]);
        self.explicit = 0;
    }
}

/// Several on few names, with the troubles that other plans are bent towards.
fn bend_shared(plan: &mut Plan, dice: &mut Dice) {
    if dice.chance(3) {
        bend_crowd(plan, dice);
    } else if dice.chance(400) {
        dice.pick(&BESIDES).bend(plan, dice);
    }
    let few = Edits { locks: Some(2), ..Edits::default() };
    few.apply(plan);
    if plan.clients == 1 && dice.chance(800) {
        plan.clients = dice.between(2, 4) as usize;
        plan.client_ppm.resize(plan.clients, 0);
        plan.polling.resize(plan.clients, false);
    }
}

fn bend_take_overs(plan: &mut Plan, dice: &mut Dice) {
    plan.profile = Profile::Server;
    let options = &mut plan.options;
    // Leases and claims are ten times it at least.
    options.clock_slack = options.lease.min(options.claim) / 10;
    let habits = &mut plan.habits;
    (habits.lease, habits.breaks) = (400, 0);
    habits.nap = habits.nap.max(100);
    let slack = options.clock_slack.as_nanos() as u64;
    plan.faults.clear();
    for _ in 0..dice.between(1, 5) {
        let at = dice.between(10 * MS, plan.quiet_at - 1);
        let ahead = dice.between(0, slack);
        plan.faults.push((at, Fault::TakeOver { ahead, span: dice.between(MS, 200 * MS) }));
    }
    plan.faults.sort_by_key(|(at, _)| *at);
}

fn bend_confirmed(plan: &mut Plan, dice: &mut Dice) {
    if plan.seed.is_multiple_of(2) {
        plan.draw_readers(dice);
    }
    bend_take_overs(plan, dice);
    plan.confirm(dice.pick(&[0, 50, 300]));
    let (slack, lease) = (plan.options.clock_slack, plan.options.lease);
    plan.faults.clear();
    // Without any, nothing excuses what is left behind.
    for _ in 0..dice.between(0, 4) {
        let at = dice.between(10 * MS, plan.quiet_at - 1);
        let lag = dice.between(0, 2 * lease.as_nanos() as u64);
        let skew = dice.between(0, slack.as_micros() as u64) as i64;
        plan.faults.push((at, Fault::Failover { lag, skew, span: dice.between(MS, 200 * MS) }));
    }
    plan.faults.sort_by_key(|(at, _)| *at);
}

/// Long holds are converted to and fro, by requests of which many arrive late.
fn bend_conversions(plan: &mut Plan, dice: &mut Dice) {
    plan.profile = Profile::Network;
    let few = Edits { clients: Some(3), actors: Some(2), locks: Some(1), ..Edits::default() };
    few.apply(plan);
    plan.explicit = 0;
    let options = &mut plan.options;
    options.claim = Duration::from_millis(500);
    options.lease = Duration::from_secs(2);
    options.retention = Options::default().retention;
    options.request_timeout = Duration::from_millis(dice.between(150, 350));
    plan.hazards = Hazards { lose_request: 100, lose_reply: 50, stray: 900, ..Hazards::default() };
    plan.latency.1 = plan.latency.0 + MS / 2;
    let habits = &mut plan.habits;
    (habits.read, habits.convert, habits.cancel) = (600, 800, 100);
    (habits.lease, habits.max_hold, habits.nap, habits.breaks) = (0, 0, 0, 0);
    (habits.reenter, habits.extend, habits.branch, habits.forget) = (0, 0, 0, 0);
    (habits.hold, habits.rest) = (3 * SEC, 5 * MS);
    plan.quiet_at = 8 * SEC;
    plan.faults.clear();
}

fn bend_rests(plan: &mut Plan, dice: &mut Dice) {
    plan.profile = Profile::Clock;
    plan.hazards = Hazards::default();
    (plan.clients, plan.actors, plan.locks, plan.explicit) = (2, 1, 1, 0);
    plan.client_ppm.resize(plan.clients, 0);
    plan.polling = vec![false; plan.clients];
    plan.options.claim = Duration::from_millis(100);
    plan.options.lease = Duration::from_secs(1);
    plan.options.retention = Duration::from_millis(dice.between(200, 1_000));
    let habits = &mut plan.habits;
    (habits.lease, habits.nap, habits.breaks) = (300, 60, 0);
    habits.hold = dice.pick(&[10 * MS, 400 * MS]);
    habits.rest = 2 * SEC;
    plan.quiet_at = 6 * SEC;
    plan.faults.clear();
    for _ in 0..dice.between(1, 4) {
        let micros = -(dice.between(10_000, 3_000_000) as i64);
        let at = dice.between(10 * MS, plan.quiet_at - 1);
        plan.faults.push((at, Fault::ClockStep { micros }));
    }
    if dice.chance(500) {
        let (slot, at) = (dice.below(2) as usize, dice.between(10 * MS, plan.quiet_at - 1));
        let span = dice.between(MS, 2 * SEC);
        let fault = match dice.chance(500) {
            true => Fault::Crash { slot, span },
            false => Fault::Pause { slot, span },
        };
        plan.faults.push((at, fault.within(plan.quiet_at - at)));
    }
    plan.faults.sort_by_key(|(at, _)| *at);
}

fn bend_crowd(plan: &mut Plan, dice: &mut Dice) {
    // The modelled scripts are slower by far.
    let clients = if plan.store == StoreKind::Redis { 40 } else { 200 };
    let few = Edits { actors: Some(1), locks: Some(1), ..Edits::default() };
    few.apply(plan);
    plan.profile = Profile::Server;
    plan.clients = clients;
    plan.client_ppm.resize(clients, 0);
    plan.polling = vec![false; clients];
    plan.explicit = 0;
    plan.hazards = Hazards::default();
    plan.latency.1 = plan.latency.0 + MS / 2;
    let options = &mut plan.options;
    options.claim = Duration::from_millis(500);
    options.lease = Duration::from_secs(4);
    options.request_timeout = Duration::from_millis(dice.between(80, 300));
    let timeout = options.request_timeout.as_nanos() as u64;
    // One request of each takes a part of a timeout; one new connection of each more than all of it.
    let request = timeout / dice.between(5, 20) / clients as u64;
    plan.cost = Some(Cost { request, each: request / 50, greeting: 30 * request });
    let habits = &mut plan.habits;
    (habits.lease, habits.max_hold, habits.nap, habits.breaks) = (0, 0, 0, 0);
    habits.cancel = dice.pick(&[0, 20]);
    habits.rest = dice.pick(&[MS, 80 * MS, SEC]);
    habits.hold = if dice.chance(300) { 2 * SEC } else { dice.pick(&[MS / 5, 2 * MS]) };
    plan.quiet_at = 3 * SEC;
    plan.faults.clear();
    let at = dice.between(200 * MS, SEC);
    let span = dice.between(2 * timeout, 8 * timeout).min(2 * SEC);
    plan.faults.push((
        at,
        match dice.chance(500) {
            true => Fault::ServerPause { span },
            false => Fault::Overload { factor: dice.between(10, 60), span },
        },
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::StoreKind;

    #[test]
    fn the_other_plans_are_as_they_were_drawn() {
        let mut bent = [0; 13];
        for seed in 1..=2_400 {
            let draw = |plan: fn(u64, StoreKind, &mut Dice) -> Plan, store| {
                format!("{:?}", plan(seed, store, &mut Dice::new(seed)))
            };
            let (bias, _) = Bias::of(seed);
            bent[bias as usize] += 1;
            let same = draw(Plan::plain, StoreKind::Record) == draw(Plan::draw, StoreKind::Record);
            assert_eq!(same, bias == Bias::None, "seed {seed}");
        }
        let [_, strays, rest @ .., crowd, far, 0, 0] = bent else { panic!("{bent:?}") };
        assert!((140..260).contains(&strays), "{bent:?}");
        assert!((4..30).contains(&crowd) && (12..50).contains(&far), "{bent:?}");
        assert!(rest.iter().all(|count| (60..150).contains(count)), "{bent:?}");
    }

    #[test]
    fn names_that_several_hold_have_seeds_of_their_own() {
        for bias in [Bias::Readers, Bias::Permits] {
            let first = bias.next(7);
            assert_eq!(bias.next(first), first);
            assert_eq!((bias.next(8), Bias::of(first).0), (first + 1, bias));
            let plan = Plan::draw(first, StoreKind::Record, &mut Dice::new(first));
            assert!(plan.shares() && (plan.habits.read > 0) == plan.permits.is_empty());
        }
        assert_eq!(Bias::named("readers"), Some(Bias::Readers));
        assert_eq!(Bias::named("permits"), Some(Bias::Permits));
    }
}
