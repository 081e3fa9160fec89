//! Small signs.

use std::fmt::Write;

/// A disc with a cross.
pub fn cross(out: &mut String, x: f64, y: f64, class: &str) {
    let _ = writeln!(
        out,
        r#"<g transform="translate({x:.1} {y:.1})"><circle class="{class}" r="7"/><path class="cross" d="M-2.8-2.8 2.8 2.8M2.8-2.8-2.8 2.8"/></g>"#
    );
}

/// A flag.
pub fn flag(out: &mut String, x: f64, y: f64) {
    let _ = writeln!(
        out,
        r#"<path class="flag" transform="translate({x:.1} {y:.1})" d="M-1-7H8L5.5-4 8-1H.5V7H-1Z"/>"#
    );
}
