//! The chart: who held the lock when, as SVG text.

mod marks;
mod panel;
mod scale;
mod style;

use std::fmt::Write;

use crate::demo::chart::panel::Panel;
use crate::demo::chart::style::{STYLE, WIDTH, colour, escaped};
use crate::demo::outcome::Outcome;

/// What the head of the chart says.
#[derive(Debug)]
pub struct Head<'a> {
    /// Coupons in stock.
    pub coupons: u32,
    /// Processes that sell.
    pub processes: u32,
    /// Workers of each.
    pub workers: u32,
    /// The lock's store, without its password.
    pub store: &'a str,
}

/// Draws every scene.
pub fn draw(head: &Head<'_>, outcomes: &[Outcome]) -> String {
    let mut body = String::new();
    let mut y = 118.0;
    for (number, outcome) in (1..).zip(outcomes) {
        let panel = Panel::new(number, outcome, y);
        panel.draw(&mut body);
        y += panel.height();
    }
    let height = y + 6.0;
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0}" width="{WIDTH}" height="{height:.0}" role="img" aria-labelledby="title about">
<title id="title">A flash sale: who held the lock when</title>
<desc id="about">{about}</desc>
<style>{STYLE}</style>
<defs><pattern id="paused" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch-ground" width="7" height="7"/><rect class="hatch" width="2.5" height="7"/></pattern></defs>
<rect class="ground" width="{WIDTH}" height="{height:.0}" rx="10"/>
<text class="head" x="32" y="44">Flash sale: {coupons} coupons, {processes} processes of {workers} workers each</text>
<text class="sub" x="32" y="68">Each bar is one passage through the critical section: read the stock, check the customer, wait a little, write. Lock: {store}</text>
"##,
        about = escaped(&about(outcomes)),
        coupons = head.coupons,
        processes = head.processes,
        workers = head.workers,
        store = escaped(head.store),
    );
    legend(&mut out, head.processes);
    out.push_str(&body);
    out.push_str("</svg>\n");
    out
}

/// The chart in words, for those who do not see it.
fn about(outcomes: &[Outcome]) -> String {
    let scene = |outcome: &Outcome| {
        format!(
            "{}: {} sold of {}, {} oversold.",
            outcome.scene.title(),
            outcome.books.sold,
            outcome.coupons,
            outcome.oversold()
        )
    };
    outcomes.iter().map(scene).collect::<Vec<_>>().join(" ")
}

fn legend(out: &mut String, processes: u32) {
    let mut x: f64 = 32.0;
    for process in 0..processes {
        let _ = writeln!(
            out,
            r#"<rect class="{}" x="{x:.0}" y="86" width="12" height="12" rx="3"/><text class="key" x="{:.0}" y="96">process {}</text>"#,
            colour(process),
            x + 18.0,
            process + 1
        );
        x += 92.0;
        // The lanes bear their names; the key need not have every colour.
        if x > 380.0 {
            break;
        }
    }
    x = x.max(420.0) + 12.0;
    let _ = writeln!(
        out,
        r#"<rect fill="url(#paused)" x="{x:.0}" y="86" width="22" height="12" rx="3"/><text class="key" x="{:.0}" y="96">stopped, believes that it holds</text>"#,
        x + 28.0
    );
    x += 222.0;
    marks::cross(out, x + 6.0, 92.0, "bad");
    let _ = writeln!(
        out,
        r#"<text class="key" x="{:.0}" y="96">wrote late, or was killed</text>"#,
        x + 18.0
    );
    x += 192.0;
    marks::flag(out, x + 4.0, 92.0);
    let _ = writeln!(
        out,
        r#"<text class="key" x="{:.0}" y="96">told: predecessor abandoned</text>"#,
        x + 16.0
    );
}

#[cfg(test)]
mod tests;
