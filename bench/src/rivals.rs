//! Other clients with a lock of the same kind: Curator in Java, kazoo in Python.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use fencelock_testkit::Driver;
use fencelock_testkit::driver::value;

use crate::machine::said;
use crate::{Result, Side};

/// How long the other process gets to fall asleep in its wait.
const SETTLE: Duration = Duration::from_micros(300);

/// Another client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// Apache Curator's `InterProcessMutex`.
    Curator,
    /// kazoo's `Lock`.
    Kazoo,
}

impl Rival {
    /// Both, the stronger first.
    pub const ALL: [Rival; 2] = [Rival::Curator, Rival::Kazoo];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Rival::Curator => "Curator",
            Rival::Kazoo => "kazoo",
        }
    }

    /// A process of it, with a client `c`.
    fn start(self, connect: &str) -> Result<Driver> {
        let mut driver = match self {
            Rival::Curator => fencelock_testkit::lasting_curator()?,
            Rival::Kazoo => {
                let mut command = Command::new(python());
                let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kazoo");
                command.arg(folder.join("driver.py"));
                Driver::start(command)?
            }
        };
        driver.ask(&format!("open c {connect} 30000"), "opened c");
        Ok(driver)
    }

    /// One process does pairs, in the way that `kind` names.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn measured(self, kind: &'static str, connect: &str, path: &str) -> Result<Side> {
        let (mut driver, path) = (self.start(connect)?, self.path(path));
        Ok(Side::new(self.name(), move |count| {
            let took = driver
                .ask(&format!("measure {kind} c {path} {count}"), &format!("measured {kind}"));
            Ok(Duration::from_nanos(took.trim().parse()?))
        }))
    }

    /// Four processes with four threads each do pairs on one path, in the way that `kind` names.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn crowd(self, kind: &'static str, connect: &str, path: &str) -> Result<Side> {
        let path = self.path(path);
        let mut drivers: Vec<Driver> =
            (0..4).map(|_| self.start(connect)).collect::<Result<_>>()?;
        Ok(Side::new(self.name(), move |count| {
            let start = Instant::now();
            for (at, driver) in drivers.iter_mut().enumerate() {
                let each = (count + at as u64) / 4;
                driver.tell(&format!("measure {kind} c {path} {each}"));
            }
            for driver in &drivers {
                driver.wait_for(&format!("measured {kind}"));
            }
            Ok(start.elapsed())
        }))
    }

    /// From the call of release in one process to the return of acquire in another.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn handoff(self, connect: &str, path: &str) -> Result<Side> {
        let path = self.path(path);
        let (mut one, mut other) = (self.start(connect)?, self.start(connect)?);
        Ok(Side::new(self.name(), move |count| {
            let mut took = 0;
            for _ in 0..count {
                one.ask(&format!("acquire a c {path}"), "granted a");
                other.ask(&format!("acquire b c {path}"), "asked b");
                while one
                    .ask(&format!("participants c {path}"), "participants c")
                    .matches(',')
                    .count()
                    < 1
                {
                    thread::sleep(SETTLE);
                }
                // In line, and its watch is set.
                thread::sleep(SETTLE * 10);
                let start = instant(&one.ask("release a", "released a"))?;
                let end = instant(&other.wait_for("granted b"))?;
                took += end.checked_sub(start).ok_or("the second process answered too early")?;
                other.ask("release b", "released b");
            }
            Ok(Duration::from_nanos(took))
        }))
    }

    /// Their nodes are not alike, so each has a place of its own.
    fn path(self, path: &str) -> String {
        format!("/{}/{path}", self.name().to_lowercase())
    }
}

/// Python with kazoo in it, which `scripts/bench` makes.
fn python() -> String {
    std::env::var("FENCELOCK_BENCH_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

fn instant(said: &str) -> Result<u64> {
    Ok(value(said, "at").ok_or_else(|| format!("no instant in {said:?}"))?.parse()?)
}

/// What ran, by name and version.
pub fn versions() -> Vec<(&'static str, String)> {
    let kazoo = "import kazoo, sys; print(kazoo.__version__, 'on Python', sys.version.split()[0])";
    let kazoo = Command::new(python()).args(["-c", kazoo]).output();
    let kazoo = kazoo.map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned());
    let pom = include_str!("../../core/backends/zookeeper/tests/curator/pom.xml");
    let curator = pom
        .split_once("curator-recipes")
        .and_then(|(_, rest)| rest.split_once("<version>")?.1.split_once("</version>"))
        .map_or("unknown", |(version, _)| version);
    let server = std::fs::canonicalize("/usr/share/java/zookeeper.jar").unwrap_or_default();
    let server = server.file_stem().map(|it| it.to_string_lossy().replace("zookeeper-", ""));
    let versions = [
        ("zookeeper", server.unwrap_or_default()),
        ("curator", curator.to_owned()),
        ("java", said("java", "--version")),
        ("kazoo", kazoo.unwrap_or_default()),
    ];
    // Who takes no part need not be there.
    versions.into_iter().filter(|it| !it.1.is_empty()).collect()
}
