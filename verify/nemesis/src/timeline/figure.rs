//! The table and the figure of a few failovers.

use std::fmt::Write as _;
use std::time::Duration;

use crate::timeline::{LEASE, Seen};

/// The figure's measures.
const LEFT: f64 = 150.0;
const RIGHT: f64 = 940.0;
const TOP: f64 = 70.0;
const PANEL: f64 = 128.0;
const LANE: f64 = 22.0;

/// The table in Markdown, a column for each case.
#[must_use]
pub fn table(seen: &[Seen]) -> String {
    type Cell = fn(&Seen) -> String;
    let rows: [(&str, Cell); 7] = [
        ("another server is promoted, after", |it| span(it.promoted)),
        ("whoever is asked names it, after", |it| span(it.told)),
        ("the hold is renewed there, after", |it| span(it.renewed)),
        ("the least that was left of its validity", |it| span(it.least)),
        ("the holder releases, after", |it| span(it.released)),
        ("the waiter has the lock, so long after that", |it| {
            millis(it.granted.saturating_sub(it.released))
        }),
        ("its token is above the holder's", |it| if it.rose { "yes" } else { "**no**" }.to_owned()),
    ];
    let mut out = String::from("| |");
    for it in seen {
        let _ = write!(out, " {} |", it.case.title);
    }
    let _ = write!(out, "\n| --- |{}\n", " ---: |".repeat(seen.len()));
    for (name, cell) in rows {
        let cells: Vec<String> = seen.iter().map(cell).collect();
        let _ = writeln!(out, "| {name} | {} |", cells.join(" | "));
    }
    out + "\n"
}

fn span(span: Duration) -> String {
    format!("{:.2} s", span.as_secs_f64())
}

fn millis(span: Duration) -> String {
    format!("{:.1} ms", span.as_secs_f64() * 1e3)
}

/// The same as a figure: for each case who serves, how far the hold is trusted, and the waiter.
#[must_use]
pub fn draw(seen: &[Seen]) -> String {
    let end =
        seen.iter().map(|it| it.granted).max().unwrap_or_default() + Duration::from_millis(500);
    let x = |at: Duration| LEFT + (RIGHT - LEFT) * at.as_secs_f64() / end.as_secs_f64();
    let height = TOP + PANEL * seen.len() as f64 + 30.0;
    let mut out = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 {height:.0}" width="960" height="{height:.0}" role="img" aria-labelledby="title">
<title id="title">Failovers as a holder and a waiter see them</title>
<style>
text {{ font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; font-size: 12px; fill: #1f2937 }}
.ground {{ fill: #ffffff }}
.head {{ font-size: 18px; font-weight: 600 }}
.title {{ font-size: 14px; font-weight: 600 }}
.lane, .tick {{ fill: #6b7280 }}
.lane {{ text-anchor: end }}
.mid {{ text-anchor: middle }}
.grid {{ stroke: #e5e7eb }}
.old {{ fill: #9ca3af }} .new {{ fill: #047857 }} .hold {{ fill: #1d4ed8 }} .wait {{ fill: #fcd34d }} .next {{ fill: #b45309 }}
.after, .before {{ fill: #ffffff }} .before, .waited {{ text-anchor: end }} .waited {{ fill: #1f2937 }}
.mark {{ stroke: #1f2937; stroke-width: 2 }}
@media (prefers-color-scheme: dark) {{
text {{ fill: #e5e7eb }}
.ground {{ fill: #0d1117 }}
.lane, .tick {{ fill: #9ca3af }}
.after, .before {{ fill: #ffffff }} .waited {{ fill: #1f2937 }}
.grid {{ stroke: #21262d }}
.mark {{ stroke: #e5e7eb }}
}}
</style>
<rect class="ground" width="960" height="{height:.0}"/>
<text class="head" x="20" y="30">Failovers as a holder and a waiter see them</text>
<text class="tick" x="20" y="50">seconds from the fault; the lease is {} s</text>
"#,
        LEASE.as_secs()
    );
    for second in 0..=end.as_secs() {
        let at = x(Duration::from_secs(second));
        let _ = writeln!(
            out,
            r#"<path class="grid" d="M{at:.1} {TOP}V{0:.1}"/><text class="tick mid" x="{at:.1}" y="{1:.1}">{second}</text>"#,
            height - 30.0,
            height - 14.0
        );
    }
    for (at, it) in seen.iter().enumerate() {
        panel(&mut out, TOP + PANEL * at as f64, it, end, &x);
    }
    out + "</svg>\n"
}

fn panel(out: &mut String, top: f64, seen: &Seen, end: Duration, x: &impl Fn(Duration) -> f64) {
    let zero = Duration::ZERO;
    let _ = writeln!(
        out,
        r#"<text class="title" x="20" y="{:.1}">{}</text>"#,
        top + 18.0,
        seen.case.title
    );
    let y = |lane: u32| top + 28.0 + f64::from(lane) * (LANE + 6.0);
    for (lane, name) in ["the master", "the hold", "the waiter"].into_iter().enumerate() {
        let y = y(lane as u32) + 15.0;
        let _ =
            writeln!(out, r#"<text class="lane" x="{:.1}" y="{y:.1}">{name}</text>"#, LEFT - 10.0);
    }
    let mut bar = |lane: u32, from: Duration, to: Duration, class: &str, text: &str| {
        let (left, right, y) = (x(from), x(to), y(lane));
        let _ = writeln!(
            out,
            r#"<rect class="{class}" x="{left:.1}" y="{y:.1}" width="{:.1}" height="{LANE}"><title>{text}</title></rect>"#,
            (right - left).max(1.0)
        );
    };
    // Where it is planned, the old one serves until the next does.
    if seen.case.planned {
        bar(0, zero, seen.promoted, "old", "the old master");
    }
    bar(0, seen.promoted, end, "new", "the next master");
    bar(1, zero, seen.released, "hold", "the hold is valid");
    bar(2, zero, seen.granted, "wait", "the waiter waits");
    bar(2, seen.granted, end, "next", "the waiter has the lock");
    let mut note = |lane: u32, at: Duration, class: &str, text: &str| {
        let (at, y) = (x(at), y(lane));
        // What is before it, or what follows, is long enough for the words.
        let beside = if class == "after" { at + 5.0 } else { at - 5.0 };
        let _ = writeln!(
            out,
            r#"<path class="mark" d="M{at:.1} {y:.1}v{LANE}"/><text class="{class}" x="{beside:.1}" y="{:.1}">{text}</text>"#,
            y + 15.0
        );
    };
    note(0, seen.promoted, "after", &format!("promoted at {}", span(seen.promoted)));
    note(1, seen.renewed, "before", &format!("renewed at {}", span(seen.renewed)));
    note(2, seen.granted, "waited", &format!("granted at {}", span(seen.granted)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::CASES;

    #[test]
    fn the_page_has_room_and_each_case_its_column_and_its_panel() {
        let at = Duration::from_millis;
        let seen: Vec<Seen> = CASES
            .into_iter()
            .map(|case| Seen {
                case,
                promoted: at(900),
                told: at(1000),
                renewed: at(1250),
                least: at(7000),
                released: at(2000),
                granted: at(2001),
                rose: true,
            })
            .collect();
        let text = table(&seen);
        assert!(text.contains("| the hold is renewed there, after | 1.25 s | 1.25 s |"), "{text}");
        assert!(text.contains("so long after that | 1.0 ms |"), "{text}");
        let page = include_str!("../../../../docs/redis.md");
        fencelock_history::page::put(page, crate::timeline::MARKS, &text).unwrap();
        let figure = draw(&seen);
        assert!(figure.starts_with("<svg") && figure.ends_with("</svg>\n"));
        assert_eq!(figure.matches("promoted at 0.90 s").count(), 4);
    }
}
