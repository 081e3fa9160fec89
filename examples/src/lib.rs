//! Short programs that show how to use Fencelock, and when not to use a lock at all. Each is a
//! function that the tests of this crate run; the README and the docs quote them.

pub mod atomic_script;
pub mod fenced_ledger;
pub mod unique_index;
pub mod version_check;
