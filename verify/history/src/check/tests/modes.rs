//! Readers and permits: what may be together, and what is found.

use super::{finds, judged};

/// A hold of `who` from one instant to another, with a word for its mode.
fn hold(who: &str, from: u64, to: u64, token: u64, mode: &str) -> String {
    told(who, from, to, token, mode, "No")
}

fn told(who: &str, from: u64, to: u64, token: u64, mode: &str, abandoned: &str) -> String {
    let asked = from - 5;
    let until = to + 100;
    format!(
        "{who} {asked} asked t lock=l client=c {mode}
        {who} {from} granted t lock=l token={token} abandoned={abandoned} until={until}
        {who} {to} release-asked t until={until} valid=true
        {who} {} released t\n",
        to + 1
    )
}

#[test]
fn readers_are_in_together_and_a_writer_is_not() {
    let readers = hold("a", 10, 60, 5, "mode=shared") + &hold("b", 20, 70, 6, "mode=shared");
    let found = judged(&readers).unwrap();
    assert_eq!((found.grants, found.together), (2, 1));
    finds("exclusion", &(hold("a", 10, 60, 5, "mode=shared") + &hold("b", 20, 70, 6, "")));
    finds("exclusion", &(hold("a", 10, 60, 5, "") + &hold("b", 20, 70, 6, "mode=shared")));
    // What a word does not say is a lock for one.
    finds("exclusion", &readers.replace("mode=shared", "mode=sharing"));
    let beside = hold("a", 10, 60, 5, "mode=shared") + &hold("b", 20, 70, 6, "mode=permits:1/9");
    finds("exclusion", &beside);
}

#[test]
fn permits_are_never_more_than_there_are() {
    let three = |last: &str| {
        hold("a", 10, 60, 5, "mode=permits:2/4")
            + &hold("b", 20, 70, 6, "mode=permits:1/4")
            + &hold("d", 30, 80, 7, last)
    };
    assert!(judged(&three("mode=permits:1/4")).is_ok());
    finds("exclusion: 5 permits of l", &three("mode=permits:2/4"));
    let forgotten = three("mode=permits:2/4") + "- 25 forgetting store\n- 26 forgot store\n";
    assert_eq!(judged(&forgotten).unwrap().excused, 1);
    // One that is back is free.
    let later =
        hold("a", 10, 60, 5, "mode=permits:4/4") + &hold("b", 66, 70, 6, "mode=permits:4/4");
    assert!(judged(&later).is_ok());
}

#[test]
fn tokens_of_writers_rise_and_readers_may_share_one() {
    let after = |first: &str, next: &str, token: u64| {
        hold("a", 10, 60, 5, first) + &hold("b", 66, 70, token, next)
    };
    let (writer, reader) = ("mode=exclusive", "mode=shared");
    for (first, next) in [(writer, reader), (reader, writer), (writer, writer)] {
        assert!(judged(&after(first, next, 6)).is_ok());
        finds("token order", &after(first, next, 5));
        finds("token order", &after(first, next, 4));
    }
    assert!(judged(&after(reader, reader, 5)).is_ok());
    assert!(judged(&after("mode=permits:1/2", "mode=permits:1/2", 4)).is_ok());
    finds("token order", &after("mode=permits:1/2", "mode=permits:1/2", 5));
}

#[test]
fn a_refused_read_of_a_trusted_reader_is_found() {
    let refused = |at: u64| {
        format!("{} a {at} read t accepted=Ok(false)\n", hold("a", 10, 60, 5, "mode=shared"))
    };
    finds("fencing", &refused(30));
    // It was over.
    assert_eq!(judged(&refused(61)).unwrap().refused_writes, 1);
}

#[test]
fn a_lost_writer_is_told_to_readers_and_a_lost_reader_to_nobody() {
    let lost = |who: &str, from: u64, token: u64, mode: &str| {
        format!(
            "{who} {from} asked t lock=l client=c {mode}
            {who} {from} granted t lock=l token={token} abandoned=No until=50
            {who} 51 lost t reason=NotRenewed\n"
        )
    };
    let readers = |first: &str, second: &str| {
        lost("a", 10, 5, "")
            + &told("b", 66, 80, 6, "mode=shared", first)
            + &told("d", 67, 80, 7, "mode=shared", second)
    };
    assert!(judged(&readers("Yes", "Unknown")).is_ok());
    finds("abandoned", &readers("No", "Yes"));
    // A reader clears nothing.
    finds("abandoned", &readers("Yes", "No"));
    let reader = |said: &str| {
        hold("a", 10, 20, 4, "")
            + &lost("b", 30, 5, "mode=shared")
            + &told("d", 66, 80, 6, "", said)
    };
    assert!(judged(&reader("No")).is_ok());
    finds("abandoned", &reader("Yes"));
    let permits = |said: &str| {
        lost("a", 10, 5, "mode=permits:1/1") + &told("b", 66, 80, 6, "mode=permits:1/1", said)
    };
    assert!(judged(&permits("No")).is_ok());
    finds("abandoned", &permits("Yes"));
}

/// A writer that became a reader at 30 and wrote again from 60 on; what others do goes between.
fn converted(others: &str) -> String {
    format!(
        "a 5 asked t lock=l client=c
        a 10 granted t lock=l token=5 abandoned=No until=200
        a 30 downgrade-asked t until=200 valid=true
        a 35 converted t token=6 mode=shared
        a 50 upgrade-asked t until=200 valid=true
        a 60 converted t token=9 mode=exclusive
        a 90 release-asked t until=200 valid=true
        a 91 released t\n{others}"
    )
}

#[test]
fn a_writer_that_became_a_reader_lets_readers_in_and_no_writer() {
    assert_eq!(judged(&converted("")).unwrap().converted, 2);
    let beside = |from, to, mode: &str| hold("b", from, to, 7, mode);
    // It heard of the conversion after others had been let in.
    assert!(judged(&converted(&beside(32, 45, "mode=shared"))).is_ok());
    finds("exclusion", &converted(&beside(20, 25, "mode=shared")));
    finds("exclusion", &converted(&beside(40, 45, "")));
    finds("exclusion", &converted(&beside(40, 65, "mode=shared").replace("until=165", "until=65")));
    // Asked and not answered, it is a reader all the same, of whose token nothing is known.
    let unanswered = converted("")
        .replace("a 35 converted t token=6 mode=shared", "")
        .replace("a 60 converted t token=9 mode=exclusive", "a 60 unconverted t kind=unavailable");
    assert!(judged(&unanswered).is_ok());
    finds("exclusion", &(unanswered + &beside(40, 45, "")));
}

#[test]
fn conversions_take_later_tokens() {
    finds("token order", &converted("").replace("token=6", "token=5"));
    finds("token order", &converted("").replace("token=9", "token=6"));
    let after = |token| hold("b", 96, 99, token, "");
    assert!(judged(&converted(&after(10))).is_ok());
    finds("token order", &converted(&after(9)));
}

#[test]
fn a_lost_reader_that_had_written_before_is_told_to_nobody() {
    let lost = |before: &str, said: &str| {
        format!(
            "a 5 asked t lock=l client=c mode={before}
            a 10 granted t lock=l token=5 abandoned=No until=50
            a 20 converted t token=6 mode={}
            a 51 lost t reason=NotRenewed
            {}",
            if before == "shared" { "exclusive" } else { "shared" },
            told("b", 66, 80, 9, "", said)
        )
    };
    assert!(judged(&lost("exclusive", "No")).is_ok());
    finds("abandoned", &lost("exclusive", "Yes"));
    assert!(judged(&lost("shared", "Yes")).is_ok());
    finds("abandoned", &lost("shared", "No"));
}
