use super::{Language, visits};
use crate::demo::till::Sold;

fn sold(seller: &str, token: u64, from: u64, to: u64) -> Sold {
    Sold { seller: seller.to_owned(), token, from, to }
}

#[test]
fn a_language_has_a_short_name_of_its_own() {
    let java: Language = "java=java -cp a=b Seller".parse().unwrap();
    assert_eq!((java.name.as_str(), java.about.as_str()), ("java", "java -cp a=b Seller"));
    for wrong in ["java", "=x", "java=", "two words=x", "rust=x", "averylongname=x"] {
        assert!(wrong.parse::<Language>().is_err(), "{wrong}");
    }
}

#[test]
fn a_sale_is_a_visit_that_began_when_the_seller_had_sold_before() {
    let names = ["rust".to_owned(), "c".to_owned()];
    let sales = [sold("c", 1, 20, 30), sold("rust", 2, 35, 40), sold("c", 3, 45, 50)];
    let seen: Vec<(u32, u64, u64, u64)> = (visits(&names, &sales, 10).unwrap().iter())
        .map(|(process, visit)| (*process, visit.asked, visit.got, visit.left))
        .collect();
    assert_eq!(seen, [(1, 10, 20, 30), (0, 10, 35, 40), (1, 30, 45, 50)]);
}

#[test]
fn a_seller_that_nobody_hired_is_an_error() {
    let wrong = visits(&["rust".to_owned()], &[sold("x", 1, 2, 3)], 0).unwrap_err();
    assert!(wrong.message.contains("line 1") && wrong.message.contains('x'), "{}", wrong.message);
}
