//! `fencelock ls`.

use fencelock::text;
use std::time::Duration;

use crate::args::{Common, Ls};
use crate::failure::Failure;
use crate::report::LockReport;
use crate::table::{Cell, Side, Table};
use crate::view::{DIM, GOOD, ODD, View, print};
use crate::{client, exit, span};

/// Lists locks.
pub fn ls(common: &Common, ls: &Ls) -> Result<u8, Failure> {
    let view = View::new(common);
    let (locks, cut) = client::with(common, |client| async move {
        let names = client.list(&ls.prefix, ls.limit).await?;
        let mut locks = Vec::new();
        for name in &names {
            // It may have been forgotten since.
            if let Some(info) = client.inspect(name.as_str()).await? {
                locks.push(LockReport::from(&info));
            }
        }
        Ok((locks, names.len() >= ls.limit))
    })?;
    let busy = |lock: &LockReport| !lock.holds.is_empty() || !lock.waiters.is_empty();
    let known = locks.len();
    let mut shown: Vec<LockReport> =
        locks.into_iter().filter(|lock| ls.all || busy(lock)).collect();
    shown.sort_by(|a, b| a.name.cmp(&b.name));

    if view.json {
        view.print_json(&shown)?;
    } else if shown.is_empty() {
        let beginning = match ls.prefix.as_str() {
            "" => String::new(),
            prefix => format!(" that begins with {:?}", prefix),
        };
        let rest = match known {
            0 => String::new(),
            n => format!(" ({n} idle: ls --all)"),
        };
        let nobody = format!("nobody holds or waits for a lock{beginning}{rest}");
        print(&format!("{}\n", view.paint(DIM, nobody)))?;
    } else {
        print(&table(&shown).render(view))?;
    }
    if cut {
        eprintln!("fencelock: only the first {} names; --limit gives more", ls.limit);
    }
    Ok(exit::DONE)
}

fn table(locks: &[LockReport]) -> Table {
    let mut table = Table::new([
        ("NAME", Side::Left),
        ("STATE", Side::Left),
        ("HOLDER", Side::Left),
        ("EXPIRES IN", Side::Right),
        ("WAITING", Side::Right),
        ("TOKEN", Side::Right),
    ]);
    for lock in locks {
        let (state, style) = match (lock.state, lock.abandoned) {
            ("held", _) => (lock.held(), GOOD),
            (_, "yes") => ("abandoned".to_owned(), ODD),
            _ => ("free".to_owned(), DIM),
        };
        let others = match lock.holds.len().saturating_sub(1) {
            // An owner's holds are its own.
            0 => String::new(),
            _ if lock.owner.is_some() => String::new(),
            others => format!(" and {others} more"),
        };
        let holder = match (&lock.owner, lock.holds.first()) {
            (Some(owner), _) => format!("owner {owner}"),
            (None, Some(hold)) if hold.label.is_empty() => format!("{}{others}", hold.client),
            (None, Some(hold)) => format!("{}{others}", hold.label),
            (None, None) => "-".to_owned(),
        };
        let expires = lock.holds.iter().map(|hold| hold.expires_in_ms).max();
        table.row([
            text::visible(&lock.name).into(),
            Cell::new(style, state),
            text::visible(&holder).into(),
            expires.map_or("-".into(), |ms| span::show(Duration::from_millis(ms))).into(),
            lock.waiting.into(),
            lock.token.map_or("-".to_owned(), |token| token.to_string()).into(),
        ]);
    }
    table
}
