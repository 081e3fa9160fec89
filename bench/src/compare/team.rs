//! The processes of one entrant, which do the same at the same time.

use std::time::Duration;

use fencelock_testkit::Driver;

use crate::Result;
use crate::compare::peers::Entrant;

/// The processes of one entrant.
pub struct Team {
    /// Whose.
    pub entrant: Entrant,
    members: Vec<Driver>,
}

/// What a team did in one turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turn {
    /// How many pairs.
    pub count: u64,
    /// A second.
    pub rate: f64,
    /// How long the pair in the middle took, where it is one caller's.
    pub median: Duration,
    /// The pairs of the caller who had fewest.
    pub least: u64,
    /// The pairs of the caller who had most.
    pub most: u64,
    /// The longest wait.
    pub longest: Duration,
}

impl Team {
    /// Starts so many processes of each entrant, all at once, since most of them take a while.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn start<'a>(
        entrants: impl Iterator<Item = &'a Entrant>,
        processes: usize,
        url: &str,
    ) -> Result<Vec<Team>> {
        let start = |entrant: &Entrant| {
            let members = (0..processes).map(|_| entrant.start(url)).collect::<Result<_>>()?;
            Ok(Team { entrant: entrant.clone(), members })
        };
        let teams: Vec<Team> = entrants.map(start).collect::<Result<_>>()?;
        for member in teams.iter().flat_map(|team| &team.members) {
            member.wait_for("ready");
        }
        Ok(teams)
    }

    /// A name for a lock that no other entrant uses.
    pub fn key(&self, of: &str) -> String {
        format!("{}-{}/{of}", self.entrant.language.to_lowercase(), self.entrant.library)
    }

    /// Its processes.
    pub fn members(&mut self) -> &mut [Driver] {
        &mut self.members
    }

    /// Lets all processes do `order`; `None` where the library cannot.
    ///
    /// # Errors
    /// When one answers something else.
    pub fn turn(&mut self, order: &str) -> Result<Option<Turn>> {
        for member in &mut self.members {
            member.tell(order);
        }
        let mut whole = Turn { least: u64::MAX, ..Turn::default() };
        let mut took = 0;
        for member in &self.members {
            let (0, said) = member.wait_for_any(["did", "cannot"]) else { return Ok(None) };
            let numbers: Vec<u64> =
                said.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
            let [count, nanos, more @ ..] = numbers.as_slice() else {
                return Err(format!("{order}: did {said}").into());
            };
            whole.count += count;
            took = took.max(*nanos);
            match more {
                [median] => whole.median = Duration::from_nanos(*median),
                [least, most, longest] => {
                    whole.least = whole.least.min(*least);
                    whole.most = whole.most.max(*most);
                    whole.longest = whole.longest.max(Duration::from_nanos(*longest));
                }
                _ => {}
            }
        }
        whole.rate = whole.count as f64 * 1e9 / took as f64;
        Ok(Some(whole))
    }
}
