use super::{Sale, Shop};
use crate::demo::wire::Written;

fn shop() -> (tempfile::TempDir, Shop) {
    let place = tempfile::tempdir().unwrap();
    let shop = Shop::create(&place.path().join("shop.sqlite"), 10).unwrap();
    (place, shop)
}

fn sale(person: u32, read: i64, token: u64, checked: bool) -> Sale {
    Sale { person, process: person % 2, read, token, checked, at: 0 }
}

#[test]
fn the_window_opens_and_closes() {
    let (_place, shop) = shop();
    assert!(!shop.is_open(5).unwrap());
    shop.set_window(5, 9).unwrap();
    let open: Vec<bool> = (4..=9).map(|now| shop.is_open(now).unwrap()).collect();
    assert_eq!(open, [false, true, true, true, true, false]);
}

#[test]
fn an_old_token_is_refused_and_changes_nothing() {
    let (_place, mut shop) = shop();
    assert_eq!(shop.write(sale(1, 10, 20, true)).unwrap(), Written::Done { was: 10, is: 9 });
    assert_eq!(shop.write(sale(2, 10, 19, true)).unwrap(), Written::Refused { highest: 20 });
    assert_eq!(shop.stock().unwrap(), 9);
    assert!(!shop.has_one(2).unwrap());
    assert_eq!(shop.write(sale(2, 9, 20, true)).unwrap(), Written::Done { was: 9, is: 8 });
}

#[test]
fn without_the_check_an_old_write_forgets_sales() {
    let (_place, mut shop) = shop();
    for person in 0..4 {
        shop.write(sale(person, 10 - i64::from(person), 20 + u64::from(person), true)).unwrap();
    }
    let late = shop.write(sale(9, 10, 19, false)).unwrap();
    assert_eq!(late, Written::Done { was: 6, is: 9 });
}

#[test]
fn the_books_count_what_was_sold() {
    let (_place, mut shop) = shop();
    for (person, token) in [(1, 5), (2, 6), (1, 7), (3, 4)] {
        shop.write(sale(person, 10, token, false)).unwrap();
    }
    let books = shop.books(2).unwrap();
    assert_eq!((books.sold, books.twice, books.out_of_order), (4, 1, 1));
    assert_eq!(books.shares, [1, 3]);
}

#[test]
fn the_lot_falls_on_one_only() {
    let (_place, shop) = shop();
    assert_eq!([shop.draw_the_lot().unwrap(), shop.draw_the_lot().unwrap()], [true, false]);
}
