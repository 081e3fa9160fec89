//! Where the figures come from.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// The machine and what runs on it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// How many of them.
    pub cpus: usize,
    /// The operating system's kernel.
    pub kernel: String,
    /// The servers and what ours is compared with, by name and version.
    pub versions: BTreeMap<String, String>,
    /// The compiler.
    pub rustc: String,
}

impl Machine {
    /// Looks.
    pub fn here<'a>(versions: impl IntoIterator<Item = (&'a str, String)>) -> Machine {
        let versions = versions.into_iter().map(|(name, it)| (name.to_owned(), it)).collect();
        let cpus = std::thread::available_parallelism().map_or(0, usize::from);
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = info
            .lines()
            .find(|line| line.starts_with("model name"))
            .and_then(|line| line.split_once(':'))
            .map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned());
        Machine { cpu, cpus, kernel: said("uname", "-sr"), versions, rustc: said("rustc", "-V") }
    }
}

/// The load of the last minute, as the kernel says; not a number where it does not.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(f64::NAN)
}

/// The first line that a program says when asked so.
pub fn said(program: &str, argument: &str) -> String {
    let output = Command::new(program).arg(argument).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().trim().to_owned()
}

/// The version of a crate that this program was built with.
pub fn locked_version(name: &str) -> &'static str {
    let lock = include_str!("../../Cargo.lock");
    lock.split_once(&format!("name = \"{name}\"\nversion = \""))
        .and_then(|(_, rest)| rest.split('"').next())
        .unwrap_or("unknown")
}
