//! The promises on a real ZooKeeper ensemble, with real faults.
#![cfg(target_os = "linux")]

mod world;

mod client_faults;
mod herd;
mod partition;
mod server_faults;
