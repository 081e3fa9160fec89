//! What is seen while the demo runs.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use crate::demo::outcome::{Outcome, Scene};
use crate::failure::Failure;
use crate::view::{BAD, BOLD, DIM, GOOD, View, print};

/// Tells the play: sentences on standard output, a bar on standard error if that is a terminal.
#[derive(Debug)]
pub struct Progress {
    view: View,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// For this output.
    pub fn new(view: View) -> Progress {
        Progress { view, bar: None }
    }

    /// Says something, unless JSON was asked for.
    pub fn say(&self, text: &str) -> Result<(), Failure> {
        if self.view.json { Ok(()) } else { print(text) }
    }

    /// A scene begins.
    pub fn begin(&mut self, number: usize, scene: Scene, coupons: u32) -> Result<(), Failure> {
        let title = self.view.paint(BOLD, format!("{number}. {}", scene.title()));
        self.say(&format!("\n{title}: {}\n", self.view.paint(DIM, scene.story())))?;
        if !self.view.json && std::io::stderr().is_terminal() {
            let look = "   {bar:40.cyan/dim} {pos:>4} of {len} sold  {msg}";
            let style = ProgressStyle::with_template(look)
                .map_err(|error| Failure::own(format!("progress bar: {error}")))?
                .progress_chars("━╸─");
            self.bar = Some(ProgressBar::new(coupons.into()).with_style(style));
        }
        Ok(())
    }

    /// One more is sold.
    pub fn sold(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Something befell a holder; beside the bar stands what is awaited now.
    pub fn incident(&self, text: &str, awaited: &'static str) -> Result<(), Failure> {
        if let Some(bar) = &self.bar {
            bar.set_message(awaited);
        }
        match &self.bar {
            Some(bar) => bar.suspend(|| self.say(&format!("   {text}\n"))),
            None => self.say(&format!("   {text}\n")),
        }
    }

    /// A scene is over: says what was seen.
    pub fn end(&mut self, outcome: &Outcome) -> Result<(), Failure> {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        for check in outcome.checks() {
            let mark =
                if check.ok { self.view.paint(GOOD, "✓") } else { self.view.paint(BAD, "✗") };
            self.say(&format!("   {mark} {}\n", check.saw))?;
        }
        Ok(())
    }
}
