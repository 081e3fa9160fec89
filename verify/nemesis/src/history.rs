//! The joint history of a run, while it grows: the records that everybody's lines make.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fencelock_history::{NEMESIS, Record, write};

/// How long anything that is awaited may take on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(30);

/// A pause of all threads that is worth a note.
const STALL: u64 = 300_000_000;

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

    /// Writes it to a file as JSON lines, in the order of time.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let mut file = io::BufWriter::new(std::fs::File::create(path)?);
        write(&self.since(0), &mut file)?;
        file.flush()
    }
}
