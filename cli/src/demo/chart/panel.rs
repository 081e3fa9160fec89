//! One scene: a lane for each process, and below it how much was sold when.

use std::fmt::Write;
use std::time::Duration;

use crate::demo::chart::marks;
use crate::demo::chart::scale::Scale;
use crate::demo::chart::style::{BAR, LANE, LEFT, RIGHT, colour, escaped};
use crate::demo::outcome::{Incident, Outcome, Scene};
use crate::demo::wire::{Abandoned, Deed, Visit, Written};
use crate::span;

const TITLE: f64 = 34.0;
const STRIP: f64 = 44.0;
const AXIS: f64 = 22.0;
const GAP: f64 = 30.0;

/// One scene's place on the chart.
#[derive(Debug)]
pub struct Panel<'a> {
    number: usize,
    outcome: &'a Outcome,
    scale: Scale,
    top: f64,
}

impl<'a> Panel<'a> {
    /// A scene whose heading begins at `top`.
    pub fn new(number: usize, outcome: &'a Outcome, top: f64) -> Panel<'a> {
        Panel { number, outcome, scale: Scale::new(outcome.opened, outcome.ended), top }
    }

    /// How much room it takes.
    pub fn height(&self) -> f64 {
        TITLE + self.lanes() + 6.0 + STRIP + AXIS + GAP
    }

    fn lanes(&self) -> f64 {
        self.outcome.books.shares.len() as f64 * LANE
    }

    /// The top of a process's bars.
    fn lane(&self, process: u32) -> f64 {
        self.top + TITLE + f64::from(process) * LANE + (LANE - BAR) / 2.0
    }

    /// Draws it.
    pub fn draw(&self, out: &mut String) {
        self.heading(out);
        self.grid(out);
        for (process, share) in (0..).zip(&self.outcome.books.shares) {
            let y = self.lane(process);
            let _ = writeln!(
                out,
                r#"<rect class="track" x="{LEFT}" y="{y:.1}" width="{:.0}" height="{BAR}" rx="3"/><text class="lane end" x="{:.0}" y="{:.1}">{}</text><text class="lane" x="{:.0}" y="{2:.1}">{share} sold</text>"#,
                RIGHT - LEFT,
                LEFT - 12.0,
                y + 12.5,
                escaped(&self.outcome.seller(process)),
                RIGHT + 14.0,
            );
        }
        if let Some(incident) = &self.outcome.incident {
            self.pause(out, incident);
        }
        self.bars(out);
        self.strip(out);
        if let Some(incident) = &self.outcome.incident {
            self.mishap(out, incident);
        }
    }

    fn heading(&self, out: &mut String) {
        let outcome = self.outcome;
        let (class, verdict) = match (outcome.oversold(), outcome.books.twice) {
            // No customers have names there.
            (0, 0) if outcome.scene == Scene::Languages => {
                ("good", format!("{} sold, none too many", outcome.books.sold))
            }
            (0, 0) => ("good", format!("{} sold, nobody twice", outcome.books.sold)),
            (0, twice) => ("bad", format!("{} sold, {twice} people twice", outcome.books.sold)),
            (over, _) => ("bad", format!("{} sold: {over} too many", outcome.books.sold)),
        };
        let title = capital(outcome.scene.title());
        let _ = writeln!(
            out,
            r#"<text x="32" y="{0:.1}"><tspan class="title">{1}. {title}</tspan><tspan class="sub" dx="12">{2}</tspan></text><text class="title end {class}" x="1168" y="{0:.1}">{3}</text>"#,
            self.top + 20.0,
            self.number,
            escaped(outcome.scene.story()),
            escaped(&verdict),
        );
    }

    fn grid(&self, out: &mut String) {
        let bottom = self.top + TITLE + self.lanes() + 6.0 + STRIP;
        for (x, text) in self.scale.ticks() {
            let _ = writeln!(
                out,
                r#"<path class="grid" d="M{x:.1} {:.1}V{bottom:.1}"/><text class="tick mid" x="{x:.1}" y="{:.1}">{text}</text>"#,
                self.top + TITLE,
                bottom + 15.0,
            );
        }
    }

    /// Every passage, as one path for each process. Where nobody locks, each worker of a process
    /// has a row of its own.
    fn bars(&self, out: &mut String) {
        let visits = &self.outcome.visits;
        let rows = match self.outcome.scene {
            Scene::NoLock => visits.iter().map(|(_, visit)| visit.worker + 1).max().unwrap_or(1),
            _ => 1,
        };
        let height = BAR / f64::from(rows);
        for process in (0..).take(self.outcome.books.shares.len()) {
            let mut path = String::new();
            for (_, visit) in visits.iter().filter(|(of, _)| *of == process) {
                let end = self.incident_of(visit).map_or(visit.left, |incident| incident.stopped);
                let (x, right) = (self.scale.x(visit.got), self.scale.x(end));
                // A hair of room shows where one passage ends and the next begins.
                let width = (right - x - 0.3).max(0.6);
                let row = if rows == 1 { 0 } else { visit.worker };
                let y = self.lane(process) + f64::from(row) * height;
                let room = if rows == 1 { height } else { height - 0.8 };
                let _ = write!(path, "M{x:.1} {y:.1}h{width:.1}v{room:.1}h-{width:.1}z");
            }
            let _ = writeln!(out, r#"<path class="{}" d="{path}"/>"#, colour(process));
        }
    }

    fn incident_of(&self, visit: &Visit) -> Option<&Incident> {
        let incident = self.outcome.incident.as_ref()?;
        (visit.token == Some(incident.parked.token)).then_some(incident)
    }

    /// The time in which a holder stood still, and, when it was killed, its last bar.
    fn pause(&self, out: &mut String, incident: &Incident) {
        let y = self.lane(incident.process);
        let (got, stopped) = (self.scale.x(incident.parked.got), self.scale.x(incident.stopped));
        let end = incident.woke.as_ref().map(|woke| self.scale.x(woke.at));
        if let Some(end) = end {
            let _ = writeln!(
                out,
                r#"<rect fill="url(#paused)" x="{stopped:.1}" y="{y:.1}" width="{:.1}" height="{BAR}"/>"#,
                (end - stopped).max(1.0),
            );
        } else {
            let _ = writeln!(
                out,
                r#"<rect class="{}" x="{got:.1}" y="{y:.1}" width="{:.1}" height="{BAR}"/>"#,
                colour(incident.process),
                (stopped - got).max(1.0),
            );
        }
    }

    /// The signs of what happened to a holder, over everything else.
    fn mishap(&self, out: &mut String, incident: &Incident) {
        let y = self.lane(incident.process) + BAR / 2.0;
        if let Some((process, visit)) = self.outcome.successor()
            && visit.abandoned == Abandoned::Yes
        {
            marks::flag(out, self.scale.x(visit.got), self.lane(*process) - 2.0);
        }
        let Some(woke) = &incident.woke else {
            let x = self.scale.x(incident.stopped);
            marks::cross(out, x, y, "bad");
            let _ = writeln!(
                out,
                r#"<text class="note bad" x="{:.1}" y="{:.1}">kill -9</text>"#,
                x + 12.0,
                y + 4.5
            );
            return;
        };
        marks::cross(out, self.scale.x(woke.at), y, "bad");
        let slept = span::show(Duration::from_micros(woke.at - incident.stopped));
        let note = match woke.written {
            Written::Refused { .. } => format!("stopped for {slept}; old token refused"),
            Written::Done { was, is } => {
                format!("stopped for {slept}; old token sets stock {was} to {is}")
            }
        };
        // On a ground of its own, in the middle of the hatching.
        let middle = (self.scale.x(incident.stopped) + self.scale.x(woke.at)) / 2.0;
        let width = note.chars().count() as f64 * 6.9 + 12.0;
        let _ = writeln!(
            out,
            r#"<rect class="ground" x="{:.1}" y="{:.1}" width="{width:.1}" height="16" rx="4"/><text class="note bad mid" x="{middle:.1}" y="{:.1}">{note}</text>"#,
            middle - width / 2.0,
            y - 8.0,
            y + 4.5,
        );
    }

    /// How many were sold when, against how many there were.
    fn strip(&self, out: &mut String) {
        let top = self.top + TITLE + self.lanes() + 6.0;
        let bottom = top + STRIP;
        let outcome = self.outcome;
        let most = f64::from(outcome.books.sold.max(outcome.coupons).max(1));
        let y = |sold: u32| bottom - f64::from(sold) / most * (STRIP - 4.0);
        let mut ends: Vec<u64> = (outcome.visits.iter())
            .filter(|(_, visit)| visit.deed == Deed::Sold)
            .map(|(_, visit)| visit.left)
            .collect();
        ends.sort_unstable();
        let mut line = format!("M{LEFT} {bottom:.1}");
        for (sold, end) in (1..).zip(&ends) {
            let _ = write!(line, "H{:.1}V{:.1}", self.scale.x(*end), y(sold));
        }
        let stock = y(outcome.coupons);
        let _ = writeln!(
            out,
            r#"<clipPath id="over{n}"><rect x="{LEFT}" y="{top:.1}" width="{width:.0}" height="{above:.1}"/></clipPath><path class="under" d="{line}H{RIGHT}V{bottom:.1}Z"/><path class="over" clip-path="url(#over{n})" d="{line}H{RIGHT}V{bottom:.1}Z"/><path class="stock" d="M{LEFT} {stock:.1}H{RIGHT}"/><path class="sold" d="{line}H{RIGHT}"/><text class="lane end" x="{label:.0}" y="{middle:.1}">sold</text><text class="lane" x="{right:.0}" y="{words:.1}">{coupons} in stock</text>"#,
            n = self.number,
            width = RIGHT - LEFT,
            above = (stock - top).max(0.0),
            label = LEFT - 12.0,
            middle = bottom - STRIP / 2.0 + 4.0,
            right = RIGHT + 14.0,
            words = stock + 4.0,
            coupons = outcome.coupons,
        );
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}
