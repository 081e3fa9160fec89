use std::io::Write;

use super::{Stock, Till};

#[test]
fn a_sale_takes_one_from_the_stock_and_is_written_down() {
    let place = tempfile::tempdir().unwrap();
    let till = Till::create(place.path(), 2).unwrap();
    assert!(till.sell("rust", 5).unwrap());
    assert_eq!(till.stock().unwrap(), Stock { left: 1, newest: 5 });
    assert!(till.sell("java", 5).unwrap());
    assert!(!till.sell("rust", 6).unwrap());
    let sales = till.sales().unwrap();
    let who: Vec<(&str, u64)> = sales.iter().map(|s| (s.seller.as_str(), s.token)).collect();
    assert_eq!(who, [("rust", 5), ("java", 5)]);
    assert!(sales[0].from < sales[0].to && sales[0].to <= sales[1].from);
}

#[test]
fn an_old_token_is_refused_and_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let till = Till::create(place.path(), 3).unwrap();
    assert!(till.sell("rust", 7).unwrap());
    let refused = till.sell("java", 6).unwrap_err();
    assert!(refused.message.contains("token 6 is refused: 7 has written"), "{}", refused.message);
    assert_eq!(till.stock().unwrap(), Stock { left: 2, newest: 7 });
    assert_eq!(till.sales().unwrap().len(), 1);
}

#[test]
fn a_half_written_line_is_not_read_and_a_strange_one_is_an_error() {
    let place = tempfile::tempdir().unwrap();
    let till = Till::create(place.path(), 3).unwrap();
    let append = |text: &str| {
        let file = place.path().join("sales");
        std::fs::OpenOptions::new().append(true).open(file).unwrap().write_all(text.as_bytes())
    };
    append("c 1 2 3\njava 2").unwrap();
    assert_eq!(till.sales().unwrap().len(), 1);
    append("\n").unwrap();
    assert!(till.sales().unwrap_err().message.contains("java 2"));
}
