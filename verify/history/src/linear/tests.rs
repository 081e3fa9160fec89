//! The check of windows finds two holders, and a lock that is held by nobody.

use std::sync::Arc;

use crate::linear::{Tries, judge};
use crate::record::Record;

fn judged(text: &str) -> (usize, usize, usize) {
    judged_as(Tries::AtOnce, text)
}

fn judged_as(tries: Tries, text: &str) -> (usize, usize, usize) {
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
    let (outcome, broken) = judge(&records, tries);
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

#[test]
fn a_conversion_takes_effect_between_its_call_and_its_answer() {
    // A reader asks to write, and another tries from 4 to 6.
    let up = |answer: &str, other: &str, next: &str| {
        judged(&format!(
            "a 1 asked w1.a mode=shared
            a 2 granted w1.a
            {other}
            a 5 upgrade-asked w1.a
            a 7 {answer}
            d 8 asked w1.d mode=shared
            d 9 {next} w1.d kind=contended"
        ))
    };
    let (kept, broken) = ((1, 0, 0), (0, 0, 1));
    let (done, refused) = ("converted w1.a", "unconverted w1.a kind=contended");
    let reader = "b 3 asked w1.b mode=shared\n b 4 granted w1.b";
    // Alone, it becomes a writer, who keeps readers out.
    assert_eq!(up(done, "", "failed"), kept);
    assert_eq!(up(done, "", "granted"), broken);
    assert_eq!(up(refused, "", "granted"), broken);
    // Beside another reader it is refused.
    assert_eq!(up(refused, reader, "granted"), kept);
    assert_eq!(up(refused, reader, "failed"), broken);
    assert_eq!(up(done, reader, "failed"), broken);
    // One who came and went meanwhile may have been beside it, or not.
    let passing = reader.replace("4 granted", "6 granted");
    assert_eq!(up(refused, &passing, "granted"), kept);
    assert_eq!(up(done, &passing, "failed"), broken);
    // Nobody knows what came of it.
    let unheard = "unconverted w1.a kind=unavailable";
    assert_eq!(up(unheard, "", "granted"), kept);
    assert_eq!(up(unheard, "", "failed"), kept);
}

#[test]
fn a_writer_that_became_a_reader_lets_readers_in_and_no_writer() {
    let down = |answer: &str, mode: &str, next: &str| {
        judged(&format!(
            "a 1 asked w1.a
            a 2 granted w1.a
            a 3 downgrade-asked w1.a
            a 5 {answer}
            d 6 asked w1.d {mode}
            d 7 {next} w1.d kind=contended"
        ))
    };
    let (kept, broken) = ((1, 0, 0), (0, 0, 1));
    let done = "converted w1.a mode=shared";
    assert_eq!(down(done, "mode=shared", "granted"), kept);
    assert_eq!(down(done, "mode=shared", "failed"), broken);
    assert_eq!(down(done, "", "failed"), kept);
    assert_eq!(down(done, "", "granted"), broken);
    // It is never refused.
    assert_eq!(down("unconverted w1.a kind=contended", "mode=shared", "granted"), broken);
    let unheard = "unconverted w1.a kind=unavailable";
    assert_eq!(down(unheard, "mode=shared", "failed"), kept);
    assert_eq!(down(unheard, "mode=shared", "granted"), kept);
    assert_eq!(down(unheard, "", "granted"), broken);
}

#[test]
fn a_try_that_stands_in_line_is_refused_by_another_under_way_and_by_no_other() {
    // While one reads, another tries to write from 3 on, and a third to read, from 4 to 5.
    let third = |writer: &str, mode: &str, answer: &str| {
        format!(
            "a 1 asked w1.a mode=shared
            a 2 granted w1.a
            {writer}
            d 4 asked w1.d {mode}
            d 5 {answer} w1.d kind=contended"
        )
    };
    let (kept, broken) = ((1, 0, 0), (0, 0, 1));
    let refused = |from, to| format!("b {from} asked w1.b\n b {to} failed w1.b kind=contended");
    let beside = third(&refused(3, 6), "mode=shared", "failed");
    assert_eq!(judged(&beside), broken);
    assert_eq!(judged_as(Tries::InLine, &beside), kept);
    // It had gone, it had not come yet, it reads, too; and nobody has the lock beside a reader, in line or not.
    let gone = refused(2, 3);
    let reads = "b 3 asked w1.b mode=shared\n b 6 granted w1.b";
    for writer in [&*gone, &*refused(7, 8), reads] {
        let wrong = third(writer, "mode=shared", "failed");
        assert_eq!(judged_as(Tries::InLine, &wrong), broken, "{writer}");
    }
    assert_eq!(judged_as(Tries::InLine, &third(&refused(3, 6), "", "granted")), broken);
}

/// One holds two of three permits, the number is set to `of` from 3 to 5, and another tries from 6 to 7.
fn resized(tries: Tries, of: u64, answer: &str, next: &str) -> (usize, usize, usize) {
    judged_as(
        tries,
        &format!(
            "a 1 asked w1.a mode=permits:2/3
            a 2 granted w1.a
            r 3 resize-asked w1.r lock=l of={of}
            r 5 {answer}
            d 6 asked w1.d {next}"
        ),
    )
}

#[test]
fn a_resize_counts_from_some_moment_between_its_call_and_its_answer() {
    let (kept, broken) = ((1, 0, 0), (0, 0, 1));
    let done = "resized w1.r used=yes";
    let judge = |of, answer, next: &str| {
        let [refused, once] =
            [Tries::InLine, Tries::AtOnce].map(|it| resized(it, of, answer, next));
        assert_eq!(refused, once, "{of} {answer} {next}");
        once
    };
    let granted = |mode: &str| format!("mode=permits:{mode}\n d 7 granted w1.d");
    let failed =
        |mode: &str, kind: &str| format!("mode=permits:{mode}\n d 7 failed w1.d kind={kind}");
    // Of more there is room for more, and of fewer for nobody.
    assert_eq!(judge(5, done, &granted("3/5")), kept);
    assert_eq!(judge(5, done, &failed("3/5", "contended")), broken);
    assert_eq!(judge(2, done, &failed("1/2", "contended")), kept);
    assert_eq!(judge(2, done, &granted("1/2")), broken);
    // The number before says nothing any more.
    assert_eq!(judge(5, done, &granted("1/3")), broken);
    assert_eq!(judge(5, done, &failed("1/3", "misconfigured")), kept);
    assert_eq!(judge(5, done, &failed("1/5", "misconfigured")), broken);
    assert_eq!(judge(5, done, &failed("1/3", "contended")), broken);
    // Who adopts takes the new one, and may want too much of it.
    assert_eq!(judge(5, done, &granted("3/9").replace('\n', " adopt=yes\n")), kept);
    let fewer = |kind| failed("3/9", kind).replace('\n', " adopt=yes\n");
    assert_eq!(judge(2, done, &fewer("invalid_argument")), kept);
    assert_eq!(judge(5, done, &fewer("invalid_argument")), broken);
    assert_eq!(judge(2, done, &fewer("misconfigured")), broken);
    // It was used, since one holds.
    assert_eq!(judge(5, "resized w1.r used=no", &granted("1/3")), broken);
    // Nobody knows what came of it; or nothing did.
    let unheard = "failed w1.r kind=unavailable";
    assert_eq!(judge(5, unheard, &granted("3/5")), kept);
    assert_eq!(judge(5, unheard, &granted("1/3")), kept);
    assert_eq!(judge(5, "failed w1.r kind=invalid_argument", &granted("1/3")), kept);
    assert_eq!(judge(5, "failed w1.r kind=invalid_argument", &granted("3/5")), broken);
}

#[test]
fn a_resize_of_what_nobody_holds_says_nothing_to_who_comes_next() {
    let (kept, broken) = ((1, 0, 0), (0, 0, 1));
    let free = |used: &str, of: u64, tries: Tries| {
        judged_as(
            tries,
            &format!(
                "r 1 resize-asked w1.r lock=l of={of}
                a 2 asked w1.a mode=permits:2/3
                r 3 resized w1.r used={used}
                a 4 granted w1.a
                d 5 asked w1.d mode=permits:1/{of}
                d 6 granted w1.d"
            ),
        )
    };
    // The one before had it, or had not: in either case its number counts, or the one that was set then.
    assert_eq!(free("no", 4, Tries::AtOnce), broken);
    assert_eq!(free("no", 3, Tries::AtOnce), kept);
    assert_eq!(free("yes", 4, Tries::AtOnce), kept);
    // Who stood in line only may have taken it.
    let line = |from: u64| {
        format!(
            "r 1 resize-asked w1.r lock=l of=4
            r 3 resized w1.r used=yes
            a {from} asked w1.a mode=permits:2/3
            a 7 granted w1.a
            d 8 asked w1.d mode=permits:2/4
            d 9 granted w1.d"
        )
    };
    assert_eq!(judged_as(Tries::InLine, &line(2)), kept);
    assert_eq!(judged_as(Tries::InLine, &line(4)), broken);
}
