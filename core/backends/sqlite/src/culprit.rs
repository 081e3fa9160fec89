//! Who is writing.

use std::path::Path;

/// The process that has the file's write lock, for a person. Linux tells it; a guess all the same,
/// for it may have gone on meanwhile.
pub(crate) fn name_writer(path: &Path) -> String {
    match writer(path) {
        Some(pid) => describe(pid),
        None => "a process that this system does not name; look for one that is stopped, or that \
                 keeps a transaction open"
            .to_owned(),
    }
}

#[cfg(target_os = "linux")]
fn writer(path: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    // In write-ahead logging the writer's lock is byte 120 of the -shm file.
    const WRITE_LOCK: u64 = 120;
    let mut shm = path.as_os_str().to_owned();
    shm.push("-shm");
    let inode = std::fs::metadata(Path::new(&shm)).ok()?.ino();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    // `1: POSIX  ADVISORY  WRITE 4711 fd:01:1234567 120 120`; a waiter has `->` after the number.
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, _, _, "WRITE", pid, file, start, end] = fields[..] else { return None };
        let same = file.rsplit(':').next()?.parse::<u64>().ok()? == inode;
        let covers = start.parse::<u64>().ok()? <= WRITE_LOCK
            && end.parse::<u64>().unwrap_or(u64::MAX) >= WRITE_LOCK;
        (same && covers).then(|| pid.parse().ok())?
    })
}

#[cfg(not(target_os = "linux"))]
fn writer(_path: &Path) -> Option<u32> {
    None
}

fn describe(pid: u32) -> String {
    let program = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let program = program.trim();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state is the letter after the program's name, which stands in parentheses.
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    let named = if program.is_empty() {
        format!("process {pid}")
    } else {
        format!("process {pid} ({program})")
    };
    match state {
        Some('T' | 't') => {
            format!("{named}, which is stopped; let it go on with 'kill -CONT {pid}', or end it")
        }
        _ => format!("{named}; if it does not finish by itself, end it"),
    }
}
