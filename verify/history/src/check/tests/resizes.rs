//! Semaphores whose number changes while they are held.

use super::{finds, judged};

/// One who asks at one time, is granted the permits at another, and gives them back.
fn takes(who: &str, asked: u64, from: u64, to: u64, permits: &str) -> String {
    format!(
        "{who} {asked} asked t lock=l client=c mode=permits:{permits}
        {who} {from} granted t lock=l token={from} abandoned=No until={}
        {who} {to} release-asked t until={} valid=true
        {who} {} released t\n",
        to + 100,
        to + 100,
        to + 1
    )
}

fn resize(from: u64, to: u64, of: u64, answer: &str) -> String {
    format!("r {from} resize-asked z lock=l of={of}\n r {to} {answer}\n")
}

const DONE: &str = "resized z used=yes";
const UNKNOWN: &str = "failed z kind=unavailable";

#[test]
fn of_more_permits_one_who_waits_gets_some_from_then_on() {
    let grown = |granted, answer| {
        takes("a", 5, 10, 90, "2/2")
            + &takes("b", 20, granted, 80, "1/2")
            + &resize(40, 45, 3, answer)
    };
    // It takes effect between its call and its answer.
    for granted in [41, 50] {
        assert!(judged(&grown(granted, DONE)).is_ok(), "{granted}");
        assert!(judged(&grown(granted, UNKNOWN)).is_ok(), "{granted}");
    }
    finds("exclusion: 3 permits of l", &grown(39, DONE));
    finds("exclusion: 3 permits of l", &grown(50, "failed z kind=invalid_argument"));
    finds("exclusion: 3 permits of l", &grown(50, "resized z used=no"));
    // No more than that.
    let two = grown(50, DONE).replace("permits:1/2", "permits:2/2");
    finds("exclusion: 4 permits of l", &two);
}

#[test]
fn of_fewer_permits_nobody_loses_any_and_nobody_enters_until_it_fits() {
    let shrunk = |later: &str, answer| {
        takes("a", 5, 10, 60, "2/3")
            + &takes("b", 11, 12, 90, "1/3")
            + &resize(40, 45, 2, answer)
            + later
    };
    // Who held before goes on.
    assert!(judged(&shrunk("", DONE)).is_ok());
    let after = |asked, granted, permits| takes("d", asked, granted, 80, permits);
    assert!(judged(&shrunk(&after(50, 61, "1/2"), DONE)).is_ok());
    finds("exclusion: 4 permits of l", &shrunk(&after(50, 59, "1/2"), DONE));
    finds("exclusion: 3 permits of l", &shrunk(&after(50, 61, "2/2"), DONE));
    // Where nobody knows what came of it, there may still be three.
    assert!(judged(&shrunk(&after(50, 61, "2/3"), UNKNOWN)).is_ok());
    // One who waited since before has no more of them than others.
    assert!(judged(&shrunk(&after(20, 61, "1/3"), DONE)).is_ok());
    finds("exclusion: from 20 to 61", &shrunk(&after(20, 61, "2/3"), DONE));
    // It may have been granted before, and hear of it only now.
    let early =
        shrunk(&after(20, 61, "2/3"), DONE).replace("a 60 ", "a 30 ").replace("a 61 ", "a 31 ");
    assert!(judged(&early).is_ok());
}

#[test]
fn the_last_of_two_resizes_counts() {
    let twice = |first: u64, next: u64, between: u64| {
        takes("a", 5, 10, 90, "1/1")
            + &takes("b", 70, 75, 80, "1/2")
            + &resize(20, 30, first, DONE)
            + &resize(between, 60, next, "resized y used=yes").replace(" z ", " y ")
    };
    assert!(judged(&twice(1, 2, 40)).is_ok());
    finds("exclusion: 2 permits of l", &twice(2, 1, 40));
    // Of two at once either may be the last.
    assert!(judged(&twice(2, 1, 25)).is_ok());
}

#[test]
fn a_number_lasts_until_nobody_holds() {
    let then = |from: u64, of: u64| {
        takes("a", 5, 10, 50, "1/1")
            + &resize(20, 25, 3, DONE)
            + &takes("b", from, from + 1, 90, &format!("1/{of}"))
            + &takes("d", 70, 71, 80, &format!("2/{of}"))
    };
    assert!(judged(&then(40, 3)).is_ok());
    assert!(judged(&then(60, 3)).is_ok());
    finds("exclusion: 3 permits of l", &then(60, 2));
}

#[test]
fn who_adopts_says_no_number_of_its_own() {
    let beside =
        |first: &str, next: &str| takes("a", 5, 10, 90, first) + &takes("b", 20, 21, 80, next);
    let adopts = |permits: &str| format!("{permits} adopt=yes");
    assert!(judged(&beside("1/2", &adopts("1/1"))).is_ok());
    finds("exclusion: 2 permits of l", &beside("1/1", &adopts("1/9")));
    finds("exclusion: 3 permits of l", &beside("2/2", &adopts("1/3")));
    // Unless nobody holds.
    assert!(judged(&beside(&adopts("1/2"), "1/2")).is_ok());
    assert!(judged(&beside("2/2", &adopts("3/3")).replace("a 90", "a 15")).is_ok());
    // What was refused has no say.
    let refused =
        "d 12 asked t lock=l client=c mode=permits:1/3\n d 13 failed t kind=misconfigured\n";
    finds("exclusion: 3 permits of l", &(beside("2/2", "1/2") + refused));
}
