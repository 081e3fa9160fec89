//! Each judgement finds what it is for, and lets pass what it must.

use std::sync::Arc;

use crate::check;
use crate::record::{NEMESIS, Record};

/// Reads `who at event tag key=value…`, one to a line.
fn judged(text: &str) -> Result<check::Found, String> {
    let records: Vec<Record> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let (who, rest) = line.split_once(' ').unwrap();
            let (at, rest) = rest.split_once(' ').unwrap();
            let who: Arc<str> = if who == "-" { NEMESIS.into() } else { who.into() };
            Record::from_words(&who, &format!("{at} 0 {rest}")).unwrap()
        })
        .collect();
    check::all(&records).map_err(|broken| broken.0.join("\n"))
}

#[track_caller]
fn finds(word: &str, text: &str) {
    let broken = judged(text).unwrap_err();
    assert!(broken.starts_with(word), "{broken}");
    assert_eq!(broken.lines().count(), 1, "{broken}");
}

mod modes;
mod resizes;

const FIRST: &str = "
    a 10 asked t lock=l client=c
    a 20 granted t lock=l token=5 abandoned=No until=100";

#[test]
fn holds_in_turn_are_fine() {
    let found = judged(&format!(
        "{FIRST}
        a 50 release-asked t until=100 valid=true
        b 51 asked u lock=l client=c
        b 60 granted u lock=l token=6 abandoned=No until=150
        a 70 released t
        b 80 release-asked u until=150 valid=true
        b 90 released u"
    ));
    let found = found.unwrap();
    assert_eq!((found.asked, found.grants, found.lost), (2, 2, 0));
}

const OVERLAP: &str = "
    b 51 asked u lock=l client=c
    b 60 granted u lock=l token=6 abandoned=No until=150
    a 70 release-asked t until=100 valid=true
    a 71 released t
    b 80 release-asked u until=150 valid=true
    b 90 released u";

#[test]
fn an_overlap_is_found_and_excused_after_a_flush() {
    finds("exclusion", &format!("{FIRST}{OVERLAP}"));
    let flushed = format!("{FIRST}{OVERLAP}\n- 30 forgetting store\n- 31 forgot store");
    assert_eq!(judged(&flushed).unwrap().excused, 1);
    finds("exclusion", &format!("{FIRST}{OVERLAP}\n- 2 forgetting store\n- 3 forgot store"));
    let owners = format!("{FIRST}{OVERLAP}").replace("client=c", "client=c owner=o");
    assert!(judged(&owners).is_ok());
}

#[test]
fn who_left_from_between_two_holders_leaves_it_open_whether_one_was_lost() {
    let turns = |left: &str, said: &str| {
        format!(
            "{FIRST}
            b 30 asked u lock=l client=c
            {left}
            a 50 release-asked t until=100 valid=true
            a 51 released t
            b 60 granted u lock=l token=6 abandoned={said} until=150
            b 80 release-asked u until=150 valid=true
            b 90 released u"
        )
    };
    let left = "d 25 asked v lock=l client=c\n d 40 cancelled v";
    assert!(judged(&turns("", "No")).is_ok());
    finds("abandoned", &turns("", "Unknown"));
    assert!(judged(&turns(left, "Unknown")).is_ok());
    finds("abandoned", &turns(left, "Yes"));
    finds("abandoned", &turns(&left.replace("lock=l", "lock=m"), "Unknown"));
    let before = left.replace("25", "15").replace("40", "19");
    finds("abandoned", &turns(&before, "Unknown"));
}

#[test]
fn a_hold_that_ran_out_is_over() {
    let text = format!(
        "{FIRST}
        a 101 lost t reason=NotRenewed
        b 61 asked u lock=l client=c
        b 120 granted u lock=l token=6 abandoned=Yes until=150
        b 130 release-asked u until=150 valid=true
        b 140 released u"
    );
    let found = judged(&text).unwrap();
    assert_eq!((found.lost, found.abandoned), (1, 1));
    finds("abandoned", &text.replace("abandoned=Yes", "abandoned=No"));
    finds(
        "exclusion",
        &text
            .replace("until=100", "until=100\n a 60 trusted t until=125")
            .replace("a 101 lost", "a 126 lost"),
    );
    finds("told in time", &text.replace("a 101 lost", "a 9000000000 lost"));
    // Asleep all the while, it is told when it wakes.
    let asleep = "- 50 stopping a\n- 51 stopped a\n- 8999999999 continued a\n";
    judged(&format!("{asleep}{}", text.replace("a 101 lost", "a 9000000000 lost"))).unwrap();
}

#[test]
fn a_loss_that_is_never_told_is_found() {
    let text = format!(
        "{FIRST}
        a 3000000000 release-asked t until=3000000000 valid=false
        a 3000000001 unreleased t kind=lost"
    );
    finds("told in time", &text);
    judged(&text.replace("3000000000", "1000000000")).unwrap();
    judged(&format!("{text}\n- 2999999999 stalled machine from=50 to=2999999999")).unwrap();
}

#[test]
fn a_token_that_goes_back_is_found() {
    let text = format!(
        "{FIRST}
        a 50 release-asked t until=100 valid=true
        a 55 released t
        b 51 asked u lock=l client=c
        b 60 granted u lock=l token=5 abandoned=No until=150
        b 80 release-asked u until=150 valid=true
        b 90 released u"
    );
    finds("token order", &text);
    // A flush is no excuse, unless the clock was set back as well.
    let flushed = format!("{text}\n- 56 forgetting store\n- 57 forgot store");
    finds("token order", &flushed);
    assert!(judged(&format!("{flushed}\n- 40 setting-back store")).is_ok());
    // The later one was granted first, and on its way when the clock ended its lease.
    let leapt = text.replace("b 51 asked", "b 5 asked");
    finds("token order", &leapt);
    judged(&format!("{leapt}\n- 8 leaping store\n- 9 leapt store")).unwrap();
    finds("token order", &format!("{text}\n- 56 leaping store\n- 57 leapt store"));
}

#[test]
fn what_is_never_told_is_found() {
    finds("answers", "a 10 asked t lock=l client=c");
    assert!(judged("a 10 asked t lock=l client=c\n- 20 killed a").is_ok());
    finds("releases", FIRST);
    finds(
        "releases",
        &format!("{FIRST}\n a 120 release-asked t until=0 valid=false\n a 130 released t"),
    );
}

#[test]
fn a_refused_write_of_a_trusted_holder_is_found() {
    let text = format!(
        "{FIRST}
        a 50 wrote t accepted=Ok(false)
        a 60 release-asked t until=100 valid=true
        a 61 released t"
    );
    finds("fencing", &text);
    assert!(judged(&text.replace("a 50 wrote", "a 150 wrote")).is_ok());
    assert_eq!(judged(&text.replace("a 50 wrote", "a 150 wrote")).unwrap().refused_writes, 1);
}

#[test]
fn one_who_re_enters_is_not_its_own_rival() {
    let nested = format!(
        "{FIRST}
        a 30 asked u lock=l client=c caller=x
        a 31 granted u lock=l token=5 abandoned=No reentry=true until=100
        a 40 release-asked u until=100 valid=true
        a 41 released u
        a 50 release-asked t until=100 valid=true
        a 51 released t"
    );
    let two = judged(&nested.replace("caller=x", "caller=y")).unwrap_err();
    assert!(two.starts_with("exclusion"), "{two}");
    judged(
        &nested.replace("a 10 asked t lock=l client=c", "a 10 asked t lock=l client=c caller=x"),
    )
    .unwrap();
}

#[test]
fn a_nested_hold_rests_on_the_grant_before_the_fault() {
    let text = "
        a 10 asked t lock=l client=c caller=x
        a 20 granted t lock=l token=5 abandoned=No until=200
        - 30 forgetting store
        - 31 forgot store
        b 40 asked v lock=l client=c caller=x
        b 50 granted v lock=l token=9000 abandoned=Unknown until=200
        a 60 asked u lock=l client=c caller=x
        a 61 granted u lock=l token=5 abandoned=No reentry=true until=200
        a 70 release-asked u until=200 valid=true
        a 71 released u
        a 72 release-asked t until=200 valid=true
        a 73 released t
        b 80 release-asked v until=200 valid=true
        b 81 released v";
    assert_eq!(judged(text).unwrap().excused, 2);
    let sound = text.replace("- 30 forgetting store", "").replace("- 31 forgot store", "");
    let broken = judged(&sound).unwrap_err();
    assert!(broken.starts_with("exclusion"), "{broken}");
}

#[test]
fn a_hold_that_somebody_took_away_is_found() {
    let broke = "
        a 50 lost t reason=Broken
        a 60 release-asked t until=100 valid=false
        a 61 unreleased t kind=lost";
    finds("taken away", &format!("{FIRST}{broke}"));
    // An operator did it.
    judged(&format!("{FIRST}{broke}\n- 40 broke l")).unwrap();
    let gone = "
        a 50 release-asked t until=100 valid=true
        a 61 unreleased t kind=lost";
    finds("taken away", &format!("{FIRST}{gone}"));
    // The store forgot it, or its lease was over before the answer came.
    judged(&format!("{FIRST}{gone}\n- 40 forgetting store\n- 41 forgot store")).unwrap();
    judged(&format!("{FIRST}{}", gone.replace("61", "161"))).unwrap();
}
