use std::time::Duration;

use super::{parse, show};

#[test]
fn plain_numbers_are_seconds() {
    assert_eq!(parse("10"), Ok(Duration::from_secs(10)));
    assert_eq!(parse("0.25"), Ok(Duration::from_millis(250)));
    assert_eq!(parse("0"), Ok(Duration::ZERO));
}

#[test]
fn units_are_understood() {
    assert_eq!(parse("1m30s"), Ok(Duration::from_secs(90)));
    assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
}

#[test]
fn nonsense_is_refused() {
    for text in ["", "-1", "ten", "10 parsecs", "inf", "NaN"] {
        assert!(parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn spans_are_shown_short() {
    let shown = |micros| show(Duration::from_micros(micros));
    assert_eq!(shown(17), "17 µs");
    assert_eq!(shown(1_234), "1.2 ms");
    assert_eq!(shown(45_678), "45 ms");
    assert_eq!(shown(2_345_678), "2.3 s");
    assert_eq!(shown(29_900_000), "29 s");
    assert_eq!(shown(125_000_000), "2 min 5 s");
    assert_eq!(shown(7_260_000_000), "2 h 1 min");
}
