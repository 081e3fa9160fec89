//! Why a connection could not be made, and whether waiting helps.

use crate::error::{Error, ErrorKind};
use crate::secret::Secrets;

/// Why a connection could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoSession {
    /// It may pass by itself.
    Later(String),
    /// Only an operator can mend it.
    Misconfigured(Error),
}

impl NoSession {
    /// What only an operator can mend, and how.
    pub fn misconfigured(message: impl Into<std::sync::Arc<str>>) -> NoSession {
        NoSession::Misconfigured(Error::new(ErrorKind::Misconfigured, message))
    }

    /// It as an error of whoever wanted a connection.
    pub fn into_error(self) -> Error {
        match self {
            NoSession::Later(reason) => Error::new(ErrorKind::Unavailable, reason),
            NoSession::Misconfigured(error) => error,
        }
    }
}

/// What an error line means that a server gave while the connection was being made. A server or proxy
/// that does not know AUTH may repeat the password: it is not shown.
pub(super) fn classify(step: &str, line: &str, secrets: &Secrets) -> NoSession {
    let code = line.split(' ').next().unwrap_or_default();
    let advice = match code {
        "NOAUTH" => {
            "the server wants a password: write it in the URL (redis://user:password@host), or \
             give credentials"
        }
        "WRONGPASS" => "the user or the password is wrong, or the user is switched off",
        "NOPERM" => {
            "the user lacks a permission: docs/redis.md lists the smallest ACL, and 'fencelock \
             doctor' names what is missing"
        }
        "DENIED" => "the server accepts local connections only: set a password there, or bind it",
        _ if line.contains("without any password configured") => {
            "a password is given, but the server has none for the default user: take it out of the \
             URL, or name the ACL user"
        }
        _ if line.contains("invalid password") => "the password is wrong",
        _ if step == "SELECT" => {
            "the database number does not exist there: use a number below the server's 'databases' \
             setting, and 0 on a cluster"
        }
        _ if line.contains("unknown command") => {
            "the server, or a proxy before it, does not know a command that locks need; Sentinels \
             are named as redis+sentinel://h1,h2,h3/master"
        }
        _ => return NoSession::Later(format!("{step}: {}", secrets.hide(line))),
    };
    let said = secrets.hide(line);
    NoSession::misconfigured(format!("Redis refused {step}: {advice} (it said: {said})"))
}
