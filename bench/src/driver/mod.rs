//! The driver of Rust's libraries in the comparison: does what `bench/drivers/README.md` says.

mod crowd;
mod library;

use std::collections::HashMap;
use std::io::{Write, stdin, stdout};
use std::process::exit;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::Result;
use crate::local::Flavor;
use crate::peer::nanos;
use crowd::Crowd;
use library::{Key, Library};

/// Works for `library` at `url` until the input ends.
///
/// # Errors
/// When there is no such library, or the server cannot be reached.
pub fn drive(library: &str, url: &str) -> Result<()> {
    let orders = listen();
    let runtime = Flavor::Multi.runtime()?;
    let library = runtime.block_on(Library::connect(library, url))?;
    say(&format!("ready {}", library.version()));
    let mut driver = Driver { runtime, library, held: HashMap::new() };
    for order in orders {
        let words: Vec<&str> = order.split_whitespace().collect();
        let answer = driver.obey(&words)?;
        if !answer.is_empty() {
            say(&answer);
        }
    }
    Ok(())
}

/// On a thread of its own, so that the process ends with its input whatever it waits for.
fn listen() -> Receiver<String> {
    let (sender, orders) = channel();
    std::thread::spawn(move || {
        for line in stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
        exit(0);
    });
    orders
}

fn say(line: &str) {
    let mut out = stdout().lock();
    // Nobody listens any more when this fails, and the input has ended too.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

struct Driver {
    runtime: Runtime,
    library: Library,
    /// What each hold waits for before it is released.
    held: HashMap<String, oneshot::Sender<()>>,
}

impl Driver {
    /// Lets a crowd work, and says how evenly.
    fn fair(&self, crowd: impl Future<Output = Result<Crowd>>) -> Result<String> {
        let crowd = self.runtime.block_on(crowd)?;
        let (least, most, longest) = crowd.fairness();
        Ok(format!("{} {least} {most} {}", did(crowd.total()), longest.as_nanos()))
    }

    fn obey(&mut self, words: &[&str]) -> Result<String> {
        let library = &self.library;
        Ok(match *words {
            ["pairs", key, span] => {
                let crowd = crowd::pairs(vec![library.key(key)?], millis(span)?);
                let crowd = self.runtime.block_on(crowd)?;
                format!("{} {}", did(crowd.total()), crowd.median().as_nanos())
            }
            ["keys", callers, key, span] => {
                let keys = (0..callers.parse::<usize>()?)
                    .map(|at| library.key(&format!("{key}-{at}")))
                    .collect::<Result<_>>()?;
                did(self.runtime.block_on(crowd::pairs(keys, millis(span)?))?.total())
            }
            ["hot", callers, key, span] => {
                let keys = vec![library.key(key)?; callers.parse()?];
                self.fair(crowd::pairs(keys, millis(span)?))?
            }
            ["read", callers, percent, key, span] => match library.sides(key)? {
                None => "cannot".to_owned(),
                Some(sides) => {
                    let (callers, percent) = (callers.parse()?, percent.parse()?);
                    self.fair(crowd::reads(sides, callers, percent, millis(span)?))?
                }
            },
            ["permits", callers, of, key, span] => match library.permit(key, of.parse()?)? {
                None => "cannot".to_owned(),
                Some(permit) => {
                    let keys = vec![permit; callers.parse()?];
                    self.fair(crowd::pairs(keys, millis(span)?))?
                }
            },
            ["reenter", key, held, span] => {
                let entered = library.reenter(key, held.parse()?, millis(span)?);
                self.runtime.block_on(entered)?.map_or_else(|| "cannot".to_owned(), did)
            }
            ["acquire", tag, key, lease] => {
                let lease = if lease == "default" { None } else { Some(millis(lease)?) };
                let (tag, key) = (tag.to_owned(), library.key(key)?.lease(lease));
                let (sender, released) = oneshot::channel();
                self.held.insert(tag.clone(), sender);
                say(&format!("asked {tag}"));
                self.runtime.spawn(hold(tag, key, released));
                String::new()
            }
            ["release", tag] => {
                let sender = self.held.remove(tag).ok_or("there is no such hold")?;
                sender.send(()).map_err(|()| "the hold has failed")?;
                String::new()
            }
            ["wait", count, key] => {
                let key = library.key(key)?;
                for _ in 0..count.parse::<u32>()? {
                    let key = key.clone();
                    self.runtime.spawn(async move { key.acquire().await.map(drop) });
                }
                format!("waiting {count}")
            }
            ["sell", callers, key] => {
                let (sold, took) =
                    self.runtime.block_on(crowd::sell(library, callers.parse()?, key))?;
                format!("sold {sold} {}", took.as_nanos())
            }
            _ => return Err(format!("no order: {}", words.join(" ")).into()),
        })
    }
}

fn did((count, took): (u64, Duration)) -> String {
    format!("did {count} {}", took.as_nanos())
}

async fn hold(tag: String, key: Key, released: oneshot::Receiver<()>) -> Result<()> {
    let held = key.acquire().await?;
    say(&format!("granted {tag} {}", nanos()));
    released.await?;
    let at = nanos();
    held.release().await?;
    say(&format!("released {tag} {at}"));
    Ok(())
}

fn millis(word: &str) -> Result<Duration> {
    Ok(Duration::from_millis(word.parse()?))
}
