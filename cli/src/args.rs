//! What may be written on the command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand};

use crate::demo::languages::Language;
use crate::span;
use crate::view::View;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "fencelock",
    version,
    about = "A distributed lock for commands and services",
    long_about = "A distributed lock for commands and services, over Redis, ZooKeeper, SQLite or memory.\n\n\
        Without --store and FENCELOCK_STORE, locks live in a SQLite file of your own on this \
        machine, and nothing needs to run.",
    after_help = "Exit codes of every command: 0 done; 1 no (lock taken, nothing held, a check \
        failed); 2 wrong arguments; 125 Fencelock itself failed. `fencelock help run` has those of \
        run."
)]
pub struct Args {
    /// What every command understands.
    #[command(flatten)]
    pub common: Common,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What every command understands.
#[derive(Debug, ClapArgs)]
pub struct Common {
    /// The store: sqlite:PATH, redis://HOST, rediss://HOST, redis+unix:///PATH,
    /// redis+sentinel://HOST,HOST/MASTER, redis+cluster://HOST,HOST, zk://HOST,HOST/PATH
    #[arg(
        long,
        global = true,
        env = "FENCELOCK_STORE",
        value_name = "URL",
        hide_env_values = true
    )]
    pub store: Option<String>,
    /// Print JSON, for programs
    #[arg(long, global = true)]
    pub json: bool,
}

impl View {
    /// What the arguments and the terminal say.
    pub fn new(common: &Common) -> View {
        View::of(common.json)
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a command while holding a lock
    Run(Run),
    /// List the locks that the store knows
    Ls(Ls),
    /// Show who holds a lock and who waits for it
    Show(Show),
    /// End every hold on a lock, or one, whoever has it
    Break(Break),
    /// Give a semaphore that is in use another number of permits
    Resize(Resize),
    /// Check the store, and say what to do
    Doctor(Doctor),
    /// Sell the last items in stock from several processes at once, with and without a lock
    Demo(Demo),
    /// One process of the demo
    #[command(hide = true)]
    DemoWorker(DemoWorker),
    /// One seller of the demo's last scene
    #[command(hide = true)]
    DemoSeller(DemoSeller),
}

/// `fencelock run`.
#[derive(Debug, ClapArgs)]
#[command(
    override_usage = "fencelock run [OPTIONS] NAME -- COMMAND [ARG]...",
    after_help = "The command finds FENCELOCK_LOCK, FENCELOCK_TOKEN (the fencing token: send it \
        with every write), FENCELOCK_ABANDONED (whether the holder before was lost: no, yes or \
        unknown) and, with --owner, FENCELOCK_OWNER and FENCELOCK_TICKET in its environment.\n\n\
        Exit codes:\n  \
        the command's own, or 128+N when signal N ended it\n  \
        1    the lock was not to be had (--no-wait, or --wait ran out; -E changes this code)\n  \
        124  the lock was lost while the command ran; it was ended by SIGTERM, then SIGKILL\n  \
        125  Fencelock itself failed (store, arguments)\n  \
        126  the command could not be run\n  \
        127  the command was not found"
)]
pub struct Run {
    /// The lock's name, or the semaphore's
    pub name: String,
    /// Wait for the lock so long at the most; without it, for ever
    #[arg(long, short = 'w', value_name = "SPAN", value_parser = span::parse)]
    pub wait: Option<Duration>,
    /// Do not wait when the lock is taken
    #[arg(long, short = 'n', conflicts_with = "wait")]
    pub no_wait: bool,
    /// The lease, renewed at a third while the command runs; after a crash of this machine others
    /// wait so long. Default: the store's URL's, or 30s
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    pub lease: Option<Duration>,
    /// End the command when it has had the lock for so long
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    pub max_hold: Option<Duration>,
    /// An owner id: whoever shows the same one re-enters the lock, from any process
    #[arg(long, value_name = "ID", conflicts_with = "of")]
    pub owner: Option<String>,
    /// As a reader: beside others who say so, and never beside one who does not
    #[arg(long, conflicts_with = "of")]
    pub shared: bool,
    /// As one of so many: a semaphore's number of permits, the same with all who name it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub of: Option<u32>,
    /// How many of the --of permits this command takes, together
    #[arg(long, value_name = "K", requires = "of", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub permits: u32,
    /// After losing the lock, between SIGTERM and SIGKILL
    #[arg(long, value_name = "SPAN", default_value = "5s", value_parser = span::parse)]
    pub grace: Duration,
    /// Shown to others as the holder; default: the command and this machine's name
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
    /// End with this code when the lock was not to be had
    #[arg(long, short = 'E', value_name = "N", default_value_t = crate::exit::NO)]
    pub conflict_exit_code: u8,
    /// Leave the command in this process group, as on a terminal
    #[arg(long)]
    pub foreground: bool,
    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `fencelock ls`.
#[derive(Debug, ClapArgs)]
pub struct Ls {
    /// Only names that begin so
    #[arg(default_value = "")]
    pub prefix: String,
    /// Also locks that nobody holds or waits for
    #[arg(long, short = 'a')]
    pub all: bool,
    /// So many names at the most
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub limit: usize,
}

/// `fencelock show`.
#[derive(Debug, ClapArgs)]
pub struct Show {
    /// The lock's name
    pub name: String,
}

/// `fencelock break`.
#[derive(Debug, ClapArgs)]
#[command(
    long_about = "End the holds on a lock, whoever has them.\n\nWhat is shown is what is broken: \
        when the lock changes hands meanwhile nothing is ended, and the exit code is 3.\n\nThe holder is told, but it may be \
        paused or cut off and go on as if it held the lock, together with the next holder. Only \
        a check of the fencing token at what the lock protects stops its writes. Break a lock \
        when you know that its holder is gone and its lease is too long to wait for."
)]
pub struct Break {
    /// The lock's name
    pub name: String,
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Break what was seen under this token, as `show` tells it; do not ask
    #[arg(long, value_name = "N")]
    pub token: Option<u64>,
    /// Break this hold alone, by the beginning of its id as `show` tells it; do not ask
    #[arg(long, value_name = "ID")]
    pub hold: Option<String>,
}

/// `fencelock resize`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "It stays so until nobody holds or waits; whoever comes must say the new number. Nobody \
        loses a permit: of fewer than are out, none is free until enough have come back. Who waits for \
        more than there are is refused."
)]
pub struct Resize {
    /// The semaphore's name
    pub name: String,
    /// How many permits it has from now on
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub permits: u32,
}

/// `fencelock doctor`.
#[derive(Debug, ClapArgs)]
pub struct Doctor {
    /// Watch the locks for so long, to suggest a lease from how long holds last
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    pub watch: Option<Duration>,
    /// Watch only locks whose names begin so
    #[arg(long, value_name = "PREFIX", default_value = "", requires = "watch")]
    pub prefix: String,
}

/// `fencelock demo`.
#[derive(Debug, ClapArgs)]
pub struct Demo {
    /// How many coupons are in stock
    #[arg(long, value_name = "N", default_value_t = 120,
          value_parser = clap::value_parser!(u32).range(20..=5000))]
    pub coupons: u32,
    /// How many processes sell
    #[arg(long, value_name = "P", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(2..=16))]
    pub processes: u32,
    /// How many workers each process has
    #[arg(long, value_name = "W", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=16))]
    pub workers: u32,
    /// Where the chart is written
    #[arg(long, value_name = "DIR", default_value = "demo-out")]
    pub out: PathBuf,
    /// Which customers come in which order; another number, another sale
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub seed: u64,
    /// Play a scene more, in which this program sells beside Rust's own: COMMAND, for the shell,
    /// takes the store's URL, the lock's name, the shop's folder and NAME as further arguments. May
    /// be given several times
    #[arg(long, value_name = "NAME=COMMAND")]
    pub seller: Vec<Language>,
    /// Play a scene more, in whose middle COMMAND, for the shell, takes the lock's name as an argument and
    /// has another of the store's servers take over, by killing the master for instance
    #[arg(long, value_name = "COMMAND")]
    pub failover: Option<String>,
    /// Say at the end that this language's seller could not take part, and why
    #[arg(long, value_name = "NAME=WHY")]
    pub left_out: Vec<Language>,
}

/// `fencelock demo-worker`: everything else comes on standard input.
#[derive(Debug, ClapArgs)]
pub struct DemoWorker {}

/// `fencelock demo-seller`.
#[derive(Debug, ClapArgs)]
pub struct DemoSeller {
    /// The lock's store
    pub url: String,
    /// The lock's name
    pub lock: String,
    /// The shop's folder
    pub folder: PathBuf,
    /// What the seller is called
    pub name: String,
    /// The program that sells, for the shell; without it, this one does
    pub command: Option<String>,
}
