use super::visible;

#[test]
fn control_characters_are_escaped() {
    assert_eq!(visible("orders/42 – ok"), "orders/42 – ok");
    assert_eq!(visible("a\u{1b}[31mb\nc"), "a\\u{1b}[31mb\\nc");
}

#[test]
fn what_turns_a_line_around_or_hides_in_it_is_escaped() {
    assert_eq!(visible("pay\u{202e}kcab"), "pay\\u{202e}kcab");
    for unseen in
        ['\u{200b}', '\u{200f}', '\u{2066}', '\u{2028}', '\u{feff}', '\u{e0041}', '\u{9b}']
    {
        let shown = visible(&format!("a{unseen}b")).into_owned();
        assert!(shown.is_ascii() && shown.starts_with("a\\u{"), "{shown:?}");
    }
    for plain in ["日本", "مرحبا", "שלום", "é", "👩", "a b"] {
        assert_eq!(visible(plain), plain);
    }
}

#[test]
fn an_error_names_a_lock_without_moving_the_cursor() {
    let error = crate::Error::new(crate::ErrorKind::NotHeld, "nobody holds a\u{1b}[2Jb\nc");
    assert_eq!(error.message(), "nobody holds a\\u{1b}[2Jb\\nc");
    assert_eq!(error.to_string(), error.message());
}
