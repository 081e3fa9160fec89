//! `fencelock show`.

use fencelock::text;
use std::time::Duration;

use crate::args::{Common, Show};
use crate::failure::Failure;
use crate::report::LockReport;
use crate::table::{Cell, Side, Table};
use crate::view::{BOLD, DIM, GOOD, ODD, View, print};
use crate::{client, exit, span};

/// So much of a hold's id tells it from any other; `break --hold` takes it.
const SHOWN_ID: usize = 12;

/// Shows one lock.
pub fn show(common: &Common, show: &Show) -> Result<u8, Failure> {
    let view = View::new(common);
    let lock = client::with(common, |client| async move {
        Ok(client.inspect(&show.name).await?.as_ref().map(LockReport::from))
    })?;
    if view.json {
        view.print_json(&lock)?;
    } else if let Some(lock) = &lock {
        print(&page(lock, view))?;
    } else {
        print(&format!("the store knows nothing of {:?}\n", show.name))?;
    }
    Ok(if lock.is_some() { exit::DONE } else { exit::NO })
}

/// A lock in words.
pub fn page(lock: &LockReport, view: View) -> String {
    let mut out = format!("{}\n", view.paint(BOLD, text::visible(&lock.name)));
    let mut line = |head: &str, text: String| {
        out.push_str(&format!("  {}{text}\n", view.paint(DIM, format!("{head:<10}"))));
    };
    match (lock.state, &lock.owner) {
        ("held", Some(owner)) => {
            line(
                "state",
                format!("{}, by owner {}", view.paint(GOOD, lock.held()), text::visible(owner)),
            );
        }
        ("held", None) => line("state", view.paint(GOOD, lock.held())),
        _ => line("state", "free".to_owned()),
    }
    match lock.token {
        Some(token) => line("token", format!("{token}, reserved up to {}", lock.last_token)),
        None => line("token", format!("the last one was at most {}", lock.last_token)),
    }
    // Who takes permits is told nothing of who had them before.
    if lock.permits.is_none() {
        line("abandoned", abandoned(lock, view));
    }
    line("waiting", waiting(lock));
    if !lock.holds.is_empty() {
        out.push_str(&format!("\n{}", holds(lock).render(view)));
    }
    if !lock.waiters.is_empty() {
        out.push_str(&format!("\n{}", waiters(lock).render(view)));
    }
    out
}

fn abandoned(lock: &LockReport, view: View) -> String {
    match lock.abandoned {
        "no" => "no: the holder before released".to_owned(),
        "yes" => view.paint(ODD, "yes: a holder was lost; what the lock protects may be half done"),
        _ => "unknown: nothing is known of a holder before".to_owned(),
    }
}

fn waiting(lock: &LockReport) -> String {
    let holds = lock.holds.iter().filter_map(|hold| hold.local_waiters);
    let waiters = lock.waiters.iter().filter_map(|waiter| waiter.local_waiters);
    let within: usize = holds.chain(waiters).map(|count| count as usize).sum();
    match (lock.waiting, lock.waiting.saturating_sub(within)) {
        (0, _) => "nobody".to_owned(),
        (all, _) if within == 0 => all.to_string(),
        (all, queued) => format!("{all}: {queued} in the queue, {within} within clients"),
    }
}

fn holds(lock: &LockReport) -> Table {
    let mut table = Table::new([
        ("HOLDER", Side::Left),
        ("CLIENT", Side::Left),
        ("EXPIRES IN", Side::Right),
        ("LEASE", Side::Right),
        ("MODE", Side::Left),
        ("TOKEN", Side::Right),
        ("WAIT WITHIN", Side::Right),
        ("HOLD", Side::Left),
        ("", Side::Left),
    ]);
    for hold in &lock.holds {
        table.row([
            name(&hold.label),
            hold.client.clone().into(),
            span::show(Duration::from_millis(hold.expires_in_ms)).into(),
            span::show(Duration::from_millis(hold.lease_ms)).into(),
            mode(hold.mode, hold.permits),
            hold.token.to_string().into(),
            count(hold.local_waiters),
            hold.hold.chars().take(SHOWN_ID).collect::<String>().into(),
            Cell::new(ODD, if hold.claim { "handed over, not heard from yet" } else { "" }),
        ]);
    }
    table
}

fn waiters(lock: &LockReport) -> Table {
    let mut table = Table::new([
        ("", Side::Right),
        ("WAITING", Side::Left),
        ("CLIENT", Side::Left),
        ("OWNER", Side::Left),
        ("MODE", Side::Left),
        ("HEARD", Side::Right),
        ("WAIT WITHIN", Side::Right),
        ("", Side::Left),
    ]);
    for (i, waiter) in lock.waiters.iter().enumerate() {
        table.row([
            (i + 1).into(),
            name(&waiter.label),
            waiter.client.clone().into(),
            waiter.owner.as_deref().map_or("-".into(), text::visible).into(),
            mode(waiter.mode, waiter.permits),
            format!("{} ago", span::show(Duration::from_millis(waiter.heard_ago_ms))).into(),
            count(waiter.local_waiters),
            Cell::new(ODD, if waiter.silent { "silent: would be passed over" } else { "" }),
        ]);
    }
    table
}

/// How somebody shares the lock, or would.
fn mode(word: &'static str, permits: Option<u32>) -> Cell {
    match permits {
        Some(1) => "1 permit".into(),
        Some(count) => format!("{count} permits").into(),
        None => word.into(),
    }
}

/// How many wait within a client.
fn count(of: Option<u32>) -> Cell {
    of.map_or("unknown".into(), Cell::from)
}

fn name(label: &str) -> Cell {
    if label.is_empty() { "-".into() } else { text::visible(label).into() }
}
