//! What a process weighs.

use std::fs;

use crate::Result;

/// Bytes of a process that are in memory, and its threads.
///
/// # Errors
/// When the system does not say.
pub fn weight(pid: u32) -> Result<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let number = |key: &str| -> Result<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        let word = line.and_then(|line| line.split_whitespace().next());
        Ok(word.ok_or_else(|| format!("no {key} in /proc"))?.parse()?)
    };
    Ok((number("VmRSS:")? * 1024, number("Threads:")?))
}
