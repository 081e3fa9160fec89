//! What a paused holder does too late is refused by the ledger.

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

#[test]
fn a_read_under_an_old_token_is_refused() -> Result<(), fencelock::Error> {
    let mut ledger = Connection::open_in_memory().unwrap();
    fenced_ledger::prepare(&ledger).unwrap();
    let client = Client::connect("memory:fenced-readers")?;
    let lock = client.rw_lock("ledger")?.non_reentrant();

    // Two read together; the lease of one ends while it sleeps, the other releases.
    let paused = lock.clone().lease(Duration::from_millis(200)).read()?;
    let other = lock.read()?;
    assert_eq!(fenced_ledger::read(&mut ledger, other.token()).unwrap(), Some(vec![]));
    // The later reader does not make the earlier one late.
    assert_eq!(fenced_ledger::read(&mut ledger, paused.token()).unwrap(), Some(vec![]));
    other.release()?;

    let writer = lock.write()?;
    assert!(!paused.is_valid());
    assert!(fenced_ledger::write(&mut ledger, writer.token(), "a price").unwrap());
    assert_eq!(fenced_ledger::read(&mut ledger, paused.token()).unwrap(), None);
    writer.release()?;
    let reader = lock.read()?;
    let seen = fenced_ledger::read(&mut ledger, reader.token()).unwrap();
    assert_eq!(seen, Some(vec!["a price".to_owned()]));
    Ok(())
}

#[test]
fn a_late_write_is_refused_while_others_read() -> Result<(), fencelock::Error> {
    let mut ledger = Connection::open_in_memory().unwrap();
    fenced_ledger::prepare(&ledger).unwrap();
    let client = Client::connect("memory:fenced-writers")?;
    let lock = client.rw_lock("ledger")?.non_reentrant();

    let paused = lock.clone().lease(Duration::from_millis(200)).write()?;
    assert!(fenced_ledger::write(&mut ledger, paused.token(), "in time").unwrap());
    let reader = lock.read()?;
    assert!(!paused.is_valid());
    let seen = fenced_ledger::read(&mut ledger, reader.token()).unwrap();
    // No writer has come since: only the reader's token tells that this one is late.
    assert!(!fenced_ledger::write(&mut ledger, paused.token(), "too late").unwrap());
    assert_eq!(fenced_ledger::read(&mut ledger, reader.token()).unwrap(), seen);

    reader.release()?;
    let next = lock.write()?;
    assert!(fenced_ledger::write(&mut ledger, next.token(), "in its turn").unwrap());
    Ok(())
}
