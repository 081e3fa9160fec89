//! `ls`, `show`, `break`, `doctor`: for people and for programs, on SQLite.

mod common;

use std::process::{Output, Stdio};

use common::{Place, code, eventually, fencelock, is_one_line, json, signal, stderr, stdout};

#[test]
fn ls_lists_what_is_held_and_what_begins_so() {
    let place = Place::new();
    let _a = place.holder(&["--label", "billing"], "shop/a");
    let _b = place.holder(&[], "shop/b");
    assert_eq!(code(&place.output(&["run", "other", "--", "true"])), 0);

    let all = stdout(&place.output(&["ls"]));
    let lines: Vec<&str> = all.lines().collect();
    assert_eq!(lines.len(), 3, "{all}");
    assert!(lines[0].starts_with("NAME"));
    assert!(lines[1].starts_with("shop/a  held   billing"), "{all}");
    assert!(lines[2].starts_with("shop/b  held   sh -c"), "{all}");

    let names = |arguments: &[&str]| -> Vec<String> {
        let listed = json(&place.output(arguments));
        let names = listed.as_array().unwrap().iter();
        names.map(|lock| lock["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&["ls", "--json"]), ["shop/a", "shop/b"]);
    assert_eq!(names(&["ls", "shop/b", "--json"]), ["shop/b"]);
    assert_eq!(names(&["ls", "--all", "--json"]), ["other", "shop/a", "shop/b"]);
    assert_eq!(names(&["ls", "none", "--json"]), Vec::<String>::new());
    assert!(stdout(&place.output(&["ls", "none"])).contains("nobody holds"));
}

#[test]
fn show_tells_holder_token_and_waiters_in_order() {
    let place = Place::new();
    let holder = place.holder(&["--label", "billing", "--lease", "20s"], "job");
    let mut waiters = Vec::new();
    for (i, label) in ["first", "second"].iter().enumerate() {
        waiters.push(place.run(&["--label", label], "job", "true").spawn().unwrap());
        eventually("it waits", || {
            let shown = json(&place.output(&["show", "job", "--json"]));
            shown["waiters"].as_array().unwrap().len() == i + 1
        });
    }
    let shown = json(&place.output(&["show", "job", "--json"]));
    assert_eq!(shown["state"], "held");
    assert_eq!(shown["holds"][0]["label"], "billing");
    assert_eq!(shown["holds"][0]["lease_ms"], 20_000);
    assert!(shown["holds"][0]["expires_in_ms"].as_u64().unwrap() <= 20_000);
    assert!(shown["token"].as_u64().unwrap() <= shown["last_token"].as_u64().unwrap());
    assert_eq!(shown["waiters"][0]["label"], "first");
    assert_eq!(shown["waiters"][1]["label"], "second");

    let page = stdout(&place.output(&["show", "job"]));
    assert!(page.starts_with("job\n  state     held\n"), "{page}");
    assert!(page.contains(&format!("token     {}", shown["token"])), "{page}");
    let (first, second) = (page.find("1  first").unwrap(), page.find("2  second").unwrap());
    assert!(first < second, "{page}");

    signal("TERM", &holder.own_pid());
    holder.end();
    for mut waiter in waiters {
        assert!(waiter.wait().unwrap().success());
    }
}

#[test]
fn ls_and_show_count_who_waits_within_the_holders_client() {
    let place = Place::new();
    // Renewed ten times a second, so that what it says is that new.
    let store = format!("{}?lease=300ms", place.store);
    let client = fencelock::Client::builder(&store).connect_blocking().unwrap();
    let lock = client.lock("job").unwrap();
    let guard = lock.acquire().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let lock = client.lock("job").unwrap();
            scope.spawn(move || drop(lock.acquire().unwrap()));
        }
        let show = || json(&place.output(&["show", "job", "--json"]));
        eventually("they are told of", || show()["waiting"] == 3);
        assert_eq!(show()["holds"][0]["local_waiters"], 3);
        assert_eq!(show()["waiters"].as_array().unwrap().len(), 0);
        let page = stdout(&place.output(&["show", "job"]));
        assert!(page.contains("waiting   3: 0 in the queue, 3 within clients"), "{page}");
        let listed = stdout(&place.output(&["ls"]));
        let row: Vec<&str> = listed.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(row[row.len() - 2], "3", "{listed}");
        drop(guard);
    });
}

#[test]
fn show_of_an_owner_and_of_nothing() {
    let place = Place::new();
    let _holder = place.holder(&["--owner", "trace-9"], "job");
    assert_eq!(json(&place.output(&["show", "job", "--json"]))["owner"], "trace-9");
    assert!(stdout(&place.output(&["show", "job"])).contains("held, by owner trace-9"));

    let nothing = place.output(&["show", "nothing"]);
    assert_eq!(code(&nothing), 1);
    assert!(stdout(&nothing).contains("knows nothing"));
    let nothing = place.output(&["show", "nothing", "--json"]);
    assert_eq!((code(&nothing), json(&nothing)), (1, serde_json::Value::Null));
}

#[test]
fn a_lock_whose_holder_was_killed_is_shown_as_abandoned() {
    let place = Place::new();
    drop(place.holder(&["--lease", "300ms"], "job"));
    eventually("the lease is over", || {
        json(&place.output(&["show", "job", "--json"]))["state"] == "free"
    });
    assert_eq!(json(&place.output(&["show", "job", "--json"]))["abandoned"], "yes");
    assert!(stdout(&place.output(&["show", "job"])).contains("abandoned yes"));
    assert!(stdout(&place.output(&["ls", "--all"])).contains("abandoned"));
}

#[test]
fn break_wants_a_yes_and_says_the_danger() {
    let place = Place::new();
    let holder = place.holder(&[], "job");
    let refused = place.output(&["break", "job"]);
    assert_eq!(code(&refused), 2);
    let said = stderr(&refused);
    assert!(is_one_line(&said) && said.contains("--yes"), "{said}");
    assert!(said.contains("--token") && said.contains("--hold"), "{said}");
    assert_eq!(json(&place.output(&["show", "job", "--json"]))["state"], "held");

    let broken = place.output(&["break", "job", "--yes", "--json"]);
    assert_eq!((code(&broken), &json(&broken)["broken"]), (0, &1.into()));
    assert!(stderr(&broken).contains("token"), "{}", stderr(&broken));
    assert_eq!(json(&place.output(&["show", "job", "--json"]))["abandoned"], "yes");
    assert_eq!(code(&holder.end()), 124);

    let nobody = place.output(&["break", "job", "--yes"]);
    assert_eq!((code(&nobody), stdout(&nobody).as_str()), (1, "nobody holds job\n"));
}

#[test]
fn break_ends_what_was_seen_and_nobody_who_came_later() {
    let place = Place::new();
    let holder = place.holder(&[], "job");
    let token = |seen: &Output| json(seen)["token"].as_u64().unwrap();
    let seen = token(&place.output(&["show", "job", "--json"]));
    let named = |token: u64| place.output(&["break", "job", "--token", &token.to_string()]);
    let early = named(seen - 1);
    assert_eq!(code(&early), 3);
    assert!(stdout(&early).contains(&format!("changed hands, and is held under token {seen}")));
    let ended = named(seen);
    assert_eq!((code(&ended), stdout(&ended).as_str()), (0, "ended 1 hold on job\n"));
    assert!(stderr(&ended).contains("Danger"), "{}", stderr(&ended));
    assert_eq!(code(&holder.end()), 124);

    let _next = place.holder(&[], "job");
    let next = token(&place.output(&["show", "job", "--json"]));
    let seen = seen.to_string();
    let again = place.output(&["break", "job", "--token", &seen, "--json"]);
    assert_eq!((code(&again), &json(&again)["broken"]), (3, &0.into()));
    assert_eq!(json(&again)["changed_hands"], next);
    assert_eq!(json(&place.output(&["show", "job", "--json"]))["state"], "held");
}

#[test]
fn break_ends_one_hold_of_several_by_the_beginning_of_its_id() {
    let place = Place::new();
    let client = fencelock::Client::builder(&place.store).connect_blocking().unwrap();
    let seats = client.semaphore("seats", 3).unwrap();
    let (one, other) = (seats.acquire().unwrap(), seats.acquire().unwrap());
    let seen = json(&place.output(&["show", "seats", "--json"]));
    let id = |at: usize| seen["holds"][at]["hold"].as_str().unwrap().to_owned();
    let page = stdout(&place.output(&["show", "seats"]));
    let short = &id(0)[..12];
    assert!(page.contains(short) && page.contains(&id(1)[..12]), "{page}");
    assert!(!page.contains("abandoned"), "permits tell nothing of who had them before: {page}");

    let ended = place.output(&["break", "seats", "--hold", short]);
    assert_eq!((code(&ended), stdout(&ended).as_str()), (0, "ended 1 hold on seats\n"));
    assert!(stderr(&ended).contains("Danger"), "{}", stderr(&ended));
    // The store shows them in no order of their grants.
    eventually("its holder is told", || one.is_valid() != other.is_valid());
    let again = place.output(&["break", "seats", "--hold", short]);
    assert_eq!(code(&again), 1);
    assert_eq!(stdout(&again), format!("seats has no hold {short}\n"));

    let third = seats.acquire().unwrap();
    let several = place.output(&["break", "seats", "--hold", ""]);
    assert_eq!(code(&several), 2, "{}", stderr(&several));
    assert!(one.is_valid() != other.is_valid() && third.is_valid());
}

#[test]
fn resize_changes_the_number_of_permits_while_some_are_out() {
    let place = Place::new();
    let nobody = place.output(&["resize", "seats", "4"]);
    assert_eq!(code(&nobody), 1);
    assert!(stdout(&nobody).starts_with("nobody holds seats"), "{}", stdout(&nobody));

    let client = fencelock::Client::builder(&place.store).connect_blocking().unwrap();
    let seats = client.semaphore("seats", 1).unwrap();
    let guard = seats.acquire().unwrap();
    let waiting = std::thread::spawn(move || seats.acquire());
    eventually("somebody waits", || {
        json(&place.output(&["show", "seats", "--json"]))["waiting"] == 1
    });
    let done = place.output(&["resize", "seats", "2"]);
    assert_eq!((code(&done), stdout(&done).as_str()), (0, "seats has 2 permits now\n"));
    let other = waiting.join().unwrap().unwrap();
    let seen = json(&place.output(&["show", "seats", "--json"]));
    assert_eq!((&seen["permits"]["in_use"], &seen["permits"]["of"]), (&2.into(), &2.into()));
    let done = place.output(&["resize", "seats", "5", "--json"]);
    assert_eq!((code(&done), &json(&done)["resized"]), (0, &true.into()));
    drop((guard, other));

    let _holder = place.holder(&[], "job");
    let lock = place.output(&["resize", "job", "4"]);
    assert_eq!(code(&lock), 125);
    assert!(stderr(&lock).contains("a lock's"), "{}", stderr(&lock));
    assert_eq!(code(&place.output(&["resize", "seats", "0"])), 2);
}

#[test]
fn doctor_finds_a_sqlite_store_sound() {
    let place = Place::new();
    let told = place.output(&["doctor", "--json"]);
    assert_eq!(code(&told), 0, "{}", stdout(&told));
    let told = json(&told);
    let finding = |name: &str| {
        let findings = told["findings"].as_array().unwrap().iter();
        findings
            .clone()
            .find(|finding| finding["name"] == name)
            .unwrap_or_else(|| panic!("{name}: {told}"))
    };
    for name in ["connection", "lock", "round_trip", "clock", "filesystem", "access", "file"] {
        assert_eq!(finding(name)["severity"], "good", "{told}");
    }
    assert_eq!(finding("lease")["severity"], "note");
    assert!(finding("file")["value"].as_str().unwrap().contains("wal"));

    let page = stdout(&place.output(&["doctor"]));
    assert!(page.ends_with("Locks work here.\n"), "{page}");
}

#[test]
fn doctor_watches_how_long_holds_last() {
    let place = Place::new();
    let mut doctor = place
        .command(&["doctor", "--watch", "4s", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut runs = 0;
    while doctor.try_wait().unwrap().is_none() {
        assert_eq!(code(&place.output(&["run", "job", "--", "sleep", "0.4"])), 0);
        runs += 1;
    }
    assert!(runs > 1);
    let told = json(&doctor.wait_with_output().unwrap());
    let lease =
        told["findings"].as_array().unwrap().iter().find(|finding| finding["name"] == "lease");
    let value = lease.unwrap()["value"].as_str().unwrap();
    assert!(value.contains("holds seen in 4.0 s, the longest"), "{value}");
    assert!(lease.unwrap()["advice"].as_str().unwrap().contains("lease"), "{told}");
}

#[test]
fn doctor_says_that_memory_is_for_one_process() {
    let told = fencelock().args(["doctor", "--store", "memory:", "--json"]).output().unwrap();
    let told = json(&told);
    assert_eq!(told["worst"], "warning");
    assert!(told["findings"][0]["advice"].as_str().unwrap().contains("sqlite"));
}

#[test]
fn doctor_of_a_store_that_is_not_there_gives_1() {
    // Port 1 is nobody's.
    let store = "redis://127.0.0.1:1?connect_timeout=300ms";
    let told = fencelock().args(["doctor", "--json", "--store", store]).output().unwrap();
    assert_eq!(code(&told), 1);
    assert_eq!(json(&told)["worst"], "problem");
}

#[test]
fn errors_are_one_line_that_says_what_to_do() {
    let place = Place::new();
    for (arguments, word) in [
        (&["ls", "--store", "pigeon://roof"][..], "redis://"),
        (&["ls", "--store", "locks"], "scheme"),
        (&["ls", "--store", "mysql://host"], "planned"),
        (&["ls", "--store", "redis://127.0.0.1:1?connect_timeout=300ms"], "127.0.0.1:1"),
        (&["show", "job", "--store", "sqlite:/no/such/place/x"], "/no/such/place"),
        (&["show", ""], "empty"),
    ] {
        let failed = place.output(arguments);
        assert_eq!(code(&failed), 125, "{arguments:?}");
        let said = stderr(&failed);
        assert!(is_one_line(&said) && said.contains(word), "{arguments:?}: {said}");
        assert_eq!(stdout(&failed), "");
    }
    let usage = place.output(&["show"]);
    assert_eq!(code(&usage), 2);
    assert!(stderr(&usage).contains("<NAME>"));
}

#[test]
fn without_a_terminal_nothing_is_coloured() {
    let place = Place::new();
    let _holder = place.holder(&[], "job");
    for arguments in [&["ls"][..], &["show", "job"], &["doctor"], &["help"], &["ls", "--nonsense"]]
    {
        let ran = place.output(arguments);
        let all = stdout(&ran) + &stderr(&ran);
        assert!(!all.is_empty() && !all.contains('\u{1b}'), "{arguments:?}: {all:?}");
    }
}

#[test]
fn a_name_with_escapes_is_shown_escaped() {
    let place = Place::new();
    let _holder = place.holder(&["--label", "x"], "red \u{1b}[31m");
    let shown = stdout(&place.output(&["ls"]));
    assert!(shown.contains("red \\u{1b}[31m") && !shown.contains('\u{1b}'), "{shown:?}");
}
