//! The joint history of a run: one record for each thing that happened, one line for each record.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long anything that is awaited may take on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(30);

/// A pause of all threads that is worth a note.
const STALL: u64 = 300_000_000;

/// Who writes what is done to the actors and to the store.
pub(crate) const NEMESIS: &str = "nemesis";

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When, by the boot clock of the one to whom it happened.
    pub at: u64,
    /// When, by its wall clock.
    pub wall: u64,
    /// Whose record this is: an actor's name, or `nemesis`.
    pub who: Arc<str>,
    /// What happened.
    pub event: String,
    /// What it concerns: an acquisition, a client, a fault.
    pub tag: String,
    /// More about it.
    pub fields: Vec<(String, String)>,
}

impl Record {
    /// Reads an actor's line: `at wall event tag key=value…`.
    pub fn parse(who: &Arc<str>, line: &str) -> Option<Record> {
        let mut words = line.split(' ');
        let at = words.next()?.parse().ok()?;
        let wall = words.next()?.parse().ok()?;
        let event = words.next()?.to_owned();
        let tag = words.next().unwrap_or_default().to_owned();
        let fields = words
            .filter_map(|word| word.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        Some(Record { at, wall, who: who.clone(), event, tag, fields })
    }

    /// The value of a field.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// The number in a field; 0 when there is none.
    pub fn number(&self, key: &str) -> u64 {
        self.get(key).and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    /// Whether it is this event.
    pub fn is(&self, event: &str) -> bool {
        self.event == event
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {} {}", self.at, self.wall, self.who, self.event, self.tag)?;
        self.fields.iter().try_for_each(|(key, value)| write!(f, " {key}={value}"))
    }
}

/// The joint history. Cheap to clone; all clones are the same history.
#[derive(Clone, Debug, Default)]
pub struct History(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    records: Mutex<Vec<Record>>,
    grown: Condvar,
}

impl History {
    /// A history that also notes when nothing ran for a while, as when the whole machine is paused.
    pub fn watched() -> History {
        let history = History::default();
        let inner = Arc::downgrade(&history.0);
        std::thread::spawn(move || {
            let mut last = crate::boot();
            while let Some(inner) = inner.upgrade() {
                let now = crate::boot();
                if now - last > STALL {
                    History(inner).note("stalled", "machine", &[("from", &last), ("to", &now)]);
                }
                last = now;
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        history
    }

    /// Adds a record.
    pub fn push(&self, record: Record) {
        self.0.records.lock().unwrap_or_else(PoisonError::into_inner).push(record);
        self.0.grown.notify_all();
    }

    /// Adds what was done to `tag`, now.
    pub fn note(&self, event: &str, tag: &str, fields: &[(&str, &dyn fmt::Display)]) {
        self.push(Record {
            at: crate::boot(),
            wall: crate::wall(),
            who: NEMESIS.into(),
            event: event.to_owned(),
            tag: tag.to_owned(),
            fields: fields.iter().map(|(key, it)| ((*key).to_owned(), it.to_string())).collect(),
        });
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.0.records.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether nothing has happened.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The records from the `from`th on.
    pub fn since(&self, from: usize) -> Vec<Record> {
        let records = self.0.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.get(from..).unwrap_or_default().to_vec()
    }

    /// Waits until a record from the `from`th on is `wanted`, for `limit` at the most.
    pub fn find(
        &self,
        from: usize,
        limit: Duration,
        mut wanted: impl FnMut(&Record) -> bool,
    ) -> Option<Record> {
        let deadline = Instant::now() + limit;
        let mut seen = from;
        let mut records = self.0.records.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            while let Some(record) = records.get(seen) {
                seen += 1;
                if wanted(record) {
                    return Some(record.clone());
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.0.grown.wait_timeout(records, left);
            records = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Writes it to a file, in the order of time.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let mut records = self.since(0);
        records.sort_by_key(|record| record.at);
        let mut file = io::BufWriter::new(std::fs::File::create(path)?);
        for record in records {
            writeln!(file, "{record}")?;
        }
        file.flush()
    }
}
