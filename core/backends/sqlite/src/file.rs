//! The file itself: who may use it, and whether it is still the same.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// One at a time, and none opens a file that another is just making: closing it there would drop
/// the locks that SQLite has on it meanwhile in this process.
static MAKING: Mutex<()> = Mutex::new(());

/// Makes the file unless it is there, with these permissions whatever the umask. SQLite gives its
/// `-wal` and `-shm` the same.
pub(crate) fn make(path: &Path, mode: u32) -> io::Result<()> {
    let _one = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::fs::Permissions;
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        let file = options.mode(0o600).open(path)?;
        file.set_permissions(Permissions::from_mode(mode))
    }
    #[cfg(not(unix))]
    {
        let _ = mode;
        options.open(path).map(drop)
    }
}

/// Tells a file from one that took its place.
#[cfg(unix)]
pub(crate) fn identify(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
pub(crate) fn identify(_path: &Path) -> Option<(u64, u64)> {
    None
}
