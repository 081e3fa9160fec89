//! What happens to the servers in a run.

use crate::dice::Dice;

/// What happens to the servers in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scene {
    /// Nothing.
    Calm,
    /// A master hands over to its replica, as an operator asks it to.
    Planned,
    /// A master dies, and its replica has everything.
    Killed,
    /// A master dies, and its replica lacks the last writes.
    Lags,
    /// A master is cut off from the others, and goes on serving whoever reaches it.
    TwoMasters,
    /// A master dies, and its replica's clock is ahead by more than the slack.
    ClockAhead,
    /// A slot moves, key by key; also to a server that has none.
    Moves,
    /// That is broken off in the middle, and called off.
    BrokenOff,
    /// A slot has moved, and its new server dies before its replica has heard of it.
    MovedAndLost,
    /// A master is started again without its data.
    Empty,
    /// A server stands still for longer than a request may take, and nobody takes over.
    Silent,
    /// A server stands still, and comes back when its replica has taken over.
    SilentReplaced,
    /// Servers forget their scripts.
    Scripts,
    /// Any of these that lose nothing, one after the other.
    Any,
}

impl Scene {
    /// All that a table has a row for, in its order.
    pub const ROWS: [Scene; 12] = [
        Scene::Calm,
        Scene::Planned,
        Scene::Killed,
        Scene::SilentReplaced,
        Scene::Silent,
        Scene::Lags,
        Scene::TwoMasters,
        Scene::ClockAhead,
        Scene::Moves,
        Scene::BrokenOff,
        Scene::MovedAndLost,
        Scene::Empty,
    ];

    /// The one of a seed that is not about any in particular.
    pub fn of(seed: u64) -> Scene {
        let all = [&Scene::ROWS[..], &[Scene::Scripts, Scene::Any, Scene::Any]].concat();
        all[(seed % all.len() as u64) as usize]
    }

    /// By its name.
    pub fn named(name: &str) -> Option<Scene> {
        let more = [Scene::Scripts, Scene::Any];
        Scene::ROWS.into_iter().chain(more).find(|scene| format!("{scene:?}") == name)
    }

    /// What happens next.
    pub(super) fn next(self, dice: &mut Dice) -> Scene {
        match self {
            Scene::Any => dice.pick(&[
                Scene::Planned,
                Scene::Killed,
                Scene::Moves,
                Scene::Silent,
                Scene::SilentReplaced,
                Scene::Scripts,
            ]),
            scene => scene,
        }
    }

    /// Whether slots move in it: then all clocks are within the slack of each other.
    pub(super) fn moves(self) -> bool {
        matches!(self, Scene::Moves | Scene::BrokenOff | Scene::MovedAndLost | Scene::Any)
    }

    /// What happens, as the table has it.
    pub fn title(self) -> &'static str {
        match self {
            Scene::Calm => "nothing but contention",
            Scene::Planned => "`CLUSTER FAILOVER`",
            Scene::Killed => "a master dies, its replica has everything",
            Scene::Lags => "a master dies, its replica lags",
            Scene::TwoMasters => "two masters: one is cut off, and writes on",
            Scene::ClockAhead => "a master dies, its replica's clock is ahead beyond `clock_slack`",
            Scene::Moves => "a slot moves",
            Scene::BrokenOff => "a slot's move is broken off",
            Scene::MovedAndLost => "a slot has moved, its new master dies before its replica knows",
            Scene::Empty => "a master restarts empty",
            Scene::Silent => "a master stands still, and nobody takes over",
            Scene::SilentReplaced => "a master stands still until its replica has taken over",
            Scene::Scripts => "scripts are flushed",
            Scene::Any => "any of these that lose nothing",
        }
    }
}
