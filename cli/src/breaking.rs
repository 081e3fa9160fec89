//! `fencelock break`.

use std::io::{BufRead, IsTerminal, Write};

use serde::Serialize;

use crate::args::{Break, Common};
use crate::failure::Failure;
use crate::report::LockReport;
use crate::view::{ODD, View, print};
use crate::{client, exit, text};

const DANGER: &str = "\
Danger: the holder is told, but one that is paused or cut off goes on as if it held the lock,
together with the next holder. Only a check of the fencing token at what the lock protects stops
its writes.";

#[derive(Serialize)]
struct Done<'a> {
    name: &'a str,
    broken: usize,
}

/// Breaks a lock.
pub fn break_lock(common: &Common, asked: &Break) -> Result<u8, Failure> {
    let view = View::new(common);
    let broken = client::with(common, |client| async move {
        let info = client.inspect(&asked.name).await?;
        let Some(info) = info.filter(|info| !info.holds.is_empty()) else {
            return Ok(0);
        };
        if asked.yes {
            eprintln!("{DANGER}");
        } else {
            ask(&LockReport::from(&info), view)?;
        }
        Ok(client.break_lock(&asked.name).await?)
    })?;
    let shown = text::visible(&asked.name);
    if view.json {
        view.print_json(&Done { name: &asked.name, broken })?;
    } else {
        match broken {
            0 => print(&format!("nobody holds {shown}\n"))?,
            1 => print(&format!("ended 1 hold on {shown}\n"))?,
            n => print(&format!("ended {n} holds on {shown}\n"))?,
        }
    }
    Ok(if broken == 0 { exit::NO } else { exit::DONE })
}

/// Asks the person at the terminal; without one, refuses.
fn ask(lock: &LockReport, view: View) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::with(
            exit::USAGE,
            "to break a lock without a terminal, say --yes. The holder may go on as if it held \
             the lock; only a check of its fencing token stops its writes",
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
