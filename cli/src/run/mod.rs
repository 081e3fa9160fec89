//! `fencelock run`: a command under a lock.

mod child;
mod signals;

use fencelock::text;
use fencelock::{Client, Error, ErrorKind, Guard, Lock, OwnerId};
use tokio::time::Instant;

use crate::args::{Common, Run};
use crate::failure::Failure;
use crate::run::child::{Child, Group};
use crate::run::signals::Signals;
use crate::{client, exit, store};

/// Runs a command while holding a lock, and gives the code to end with.
pub fn run(common: &Common, run: &Run) -> Result<u8, Failure> {
    if let Some(of) = run.of.filter(|of| *of < run.permits) {
        return Err(Failure::own(format!(
            "{} permits of {of} are never to be had: --permits is at most --of",
            run.permits
        )));
    }
    let url = store::url(common)?;
    let group = Group::choose(run.foreground);
    // From here on no signal ends this process without the lock being released.
    let signals = Signals::catch(group)?;
    client::runtime()?.block_on(under_lock(&url, run, group, signals))
}

async fn under_lock(
    url: &str,
    run: &Run,
    group: Group,
    mut signals: Signals,
) -> Result<u8, Failure> {
    let mut builder = Client::builder(url).label(label(run));
    if let Some(lease) = run.lease {
        builder = builder.lease(lease);
    }
    let client = tokio::select! {
        client = builder.connect() => client?,
        signal = signals.fatal() => return Ok(exit::of_signal(signal)),
    };
    if !client.capabilities().processes {
        return Err(Failure::own(
            "this store lives in one process only, so a lock on it keeps nobody else out; use \
             sqlite:PATH or redis://HOST, or no --store at all",
        ));
    }
    let done = with_client(&client, run, group, &mut signals).await;
    client.close().await;
    done
}

async fn with_client(
    client: &Client,
    run: &Run,
    group: Group,
    signals: &mut Signals,
) -> Result<u8, Failure> {
    let mut lock = wanted(client, run)?;
    if let Some(owner) = &run.owner {
        lock = lock.owner(OwnerId::new(owner)?);
    }
    if let Some(ceiling) = run.max_hold {
        lock = lock.max_hold(ceiling);
    }
    let acquired = tokio::select! {
        acquired = acquire(&lock, run) => acquired,
        signal = signals.fatal() => return Ok(exit::of_signal(signal)),
    };
    match acquired {
        Ok(guard) => hold(guard, run, group, signals).await,
        Err(error) => Err(not_acquired(run, &error)),
    }
}

/// What the command is to have: the lock, its read side, or some permits.
fn wanted(client: &Client, run: &Run) -> Result<Lock, Error> {
    match run.of {
        Some(of) => Ok(client.semaphore(&run.name, of)?.taking(run.permits)),
        None if run.shared => Ok(client.rw_lock(&run.name)?.reader()),
        None => client.lock(&run.name),
    }
}

async fn acquire(lock: &Lock, run: &Run) -> Result<Guard, Error> {
    match run.wait {
        _ if run.no_wait => lock.try_acquire().await,
        Some(limit) => lock.acquire_timeout(limit).await,
        None => lock.acquire().await,
    }
}

fn not_acquired(run: &Run, error: &Error) -> Failure {
    let name = text::visible(&run.name);
    let no = |what: String| {
        Failure::with(run.conflict_exit_code, format!("{what} (fencelock show {name})"))
    };
    match (error.kind(), run.of) {
        (ErrorKind::Contended, None) => no(format!("{name} is taken")),
        (ErrorKind::TimedOut, None) => no(format!("{name} was taken all the while")),
        (ErrorKind::Contended, Some(of)) => {
            no(format!("{name} has no {} of its {of} permits left", run.permits))
        }
        (ErrorKind::TimedOut, Some(of)) => {
            no(format!("{name} had no {} of its {of} permits left all the while", run.permits))
        }
        _ => Failure::own(error.message()),
    }
}

/// Runs the command under the guard.
async fn hold(guard: Guard, run: &Run, group: Group, signals: &mut Signals) -> Result<u8, Failure> {
    let lost = guard.lost();
    let mut child = match Child::spawn(run, &guard, group) {
        Ok(child) => child,
        Err(failure) => {
            release(guard).await;
            return Err(failure);
        }
    };
    tokio::pin!(lost);
    let mut deadline: Option<Instant> = None;
    loop {
        tokio::select! {
            // A loss that is known when the command ends is told, whichever came first.
            biased;
            reason = &mut lost, if deadline.is_none() => {
                eprintln!(
                    "fencelock: lost the lock {}: {}; ending the command",
                    text::visible(&run.name), reason.describe()
                );
                child.end();
                deadline = Some(Instant::now() + run.grace);
            }
            () = child.ended() => break,
            signal = signals.next() => child.pass_on(signal),
            () = until(deadline), if deadline.is_some() && !child.killed() => child.kill(),
        }
    }
    let code = child.reap(deadline.is_some())?;
    if deadline.is_some() {
        return Ok(exit::LOST);
    }
    Ok(if release(guard).await { code } else { exit::LOST })
}

/// Gives the lock back; false when it had been lost before.
async fn release(guard: Guard) -> bool {
    match guard.release().await {
        Ok(()) => true,
        Err(error) if matches!(error.kind(), ErrorKind::Lost | ErrorKind::NotHeld) => {
            let error = error.to_string();
            let error = text::visible(&error);
            eprintln!("fencelock: the lock was lost before the command ended: {error}");
            false
        }
        Err(error) => {
            // The store lets the lock go when the lease is over.
            let error = error.to_string();
            let error = text::visible(&error);
            eprintln!("fencelock: could not tell the store of the release: {error}");
            true
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// What others see: the command's own name unless the caller chose another.
fn label(run: &Run) -> String {
    if let Some(label) = &run.label {
        return client::shortened(label);
    }
    let words: Vec<_> = run.command.iter().map(|word| word.to_string_lossy()).collect();
    let mut command = words.join(" ");
    if let Some((end, _)) = command.char_indices().nth(32) {
        command.truncate(end);
        command.push('…');
    }
    client::label(&command)
}
