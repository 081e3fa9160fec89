//! What happened, as a hash always and as text when asked for.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::clock::Instant;

/// The record of a run. Two runs of the same seed have the same hash.
#[derive(Debug, Default)]
pub struct Trace {
    hash: u64,
    text: Option<String>,
    echo: bool,
}

impl Trace {
    /// Only the hash.
    pub fn silent() -> Trace {
        Trace::default()
    }

    /// The hash, and the text kept.
    pub fn kept() -> Trace {
        Trace { text: Some(String::new()), ..Trace::default() }
    }

    /// The hash, and the text printed line by line.
    pub fn printed() -> Trace {
        Trace { echo: true, ..Trace::default() }
    }

    /// Mixes a number into the hash.
    pub fn mix(&mut self, number: u64) {
        self.hash = (self.hash.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    /// Notes a line. It is formatted only when somebody reads it.
    pub fn line(&mut self, at: Instant, what: impl FnOnce() -> String) {
        if self.echo || self.text.is_some() {
            self.write(at, what);
        }
    }

    /// Apart, so that what most runs never do is out of the way of what they do.
    #[cold]
    #[inline(never)]
    fn write(&mut self, at: Instant, what: impl FnOnce() -> String) {
        if self.echo {
            // Whoever reads may stop reading.
            let _ = writeln!(std::io::stdout(), "{:>13.6} {}", at as f64 / 1e9, what());
        } else if let Some(text) = &mut self.text {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{:>13.6} {}", at as f64 / 1e9, what());
        }
    }

    /// The hash of all that was mixed in.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The text, when it was kept.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or("")
    }
}
