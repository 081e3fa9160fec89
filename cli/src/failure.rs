//! Why a command could not do what was asked.

use crate::exit;

/// One line for a person, and the exit code.
#[derive(Debug)]
pub struct Failure {
    /// What happened, and what to do.
    pub message: String,
    /// What to end with.
    pub code: u8,
}

impl Failure {
    /// Fencelock's own failure.
    pub fn own(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: exit::OWN }
    }

    /// A failure with a code of its own.
    pub fn with(code: u8, message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code }
    }
}

impl From<fencelock::Error> for Failure {
    fn from(error: fencelock::Error) -> Failure {
        Failure::own(error.message())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::own(error.to_string())
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Failure {
        Failure::own(format!("the demo's shop: {error}"))
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::own(format!("JSON: {error}"))
    }
}
