//! How figures spread.

use serde::{Deserialize, Serialize};

/// The least, the middle and the greatest of some figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The middle one.
    pub median: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// Of at least one figure; of none, all are not a number.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Spread {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let half = sorted.len() / 2;
        match sorted.as_slice() {
            [] => Spread { min: f64::NAN, median: f64::NAN, max: f64::NAN },
            [min, .., max] if sorted.len().is_multiple_of(2) => Spread {
                min: *min,
                median: f64::midpoint(sorted[half - 1], sorted[half]),
                max: *max,
            },
            all => Spread { min: all[0], median: all[half], max: all[all.len() - 1] },
        }
    }
}
