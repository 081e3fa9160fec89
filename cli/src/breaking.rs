//! `fencelock break`.

use std::io::{BufRead, IsTerminal, Write};

use fencelock::{Broken, HoldId, LockInfo, text};
use serde::Serialize;

use crate::args::{Break, Common};
use crate::failure::Failure;
use crate::report::LockReport;
use crate::view::{ODD, View, print};
use crate::{client, exit};

const DANGER: &str = "\
Danger: the holder is told, but one that is paused or cut off goes on as if it held the lock,
together with the next holder. Only a check of the fencing token at what the lock protects stops
its writes.";

#[derive(Serialize)]
struct Done<'a> {
    name: &'a str,
    /// How many holds were ended.
    broken: usize,
    /// The token under which somebody else holds the lock now.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_hands: Option<u64>,
}

/// Breaks a lock: what was shown of it, or what `--token` names, and nobody who came after it.
pub fn break_lock(common: &Common, asked: &Break) -> Result<u8, Failure> {
    let view = View::new(common);
    let broken = client::with(common, |client| async move {
        if let Some(id) = &asked.hold {
            let info = client.inspect(&asked.name).await?;
            let Some((token, hold)) = named(info.as_ref(), id)? else { return Ok(Broken::NotHeld) };
            eprintln!("{DANGER}");
            let token = asked.token.unwrap_or(token);
            return Ok(client.break_hold(&asked.name, token, hold).await?);
        }
        let seen = match asked.token {
            Some(token) => token,
            None => match client.inspect(&asked.name).await? {
                Some(info) if !info.holds.is_empty() => {
                    if !asked.yes {
                        ask(&LockReport::from(&info), view)?;
                    }
                    info.token
                }
                _ => return Ok(Broken::NotHeld),
            },
        };
        if asked.yes || asked.token.is_some() {
            eprintln!("{DANGER}");
        }
        Ok(client.break_lock(&asked.name, seen).await?)
    })?;
    let shown = text::visible(&asked.name);
    let (said, code, count, later) = match broken {
        Broken::Ended(1) => (format!("ended 1 hold on {shown}"), exit::DONE, 1, None),
        Broken::Ended(n) => (format!("ended {n} holds on {shown}"), exit::DONE, n, None),
        Broken::NotHeld => match &asked.hold {
            Some(id) => (format!("{shown} has no hold {}", text::visible(id)), exit::NO, 0, None),
            None => (format!("nobody holds {shown}"), exit::NO, 0, None),
        },
        Broken::ChangedHands(token) => {
            let said = format!(
                "nothing was ended: {shown} has changed hands, and is held under token {token} now"
            );
            (said, exit::CHANGED_HANDS, 0, Some(token))
        }
    };
    match view.json {
        true => {
            view.print_json(&Done { name: &asked.name, broken: count, changed_hands: later })?;
        }
        false => print(&format!("{said}\n"))?,
    }
    Ok(code)
}

/// The hold whose id begins so, and its token.
fn named(info: Option<&LockInfo>, id: &str) -> Result<Option<(u64, HoldId)>, Failure> {
    let holds = info.map(|info| info.holds.as_slice()).unwrap_or_default();
    let mut found = holds.iter().filter(|hold| hold.hold.to_string().starts_with(id));
    let hold = found.next().map(|hold| (hold.token, hold.hold));
    if found.next().is_some() {
        let text = format!("several holds have ids that begin with {id:?}: say more of it");
        return Err(Failure::with(exit::USAGE, text));
    }
    Ok(hold)
}

/// Asks the person at the terminal; without one, refuses.
fn ask(lock: &LockReport, view: View) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::with(
            exit::USAGE,
            "to break a lock without a terminal, say --yes, or which hold is meant, with --token \
             or --hold. The holder may go on as if it held the lock; only a check of its fencing \
             token stops its writes",
        ));
    }
    let mut err = std::io::stderr();
    write!(err, "{}\n{}\n", crate::show::page(lock, view), view.paint(ODD, DANGER))?;
    write!(err, "Break {}? [y/N] ", text::visible(&lock.name))?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::with(exit::NO, "not broken"))
}
