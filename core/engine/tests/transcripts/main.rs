//! Conversations of an engine with a store that answers what a test wants, word for word: each request
//! with all that it says, each outcome, and when the engine next wants to be woken.
//!
//! What is expected lies in `said`; `TRANSCRIPTS=write` writes it anew, and the difference is looked at.

mod asking;
mod ending;
mod faults;
mod holding;
mod sharing;
mod talk;
mod waiting;
