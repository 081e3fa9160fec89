//! Fencelock in every language beside every lock that its users could pick instead, in turn on one
//! Redis server. Each is a process that does what `bench/drivers/README.md` says.

pub mod chart;
pub mod growth;
pub mod measures;
pub mod peers;
pub mod report;
pub mod server;
pub mod table;
pub mod team;

#[cfg(test)]
mod tests;
