use fencelock_engine::plant::Bug;

use super::*;

/// Everything that must have been met in the small scopes together, or they prove nothing.
const MUST_MEET: [&str; 15] = [
    "granted by push",
    "granted by poll",
    "handed over locally",
    "re-entered",
    "a holder was told of a loss",
    "granted after an abandoned hold",
    "cancelled while granted at the store",
    "cancelled while queued",
    "a request arrived after its connection had gone",
    "a request arrived too late",
    "a push overtook the reply before it",
    "a reply was lost",
    "a connection was given up",
    "a push reached nobody",
    "a holder was told that others wait",
];

#[test]
fn small_scopes_are_clean_to_their_end() {
    let mut met: BTreeMap<&str, u64> = BTreeMap::new();
    for scope in Scope::small() {
        let explored = explore(&scope, None, 1);
        assert_eq!(explored.broken, None, "in scope '{}'", scope.name);
        assert!(explored.states > 1_000, "scope '{}' is too small to mean much", scope.name);
        for (name, count) in explored.cover {
            *met.entry(name).or_default() += count;
        }
    }
    for name in MUST_MEET {
        assert!(met[name] > 0, "never met: {name}");
    }
}

#[test]
fn a_scope_is_explored_in_full_each_time() {
    let scope = Scope::small().swap_remove(3);
    let (one, two) = (explore(&scope, None, 1), explore(&scope, None, 2));
    assert_eq!((one.states, one.steps), (two.states, two.steps));
}

/// What those who hold together, or ask for more than they have, do wrong is found at once.
#[test]
fn wrong_readers_and_permits_are_found() {
    for (bug, scope) in [
        (Bug::WriterBesideReaders, "two readers and a writer"),
        (Bug::UpgradeQueues, "write inside"),
        (Bug::NestedReadQueues, "nested reads"),
        (Bug::PermitsOverdrawn, "two of three permits"),
    ] {
        let scope = Scope::small().into_iter().find(|it| it.name == scope).unwrap();
        let found = explore(&scope, Some(Wrong::Planted(bug)), 1).broken;
        assert!(found.is_some(), "{bug:?} is not found in scope '{}'", scope.name);
    }
}

/// A release that does not look whose hold it ends is found, and the way there is short.
#[test]
fn a_wrong_store_is_found() {
    for wrong in [Wrong::RepeatTokens, Wrong::KeepWaiters] {
        let found = Scope::small().into_iter().find_map(|scope| {
            let (what, path) = explore(&scope, Some(wrong), 1).broken?;
            assert!(path.len() < 15, "{what} after {path:?}");
            Some(what)
        });
        assert!(found.is_some(), "{wrong:?} is not found");
    }
}
