//! What can be seen of a SQLite file from outside.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::doctor::fact::{Fact, Severity};

/// The facts of the file.
pub fn facts(file: &Path) -> Vec<Fact> {
    let mut facts = vec![place(file)];
    facts.extend(access(file));
    facts.push(match inside(file) {
        Ok(fact) => fact,
        Err(error) => Fact::new(
            Severity::Problem,
            "file",
            error.to_string(),
            "the file could not be read as a database",
        )
        .advise("name another file, or move this one away while no process uses it"),
    });
    facts
}

/// On which kind of file system it lies: locks between machines do not work over a network share.
fn place(file: &Path) -> Fact {
    let directory = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let kind = rustix::fs::statfs(directory).map(|found| found.f_type as u64 & 0xffff_ffff);
    match kind {
        Ok(kind) => match NETWORKED.iter().find(|(number, _)| *number == kind) {
            Some((_, name)) => Fact::new(
                Severity::Problem,
                "filesystem",
                *name,
                "SQLite's write-ahead log needs shared memory, which a network share has not",
            )
            .advise("put the file on a local disk; for several machines use redis://HOST"),
            None => Fact::new(
                Severity::Good,
                "filesystem",
                "local",
                "processes of this machine may share it; other machines may not",
            ),
        },
        Err(error) => Fact::new(
            Severity::Note,
            "filesystem",
            error.to_string(),
            "the kind of file system is not known",
        ),
    }
}

/// Kinds of file systems, by the kernel's numbers, whose files may be on another machine.
const NETWORKED: [(u64, &str); 6] = [
    (0x6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x517b, "SMB"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "Ceph"),
];

/// Whether strangers may write to it.
fn access(file: &Path) -> Option<Fact> {
    let mode = file.metadata().ok()?.permissions().mode() & 0o777;
    let value = format!("mode {mode:03o}");
    Some(if mode & 0o002 == 0 {
        Fact::new(Severity::Good, "access", value, "not everybody may change the locks")
    } else {
        Fact::new(Severity::Warning, "access", value, "every user of this machine may break locks")
            .advise(format!("chmod o-w {}", file.display()))
    })
}

fn inside(file: &Path) -> Result<Fact, rusqlite::Error> {
    let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let journal: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    let sound: String = db.query_row("PRAGMA quick_check", [], |row| row.get(0))?;
    let version = rusqlite::version();
    Ok(if sound != "ok" {
        Fact::new(Severity::Problem, "file", sound, "the database is damaged")
            .advise("stop what uses it and remove it: every lock in it is then free")
    } else if journal != "wal" {
        let value = format!("SQLite {version}, journal {journal}");
        Fact::new(Severity::Warning, "file", value, "readers and the writer hold each other up")
            .advise("let no other program change its journal mode")
    } else {
        Fact::new(Severity::Good, "file", format!("SQLite {version}, journal {journal}"), "sound")
    })
}
