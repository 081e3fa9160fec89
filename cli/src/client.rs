//! A connection for one command.

use std::future::Future;

use fencelock::Client;

use crate::args::Common;
use crate::failure::Failure;
use crate::store;

/// The runtime of one command: its own thread.
pub fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Connects to the store that is meant, does `what`, and closes.
pub fn with<T, F>(common: &Common, what: impl FnOnce(Client) -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let url = store::url(common)?;
    runtime()?.block_on(async {
        let client = Client::builder(&url).label(label("fencelock")).connect().await?;
        let done = what(client.clone()).await;
        client.close().await;
        done
    })
}

/// What others see as the holder: `what`, and this machine's name.
pub fn label(what: &str) -> String {
    let machine = rustix::system::uname();
    let text = format!("{what} on {}", machine.nodename().to_string_lossy());
    shortened(&text)
}

/// A label has at most 128 bytes and no control characters.
pub fn shortened(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().filter(|c| !c.is_control()) {
        if out.len() + c.len_utf8() > 120 {
            out.push('…');
            break;
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests;
