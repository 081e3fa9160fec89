//! Small worlds explored to their end: the real engine and the reference store, every order of
//! events, with a connection that may be cut, a clock that may jump, a client that may vanish.

mod caller;
mod command;
mod cover;
mod drain;
mod scope;
mod state;
mod step;
mod wire;
mod wrong;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::exhaust::cover::Cover;
use crate::exhaust::step::{Action, Rules};

pub use command::command;
pub use scope::Scope;
pub use wrong::Wrong;

/// One scope, as the checker wants it.
struct World {
    scope: Scope,
    wrong: Option<Wrong>,
    cover: Arc<Cover>,
}

impl World {
    fn rules(&self) -> Rules<'_> {
        Rules { wrong: self.wrong, cover: &self.cover }
    }
}

/// The two properties: what must hold at every instant, and what must follow from each.
const ALWAYS: &str = "at every instant";
const FOLLOWS: &str = "from every instant";

impl Model for World {
    type State = state::State;
    type Action = Action;

    fn init_states(&self) -> Vec<state::State> {
        vec![state::State::new(&self.scope)]
    }

    fn actions(&self, state: &state::State, actions: &mut Vec<Action>) {
        state.actions(actions);
    }

    fn next_state(&self, state: &state::State, action: Action) -> Option<state::State> {
        // The checker has threads of its own.
        Wrong::plant(self.wrong);
        let mut next = state.clone();
        next.take(action, &self.rules());
        Some(next)
    }

    fn properties(&self) -> Vec<Property<World>> {
        vec![
            Property::always(ALWAYS, |_, state: &state::State| state.broken.is_none()),
            Property::always(FOLLOWS, |world: &World, state: &state::State| {
                Wrong::plant(world.wrong);
                let rules = Rules { wrong: world.wrong, cover: &Cover::new() };
                state.broken.is_some() || drain::drain(state, &rules).is_ok()
            }),
        ]
    }
}

/// What an exploration found.
#[derive(Debug)]
pub struct Explored {
    /// The scope's name.
    pub scope: &'static str,
    /// Different states.
    pub states: usize,
    /// Steps taken, also to states that were known already.
    pub steps: usize,
    /// The longest path.
    pub depth: usize,
    /// How long it took.
    pub spent: Duration,
    /// What is broken, and the shortest way there.
    pub broken: Option<(String, Vec<String>)>,
    /// How often each hard case was met.
    pub cover: BTreeMap<&'static str, u64>,
}

/// Explores a scope to its end, or to the first broken promise.
pub fn explore(scope: &Scope, wrong: Option<Wrong>, threads: usize) -> Explored {
    let begun = Instant::now();
    let cover = Arc::new(Cover::new());
    let world = World { scope: scope.clone(), wrong, cover: cover.clone() };
    let checker = world
        .checker()
        .threads(threads)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_dfs()
        .join();
    let found = checker.discoveries().into_values().next();
    let broken = found.map(|path| {
        let mut best = path.into_actions();
        while let Some(shorter) = shorter(scope, wrong, best.len()) {
            best = shorter;
        }
        tell(scope, wrong, &best)
    });
    Explored {
        scope: scope.name,
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        depth: checker.max_depth(),
        spent: begun.elapsed(),
        broken,
        cover: cover.rows().into_iter().collect(),
    }
}

/// A way of fewer than `length` steps to something broken.
fn shorter(scope: &Scope, wrong: Option<Wrong>, length: usize) -> Option<Vec<Action>> {
    let world = World { scope: scope.clone(), wrong, cover: Arc::new(Cover::new()) };
    let checker = world
        .checker()
        .target_max_depth(length + 1)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let paths = checker.discoveries().into_values().map(|path| path.into_actions());
    paths.min_by_key(Vec::len).filter(|path| path.len() < length)
}

/// Walks a path again, and tells what happens.
fn tell(scope: &Scope, wrong: Option<Wrong>, path: &[Action]) -> (String, Vec<String>) {
    Wrong::plant(wrong);
    let cover = Cover::new();
    let rules = Rules { wrong, cover: &cover };
    let mut state = state::State::new(scope);
    let mut lines = Vec::new();
    for action in path {
        state.take(*action, &rules);
        lines.push(format!("{action:?}"));
    }
    let broken = state.broken.map_or_else(|| drain::drain(&state, &rules), Err);
    Wrong::plant(None);
    let what = broken.err().unwrap_or("nothing: the path is not replayable");
    (what.to_owned(), lines)
}
