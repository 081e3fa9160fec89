//! What an actor runs.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// The program of an actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// How its actors are called, each with a number behind it: a language.
    pub name: String,
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// It is `nemesis-actor`, which knows more than the drivers of other languages do: it drops
    /// guards, writes to the ledger, and says unasked how far it trusts a hold. Others are asked, and
    /// their times are of the monotonic clock.
    pub own: bool,
}

impl Role {
    /// `nemesis-actor`, which cargo puts beside our program, or above the folder of the tests.
    pub fn own() -> Role {
        let here = std::env::current_exe().unwrap_or_default();
        let folders = here.ancestors().skip(1).take(2);
        let found = folders.map(|folder| folder.join("nemesis-actor")).find(|path| path.exists());
        let program = found.unwrap_or_else(|| PathBuf::from("nemesis-actor"));
        Role { name: "p".to_owned(), words: vec![program.into()], own: true }
    }

    /// A driver: a program that speaks the part of the protocol that every language does.
    pub fn driver(name: &str, words: impl IntoIterator<Item = impl Into<OsString>>) -> Role {
        let words = words.into_iter().map(Into::into).collect();
        Role { name: name.to_owned(), words, own: false }
    }

    /// The command that starts it, behind the words of `prefix`.
    pub(crate) fn command(&self, prefix: &[String]) -> Command {
        let own = self.words.iter().cloned();
        let mut words = prefix.iter().map(OsString::from).chain(own);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        command
    }

    /// Its program, for people.
    pub(crate) fn program(&self) -> String {
        self.words.first().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default()
    }
}
