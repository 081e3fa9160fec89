//! What the findings of a survey mean for locks.

use std::time::Duration;

use crate::survey::{Finding, Severity, Survey};
use crate::survey_server::{READ_ONLY, Word};

impl Survey {
    /// Everything, with what it means and what to do.
    pub fn findings(&self) -> Vec<Finding> {
        findings(self)
    }

    /// The worst of the findings.
    pub fn worst(&self) -> Severity {
        Finding::worst(&self.findings())
    }
}

fn findings(survey: &Survey) -> Vec<Finding> {
    let mut findings = vec![quorum(survey), ensemble(survey)];
    findings.extend(
        [version(survey), commands(survey), session(survey), acl(survey), chroot(survey)]
            .into_iter()
            .flatten(),
    );
    findings
}

/// Whether anything can be locked now, and whether all servers are there.
fn quorum(survey: &Survey) -> Finding {
    let states: Vec<String> = survey.servers.iter().map(ToString::to_string).collect();
    let states = states.join(", ");
    let read_only = |word: &Word| matches!(word, Word::Serves { role, .. } if role == READ_ONLY);
    if let Some(why) = &survey.refused {
        let value = if states.is_empty() { why.clone() } else { states };
        return if survey.servers.iter().any(|it| it.serves()) || survey.tls {
            Finding::new(
                "quorum",
                format!("{value}; {why}"),
                Severity::Problem,
                "no session could be had, so nobody can lock with these options",
                Some("see why above: the login, TLS, or the way to the servers"),
            )
        } else {
            Finding::new(
                "quorum",
                value,
                Severity::Problem,
                "no quorum: fewer than a majority of the servers reach each other, so nobody is \
                 granted a lock, and holders lose theirs when their sessions cannot be renewed",
                Some("start servers, or mend the network between them, until a majority is there"),
            )
        };
    }
    if survey.tls {
        return Finding::new(
            "quorum",
            "there is one",
            Severity::Good,
            "a session was given; over TLS the servers are not asked one by one",
            None,
        );
    }
    if survey.servers.iter().any(|it| read_only(&it.word)) {
        return Finding::new(
            "quorum",
            states,
            Severity::Warning,
            "a server is cut off from its ensemble and only reads: locks are not had there",
            Some("mend the network between the servers"),
        );
    }
    if let Some(down) = survey.servers.iter().find(|it| !it.serves()) {
        let advice = format!("start {}, or mend the way to it", down.address);
        return Finding::new(
            "quorum",
            states,
            Severity::Warning,
            "a majority is there, but not all servers are: fewer failures are left until nobody \
             can lock",
            Some(&advice),
        );
    }
    Finding::new("quorum", states, Severity::Good, "every server of the URL serves", None)
}

/// How many servers there are, and what that number buys.
fn ensemble(survey: &Survey) -> Finding {
    let named = survey.servers.len();
    let Some(voters) = survey.voters else {
        return Finding::new(
            "ensemble",
            "not told",
            Severity::Note,
            "how many servers vote was not to be seen",
            Some("run doctor when there is a quorum, with a login that may read /zookeeper/config"),
        );
    };
    let majority = voters / 2 + 1;
    let spare = voters - majority;
    let observers = match survey.observers {
        0 => String::new(),
        count => format!(", and {count} that observe"),
    };
    let value = format!("{voters} that vote{observers}");
    if voters == 1 {
        return Finding::new(
            "ensemble",
            "one server, alone",
            Severity::Warning,
            "when it is down nobody can lock, and when its disk is lost every lock is forgotten",
            Some("run three servers"),
        );
    }
    if voters.is_multiple_of(2) {
        let advice = format!("run {} servers, or {}", voters - 1, voters + 1);
        let meaning = format!(
            "an even number: {majority} of {voters} must agree, so {spare} may fail, no more than \
             of {}; each write waits for one server more, and a network that falls into two halves \
             leaves no quorum on either side",
            voters - 1
        );
        return Finding::new("ensemble", value, Severity::Warning, meaning, Some(&advice));
    }
    if !survey.tls && named < voters {
        return Finding::new(
            "ensemble",
            format!("{value}; the URL names {named}"),
            Severity::Warning,
            "a client can only turn to the servers that its URL names when one of them fails",
            Some("name all of them in the URL"),
        );
    }
    let meaning = format!("{majority} must agree, and {spare} may fail");
    Finding::new("ensemble", value, Severity::Good, meaning, None)
}

fn version(survey: &Survey) -> Option<Finding> {
    let mut versions: Vec<&str> = survey
        .servers
        .iter()
        .filter_map(|it| match &it.word {
            Word::Serves { version, .. } if !version.is_empty() => Some(version.as_str()),
            _ => None,
        })
        .collect();
    versions.sort_unstable();
    versions.dedup();
    let oldest = versions.iter().filter_map(|it| Some((number(it)?, *it))).min()?.1;
    let value = versions.join(", ");
    Some(if number(oldest) < Some((3, 5, 3)) {
        Finding::new(
            "server",
            format!("ZooKeeper {value}"),
            Severity::Problem,
            "before 3.5.3 there are no container nodes, which locks are kept under",
            Some("update the servers to 3.6 or later"),
        )
    } else if versions.len() > 1 {
        Finding::new(
            "server",
            format!("ZooKeeper {value}"),
            Severity::Note,
            "the servers have different versions",
            Some("finish the update"),
        )
    } else {
        let meaning = "the servers that keep the locks";
        Finding::new("server", format!("ZooKeeper {value}"), Severity::Good, meaning, None)
    })
}

/// Major, minor and patch.
fn number(version: &str) -> Option<(u32, u32, u32)> {
    // The last part may go on, as in `3.5.3-beta`.
    let mut parts = version.split(['.', '-']).map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?))
}

/// Whether the servers tell what they are.
fn commands(survey: &Survey) -> Option<Finding> {
    let silent = survey.servers.iter().filter(|it| it.word == Word::Untold).count();
    (silent > 0).then(|| {
        Finding::new(
            "commands",
            format!("{silent} of {} do not answer srvr", survey.servers.len()),
            Severity::Note,
            "their roles and versions were not checked; whether they serve was seen by asking for \
             a session",
            Some("a proxy in between may keep the command away: name the servers themselves"),
        )
    })
}

/// Whether the session that is the lease comes out as wanted.
fn session(survey: &Survey) -> Option<Finding> {
    let wanted = survey.wanted;
    let granted = survey
        .granted
        .or_else(|| survey.bounds.map(|(shortest, longest)| wanted.clamp(shortest, longest)))?;
    let bounds = match survey.bounds {
        Some((shortest, longest)) => {
            format!(" (the servers give {} to {})", span(shortest), span(longest))
        }
        None => String::new(),
    };
    let value = format!("{}{bounds}", span(granted));
    Some(if granted < wanted {
        Finding::new(
            "session",
            value,
            Severity::Warning,
            format!(
                "a lease of {} is wanted, but a session may not be silent for longer than that: \
                 a shorter outage than expected loses the locks",
                span(wanted)
            ),
            Some("raise maxSessionTimeout on the servers, or ask for that lease (lease=…)"),
        )
    } else if granted > wanted {
        Finding::new(
            "session",
            value,
            Severity::Warning,
            format!(
                "a lease of {} is wanted, but when a holder dies the others wait longer",
                span(wanted)
            ),
            Some(
                "lower tickTime or minSessionTimeout on the servers, or ask for that lease (lease=…)",
            ),
        )
    } else {
        Finding::new(
            "session",
            value,
            Severity::Good,
            "the session is the lease: when a holder dies, the others wait so long",
            None,
        )
    })
}

/// Who may break locks.
fn acl(survey: &Survey) -> Option<Finding> {
    if survey.refused.is_some() {
        return None;
    }
    let (Some(acl), Some(open)) = (&survey.acl, survey.open) else {
        return Some(Finding::new(
            "acl",
            "not told",
            Severity::Note,
            "this login may not read the ACL of the place where locks are kept",
            Some("run doctor with a login that may"),
        ));
    };
    let value = acl.join(", ");
    Some(match (open, survey.own_nodes) {
        (false, true) => Finding::new(
            "acl",
            value,
            Severity::Good,
            "only those with a login may change locks",
            None,
        ),
        (false, false) => Finding::new(
            "acl",
            value,
            Severity::Note,
            "not everybody may make locks here, but the nodes of a lock can be changed by everybody",
            Some(
                "acl=creator in the URL, with a login, makes nodes that only this login may change",
            ),
        ),
        (true, true) => Finding::new(
            "acl",
            value,
            Severity::Note,
            "everybody who reaches the servers may delete nodes here, locks' containers included; \
             the nodes of our own locks only this login may change",
            Some("give the chroot an ACL of its own (docs/zookeeper.md)"),
        ),
        (true, false) => Finding::new(
            "acl",
            value,
            Severity::Warning,
            "everybody who reaches the servers may break locks",
            Some(
                "use a login and acl=creator in the URL, and an ACL on the chroot (docs/zookeeper.md)",
            ),
        ),
    })
}

fn chroot(survey: &Survey) -> Option<Finding> {
    (survey.chroot == Some(false)).then(|| {
        Finding::new(
            "chroot",
            "not there yet",
            Severity::Note,
            "the first lock makes it",
            Some("make it beforehand where it is to have an ACL of its own"),
        )
    })
}

fn span(span: Duration) -> String {
    match (span.as_secs(), span.subsec_millis()) {
        (0, millis) => format!("{millis} ms"),
        (secs, 0) => format!("{secs} s"),
        _ => format!("{:.1} s", span.as_secs_f64()),
    }
}
