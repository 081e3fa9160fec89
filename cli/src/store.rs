//! Which store is meant.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::args::Common;
use crate::failure::Failure;

/// Where locks live when nobody said anything: a directory of the user's own, in a place that does
/// not depend on the environment. A cron job and a login shell of one user must mean the same
/// file, so `XDG_RUNTIME_DIR`, which only the shell has, is not asked.
fn own_directory() -> PathBuf {
    PathBuf::from(format!("/tmp/fencelock-{}", rustix::process::geteuid().as_raw()))
}

/// The URL of the store that the arguments, the environment or the default name.
pub fn url(common: &Common) -> Result<String, Failure> {
    match common.store.as_deref() {
        Some("") => Err(Failure::own(
            "the store's URL is empty; give one such as sqlite:/path/to/file or \
             redis://localhost, or unset FENCELOCK_STORE for this machine's own store",
        )),
        Some(url) => Ok(url.to_owned()),
        None => {
            let directory = own_directory();
            make_private(&directory)?;
            Ok(format!("sqlite:{}", directory.join("locks.sqlite").display()))
        }
    }
}

/// Makes the directory, or checks that nobody else can put a file into it.
fn make_private(directory: &Path) -> Result<(), Failure> {
    let place = directory.display();
    match DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => {
            return Err(Failure::own(format!(
                "cannot make {place} for this machine's own store ({error}); name a store with \
                 --store sqlite:/path/to/file"
            )));
        }
    }
    let found = std::fs::symlink_metadata(directory)?;
    let own = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
    if own && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(Failure::own(format!(
        "{place} is not a directory that only you can write to; remove it, or name a store with \
         --store sqlite:/path/to/file"
    )))
}

/// The URL without what may be secret, for messages.
pub fn shown(url: &str) -> Result<String, Failure> {
    Ok(fencelock::StoreUrl::parse(url)?.to_string())
}

/// The file of a SQLite store's URL.
pub fn file(url: &str) -> Option<PathBuf> {
    let rest = url.strip_prefix("sqlite:")?;
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let path = rest.split('?').next().unwrap_or_default();
    // Only these stand for others in such a path.
    let path = path.replace("%3F", "?").replace("%23", "#").replace("%25", "%");
    Some(PathBuf::from(path))
}

#[cfg(test)]
mod tests;
