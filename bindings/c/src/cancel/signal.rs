//! From a signal handler to a thread that may do what a handler may not: a byte through a pipe.

#[cfg(unix)]
pub(super) use pipe::{prepare, ring};

#[cfg(unix)]
mod pipe {
    use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
    use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
    use std::sync::{Mutex, PoisonError};

    use fencelock_support::{Error, ErrorKind, fork};

    use crate::failure::Failure;

    /// The pipe and its thread, of one process. Leaked: a handler may be using it.
    struct Bell {
        born: u32,
        writer: PipeWriter,
        /// A byte is under way.
        rung: AtomicBool,
    }

    static BELL: AtomicPtr<Bell> = AtomicPtr::new(std::ptr::null_mut());

    /// This process' own. A forked child's parent has another, which nobody here listens to.
    fn bell() -> Option<&'static Bell> {
        // SAFETY: it is null, or was leaked below.
        let bell = unsafe { BELL.load(Ordering::SeqCst).as_ref() };
        bell.filter(|bell| bell.born == fork::generation())
    }

    /// Starts the thread that listens and runs `heed` for each ring, unless this process has it. A
    /// forked child has not.
    pub(in crate::cancel) fn prepare(heed: fn()) -> Result<(), Failure> {
        static STARTING: Mutex<()> = Mutex::new(());
        if bell().is_some() {
            return Ok(());
        }
        let _one = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        if bell().is_some() {
            return Ok(());
        }
        let (reader, writer) = pipe().map_err(no_resource)?;
        let born = fork::watch();
        let made: &'static Bell =
            Box::leak(Box::new(Bell { born, writer, rung: AtomicBool::new(false) }));
        std::thread::Builder::new()
            .name("fencelock-cancel".to_owned())
            .spawn(move || listen(made, reader, heed))
            .map_err(no_resource)?;
        BELL.store(std::ptr::from_ref(made).cast_mut(), Ordering::SeqCst);
        Ok(())
    }

    /// Async-signal-safe: atomics and write(2). The pipe never fills, as there is one byte in it at
    /// the most, so the write neither blocks nor fails, and leaves errno alone. Without a bell, in a
    /// forked child, nobody waits yet; the first wait looks for what was asked.
    ///
    /// Whether there can be a thread that listens.
    pub(in crate::cancel) fn ring() -> bool {
        if let Some(bell) = bell()
            && !bell.rung.swap(true, Ordering::AcqRel)
        {
            let _ = (&bell.writer).write(&[1]);
        }
        true
    }

    fn listen(bell: &Bell, mut reader: PipeReader, heed: fn()) {
        let mut byte = [0];
        loop {
            match reader.read(&mut byte) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            }
            // Before looking: what is asked for from now on rings again. A swap, so that whoever found
            // it rung has asked before this looks.
            bell.rung.swap(false, Ordering::AcqRel);
            heed();
        }
    }

    fn no_resource(error: std::io::Error) -> Failure {
        Error::new(
            ErrorKind::Unavailable,
            format!("the operating system gives no pipe or thread for cancelling: {error}"),
        )
        .into()
    }
}

#[cfg(not(unix))]
pub(super) fn prepare(_: fn()) -> Result<(), crate::failure::Failure> {
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn ring() -> bool {
    false
}
