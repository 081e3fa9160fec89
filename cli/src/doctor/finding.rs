//! What doctor finds.

use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
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
#[derive(Clone, Debug, Serialize)]
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
    /// A finding that needs nothing done.
    pub fn new(
        severity: Severity,
        name: &'static str,
        value: impl Into<String>,
        meaning: impl Into<String>,
    ) -> Finding {
        Finding { name, value: value.into(), severity, meaning: meaning.into(), advice: None }
    }

    /// What to do about it.
    pub fn advise(mut self, advice: impl Into<String>) -> Finding {
        self.advice = Some(advice.into());
        self
    }
}
