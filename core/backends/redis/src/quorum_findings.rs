//! What the findings about the servers of a quorum mean for locks.

use fencelock_engine::finding::{Finding, Severity};

use fencelock_engine::Error;
use fencelock_engine::redis::Node;

use crate::options::{Address, Options};
use crate::quorum_status::{QuorumStatus, Standing, Voter, quorum_status};
use crate::survey::survey;

/// By how much clocks may differ before it is worth a word, in microseconds. No lease is counted by two clocks; but
/// one that jumps ends a vote.
const APART: u64 = 1_000_000;

/// What one server's survey says that means something else of a quorum's, or is said of all at once.
const OTHERWISE: [&str; 5] = ["role", "persistence", "replicas", "clock", "round_trip"];

/// What a store's servers are like, with what it means and what to do: of a quorum's, all of them.
///
/// # Errors
/// When an option is wrong, or a server that is alone cannot be asked.
pub async fn findings(options: Options) -> Result<Vec<Finding>, Error> {
    options.check()?;
    let Address::Quorum(quorum) = options.address.clone() else {
        return Ok(survey(options).await?.findings());
    };
    let status = quorum_status(options.clone()).await?;
    let mut all = status.findings();
    let mut each: Vec<(Node, Finding)> = Vec::new();
    for (node, said) in &status.servers {
        if said.is_err() {
            continue;
        }
        let one = options.of_server(quorum.reached(node), quorum.tls);
        match survey(one).await {
            Ok(survey) => each.extend(survey.findings().into_iter().map(|it| (node.clone(), it))),
            Err(error) => all.push(Finding::new(
                "server",
                format!("{node}: {}", error.message()),
                Severity::Problem,
                "this server of the quorum could not be examined",
                None,
            )),
        }
    }
    all.extend(worst(each));
    Ok(all)
}

/// Of what several servers say, the worst of each kind, with the servers that it is of.
fn worst(each: Vec<(Node, Finding)>) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for (node, finding) in each.iter().filter(|(_, it)| !OTHERWISE.contains(&it.name)) {
        if all.iter().any(|known| known.name == finding.name) {
            continue;
        }
        let alike = |(_, it): &&(Node, Finding)| it.name == finding.name;
        let same = each.iter().filter(alike).all(|(_, it)| it.value == finding.value);
        if same {
            all.push(finding.clone());
            continue;
        }
        let (at, gravest) = each
            .iter()
            .filter(alike)
            .max_by_key(|(_, it)| it.severity)
            .map_or((node, finding), |(node, it)| (node, it));
        let value = format!("{at}: {}", gravest.value);
        all.push(Finding { value, ..gravest.clone() });
    }
    all
}

impl QuorumStatus {
    /// Everything, with what it means and what to do.
    pub fn findings(&self) -> Vec<Finding> {
        vec![voters(self), list(self), size(self), clocks(self)]
    }

    fn said(&self) -> impl Iterator<Item = (String, &Voter)> {
        self.servers.iter().filter_map(|(node, said)| Some((node.to_string(), said.as_ref().ok()?)))
    }
}

/// Whether enough of them give votes.
fn voters(status: &QuorumStatus) -> Finding {
    let (all, votes) = (status.servers.len(), status.voters());
    let mut value = format!("{votes} of {all} give votes");
    for (node, said) in &status.servers {
        match said {
            Ok(voter) if voter.standing == Standing::Votes => {}
            Ok(voter) => value.push_str(&format!("; {node} {}", voter.standing)),
            Err(why) => value.push_str(&format!("; {node}: {why}")),
        }
    }
    if votes < status.majority {
        return Finding::new(
            "quorum",
            value,
            Severity::Problem,
            format!("a lock takes the votes of {}: nobody gets one now", status.majority),
            Some(
                "bring back the servers that are away; those that wait give votes by themselves; \
                 if all are new, run 'fencelock quorum init'",
            ),
        );
    }
    if votes < all {
        return Finding::new(
            "quorum",
            value,
            Severity::Warning,
            format!("locks work; with fewer than {} votes nobody would get one", status.majority),
            Some("bring back what is away, one server for each max_lease"),
        );
    }
    Finding::new(
        "quorum",
        value,
        Severity::Good,
        format!("locks work as long as {} of them do", status.majority),
        None,
    )
}

/// Whether all are of one quorum.
fn list(status: &QuorumStatus) -> Finding {
    let other = |(node, voter): (String, &Voter)| {
        let list = voter.fingerprint.clone().filter(|list| *list != status.fingerprint)?;
        Some(format!("{node} has {list}"))
    };
    let others: Vec<String> = status.said().filter_map(other).collect();
    let value = format!("{}, max_lease {:?}", status.fingerprint, status.max_lease);
    if others.is_empty() {
        let meaning = "the servers give votes to clients of this list and this max_lease alone";
        return Finding::new("fingerprint", value, Severity::Good, meaning, None);
    }
    Finding::new(
        "fingerprint",
        format!("{value}; {}", others.join(", ")),
        Severity::Problem,
        "servers belong to another list of servers, or another max_lease, and give no votes to clients of \
         this one",
        Some(
            "write the same list and max_lease in every client's URL; after a change, with all \
             clients stopped for max_lease, run 'fencelock quorum init'",
        ),
    )
}

/// How many of them may fail.
fn size(status: &QuorumStatus) -> Finding {
    let all = status.servers.len();
    let value = format!("{all} servers, {} may be down", all - status.majority);
    if all.is_multiple_of(2) {
        return Finding::new(
            "servers",
            value,
            Severity::Note,
            format!("no more than of {} servers, and one more is asked for every lock", all - 1),
            Some("use an odd number: 3 or 5"),
        );
    }
    Finding::new("servers", value, Severity::Good, "an odd number forgives the most", None)
}

/// Whether a server has another time.
fn clocks(status: &QuorumStatus) -> Finding {
    let ahead = || status.said().map(|(_, voter)| voter.clock_ahead);
    let apart = ahead().max().unwrap_or(0).abs_diff(ahead().min().unwrap_or(0));
    let value = format!("at most {} ms apart", apart.div_ceil(1_000));
    if apart > APART {
        return Finding::new(
            "clocks",
            value,
            Severity::Warning,
            "leases count by each server's own clock, so that it does no harm by itself; but one that \
             is put right with a step ends votes early, or tokens go back if a server forgets besides",
            Some("let NTP run on all, and slew rather than step"),
        );
    }
    Finding::new("clocks", value, Severity::Good, "the servers' clocks agree", None)
}
