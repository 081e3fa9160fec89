//! From time to place.

use crate::demo::chart::style::{LEFT, RIGHT};

/// A scene's time axis.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    from: u64,
    span: u64,
}

impl Scale {
    /// An axis from `from` to `to`, in microseconds.
    pub fn new(from: u64, to: u64) -> Scale {
        Scale { from, span: to.saturating_sub(from).max(1_000) }
    }

    /// Where an instant stands.
    pub fn x(self, at: u64) -> f64 {
        let part = at.saturating_sub(self.from) as f64 / self.span as f64;
        LEFT + part.min(1.0) * (RIGHT - LEFT)
    }

    /// The ticks: where they stand, and what is written there.
    pub fn ticks(self) -> Vec<(f64, String)> {
        let steps =
            [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000];
        let wanted = steps.iter().find(|&&step| self.span / (step * 1_000) <= 10);
        let step = wanted.copied().unwrap_or(60_000) * 1_000;
        (0..=self.span / step)
            .map(|i| (self.x(self.from + i * step), text(i * step, step)))
            .collect()
    }
}

fn text(micros: u64, step: u64) -> String {
    if micros == 0 {
        "0".to_owned()
    } else if step >= 1_000_000 {
        format!("{} s", micros / 1_000_000)
    } else if step >= 100_000 {
        format!("{:.1} s", micros as f64 / 1e6)
    } else {
        format!("{} ms", micros / 1_000)
    }
}
