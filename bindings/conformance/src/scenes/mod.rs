//! What happens in each scene.
//!
//! `one` and `two` are processes of the language that is tested, `rust` is one of ours.

pub(crate) mod faults;
pub(crate) mod owners;
pub(crate) mod plain;
pub(crate) mod restart;

/// Fails a scene with what was expected.
macro_rules! expected {
    ($holds:expr, $($what:tt)+) => {
        if !$holds {
            return Err(format!($($what)+));
        }
    };
}
pub(crate) use expected;
