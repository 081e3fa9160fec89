//! Who is compared: each library in each language, and how its driver is started.

use std::process::Command;

use fencelock_testkit::Driver;

use crate::Result;

/// What a library is to the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Fencelock.
    Ours,
    /// Another lock.
    Peer,
    /// What else another library has that several hold together: only beside ours of that kind.
    Shared,
    /// The bare client, without a lock's promises.
    Bare,
}

/// A library of a language.
#[derive(Clone, Debug)]
pub struct Entrant {
    /// As it is shown.
    pub language: &'static str,
    /// As its driver knows it.
    pub library: &'static str,
    /// What it is to the comparison.
    pub part: Part,
    /// What starts its driver, without the library and the URL.
    command: Vec<String>,
}

/// By language; the first of each is what the others are compared with.
const LIBRARIES: [(&str, &[(&str, Part)]); 6] = [
    (
        "Rust",
        &[
            ("fencelock", Part::Ours),
            ("fencelock-no-handoff", Part::Ours),
            ("rslock", Part::Peer),
            ("redis", Part::Bare),
        ],
    ),
    ("C", &[("fencelock", Part::Ours)]),
    ("Go", &[("redsync", Part::Peer), ("redislock", Part::Peer), ("go-redis", Part::Bare)]),
    (
        "Java",
        &[
            ("fencelock", Part::Ours),
            ("redisson-lock", Part::Peer),
            ("redisson-fair", Part::Peer),
            ("redisson-fenced", Part::Peer),
            ("redisson-read-write", Part::Shared),
            ("redisson-permits", Part::Shared),
            ("jedis", Part::Bare),
        ],
    ),
    (
        "Python",
        &[
            ("fencelock", Part::Ours),
            ("fencelock-asyncio", Part::Ours),
            ("redis-py", Part::Peer),
            ("redis-py-asyncio", Part::Peer),
            ("python-redis-lock", Part::Peer),
            ("bare", Part::Bare),
        ],
    ),
    (
        "Node",
        &[
            ("fencelock", Part::Ours),
            ("redlock", Part::Peer),
            ("redis-semaphore", Part::Peer),
            ("ioredis", Part::Bare),
        ],
    ),
];

/// All libraries of the languages whose drivers are given as `language=command`.
///
/// # Errors
/// A language that nobody knows.
pub fn peers(drivers: &[String]) -> Result<Vec<Entrant>> {
    let mut entrants = Vec::new();
    for driver in drivers {
        let (language, command) = driver.split_once('=').ok_or("a driver is LANGUAGE=COMMAND")?;
        let known = LIBRARIES.iter().find(|it| it.0.eq_ignore_ascii_case(language));
        let (language, libraries) = known.ok_or_else(|| format!("no language: {language}"))?;
        let command: Vec<String> = command.split(' ').map(str::to_owned).collect();
        entrants.extend(libraries.iter().map(|&(library, part)| Entrant {
            language,
            library,
            part,
            command: command.clone(),
        }));
    }
    Ok(entrants)
}

impl Entrant {
    /// Whether that is what this one is compared with: ours of the same language, or Rust's where
    /// there is none; among tasks where this one has tasks.
    pub fn is_beside(&self, ours: &Entrant) -> bool {
        let tasks = |it: &Entrant| it.library.ends_with("asyncio");
        let language = if self.language == "Go" { "Rust" } else { self.language };
        ours.part == Part::Ours
            && ours.language == language
            && ours.library != "fencelock-no-handoff"
            && tasks(self) == tasks(ours)
    }

    /// Starts its driver, which will say that it is ready, and its version.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, url: &str) -> Result<Driver> {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).args([self.library, url]);
        Ok(Driver::start(command)?)
    }
}
