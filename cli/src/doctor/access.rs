//! Who may read and write the file of a SQLite store.

use std::fs::{Metadata, metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::doctor::finding::{Finding, Severity};

/// Whoever may write the file may break its locks; whoever may write its directory, too.
pub fn finding(file: &Path) -> Option<Finding> {
    let found = metadata(file).ok()?;
    let directory = directory(file);
    let place = metadata(directory).ok()?;
    let value = who(&found);
    let warn = |meaning: &str, advice: String| {
        Finding::new(Severity::Warning, "access", &*value, meaning).advise(advice)
    };
    let (shown, around) = (file.display(), directory.display());
    Some(if found.mode() & 0o002 != 0 {
        warn("every user of this machine may break locks", format!("chmod o-w {shown}"))
    } else if place.mode() & 0o1002 == 0o002 {
        let meaning = "every user of this machine may put another file in its place";
        warn(meaning, format!("chmod o-w {around}"))
    } else if let Some(other) = differing(file, &found) {
        let meaning = "SQLite keeps a part of the locks in a file with other permissions";
        warn(meaning, format!("chmod {:o} {}", found.mode() & 0o777, other.display()))
    } else if found.mode() & 0o020 != 0 && !is_for_group(&place, found.gid()) {
        let meaning = "what one user of the group makes beside it may shut the others out";
        let group = name(found.gid(), "/etc/group");
        warn(meaning, format!("chgrp {group} {around} && chmod g+rwxs {around}"))
    } else if found.mode() & 0o004 != 0 {
        let meaning = "every user of this machine may read the names of locks and holders";
        Finding::new(Severity::Note, "access", value, meaning)
            .advise(format!("chmod o-r {shown}, unless that is meant"))
    } else {
        Finding::new(Severity::Good, "access", value, "nobody else may see or change the locks")
    })
}

/// Where the file lies.
pub fn directory(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// As in `anna reads and writes, group shop reads, others nothing (mode 0640)`.
fn who(found: &Metadata) -> String {
    let may = |bits: u32| match bits & 6 {
        6 => "reads and writes",
        4 => "reads",
        2 => "writes",
        _ => "nothing",
    };
    let mode = found.mode() & 0o777;
    format!(
        "{} {}, group {} {}, others {} (mode {mode:04o})",
        name(found.uid(), "/etc/passwd"),
        may(mode >> 6),
        name(found.gid(), "/etc/group"),
        may(mode >> 3),
        may(mode),
    )
}

/// The name of a user or group in one of the system's own lists, otherwise the number.
fn name(id: u32, list: &str) -> String {
    let id = id.to_string();
    let list = std::fs::read_to_string(list).unwrap_or_default();
    let found = list.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    });
    found.unwrap_or(id)
}

/// Whether what is made in the directory belongs to the group, and each of it may make something.
fn is_for_group(place: &Metadata, group: u32) -> bool {
    place.gid() == group && place.mode() & 0o2030 == 0o2030
}

/// The log or the index beside the file, when others may use it than the file.
fn differing(file: &Path, found: &Metadata) -> Option<PathBuf> {
    ["-wal", "-shm"].into_iter().find_map(|end| {
        let mut beside = file.as_os_str().to_owned();
        beside.push(end);
        let beside = PathBuf::from(beside);
        let mode = metadata(&beside).ok()?.mode();
        ((mode ^ found.mode()) & 0o777 != 0).then_some(beside)
    })
}

#[cfg(test)]
mod tests;
