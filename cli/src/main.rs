//! The `fencelock` command: run a command under a lock, look at locks, break one, check a store,
//! and see a flash sale with and without a lock.

mod args;
mod breaking;
mod client;
mod demo;
mod doctor;
mod exit;
mod failure;
mod list;
mod quorum;
mod report;
mod resizing;
mod run;
mod show;
mod span;
mod store;
mod table;
mod view;

use fencelock::text;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(wrong) => return ExitCode::from(exit::for_usage(&wrong)),
    };
    let done = match args.command {
        Command::Run(run) => run::run(&args.common, &run),
        Command::Ls(ls) => list::ls(&args.common, &ls),
        Command::Show(show) => show::show(&args.common, &show),
        Command::Break(asked) => breaking::break_lock(&args.common, &asked),
        Command::Resize(asked) => resizing::resize(&args.common, &asked),
        Command::Doctor(asked) => doctor::doctor(&args.common, &asked),
        Command::Quorum(asked) => quorum::quorum(&args.common, &asked),
        Command::Demo(asked) => demo::demo(&args.common, &asked),
        Command::DemoWorker(asked) => demo::worker::work(&asked),
        Command::DemoSeller(asked) => demo::seller::sell(&asked),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("fencelock: {}", text::visible(&failure.message));
            ExitCode::from(failure.code)
        }
    }
}
