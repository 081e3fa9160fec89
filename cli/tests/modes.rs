//! `fencelock run` as a reader, and as one of so many.

mod common;

use common::*;

/// What `show` says of a name.
fn shown(place: &Place, name: &str) -> serde_json::Value {
    json(&place.output(&["show", name, "--json"]))
}

#[test]
fn readers_run_together_and_a_writer_alone() {
    let place = Place::new();
    let first = place.holder(&["--shared"], "prices");
    let beside =
        place.run(&["--shared", "-n"], "prices", "echo $FENCELOCK_TOKEN").output().unwrap();
    assert_eq!(code(&beside), 0, "{}", stderr(&beside));
    let reader: u64 = stdout(&beside).trim().parse().unwrap();
    assert_eq!(shown(&place, "prices")["holds"][0]["mode"], "shared");
    let refused = place.run(&["-n"], "prices", "echo ran").output().unwrap();
    assert_eq!((code(&refused), stdout(&refused).as_str()), (1, ""));
    assert!(is_one_line(&stderr(&refused)) && stderr(&refused).contains("prices is taken"));
    signal("TERM", &first.own_pid());
    first.end();

    let writer = place.holder(&[], "prices");
    for options in [&["--shared", "-n"][..], &["--shared", "-w", "50ms", "-E", "1"]] {
        let refused = place.run(options, "prices", "echo ran").output().unwrap();
        assert_eq!((code(&refused), stdout(&refused).as_str()), (1, ""), "{options:?}");
    }
    signal("TERM", &writer.own_pid());
    writer.end();
    let later = place.run(&["--shared"], "prices", "echo $FENCELOCK_TOKEN").output().unwrap();
    assert!(stdout(&later).trim().parse::<u64>().unwrap() > reader);
}

#[test]
fn a_reader_behind_a_writer_who_waits_does_not_pass() {
    let place = Place::new();
    let first = place.holder(&["--shared"], "prices");
    let log = place.file("log");
    let say = |what: &str| format!("echo {what} >> {}", log.display());
    let writer = place.run(&[], "prices", &say("writer")).spawn().unwrap();
    let waiting = || shown(&place, "prices")["waiters"].as_array().map_or(0, Vec::len);
    eventually("the writer waits", || waiting() == 1);
    let tried = place.run(&["--shared", "-n"], "prices", &say("tried")).output().unwrap();
    assert_eq!(code(&tried), 1);
    let reader = place.run(&["--shared"], "prices", &say("reader")).spawn().unwrap();
    eventually("the reader waits", || waiting() == 2);
    signal("TERM", &first.own_pid());
    first.end();
    assert_eq!((code(&output(writer)), code(&output(reader))), (0, 0));
    assert_eq!(std::fs::read_to_string(log).unwrap(), "writer\nreader\n");
}

#[test]
fn no_more_run_than_there_are_permits() {
    let place = Place::new();
    let two = place.holder(&["--of", "3", "--permits", "2"], "mailers");
    let seen = shown(&place, "mailers");
    assert_eq!(seen["permits"]["in_use"], 2);
    assert_eq!(seen["holds"][0]["permits"], 2);
    let third = place.run(&["--of", "3", "-n"], "mailers", "echo ran").output().unwrap();
    assert_eq!((code(&third), stdout(&third).as_str()), (0, "ran\n"));
    let refused =
        place.run(&["--of=3", "--permits=2", "-n", "-E", "9"], "mailers", "echo ran").output();
    let refused = refused.unwrap();
    assert_eq!((code(&refused), stdout(&refused).as_str()), (9, ""));
    let said = stderr(&refused);
    assert!(is_one_line(&said) && said.contains("no 2 of its 3 permits"), "{said}");
    let other = place.run(&["--of", "5"], "mailers", "echo ran").output().unwrap();
    assert_eq!((code(&other), stdout(&other).as_str()), (125, ""));
    let said = stderr(&other);
    assert!(is_one_line(&said) && said.contains('3') && said.contains('5'), "{said}");
    signal("TERM", &two.own_pid());
    two.end();
    let five = place.run(&["--of", "5", "--permits", "5", "-n"], "mailers", "true").output();
    assert_eq!(code(&five.unwrap()), 0);
}

#[test]
fn nonsense_is_refused_before_anything_is_asked() {
    let place = Place::new();
    for (options, word) in [
        (&["--shared", "--of", "3"][..], "--of"),
        (&["--of", "2", "--permits", "3"], "3 permits of 2"),
        (&["--permits", "2"], "--of"),
        (&["--of", "0"], "--of"),
        (&["--of", "1000001"], "--of"),
        (&["--of", "3", "--permits", "0"], "--permits"),
        (&["--of", "3", "--owner", "me"], "--owner"),
    ] {
        let refused = place.run(options, "x", "echo ran").output().unwrap();
        assert_eq!((code(&refused), stdout(&refused).as_str()), (125, ""), "{options:?}");
        assert!(stderr(&refused).contains(word), "{options:?}: {}", stderr(&refused));
    }
    assert!(!place.file("locks.sqlite").exists());
}

#[test]
fn an_owner_that_reads_is_not_made_a_writer() {
    let place = Place::new();
    let _reads = place.holder(&["--shared", "--owner", "trace-1"], "prices");
    let writes = place.run(&["--owner", "trace-1"], "prices", "echo ran").output().unwrap();
    assert_eq!((code(&writes), stdout(&writes).as_str()), (125, ""));
    let again = place.run(&["--shared", "--owner", "trace-1", "-n"], "prices", "echo ran").output();
    assert_eq!(stdout(&again.unwrap()), "ran\n");
}
