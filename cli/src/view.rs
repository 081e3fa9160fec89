//! How output is to look.

use std::fmt::Display;
use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::failure::Failure;

/// Where output goes and what it may contain.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// JSON was asked for.
    pub json: bool,
    /// Standard output is a terminal that shows colours.
    pub colour: bool,
}

/// For headings.
pub const BOLD: Style = Style::new().bold();
/// For what matters less.
pub const DIM: Style = Style::new().dimmed();
/// For what is well.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// For what wants a look.
pub const ODD: Style = AnsiColor::Yellow.on_default();
/// For what is wrong.
pub const BAD: Style = AnsiColor::Red.on_default().bold();

impl View {
    /// As JSON where that is asked for; in colours where the terminal shows them.
    pub fn of(json: bool) -> View {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && std::env::var_os("TERM").is_none_or(|value| value != "dumb");
        View { json, colour: wanted && std::io::stdout().is_terminal() }
    }

    /// `text` in `style`, where colours are shown.
    pub fn paint(self, style: Style, text: impl Display) -> String {
        let text = text.to_string();
        if self.colour && !text.is_empty() { format!("{style}{text}{style:#}") } else { text }
    }

    /// Prints a value as indented JSON.
    pub fn print_json(self, value: &impl Serialize) -> Result<(), Failure> {
        print(&format!("{}\n", serde_json::to_string_pretty(value)?))
    }
}

/// Prints to standard output; a reader who left early (`| head`) is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done?),
    }
}
