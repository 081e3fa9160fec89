//! What an operator should know of a store: findings, what they mean for locks, what to do.

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// As it should be.
    Good,
    /// Worth knowing.
    Note,
    /// Locks work, but a promise is weaker than it could be.
    Warning,
    /// Locks do not work, or cannot be relied on.
    Problem,
}

/// One finding, what it means for locks, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about; fixed, in snake case.
    pub name: &'static str,
    /// What was found.
    pub value: String,
    /// How much it matters.
    pub severity: Severity,
    /// What it means for locks.
    pub meaning: String,
    /// What to do, when something is to be done.
    pub advice: Option<String>,
}

impl Finding {
    /// A finding, with its meaning and perhaps an advice.
    pub fn new(
        name: &'static str,
        value: impl Into<String>,
        severity: Severity,
        meaning: impl Into<String>,
        advice: Option<&str>,
    ) -> Finding {
        Finding {
            name,
            value: value.into(),
            severity,
            meaning: meaning.into(),
            advice: advice.map(str::to_owned),
        }
    }

    /// The worst of some findings; good when there are none.
    pub fn worst(findings: &[Finding]) -> Severity {
        findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Good)
    }
}
