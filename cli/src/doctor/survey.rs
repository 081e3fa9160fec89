//! What a store's servers say of themselves.

use crate::doctor::fact::{Fact, Severity};

/// Their facts; none of a store that has no servers.
pub async fn facts(url: &str) -> Result<Vec<Fact>, fencelock::Error> {
    Ok(fencelock::survey(url).await?.into_iter().map(Fact::from).collect())
}

impl From<fencelock::Fact> for Fact {
    fn from(fact: fencelock::Fact) -> Fact {
        Fact {
            name: fact.name,
            value: fact.value,
            severity: match fact.severity {
                fencelock::Severity::Good => Severity::Good,
                fencelock::Severity::Note => Severity::Note,
                fencelock::Severity::Warning => Severity::Warning,
                fencelock::Severity::Problem => Severity::Problem,
            },
            meaning: fact.meaning,
            advice: fact.advice,
        }
    }
}
