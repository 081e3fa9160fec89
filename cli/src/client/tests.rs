use super::{label, shortened};

#[test]
fn labels_are_short_and_printable() {
    assert_eq!(shortened("a\nb"), "ab");
    let long = shortened(&"ü".repeat(200));
    assert!(long.len() <= 128 && long.ends_with('…'));
    assert!(label("backup").starts_with("backup on "));
}
