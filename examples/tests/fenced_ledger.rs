//! A paused holder's late write is refused by the ledger.

use std::time::Duration;

use fencelock::blocking::Client;
use fencelock_examples::fenced_ledger;
use rusqlite::Connection;

#[test]
fn a_write_under_an_old_token_is_refused() -> Result<(), fencelock::Error> {
    let mut ledger = Connection::open_in_memory().unwrap();
    fenced_ledger::prepare(&ledger).unwrap();
    let client = Client::connect("memory:fenced-ledger")?;
    let lock = client.lock("ledger")?.non_reentrant();

    // The first holder's lease ends while it sleeps.
    let paused = lock.clone().lease(Duration::from_millis(200)).acquire()?;
    let old = paused.token();
    let next = lock.acquire()?;
    assert!(!paused.is_valid());
    assert!(fenced_ledger::write(&mut ledger, next.token(), "by the next holder").unwrap());
    assert!(!fenced_ledger::write(&mut ledger, old, "too late").unwrap());
    assert!(fenced_ledger::write(&mut ledger, next.token(), "again").unwrap());
    Ok(())
}
