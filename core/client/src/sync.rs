//! What threads share state by, in one place: a model checker puts its own in its stead.

pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(crate) use std::thread::Thread;

pub(crate) use parking_lot::{Mutex, MutexGuard};
