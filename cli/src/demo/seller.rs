//! One seller among those of all languages: Rust's own, or the program of another language, which
//! takes the same arguments and does the same.

use std::os::unix::process::CommandExt;
use std::process::Command;

use fencelock::blocking::Client;

use crate::args::DemoSeller;
use crate::demo::till::Till;
use crate::exit;
use crate::failure::Failure;

/// Sells until nothing is left, or becomes the program that does.
pub fn sell(args: &DemoSeller) -> Result<u8, Failure> {
    // It ends with the demo; this outlasts the change of programs.
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(std::io::Error::from)?;
    match &args.command {
        Some(command) => Err(become_program(args, command)),
        None => sell_here(args),
    }
}

/// Comes back only when that fails.
fn become_program(args: &DemoSeller, command: &str) -> Failure {
    let error = Command::new("sh")
        .args(["-c", &format!("exec {command} \"$@\""), "seller", &args.url, &args.lock])
        .arg(&args.folder)
        .arg(&args.name)
        .exec();
    Failure::own(format!("cannot run sh: {error}"))
}

fn sell_here(args: &DemoSeller) -> Result<u8, Failure> {
    let client = Client::builder(&args.url).label(&args.name).connect_blocking()?;
    let lock = client.lock(&args.lock)?;
    let till = Till::open(&args.folder);
    let mut more = true;
    while more {
        let guard = lock.acquire()?;
        more = till.sell(&args.name, guard.token().get())?;
        guard.release()?;
    }
    client.close();
    Ok(exit::DONE)
}
