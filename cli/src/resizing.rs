//! `fencelock resize`.

use fencelock::text;
use serde::Serialize;

use crate::args::{Common, Resize};
use crate::failure::Failure;
use crate::view::{View, print};
use crate::{client, exit};

#[derive(Serialize)]
struct Done<'a> {
    name: &'a str,
    /// Whether anybody holds or waits: otherwise there was nothing to change.
    resized: bool,
    permits: u32,
}

/// Sets how many permits a semaphore has for those who hold or wait.
pub fn resize(common: &Common, asked: &Resize) -> Result<u8, Failure> {
    let view = View::new(common);
    let (name, permits) = (&asked.name, asked.permits);
    let resized = client::with(common, |client| async move {
        Ok(client.semaphore(name, permits)?.resize(permits).await?)
    })?;
    let shown = text::visible(name);
    match (view.json, resized) {
        (true, _) => view.print_json(&Done { name, resized, permits })?,
        (false, true) => print(&format!("{shown} has {permits} permits now\n"))?,
        (false, false) => print(&format!(
            "nobody holds {shown} or waits: whoever comes next says how many permits there are\n"
        ))?,
    }
    Ok(if resized { exit::DONE } else { exit::NO })
}
