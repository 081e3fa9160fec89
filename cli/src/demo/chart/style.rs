//! Sizes and colours, for a light page and a dark one.

use std::borrow::Cow;

/// The whole width.
pub const WIDTH: f64 = 1200.0;
/// Where the time axis begins.
pub const LEFT: f64 = 120.0;
/// Where it ends.
pub const RIGHT: f64 = 1040.0;
/// One process's lane.
pub const LANE: f64 = 22.0;
/// The bar in it.
pub const BAR: f64 = 16.0;

/// How many colours there are for processes.
const COLOURS: u32 = 8;

/// The colour class of a process.
pub fn colour(process: u32) -> String {
    format!("p{}", process % COLOURS)
}

/// Text as XML wants it.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['<', '>', '&', '"']) {
        return Cow::Borrowed(text);
    }
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    Cow::Owned(text.replace('>', "&gt;").replace('"', "&quot;"))
}

/// Plain rules without variables: some renderers know none.
pub const STYLE: &str = "
text { font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; font-size: 12px; fill: #1f2937 }
.ground { fill: #ffffff }
.head { font-size: 22px; font-weight: 600 }
.sub, .key, .tick, .lane { fill: #6b7280 }
.sub { font-size: 13px }
.title { font-size: 15px; font-weight: 600 }
.note { font-weight: 600 }
.tick { font-size: 11px }
.end { text-anchor: end }
.mid { text-anchor: middle }
.track { fill: #f3f4f6 }
.grid { stroke: #e5e7eb; stroke-width: 1 }
.stock { stroke: #9ca3af; stroke-width: 1; stroke-dasharray: 4 3 }
.sold { fill: none; stroke: #374151; stroke-width: 1.5; stroke-linejoin: round }
.under { fill: #9ca3af; fill-opacity: .22 }
.over { fill: #dc2626; fill-opacity: .35 }
.good { fill: #047857 }
.bad { fill: #dc2626 }
.cross { stroke: #ffffff; stroke-width: 2; stroke-linecap: round }
.flag { fill: #b45309 }
.hatch-ground { fill: #fde68a }
.hatch { fill: #b45309 }
.link { stroke: #dc2626; stroke-width: 1; stroke-dasharray: 2 3 }
.p0 { fill: #2563eb } .p1 { fill: #d97706 } .p2 { fill: #059669 } .p3 { fill: #9333ea }
.p4 { fill: #0891b2 } .p5 { fill: #be185d } .p6 { fill: #65a30d } .p7 { fill: #475569 }
@media (prefers-color-scheme: dark) {
text { fill: #e5e7eb }
.ground { fill: #0d1117 }
.sub, .key, .tick, .lane { fill: #9ca3af }
.track { fill: #161b22 }
.grid { stroke: #21262d }
.stock { stroke: #6b7280 }
.sold { stroke: #d1d5db }
.good { fill: #34d399 }
.bad { fill: #f87171 }
.over { fill: #f87171 }
.cross { stroke: #0d1117 }
.flag { fill: #fbbf24 }
.hatch-ground { fill: #78350f }
.hatch { fill: #fbbf24 }
.link { stroke: #f87171 }
.p0 { fill: #60a5fa } .p1 { fill: #fbbf24 } .p2 { fill: #34d399 } .p3 { fill: #c084fc }
.p4 { fill: #22d3ee } .p5 { fill: #f472b6 } .p6 { fill: #a3e635 } .p7 { fill: #94a3b8 }
}
";
