//! The promises on real Redis servers of which one takes over from another, and what is said of the sides of a
//! network that has fallen apart. The networks are made of namespaces: they need root. Where the machine
//! cannot, the cases are left out and counted so.
#![cfg(target_os = "linux")]

mod world;

mod cut_off;
mod two_masters;
