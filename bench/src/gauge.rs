//! A figure that is no time of one operation.

use serde::{Deserialize, Serialize};

use crate::stats::Spread;

/// Something that is counted or weighed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Gauge {
    /// What.
    pub name: String,
    /// In what.
    pub unit: String,
    /// How much of it.
    pub value: Spread,
    /// At most so much is hoped for.
    pub aim: Option<f64>,
}

impl Gauge {
    /// A figure of each round.
    pub fn of(name: impl Into<String>, unit: &str, figures: Vec<f64>, aim: Option<f64>) -> Gauge {
        Gauge { name: name.into(), unit: unit.to_owned(), value: Spread::of(figures), aim }
    }

    /// Whether the median is within the aim.
    pub fn is_met(&self) -> bool {
        self.aim.is_none_or(|aim| self.value.median <= aim)
    }
}
