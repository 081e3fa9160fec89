//! Apache Curator, in a Java process.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::driver::Driver;

/// Starts the real Curator, for a test, which is over soon; builds its driver if that is not done
/// yet. What it understands stands in `core/backends/zookeeper/tests/curator`.
///
/// # Errors
/// When Java or Maven is missing, or it cannot be built; the message says what to do.
pub fn curator() -> io::Result<Driver> {
    with(&["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m"])
}

/// As [`curator`], for measuring: slower at first, then faster.
///
/// # Errors
/// As there.
pub fn lasting_curator() -> io::Result<Driver> {
    with(&["-Xmx512m"])
}

fn with(options: &[&str]) -> io::Result<Driver> {
    let class_path = build()?;
    let mut command = Command::new("java");
    command
        .args(options)
        .args(["-XX:-UsePerfData", "-cp", &class_path, "fencelock.curator.Driver"])
        .env_remove("JAVA_TOOL_OPTIONS");
    Driver::start(command)
}

fn build() -> io::Result<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/curator");
    let output = Command::new(&script).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(io::Error::other(format!(
        "scripts/curator failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    )))
}
