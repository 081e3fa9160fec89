//! Tables as bars and growth as lines, in SVG.

use std::fmt::Write as _;

use crate::compare::growth::Curves;
use crate::compare::table::{Better, Row, Table};

const WIDTH: f64 = 760.0;
/// Where the bars begin.
const LEFT: f64 = 230.0;
/// Room for the figure behind a bar.
const RIGHT: f64 = 110.0;
const LINE: f64 = 22.0;
const TOP: f64 = 56.0;

/// A bar for each row, as long as its figure; of figures that lie far apart, as its logarithm.
pub fn bars(table: &Table) -> String {
    let rows: Vec<&Row> = table.rows.iter().filter(|it| it.figure.median.is_finite()).collect();
    let medians = || rows.iter().map(|it| it.figure.median).filter(|it| *it > 0.0);
    let (least, most) = (medians().fold(f64::MAX, f64::min), medians().fold(0.0, f64::max));
    let logarithmic = most > least * 50.0;
    let height = TOP + LINE * rows.len() as f64 + 14.0;
    let hint = match (table.better, logarithmic) {
        (Better::More, true) => "more is better; logarithmic scale",
        (Better::More, false) => "more is better",
        (Better::Less, true) => "less is better; logarithmic scale",
        (Better::Less, false) => "less is better",
    };
    let mut svg = head(&table.name, &format!("{}; {hint}", table.unit), height);
    for (at, row) in rows.iter().enumerate() {
        let y = TOP + LINE * at as f64;
        let figure = row.figure.median;
        let share = match logarithmic {
            // The least has a tenth, so that it is seen.
            true => (figure.max(least) / least * 1.3).ln() / (most / least * 1.3).ln(),
            false => figure / most,
        };
        let length = (share * (WIDTH - LEFT - RIGHT)).max(1.0);
        let class = if row.ours { "ours" } else { "peer" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<text x=\"{x:.0}\" y=\"{text:.0}\" text-anchor=\"end\">{} {}</text>\
             <rect class=\"{class}\" x=\"{LEFT}\" y=\"{y:.0}\" width=\"{length:.1}\" height=\"16\" \
             rx=\"2\"/><text x=\"{end:.1}\" y=\"{text:.0}\">{}</text>",
            row.language,
            row.library,
            short(figure),
            x = LEFT - 8.0,
            text = y + 13.0,
            end = LEFT + length + 6.0,
        );
    }
    svg + "</svg>\n"
}

/// A line for each library, on logarithmic axes.
pub fn lines(curves: &Curves) -> String {
    let (plot, bottom) = (300.0, TOP + 300.0);
    let legend = LINE * curves.lines.len() as f64;
    let hint = format!("{}; logarithmic scale", curves.unit);
    let mut svg = head(&curves.name, &hint, bottom + 34.0 + legend);
    let all = || curves.lines.iter().flat_map(|it| it.figures.iter().copied());
    let (least, most) = (all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max));
    let widest = curves.steps.last().map_or(1.0, |it| *it as f64);
    let across = |step: u64| 60.0 + (step as f64).ln() / widest.ln().max(1.0) * (WIDTH - 160.0);
    let up = |figure: f64| bottom - (figure / least).ln() / (most / least).ln().max(1.0) * plot;
    // Writing to a string cannot fail.
    for step in &curves.steps {
        let (x, y) = (across(*step), bottom + 20.0);
        let _ =
            writeln!(svg, "<text x=\"{x:.0}\" y=\"{y:.0}\" text-anchor=\"middle\">{step}</text>");
    }
    for figure in [least, (least * most).sqrt(), most] {
        let (y, text) = (up(figure), short(figure));
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"60\" x2=\"{:.0}\" y1=\"{y:.0}\" y2=\"{y:.0}\"/>\
             <text class=\"hint\" x=\"54\" y=\"{:.0}\" text-anchor=\"end\">{text}</text>",
            WIDTH - 100.0,
            y + 4.0
        );
    }
    for (at, line) in curves.lines.iter().enumerate() {
        let class = if line.ours { "ours" } else { "peer" };
        let dashes = DASHES[at % DASHES.len()];
        let points: Vec<String> = curves
            .steps
            .iter()
            .zip(&line.figures)
            .map(|(step, figure)| format!("{:.1},{:.1}", across(*step), up(*figure)))
            .collect();
        let y = bottom + 44.0 + LINE * at as f64;
        let _ = writeln!(
            svg,
            "<polyline class=\"line {class}\" stroke-dasharray=\"{dashes}\" points=\"{}\"/>\
             <line class=\"line {class}\" stroke-dasharray=\"{dashes}\" x1=\"60\" x2=\"110\" \
             y1=\"{y:.0}\" y2=\"{y:.0}\"/><text x=\"120\" y=\"{:.0}\">{} {}</text>",
            points.join(" "),
            y + 4.0,
            line.language,
            line.library
        );
    }
    svg + "</svg>\n"
}

/// What tells lines of one colour apart.
const DASHES: [&str; 7] = ["none", "7 3", "2 3", "10 3 2 3", "12 6", "4 2", "1 5"];

/// The beginning of a picture: its title, and what its length means.
fn head(name: &str, hint: &str, height: f64) -> String {
    let name = name.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
         <title>{name}, {hint}</title>\n\
         <style>text{{font:13px system-ui,sans-serif;fill:#24292f}}.head{{font-weight:600}}\
         .hint{{fill:#6e7781}}.ours{{fill:#1a7f64;stroke:#1a7f64}}.peer{{fill:#b4bcc5;stroke:#8c959f}}\
         rect{{stroke:none}}.line{{fill:none;stroke-width:2}}.grid{{stroke:#8c959f;stroke-width:.4}}\
         @media(prefers-color-scheme:dark){{text{{fill:#e6edf3}}.hint{{fill:#9198a1}}\
         .ours{{fill:#3fb68b;stroke:#3fb68b}}.peer{{fill:#545d68}}}}</style>\n\
         <text class=\"head\" x=\"12\" y=\"22\">{name}</text>\n\
         <text class=\"hint\" x=\"12\" y=\"42\">{hint}</text>\n"
    )
}

fn short(figure: f64) -> String {
    match figure {
        big if big >= 1e6 => format!("{:.1} M", big / 1e6),
        big if big >= 1e4 => format!("{:.0} k", big / 1e3),
        big if big >= 100.0 => format!("{big:.0}"),
        small => format!("{small:.1}"),
    }
}
