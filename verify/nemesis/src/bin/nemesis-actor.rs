//! One client process that does what it is told, line by line, and says what happens to it.
//!
//! It reads `verb tag word… key=value…` and writes `at wall event tag key=value…`: its boot clock
//! and its wall clock in nanoseconds, what happened, to what. It decides nothing by itself.
//!
//! ```text
//! open CLIENT URL                                      opened | refused
//! acquire TAG CLIENT LOCK wait=try|forever|500ms [lease=2s] [max_hold=9s] [owner=WHO]
//!                         [mode=shared|write|permits:COUNT/OF]
//!                                                      asked, then granted | failed | cancelled
//! attach TAG CLIENT TICKET                             asked, then granted | failed
//! cancel TAG       release TAG       drop TAG          cancelled; released | unreleased; dropped
//! extend TAG 2s    look TAG          ticket TAG        extended | unextended; seen; ticket
//! downgrade TAG    upgrade TAG                         converted | unconverted
//! write TAG FILE   read TAG FILE                       wrote; read
//! pause TAG 500ms                                      paused
//! close CLIENT [drain=5s|endless]     sigterm CLIENT   closed all=yes|no
//! list TAG CLIENT 10                                   listed | failed
//! name TAG CLIENT empty|nul|long                       named | failed
//! ```
//! Unasked: `trusted` (a hold's validity reaches further now), `lost`, `wanted`.

use std::collections::HashMap;
use std::fmt::{Arguments, Debug};
use std::io::BufRead;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fencelock::{Client, Error, Guard, Lock, Mode, OwnerId};
use fencelock_nemesis::{Ledger, boot, wall};
use tokio::task::AbortHandle;

/// Acquisitions by their tags.
type Shelf<T> = Arc<Mutex<HashMap<String, T>>>;

#[derive(Clone, Default)]
struct Actor {
    clients: Shelf<Client>,
    waits: Shelf<AbortHandle>,
    holds: Shelf<Guard>,
    trusted: Shelf<u64>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let actor = Actor::default();
    let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        std::io::stdin().lock().lines().map_while(Result::ok).for_each(|it| drop(sender.send(it)));
        std::process::exit(0); // Whoever tells us what to do has gone.
    });
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    loop {
        tokio::select! {
            Some(line) = lines.recv() => actor.obey(&line),
            _ = tick.tick() => actor.watch(),
        }
    }
}

impl Actor {
    fn obey(&self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let (tag, third) = (words.get(1).map_or("", |it| it), words.get(2).map_or("", |it| it));
        let (here, name, more) = (self.clone(), tag.to_owned(), third.to_owned());
        match words[0] {
            "open" => drop(tokio::spawn(async move {
                match Client::connect(&more).await {
                    Err(error) => failed("refused", &name, &error),
                    Ok(client) => {
                        let id = client.id().to_owned();
                        open(&here.clients).insert(name.clone(), client);
                        say("opened", &name, format_args!("id={id}"));
                    }
                }
            })),
            "acquire" | "attach" => {
                let Some(client) = open(&self.clients).get(third).cloned() else { return };
                let what = words[3].to_owned();
                let rest = words[4..].join(" ");
                say("asked", tag, format_args!("client={third} lock={what} {rest}"));
                let lock = match lock(&client, &what, &words) {
                    Ok(lock) => lock,
                    Err(error) => return failed("failed", tag, &error),
                };
                let wait = option(&words, "wait").unwrap_or("forever").to_owned();
                let attach = words[0] == "attach";
                let task = tokio::spawn(async move {
                    let got = match wait.as_str() {
                        _ if attach => client.attach(&what).await,
                        "try" => lock.try_acquire().await,
                        "forever" => lock.acquire().await,
                        limit => lock.acquire_timeout(span(limit)).await,
                    };
                    open(&here.waits).remove(&name);
                    match got {
                        Ok(guard) => here.hold(name, guard),
                        Err(error) => failed("failed", &name, &error),
                    }
                });
                open(&self.waits).insert(tag.to_owned(), task.abort_handle());
            }
            "cancel" => {
                let Some(wait) = open(&self.waits).remove(tag) else { return };
                wait.abort();
                say("cancelled", tag, format_args!(""));
            }
            "pause" => {
                std::thread::sleep(span(third));
                say("paused", tag, format_args!(""));
            }
            "close" | "sigterm" => {
                let Some(client) = open(&self.clients).get(tag).cloned() else { return };
                let until = (words[0] == "sigterm").then(|| client.close_on_sigterm());
                drop(tokio::spawn(async move {
                    let all = match (until, more.strip_prefix("drain=")) {
                        (Some(ended), _) => ended.await.is_ok(),
                        (None, None) => client.close().await,
                        (None, Some(limit)) => client.drain(span(limit)).await,
                    };
                    say("closed", &name, format_args!("all={}", if all { "yes" } else { "no" }));
                }));
            }
            "list" => {
                let Some(client) = open(&self.clients).get(third).cloned() else { return };
                let limit = words[3].parse().unwrap();
                drop(tokio::spawn(async move {
                    match client.list("", limit).await {
                        Ok(names) => say("listed", &name, format_args!("count={}", names.len())),
                        Err(error) => failed("failed", &name, &error),
                    }
                }));
            }
            "resize" => {
                let Some(client) = open(&self.clients).get(third).cloned() else { return };
                let (lock, of) = (words[3].to_owned(), words[4].parse().unwrap());
                say("resize-asked", tag, format_args!("lock={lock} of={of}"));
                drop(tokio::spawn(async move {
                    let resized = match client.semaphore(lock, of) {
                        Ok(semaphore) => semaphore.resize(of).await,
                        Err(error) => Err(error),
                    };
                    match resized {
                        Ok(used) => {
                            let used = if used { "yes" } else { "no" };
                            say("resized", &name, format_args!("used={used}"));
                        }
                        Err(error) => failed("failed", &name, &error),
                    }
                }));
            }
            "name" => {
                let Some(client) = open(&self.clients).get(third).cloned() else { return };
                let long = "x".repeat(513);
                let no_name = match words[3] {
                    "empty" => "",
                    "nul" => "a\0b",
                    _ => &long,
                };
                match client.lock(no_name) {
                    Ok(_) => say("named", tag, format_args!("")),
                    Err(error) => failed("failed", tag, &error),
                }
            }
            verb => {
                let Some(guard) = open(&self.holds).remove(tag) else {
                    // It is in use, or over.
                    if open(&self.trusted).contains_key(tag) {
                        let line = line.to_owned();
                        drop(tokio::spawn(async move {
                            tokio::time::sleep(Duration::from_millis(1)).await;
                            here.obey(&line);
                        }));
                    }
                    return;
                };
                let verb = verb.to_owned();
                say_trust(&verb, tag, &guard);
                drop(tokio::spawn(async move { here.use_hold(&verb, name, &more, guard).await }));
            }
        }
    }

    async fn use_hold(&self, verb: &str, tag: String, more: &str, guard: Guard) {
        if matches!(verb, "release" | "drop") {
            open(&self.trusted).remove(&tag);
        }
        match verb {
            "release" => return answer(&tag, "released", "unreleased", guard.release().await),
            "drop" => {
                drop(guard);
                return say("dropped", &tag, format_args!(""));
            }
            "extend" => answer(&tag, "extended", "unextended", guard.extend(span(more)).await),
            "downgrade" => converted(&tag, &guard, guard.downgrade().await),
            "upgrade" => converted(&tag, &guard, guard.try_upgrade().await),
            "ticket" => match guard.ticket() {
                Ok(ticket) => say("ticket", &tag, format_args!("text={ticket}")),
                Err(error) => failed("unticketed", &tag, &error),
            },
            "write" | "read" => {
                let (name, token) = (guard.name(), guard.token().get());
                let (said, accepted) = match (verb, Ledger::open(Path::new(more))) {
                    (_, Err(error)) => (verb, Err(error)),
                    ("write", Ok(mut ledger)) => ("wrote", ledger.write(name, token)),
                    (_, Ok(mut ledger)) => ("read", ledger.read(name, token)),
                };
                say(said, &tag, format_args!("accepted={accepted:?}"));
            }
            _ => say(
                "seen",
                &tag,
                format_args!("valid={} token={}", guard.is_valid(), guard.token()),
            ),
        }
        open(&self.holds).insert(tag, guard);
    }

    fn hold(&self, tag: String, guard: Guard) {
        let left = boot() + guard.remaining().as_nanos() as u64;
        let (name, told) = (tag.clone(), tag.clone());
        say(
            "granted",
            &tag,
            format_args!(
                "lock={} token={} abandoned={:?} reentry={} until={left}",
                guard.name(),
                guard.token(),
                guard.previous_abandoned(),
                guard.is_reentry()
            ),
        );
        guard.on_lost(move |reason| say("lost", &name, format_args!("reason={reason:?}")));
        let wanted = guard.wanted();
        tokio::spawn(async move {
            wanted.await;
            say("wanted", &told, format_args!(""));
        });
        open(&self.trusted).insert(tag.clone(), left);
        open(&self.holds).insert(tag, guard);
    }

    fn watch(&self) {
        for (tag, guard) in &*open(&self.holds) {
            let until = boot() + guard.remaining().as_nanos() as u64;
            let mut trusted = open(&self.trusted);
            let known = trusted.entry(tag.clone()).or_default();
            if until > *known + 1_000_000 && guard.is_valid() {
                *known = until;
                say("trusted", tag, format_args!("until={until}"));
            }
        }
    }
}

fn option<'a>(words: &[&'a str], key: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.split_once('=').filter(|it| it.0 == key)).map(|it| it.1)
}
/// What is asked for, as a lock. A ticket says by itself what it goes on with.
fn lock(client: &Client, name: &str, words: &[&str]) -> Result<Lock, Error> {
    let mut lock = match option(words, "mode") {
        None => client.lock(name)?,
        Some("shared") => client.rw_lock(name)?.reader(),
        Some("write") => client.rw_lock(name)?.writer(),
        Some(mode) => {
            let numbers = mode.strip_prefix("permits:").and_then(|it| it.split_once('/'));
            let (count, of) = numbers.unwrap();
            let semaphore = client.semaphore(name, of.parse().unwrap())?;
            let adopts = option(words, "adopt").is_some();
            let semaphore = if adopts { semaphore.adopting() } else { semaphore };
            semaphore.taking(count.parse().unwrap())
        }
    };
    lock = option(words, "lease").map_or(lock.clone(), |it| lock.lease(span(it)));
    lock = option(words, "max_hold").map_or(lock.clone(), |it| lock.max_hold(span(it)));
    Ok(option(words, "owner").map_or(lock.clone(), |it| lock.owner(OwnerId::new(it).unwrap())))
}
fn say_trust(verb: &str, tag: &str, guard: &Guard) {
    let until = boot() + guard.remaining().as_nanos() as u64;
    say(&format!("{verb}-asked"), tag, format_args!("until={until} valid={}", guard.is_valid()));
}
fn answer<T: Debug>(tag: &str, well: &str, badly: &str, result: Result<T, Error>) {
    match result {
        Ok(_) => say(well, tag, format_args!("")),
        Err(error) => failed(badly, tag, &error),
    }
}
fn converted(tag: &str, guard: &Guard, result: Result<(), Error>) {
    match result {
        Ok(()) => {
            let mode = if guard.mode() == Mode::Shared { "shared" } else { "exclusive" };
            say("converted", tag, format_args!("token={} mode={mode}", guard.token()));
        }
        Err(error) => failed("unconverted", tag, &error),
    }
}
fn failed(event: &str, tag: &str, error: &Error) {
    say(
        event,
        tag,
        format_args!("kind={} why={}", error.kind(), error.message().replace(' ', "_")),
    );
}
/// In one piece, also from several threads.
fn say(event: &str, tag: &str, more: Arguments<'_>) {
    println!("{} {} {event} {tag} {more}", boot(), wall());
}
fn span(text: &str) -> Duration {
    if text == "endless" {
        return Duration::MAX;
    }
    humantime::parse_duration(text).unwrap()
}
fn open<T>(shelf: &Mutex<T>) -> MutexGuard<'_, T> {
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}
