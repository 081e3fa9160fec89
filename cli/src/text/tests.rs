use super::visible;

#[test]
fn control_characters_are_escaped() {
    assert_eq!(visible("orders/42 – ok"), "orders/42 – ok");
    assert_eq!(visible("a\u{1b}[31mb\nc"), "a\\u{1b}[31mb\\nc");
}
