//! What each fuzz target does with its bytes: it panics when something is wrong. The targets in
//! the folder above feed these to libFuzzer; the tests here feed them random bytes on any compiler.

mod abi;
mod bytes;
mod calls;
mod codec;
mod names;
mod resp;
mod secrets;
mod urls;

pub use abi::abi;
pub use calls::calls;
pub use codec::codec;
pub use names::names;
pub use resp::resp;
pub use secrets::secrets;
pub use urls::urls;
