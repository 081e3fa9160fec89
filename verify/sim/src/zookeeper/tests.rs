//! The model by itself, and what a herd costs.

use crate::clock::MS;
use crate::dice::Dice;
use crate::plan::{Plan, Profile, StoreKind};
use crate::store::RecordStore;
use crate::trace::Trace;
use crate::world::World;
use crate::zookeeper::op::{Answer, Code, Failure, Mode, Op};
use crate::zookeeper::tree::{Effect, Tree};

const WAITERS: usize = 100;

/// How many watches fire at each release, with a hundred waiters.
fn events_per_release(simple: bool) -> f64 {
    let mut plan = (1..)
        .map(|seed| Plan::draw(seed, StoreKind::ZooKeeper, &mut Dice::new(seed)))
        .find(|plan| {
            let zk = plan.zk.as_ref();
            plan.profile == Profile::Calm
                && zk.is_some_and(|zk| {
                    zk.simple == simple
                        && zk.curators == 0
                        && zk.revoke == 0
                        && zk.near_end.is_none()
                })
        })
        .unwrap();
    plan.clients = WAITERS + 1;
    plan.actors = 1;
    plan.locks = 1;
    plan.explicit = 0;
    plan.client_ppm = vec![0; plan.clients];
    plan.polling = vec![false; plan.clients];
    // Everybody waits again as soon as it has let go.
    plan.habits.attempt = 0;
    plan.habits.bounded = 0;
    plan.habits.cancel = 0;
    plan.habits.lease = 0;
    plan.habits.max_hold = 0;
    plan.habits.reenter = 0;
    plan.habits.extend = 0;
    plan.habits.nap = 0;
    plan.habits.hold = 40 * MS;
    plan.habits.rest = 0;
    plan.quiet_at = 3_000 * MS;
    let store = Box::new(RecordStore::default());
    let (run, _) = World::play(
        plan,
        Dice::new(7),
        store,
        Trace::silent(),
        crate::chronicle::Chronicle::default(),
    );
    assert_eq!(run.violation, None);
    let (fired, passed) = run.watches;
    assert!(passed >= 20, "only {passed} releases");
    fired as f64 / passed as f64
}

#[test]
fn the_queue_wakes_one_and_the_simple_recipe_wakes_all() {
    let (queue, simple) = (events_per_release(false), events_per_release(true));
    println!(
        "watch events per release with {WAITERS} waiters: queue {queue:.1}, simple {simple:.1}"
    );
    // The next waiter, and what a holder watches of its own.
    assert!(queue < 4.0, "{queue}");
    assert!(simple > 60.0, "{simple}");
}

fn create(path: &str, mode: Mode) -> Op {
    Op::Create { path: path.to_owned(), data: Vec::new(), mode }
}

#[test]
fn past_the_last_number_the_committed_counter_stands_still() {
    let mut tree = Tree::default();
    tree.seed("/a", i32::MAX);
    let mut ahead = tree.clone();
    let mut made = Vec::new();
    for zxid in 1..=2 {
        // Each is committed before the next is decided.
        let effect = ahead.prepare(1, zxid, &create("/a/x-", Mode::EphemeralSequential));
        if let Ok(Answer::Created { path, .. }) = tree.apply(1, zxid, &effect) {
            made.push(path);
        }
        ahead = tree.clone();
    }
    // The same number again: without different names this would be refused.
    assert_eq!(made, ["/a/x-2147483647"]);
    let effect = ahead.prepare(1, 3, &create("/a/y-", Mode::EphemeralSequential));
    assert!(matches!(effect, Effect::Changes { .. }));
    // While that is outstanding, the leader counts on from the other end.
    let effect = ahead.prepare(1, 4, &create("/a/y-", Mode::EphemeralSequential));
    let Effect::Changes { changes, .. } = effect else { panic!("refused") };
    assert!(format!("{changes:?}").contains("/a/y--2147483648"), "{changes:?}");
}

#[test]
fn a_multi_is_done_whole_or_not_at_all() {
    let mut tree = Tree::default();
    let ops = vec![
        create("/a", Mode::Persistent),
        Op::Delete { path: "/missing".to_owned(), version: -1 },
    ];
    let effect = tree.prepare(1, 1, &Op::Multi(ops));
    assert_eq!(effect, Effect::Error(Failure { code: Code::NoNode, index: 1 }));
    assert!(tree.node("/a").is_none());
}
