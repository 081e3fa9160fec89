//! The tables.

/// The layout's version. A file with another one is refused; whatever the layout, the version is
/// `SELECT layout FROM fencelock_meta`.
pub(crate) const LAYOUT: i64 = 5;

/// Makes the tables. Times are the store's, in microseconds; hold ids are 32 and client ids 16
/// hexadecimal digits.
pub(crate) const TABLES: &str = "
CREATE TABLE IF NOT EXISTS fencelock_meta (
    only INTEGER NOT NULL PRIMARY KEY CHECK (only = 1),
    layout INTEGER NOT NULL,
    boot TEXT NOT NULL,     -- the boot in which `ahead` counts
    ahead INTEGER NOT NULL, -- the store's time minus the boot clock
    skew INTEGER NOT NULL,  -- the store's time minus the wall clock, as the latest writer found it
    floor INTEGER NOT NULL  -- no token of a lock that was forgotten lies above
) STRICT;
CREATE TABLE IF NOT EXISTS fencelock_locks (
    name TEXT NOT NULL PRIMARY KEY,
    owner TEXT,
    token INTEGER NOT NULL,
    last INTEGER NOT NULL,
    used INTEGER NOT NULL,      -- the highest token that a renewal showed as given out
    abandoned INTEGER NOT NULL, -- 0 no, 1 yes, 2 unknown
    losses INTEGER NOT NULL,    -- holds that the present owner lost
    released TEXT,
    ticket INTEGER NOT NULL,
    until INTEGER,        -- when it may be forgotten; NULL while anybody holds or waits
    due INTEGER NOT NULL  -- when it is looked at for that
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS fencelock_due ON fencelock_locks (due);
CREATE TABLE IF NOT EXISTS fencelock_holds (
    name TEXT NOT NULL,
    hold TEXT NOT NULL,
    client TEXT NOT NULL,
    label TEXT NOT NULL,
    polling INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    lease INTEGER NOT NULL,
    asked INTEGER NOT NULL,
    claim INTEGER NOT NULL,
    local_waiters INTEGER NOT NULL DEFAULT 0,  -- who waits within its client
    mode TEXT,     -- NULL exclusive, 'shared', or as many permits of how many: '2 of 5'
    token INTEGER, -- one of its own; an exclusive hold has the lock's
    owner TEXT,    -- likewise
    PRIMARY KEY (name, hold)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fencelock_waiters (
    name TEXT NOT NULL,
    hold TEXT NOT NULL,
    client TEXT NOT NULL,
    label TEXT NOT NULL,
    polling INTEGER NOT NULL,
    owner TEXT,
    ticket INTEGER NOT NULL,
    heard INTEGER NOT NULL,
    silent INTEGER NOT NULL,
    lease INTEGER NOT NULL,
    claim INTEGER NOT NULL,
    silence INTEGER NOT NULL,
    local_waiters INTEGER NOT NULL DEFAULT 0,
    mode TEXT,
    PRIMARY KEY (name, hold)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fencelock_news (  -- what a client is to look at
    name TEXT NOT NULL,
    hold TEXT NOT NULL,
    client TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (name, hold)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS fencelock_news_of ON fencelock_news (client);
";

/// The layout before, which lacks columns of two tables, and what makes it this one.
pub(crate) const BEFORE: i64 = 4;
pub(crate) const UPGRADE: &str = "
ALTER TABLE fencelock_holds ADD COLUMN mode TEXT;
ALTER TABLE fencelock_holds ADD COLUMN token INTEGER;
ALTER TABLE fencelock_holds ADD COLUMN owner TEXT;
ALTER TABLE fencelock_waiters ADD COLUMN mode TEXT;
UPDATE fencelock_meta SET layout = 5;
";

/// What a boot ended: its holds are past their deadline, which the rules then find and tell; its
/// waiters are silent; and since a power cut may have lost the last transactions, a lock that
/// looks free cannot say how its last holder ended, nor one that is shared how its last writer did.
pub(crate) const NEW_BOOT: &str = "
UPDATE fencelock_holds SET deadline = 0;
UPDATE fencelock_waiters SET silent = 1;
UPDATE fencelock_locks SET abandoned = 2
    WHERE abandoned = 0 AND name NOT IN (SELECT name FROM fencelock_holds WHERE mode IS NULL);
";

/// When the last hold ends, by the store's time.
pub(crate) const LAST_END: &str = "SELECT max(deadline) FROM fencelock_holds";

/// The highest token that the file knows.
pub(crate) const HIGHEST: &str = "
SELECT max(coalesce((SELECT floor FROM fencelock_meta), 0),
           coalesce((SELECT max(last) FROM fencelock_locks), 0))";
