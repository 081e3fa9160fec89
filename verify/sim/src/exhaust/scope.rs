//! What is explored: who calls, what may go wrong, and how often.

use std::time::Duration;

use fencelock_engine::Options;

/// What a caller does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Do {
    /// Acquires and waits for ever.
    Lock,
    /// Acquires without waiting.
    Try,
    /// Acquires with an explicit lease, and waits for ever.
    Brief,
    /// Acquires for the explicit owner, and waits for ever.
    Own,
    /// Acquires beside others who do, and waits for ever.
    Read,
    /// Acquires one of three permits, and waits for ever.
    One,
    /// Acquires two of them.
    Two,
    /// Makes the latest hold shared.
    Downgrade,
    /// Makes the latest hold exclusive, if nobody else reads.
    Upgrade,
    /// There are four permits from now on.
    More,
    /// There is one permit from now on.
    Fewer,
    /// Extends the latest hold.
    Extend,
    /// Releases the latest hold.
    Unlock,
}

use Do::{Brief, Downgrade, Extend, Fewer, Lock, More, One, Own, Read, Try, Two, Unlock, Upgrade};

/// A caller's whole life: it ends with as many releases as it has acquisitions.
pub(super) type Program = &'static [Do];

/// How often each kind of trouble may happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    /// Connections cut: what was sent may yet arrive, what was answered is lost.
    pub cuts: u8,
    /// Waits cancelled.
    pub cancels: u8,
    /// Clients that vanish for good.
    pub crashes: u8,
    /// Short steps of the clock.
    pub shorts: u8,
    /// Steps of the clock that outlast a lease. A client that is not woken then was paused.
    pub longs: u8,
    /// Times that the store loses everything; the clock takes a short step with it.
    pub wipes: u8,
}

/// A world small enough to be explored to its end.
#[derive(Clone, Debug)]
pub struct Scope {
    /// What it is called.
    pub name: &'static str,
    /// Who calls, client by client.
    pub(super) clients: &'static [&'static [Program]],
    pub(super) budget: Budget,
    /// Clients without an inbox.
    pub(super) polling: bool,
    /// Local hand-offs in a row while another client waits.
    pub(super) run: u32,
}

/// Just short of half a claim: two of them end a claim for its client, and not yet for the store.
pub(super) const SHORT: Duration = Duration::from_millis(490);
/// Longer than a lease and than a request may take.
pub(super) const LONG: Duration = Duration::from_millis(3_100);
/// The explicit lease of [`Do::Brief`].
pub(super) const BRIEF: Duration = Duration::from_millis(900);

const ONCE: Program = &[Lock, Unlock];
const TWICE: Program = &[Lock, Unlock, Lock, Unlock];
const READ: Program = &[Read, Unlock];
const READ_TWICE: Program = &[Read, Read, Unlock, Unlock];
const READ_INSIDE: Program = &[Lock, Read, Unlock, Unlock];
const WRITE_INSIDE: Program = &[Read, Lock, Unlock, Unlock];
const ONE: Program = &[One, Unlock];
const TWO: Program = &[Two, Unlock];
const DOWN: Program = &[Lock, Downgrade, Unlock];
const UP: Program = &[Read, Upgrade, Unlock];
const TWO_MORE: Program = &[Two, More, Unlock];
const TWO_FEWER: Program = &[Two, Fewer, Unlock];
const NESTED: Program = &[Lock, Lock, Unlock, Unlock];

const NONE: Budget = Budget { cuts: 0, cancels: 0, crashes: 0, shorts: 0, longs: 0, wipes: 0 };

impl Scope {
    pub(super) fn options(&self) -> Options {
        Options {
            lease: Duration::from_secs(3),
            claim: Duration::from_secs(1),
            request_timeout: Duration::from_secs(3),
            local_run_grants: self.run,
            ..Options::default()
        }
    }

    const fn of(
        name: &'static str,
        clients: &'static [&'static [Program]],
        budget: Budget,
    ) -> Scope {
        Scope { name, clients, budget, polling: false, run: 64 }
    }

    /// Some seconds' worth, for every test run.
    pub fn small() -> Vec<Scope> {
        const PAIR: &[&[Program]] = &[&[ONCE], &[ONCE]];
        vec![
            Scope::of("hand-off", &[&[TWICE], &[ONCE]], Budget { shorts: 1, ..NONE }),
            Scope::of("lost reply", PAIR, Budget { cuts: 1, shorts: 1, ..NONE }),
            Scope::of("expiry", PAIR, Budget { shorts: 1, longs: 1, ..NONE }),
            Scope::of("re-entry", &[&[NESTED], &[ONCE]], Budget { cuts: 1, ..NONE }),
            Scope::of("re-entry, paused", &[&[NESTED], &[ONCE]], Budget { longs: 1, ..NONE }),
            Scope::of("cancel", PAIR, Budget { cuts: 1, cancels: 1, ..NONE }),
            Scope::of(
                "explicit lease",
                &[&[&[Brief, Extend, Unlock]], &[ONCE]],
                Budget { shorts: 2, ..NONE },
            ),
            Scope::of("crash", &[&[TWICE], &[ONCE]], Budget { crashes: 1, ..NONE }),
            Scope {
                run: 1,
                ..Scope::of("local queue", &[&[ONCE, ONCE], &[ONCE]], Budget { cancels: 1, ..NONE })
            },
            Scope::of("try", &[&[ONCE], &[&[Try, Unlock]]], Budget { cuts: 1, ..NONE }),
            Scope::of(
                "owner",
                &[&[&[Own, Unlock]], &[&[Own, Unlock]]],
                Budget { cuts: 1, cancels: 1, ..NONE },
            ),
            Scope::of("readers", &[&[READ], &[READ, ONCE]], Budget { cancels: 1, ..NONE }),
            Scope::of("read inside", &[&[READ_INSIDE], &[READ]], Budget { cuts: 1, ..NONE }),
            Scope::of("nested reads", &[&[READ_TWICE], &[ONCE]], Budget { cuts: 1, ..NONE }),
            Scope::of("write inside", &[&[WRITE_INSIDE], &[ONCE]], Budget { cuts: 1, ..NONE }),
            Scope::of("two readers and a writer", &[&[READ], &[READ], &[ONCE]], NONE),
            Scope::of("readers of one client", &[&[READ, READ], &[ONCE]], NONE),
            Scope::of(
                "readers of one client, cancel",
                &[&[READ, READ], &[ONCE]],
                Budget { cancels: 1, ..NONE },
            ),
            Scope::of("readers and a local writer", &[&[READ, READ, ONCE]], NONE),
            Scope::of("two of three permits", &[&[TWO], &[TWO], &[ONE]], NONE),
            Scope::of("permits", &[&[TWO], &[TWO, ONE]], Budget { cancels: 1, ..NONE }),
            Scope::of("two readers and a downgrade", &[&[READ], &[READ], &[DOWN]], NONE),
            Scope::of("downgrade", &[&[DOWN], &[ONCE]], Budget { cuts: 1, ..NONE }),
            Scope::of("upgrade", &[&[UP], &[READ]], Budget { cuts: 1, ..NONE }),
            Scope::of("upgrade and writer", &[&[UP], &[ONCE]], Budget { shorts: 1, ..NONE }),
            Scope::of("more permits", &[&[TWO_MORE], &[TWO]], Budget { cuts: 1, ..NONE }),
            Scope::of("fewer permits", &[&[TWO_FEWER], &[TWO]], Budget { cuts: 1, ..NONE }),
            Scope::of("permits, resized", &[&[TWO_MORE], &[TWO], &[TWO]], NONE),
        ]
    }

    /// Larger ones, for the deep run.
    pub fn large() -> Vec<Scope> {
        const PAIR: &[&[Program]] = &[&[ONCE], &[ONCE]];
        const THREE: &[&[Program]] = &[&[ONCE], &[ONCE], &[ONCE]];
        let mut scopes = Scope::small();
        scopes.extend([
            Scope::of("hand-off, twice each", &[&[TWICE], &[TWICE]], Budget { shorts: 2, ..NONE }),
            Scope::of("two lost replies", PAIR, Budget { cuts: 2, shorts: 1, ..NONE }),
            Scope::of("lost reply, slow", PAIR, Budget { cuts: 1, shorts: 2, ..NONE }),
            Scope::of("lost reply, expiry", PAIR, Budget { cuts: 1, longs: 1, ..NONE }),
            Scope::of("expiry, slow", PAIR, Budget { shorts: 2, longs: 1, ..NONE }),
            Scope::of(
                "re-entry, expiry",
                &[&[NESTED], &[ONCE]],
                Budget { cuts: 1, longs: 1, ..NONE },
            ),
            Scope::of("cancel, slow", PAIR, Budget { cuts: 1, cancels: 1, shorts: 1, ..NONE }),
            Scope::of("three clients", THREE, Budget { ..NONE }),
            Scope::of("three clients, slow", THREE, Budget { shorts: 1, ..NONE }),
            Scope::of("three clients, cancel", THREE, Budget { cancels: 1, ..NONE }),
            Scope {
                run: 1,
                ..Scope::of(
                    "local queue, slow",
                    &[&[ONCE, ONCE], &[ONCE]],
                    Budget { cancels: 1, shorts: 1, ..NONE },
                )
            },
            Scope {
                run: 1,
                ..Scope::of(
                    "local queue, lost reply",
                    &[&[ONCE, ONCE], &[ONCE]],
                    Budget { cuts: 1, ..NONE },
                )
            },
            Scope::of(
                "owner and stranger",
                &[&[&[Own, Unlock]], &[&[Own, Unlock]], &[ONCE]],
                Budget { ..NONE },
            ),
            Scope::of(
                "explicit lease, lost reply",
                &[&[&[Brief, Extend, Unlock]], &[ONCE]],
                Budget { cuts: 1, shorts: 2, ..NONE },
            ),
            Scope::of("crash, expiry", PAIR, Budget { crashes: 1, shorts: 1, longs: 1, ..NONE }),
            Scope::of("crash, lost reply", PAIR, Budget { cuts: 1, crashes: 1, shorts: 1, ..NONE }),
            Scope {
                polling: true,
                ..Scope::of("polling", PAIR, Budget { cuts: 1, shorts: 2, ..NONE })
            },
            Scope::of(
                "reader and writer",
                &[&[READ], &[ONCE]],
                Budget { cuts: 1, shorts: 1, longs: 1, ..NONE },
            ),
            Scope::of("readers, lost reply", &[&[READ], &[READ, ONCE]], Budget { cuts: 1, ..NONE }),
            Scope::of(
                "readers of one client, lost reply",
                &[&[READ, READ], &[ONCE]],
                Budget { cuts: 1, ..NONE },
            ),
            Scope::of(
                "readers of one client, slow",
                &[&[READ, READ], &[ONCE]],
                Budget { cancels: 1, shorts: 1, ..NONE },
            ),
            Scope::of(
                "readers of one client, expiry",
                &[&[READ, READ], &[ONCE]],
                Budget { longs: 1, ..NONE },
            ),
            Scope::of(
                "permits, expiry",
                &[&[TWO], &[TWO]],
                Budget { cuts: 1, shorts: 1, longs: 1, ..NONE },
            ),
            Scope::of("permits, lost reply", &[&[TWO], &[TWO, ONE]], Budget { cuts: 1, ..NONE }),
            Scope::of("wiped store", PAIR, Budget { cuts: 1, shorts: 1, wipes: 1, ..NONE }),
        ]);
        scopes
    }
}
