//! What a store's servers say of themselves.

use crate::doctor::finding::{Finding, Severity};

/// Their findings; none of a store that has no servers.
pub async fn findings(url: &str) -> Result<Vec<Finding>, fencelock::Error> {
    Ok(fencelock::survey(url).await?.into_iter().map(Finding::from).collect())
}

impl From<fencelock::Finding> for Finding {
    fn from(finding: fencelock::Finding) -> Finding {
        Finding {
            name: finding.name,
            value: finding.value,
            severity: match finding.severity {
                fencelock::Severity::Good => Severity::Good,
                fencelock::Severity::Note => Severity::Note,
                fencelock::Severity::Warning => Severity::Warning,
                fencelock::Severity::Problem => Severity::Problem,
            },
            meaning: finding.meaning,
            advice: finding.advice,
        }
    }
}
