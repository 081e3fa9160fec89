//! What a Redis server says of itself.

use fencelock::redis::{self, Options};

use crate::doctor::fact::{Fact, Severity};
use crate::store;

/// The server's facts.
pub async fn facts(url: &str) -> Result<Vec<Fact>, fencelock::Error> {
    let survey = redis::survey(Options::from_url(&store::bare(url))?).await?;
    Ok(survey.facts().into_iter().map(Fact::from).collect())
}

impl From<redis::Fact> for Fact {
    fn from(fact: redis::Fact) -> Fact {
        Fact {
            name: fact.name,
            value: fact.value,
            severity: match fact.severity {
                redis::Severity::Good => Severity::Good,
                redis::Severity::Note => Severity::Note,
                redis::Severity::Warning => Severity::Warning,
                redis::Severity::Problem => Severity::Problem,
            },
            meaning: fact.meaning,
            advice: fact.advice,
        }
    }
}
