//! Wrong clocks for a process: a small preloaded library, compiled when it is needed.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiled library.
#[derive(Clone, Debug)]
pub struct Shim {
    library: PathBuf,
}

impl Shim {
    /// Compiles it into `folder`.
    ///
    /// # Errors
    /// When there is no C compiler, or it fails.
    pub fn build(folder: &Path) -> io::Result<Shim> {
        let source = folder.join("wrong_clock.c");
        let library = folder.join("wrong_clock.so");
        fs::write(&source, include_str!("shim.c"))?;
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let output = Command::new(&compiler)
            .args(["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .output()
            .map_err(|error| {
                let name = compiler.to_string_lossy();
                io::Error::new(error.kind(), format!("a C compiler is needed; {name}: {error}"))
            })?;
        if !output.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        Ok(Shim { library })
    }
}

/// The clock of a process that was started with [`WrongClock::environment`]. It may be changed
/// while the process runs.
#[derive(Debug)]
pub struct WrongClock {
    library: PathBuf,
    file: File,
    path: PathBuf,
    since: u64,
    rate: i64,
}

impl WrongClock {
    /// A clock that is right until it is changed; `path` is a file for it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn new(shim: &Shim, path: &Path) -> io::Result<WrongClock> {
        let file = File::create(path)?;
        let clock = WrongClock {
            library: shim.library.clone(),
            file,
            path: path.to_owned(),
            since: crate::boot(),
            rate: 0,
        };
        clock.put(0, 0)?;
        clock.put(1, 0)?;
        clock.put(2, clock.since as i64)?;
        Ok(clock)
    }

    /// What a process must find in its environment to have this clock.
    pub fn environment(&self) -> [(&'static str, OsString); 2] {
        [("LD_PRELOAD", (&self.library).into()), ("NEMESIS_CLOCK", (&self.path).into())]
    }

    /// Sets the wall clock so many milliseconds ahead of the true one; below 0, behind it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn shift(&self, millis: i64) -> io::Result<()> {
        self.put(0, millis * 1_000_000)
    }

    /// Makes every clock of the process run too fast by so many parts in a million; below 0, too
    /// slowly. To be called once, before the process starts.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn bend(&mut self, parts: i64) -> io::Result<()> {
        self.rate = parts;
        self.put(1, parts)
    }

    /// The true instant at which the process's boot clock shows `shown`.
    pub fn truth(&self, shown: u64) -> u64 {
        let passed = shown as i128 - i128::from(self.since);
        (i128::from(self.since) + passed * 1_000_000 / (1_000_000 + i128::from(self.rate))) as u64
    }

    fn put(&self, index: u64, value: i64) -> io::Result<()> {
        self.file.write_all_at(&value.to_ne_bytes(), index * 8)
    }
}
