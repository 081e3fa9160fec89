//! Folders of servers, and what earlier runs left of them.

use std::fs;
use std::io;
use std::sync::Once;

use tempfile::TempDir;

use crate::children;

const PREFIX: &str = "fencelock-test-";

/// A fresh folder, which carries this process's id in its name.
///
/// A server in a static is never dropped, and neither is its folder: so the first call sweeps away
/// the folders of processes that are gone.
pub(crate) fn fresh() -> io::Result<TempDir> {
    static SWEPT: Once = Once::new();
    SWEPT.call_once(sweep);
    tempfile::Builder::new().prefix(&format!("{PREFIX}{}-", std::process::id())).tempdir()
}

pub(crate) fn sweep() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'))
            .and_then(|(pid, _)| pid.parse().ok());
        if owner.is_some_and(|pid| !children::exists(pid)) {
            // Another process may be sweeping, too.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
