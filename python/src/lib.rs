//! The native half of the Python package `fencelock`: types are converted here, and nothing else.
//!
//! Blocking calls give the interpreter's lock up only when there is something to wait for
//! (`lock`, `signals`). Asynchronous ones post their end to a `mailbox`, which the caller's
//! loop empties: the client's own threads never take the interpreter's lock.

mod client;
mod convert;
mod errors;
mod hold;
mod info;
mod lock;
mod mailbox;
mod mode;
mod named;
mod operation;
mod semaphore;
mod signals;
mod watch;

#[pyo3::pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::client::{Client, connect, connect_start};
    #[pymodule_export]
    use crate::hold::{BaseHold, Hold};
    #[pymodule_export]
    use crate::info::{Broken, Capabilities, HoldInfo, LockInfo, WaiterInfo};
    #[pymodule_export]
    use crate::lock::{BaseLock, Lock};
    #[pymodule_export]
    use crate::mailbox::Mailbox;
    #[pymodule_export]
    use crate::operation::Operation;
    #[pymodule_export]
    use crate::semaphore::BaseSemaphore;
    #[pymodule_export]
    use crate::signals::{in_main_interpreter, set_main_thread};
    #[pymodule_export]
    use crate::watch::Lost;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("ERRORS", crate::errors::table())
    }
}
