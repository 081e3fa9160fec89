//! What can go wrong with the file, and what to say about it.

use std::path::Path;
use std::time::Duration;

use fencelock_engine::reply::{Failure, Refusal, RefusalKind};
use fencelock_engine::{Error, ErrorKind};
use rusqlite::ErrorCode;

/// Why something was not done. It was rolled back.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Another connection is writing; with its likely process, for a person.
    Busy(String),
    /// SQLite's own word.
    Sql(rusqlite::Error),
    /// A commit failed half-way: it may or may not be in the file.
    Doubtful(rusqlite::Error),
    /// Only an operator can mend it.
    Misconfigured(String),
    /// The file is of another boot, or of another machine's, and a hold in it may live so long.
    OtherBoot(Duration),
    /// The file is not the one that was opened.
    Replaced,
    /// The client is closing.
    Closing,
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Fault {
        Fault::Sql(error)
    }
}

/// Whether another connection is in the way.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed
        )
    )
}

impl Fault {
    /// Whether the connection is worth keeping.
    pub(crate) fn breaks_connection(&self) -> bool {
        match self {
            Fault::Busy(_) | Fault::Misconfigured(_) | Fault::OtherBoot(_) | Fault::Closing => {
                false
            }
            Fault::Replaced | Fault::Doubtful(_) => true,
            Fault::Sql(error) => {
                !is_busy(error) && error.sqlite_error_code() != Some(ErrorCode::DiskFull)
            }
        }
    }

    /// Whether only an operator can mend it.
    pub(crate) fn is_misconfigured(&self) -> bool {
        match self {
            Fault::Misconfigured(_) => true,
            Fault::Sql(error) | Fault::Doubtful(error) => matches!(
                error.sqlite_error_code(),
                Some(
                    ErrorCode::NotADatabase
                        | ErrorCode::DatabaseCorrupt
                        | ErrorCode::ReadOnly
                        | ErrorCode::CannotOpen
                        | ErrorCode::PermissionDenied
                        | ErrorCode::AuthorizationForStatementDenied
                        | ErrorCode::SchemaChanged
                )
            ),
            Fault::Busy(_) | Fault::OtherBoot(_) | Fault::Replaced | Fault::Closing => false,
        }
    }

    /// For a person: what happened, and what to do.
    pub(crate) fn describe(&self, path: &Path) -> String {
        let file = path.display();
        match self {
            Fault::Busy(who) => format!("'{file}' is locked by another writer: {who}"),
            Fault::Misconfigured(message) => message.clone(),
            Fault::OtherBoot(left) => other_boot(path, *left),
            Fault::Replaced => format!(
                "'{file}' was deleted or replaced while it was in use, and the locks in it are gone; \
                 leave the file and its -wal and -shm alone while a process uses them"
            ),
            Fault::Closing => "the client is closing".to_owned(),
            Fault::Sql(error) | Fault::Doubtful(error) => match error.sqlite_error_code() {
                Some(ErrorCode::NotADatabase) => {
                    format!("'{file}' is not a SQLite database; give the path of another file")
                }
                Some(ErrorCode::DatabaseCorrupt) => format!(
                    "'{file}' is damaged ({error}); stop every process that uses it, move the file \
                     and its -wal and -shm aside, and start again with an empty one"
                ),
                Some(ErrorCode::ReadOnly) => format!(
                    "'{file}' cannot be written; make the file, its -wal and -shm, and its \
                     directory writable for this user"
                ),
                Some(ErrorCode::DiskFull) => {
                    format!("the disk of '{file}' is full; free some space on it")
                }
                Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                    cannot_open(path, error)
                }
                Some(ErrorCode::SystemIoFailure) => format!(
                    "'{file}' cannot be read or written ({error}); look whether its disk is full \
                     or failing"
                ),
                _ => format!("SQLite on '{file}': {error}"),
            },
        }
    }

    /// As the reply to a request that the fault kept from being executed.
    pub(crate) fn failure(&self, path: &Path) -> Failure {
        let kind = match self {
            Fault::Doubtful(_) => return Failure::Unknown,
            Fault::Closing => return Failure::NotSent,
            fault if fault.is_misconfigured() => RefusalKind::Misconfigured,
            _ => RefusalKind::Retry,
        };
        Failure::Refused(Refusal { kind, message: self.describe(path) })
    }

    /// As the reason why a store could not be opened.
    pub(crate) fn error(&self, path: &Path) -> Error {
        let kind = match self {
            Fault::Busy(_) | Fault::OtherBoot(_) | Fault::Replaced => ErrorKind::Unavailable,
            Fault::Closing => ErrorKind::Closed,
            // A full disk, or one that fails, also needs an operator before the store can be made.
            Fault::Misconfigured(_) | Fault::Sql(_) | Fault::Doubtful(_) => {
                ErrorKind::Misconfigured
            }
        };
        Error::new(kind, self.describe(path))
    }
}

/// A restart and a second machine look the same from here.
fn other_boot(path: &Path, left: Duration) -> String {
    let file = path.display();
    // Up, for it is an instant until which nothing can be done.
    let left = left.as_millis().div_ceil(1000);
    format!(
        "'{file}' was last used in another boot, and by the wall clock a hold in it may live for \
         {left} s more; if this machine was restarted, try again then, or end the holds now with \
         sqlite3 '{file}' 'UPDATE fencelock_holds SET deadline = 0'; if another machine or sandbox \
         uses the file, give each its own, or use a server"
    )
}

/// SQLite only says that it cannot; look for the reason.
fn cannot_open(path: &Path, error: &rusqlite::Error) -> String {
    let file = path.display();
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match std::fs::metadata(directory) {
        Err(_) => format!(
            "the directory '{}' does not exist or cannot be entered; create it, or give another \
             path",
            directory.display()
        ),
        Ok(found) if !found.is_dir() => {
            format!("'{}' is not a directory; give another path", directory.display())
        }
        Ok(_) if path.is_dir() => {
            format!("'{file}' is a directory; give the path of a file in it")
        }
        Ok(_) if path.is_symlink() && !path.exists() => {
            format!("'{file}' is a symbolic link to nothing; make the file that it names")
        }
        Ok(_) if path.exists() => {
            format!("'{file}' cannot be opened ({error}); make it readable and writable")
        }
        Ok(_) => format!(
            "'{file}' cannot be created ({error}); make the directory '{}' writable for this user",
            directory.display()
        ),
    }
}
