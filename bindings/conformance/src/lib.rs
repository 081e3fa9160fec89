//! One workload and one set of checks for Fencelock in every language.
//!
//! A driver is a program in one language that does what it is told, line by line, and says what
//! happens to it (README.md has the protocol). The [`scene`]s stage one promise each, with drivers of
//! one language beside one in Rust; the mix lets all languages contend for one lock under faults.
//! Whatever all of them say is one history, which `fencelock-history` judges.

pub mod mix;
pub mod scene;
mod scenes;
mod stage;
mod verdict;

pub use verdict::{Column, Matrix, Verdict};
