//! The promises, each by its number, on every store that processes share.
#![cfg(target_os = "linux")]

mod world;

mod p01_exclusion;
mod p02_fencing;
mod p04_retries;
mod p06_owners;
mod p08_lost;
mod p09_waiting;
mod p11_cancel;
mod p12_abandoned;
