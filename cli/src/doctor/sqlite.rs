//! What can be seen of a SQLite file from outside.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::doctor::access;
use crate::doctor::finding::{Finding, Severity};

/// The findings of the file.
pub fn findings(file: &Path) -> Vec<Finding> {
    let mut findings = vec![place(file)];
    findings.extend(access::finding(file));
    findings.push(match inside(file) {
        Ok(finding) => finding,
        Err(error) => Finding::new(
            Severity::Problem,
            "file",
            error.to_string(),
            "the file could not be read as a database",
        )
        .advise("name another file, or move this one away while no process uses it"),
    });
    findings
}

/// On which kind of file system it lies: locks between machines do not work over a network share.
fn place(file: &Path) -> Finding {
    let kind =
        rustix::fs::statfs(access::directory(file)).map(|found| found.f_type as u64 & 0xffff_ffff);
    match kind {
        Ok(kind) => match NETWORKED.iter().find(|(number, _)| *number == kind) {
            Some((_, name)) => Finding::new(
                Severity::Problem,
                "filesystem",
                *name,
                "SQLite's write-ahead log needs shared memory, which a network share has not",
            )
            .advise("put the file on a local disk; for several machines use redis://HOST"),
            None => Finding::new(
                Severity::Good,
                "filesystem",
                "local",
                "processes of this machine may share it; other machines may not",
            ),
        },
        Err(error) => Finding::new(
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

fn inside(file: &Path) -> Result<Finding, rusqlite::Error> {
    let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let journal: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    let sound: String = db.query_row("PRAGMA quick_check", [], |row| row.get(0))?;
    let version = rusqlite::version();
    Ok(if sound != "ok" {
        Finding::new(Severity::Problem, "file", sound, "the database is damaged")
            .advise("stop what uses it and remove it: every lock in it is then free")
    } else if journal != "wal" {
        let value = format!("SQLite {version}, journal {journal}");
        Finding::new(Severity::Warning, "file", value, "readers and the writer hold each other up")
            .advise("let no other program change its journal mode")
    } else {
        Finding::new(
            Severity::Good,
            "file",
            format!("SQLite {version}, journal {journal}"),
            "sound",
        )
    })
}
