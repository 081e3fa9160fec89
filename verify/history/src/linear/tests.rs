//! The check of windows finds two holders, and a lock that is held by nobody.

use std::sync::Arc;

use crate::linear::judge;
use crate::record::Record;

fn judged(text: &str) -> (usize, usize, usize) {
    let records: Vec<Record> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let (who, rest) = line.split_once(' ').unwrap();
            let (at, rest) = rest.split_once(' ').unwrap();
            let who: Arc<str> = who.into();
            Record::from_words(&who, &format!("{at} 0 {rest}")).unwrap()
        })
        .collect();
    let (outcome, broken) = judge(&records);
    (outcome.windows, outcome.spoiled, broken.len())
}

const TURNS: &str = "
    a 1 asked w1.a
    b 2 asked w1.b
    a 3 granted w1.a
    b 4 failed w1.b kind=contended
    a 5 release-asked w1.a
    a 6 released w1.a
    b 7 asked w1.b2
    b 8 granted w1.b2";

#[test]
fn turns_are_linearizable() {
    assert_eq!(judged(TURNS), (1, 0, 0));
}

#[test]
fn two_holders_are_not() {
    let both = TURNS.replace("b 4 failed w1.b kind=contended", "b 4 granted w1.b");
    assert_eq!(judged(&both), (0, 0, 1));
}

#[test]
fn nor_is_a_lock_that_nobody_has() {
    let refused = TURNS.replace("b 8 granted w1.b2", "b 8 failed w1.b2 kind=contended");
    assert_eq!(judged(&refused), (0, 0, 1));
    // Unless somebody may have it without having heard of it.
    let unheard = "c 1 asked w1.c\n c 4 failed w1.c kind=unavailable\n";
    assert_eq!(judged(&format!("{unheard}{refused}")), (1, 0, 0));
}

#[test]
fn a_window_in_which_the_store_forgot_shows_nothing() {
    let both = TURNS.replace("b 4 failed w1.b kind=contended", "b 4 granted w1.b");
    let forgot = "nemesis 3 forgetting store\n nemesis 4 forgot store\n";
    assert_eq!(judged(&format!("{forgot}{both}")), (0, 1, 0));
    let before = "nemesis 0 forgetting store\n nemesis 0 forgot store\n";
    assert_eq!(judged(&format!("{before}{both}")), (0, 0, 1));
}

#[test]
fn readers_are_in_together_and_permits_as_many_as_there_are() {
    let both = |first: &str, next: &str, answer: &str| {
        judged(&format!(
            "a 1 asked w1.a {first}
            a 2 granted w1.a
            b 3 asked w1.b {next}
            b 4 {answer} w1.b kind=contended
            a 5 release-asked w1.a
            a 6 released w1.a"
        ))
    };
    let (kept, broken) = ((1, 0, 0), (0, 0, 1));
    let (read, write) = ("mode=shared", "");
    let (two, three) = ("mode=permits:2/4", "mode=permits:3/4");
    for (first, next) in [(read, read), (two, two)] {
        assert_eq!(both(first, next, "granted"), kept, "{first} {next}");
        assert_eq!(both(first, next, "failed"), broken, "{first} {next}");
    }
    for (first, next) in [(read, write), (write, read), (write, write), (two, three)] {
        assert_eq!(both(first, next, "granted"), broken, "{first} {next}");
        assert_eq!(both(first, next, "failed"), kept, "{first} {next}");
    }
}
