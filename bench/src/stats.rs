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

/// Spreads in JSON, which has no word for what is not finite: `null`.
pub mod finite {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Spread;

    /// Writes `null` for a spread that is not finite.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn serialize<S: Serializer>(spread: &Spread, to: S) -> Result<S::Ok, S::Error> {
        spread.median.is_finite().then_some(spread).serialize(to)
    }

    /// Reads it as infinite.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Spread, D::Error> {
        let never = Spread { min: f64::INFINITY, median: f64::INFINITY, max: f64::INFINITY };
        Ok(Option::deserialize(from)?.unwrap_or(never))
    }
}
