//! A driver that is wrong on purpose, to show that the checks see it: `broken-driver deaf` does not
//! hear that it lost a lock and goes on trusting it; `broken-driver thief` ends the hold of whoever
//! has what it wants; `broken-driver reader` reads what it was told to write.

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fencelock::OwnerId;
use fencelock::blocking::{Client, Guard};
use fencelock_nemesis::{monotonic, wall};

type Shelf<T> = Arc<Mutex<HashMap<String, T>>>;

#[derive(Clone, Default)]
struct Driver {
    deaf: bool,
    thief: bool,
    reader: bool,
    clients: Shelf<Client>,
    holds: Shelf<Guard>,
}

fn main() {
    let kind = std::env::args().nth(1).unwrap_or_default();
    let is = |word: &str| kind == word;
    let (deaf, thief, reader) = (is("deaf"), is("thief"), is("reader"));
    let driver = Driver { deaf, thief, reader, ..Driver::default() };
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let driver = driver.clone();
        std::thread::spawn(move || driver.obey(&line.split(' ').collect::<Vec<_>>()));
    }
}

impl Driver {
    fn obey(&self, words: &[&str]) {
        let (verb, tag) = (words[0], words[1]);
        match verb {
            "open" => match Client::connect(words[2]) {
                Ok(client) => {
                    open(&self.clients, |it| it.insert(tag.to_owned(), client));
                    say("opened", tag, "id=broken knows=modes");
                }
                Err(error) => say("refused", tag, &format!("kind={}", error.kind())),
            },
            "acquire" => self.acquire(tag, words),
            "look" => say("seen", tag, &self.trust(tag)),
            "release" => {
                let trust = self.trust(tag);
                let Some(guard) = open(&self.holds, |it| it.remove(tag)) else { return };
                say("release-asked", tag, &trust);
                match guard.release() {
                    Ok(()) => say("released", tag, ""),
                    Err(error) => say("unreleased", tag, &format!("kind={}", error.kind())),
                }
            }
            _ => {}
        }
    }

    fn acquire(&self, tag: &str, words: &[&str]) {
        say(
            "asked",
            tag,
            &format!("client={} lock={} {}", words[2], words[3], words[4..].join(" ")),
        );
        let Some(client) = open(&self.clients, |it| it.get(words[2]).cloned()) else { return };
        let option = |key: &str| {
            words
                .iter()
                .find_map(|word| word.split_once('=').filter(|it| it.0 == key))
                .map(|it| it.1)
        };
        let lock = if self.reader {
            client.rw_lock(words[3]).map(|lock| lock.reader())
        } else {
            client.lock(words[3])
        };
        let lock = lock.and_then(|lock| match option("owner") {
            Some(owner) => OwnerId::new(owner).map(|owner| lock.owner(owner)),
            None => Ok(lock),
        });
        let got = lock.and_then(|lock| match option("wait") {
            Some("try") => lock.try_acquire(),
            _ => lock.acquire(),
        });
        match got {
            Ok(guard) => {
                let grant = format!(
                    "lock={} token={} abandoned={:?} reentry={} ",
                    guard.name(),
                    guard.token(),
                    guard.previous_abandoned(),
                    guard.is_reentry()
                );
                let name = tag.to_owned();
                if !self.deaf {
                    guard.on_lost(move |reason| say("lost", &name, &format!("reason={reason:?}")));
                }
                open(&self.holds, |it| it.insert(tag.to_owned(), guard));
                say("granted", tag, &(grant + &self.trust(tag)));
            }
            Err(error) => {
                // What it cannot have, nobody shall have.
                if self.thief {
                    let _ = client.break_lock(words[3], u64::MAX);
                }
                say("failed", tag, &format!("kind={}", error.kind()));
            }
        }
    }

    /// How far it trusts a hold: the deaf one for ever.
    fn trust(&self, tag: &str) -> String {
        let now = monotonic();
        let left = open(&self.holds, |it| it.get(tag).map(Guard::remaining));
        let left = if self.deaf { Duration::from_secs(60) } else { left.unwrap_or_default() };
        format!("until={} valid={}", now + left.as_nanos() as u64, !left.is_zero())
    }
}

fn open<T, R>(shelf: &Mutex<T>, with: impl FnOnce(&mut T) -> R) -> R {
    with(&mut shelf.lock().unwrap_or_else(PoisonError::into_inner))
}

fn say(event: &str, tag: &str, more: &str) {
    println!("{} {} {event} {tag} {more}", monotonic(), wall());
}
