//! Histories of what happened to the holders of locks: their format, and the checks of them.
//!
//! A history is a list of [`Record`]s, kept as JSON lines. [`check::all`] judges the promises that a
//! history can show, [`linear::judge`] whether tries can be put in an order. The README of this crate
//! lists the events.

pub mod check;
pub mod linear;
pub mod page;
mod record;

pub use record::{NEMESIS, Record, read, write};
