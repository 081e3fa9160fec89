//! `fencelock demo`: a small sale, whole.

mod common;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use common::{Place, code, eventually, fencelock, json, lives, output, signal, stderr, stdout};

const SMALL: [&str; 6] = ["--coupons", "24", "--processes", "2", "--workers", "2"];

#[test]
fn every_scene_shows_what_it_promises() {
    let place = Place::new();
    let out = place.file("out");
    let ran = fencelock()
        .args(["demo", "--json", "--out", out.to_str().unwrap()])
        .args(SMALL)
        .output()
        .unwrap();
    assert_eq!(code(&ran), 0, "{}{}", stdout(&ran), stderr(&ran));
    let told = json(&ran);
    assert_eq!(told["as_promised"], true);
    let scenes = told["scenes"].as_array().unwrap();
    let names: Vec<&str> = scenes.iter().map(|scene| scene["scene"].as_str().unwrap()).collect();
    assert_eq!(names, ["no_lock", "locked", "paused", "unchecked", "killed"]);
    for scene in scenes {
        let (sold, over) = (scene["sold"].as_u64().unwrap(), scene["oversold"].as_u64().unwrap());
        assert_eq!(sold, 24 + over);
        let shares = scene["shares"].as_array().unwrap().iter();
        assert_eq!(shares.map(|share| share.as_u64().unwrap()).sum::<u64>(), sold);
        match scene["scene"].as_str().unwrap() {
            "no_lock" | "unchecked" => assert!(over > 0, "{scene}"),
            _ => assert_eq!((over, &scene["bought_twice"]), (0, &0.into()), "{scene}"),
        }
    }
    let chart = std::fs::read_to_string(out.join("flash-sale.svg")).unwrap();
    assert!(chart.starts_with("<svg") && chart.contains("old token refused"));
}

/// Another seller of Rust's, as a program of another language would be given.
fn another_seller(name: &str) -> String {
    format!("{name}='{}' demo-seller", fencelock().get_program().to_str().unwrap())
}

#[test]
fn sellers_of_all_languages_share_one_stock() {
    let place = Place::new();
    let out = place.file("out");
    let ran = fencelock()
        .args(["demo", "--json", "--out", out.to_str().unwrap()])
        .args(SMALL)
        .args(["--seller", &another_seller("klingon"), "--seller", &another_seller("elvish")])
        .output()
        .unwrap();
    assert_eq!(code(&ran), 0, "{}{}", stdout(&ran), stderr(&ran));
    let told = json(&ran);
    let scenes = told["scenes"].as_array().unwrap();
    assert_eq!(scenes.len(), 6);
    let last = &scenes[5];
    assert_eq!((&last["scene"], &last["sold"]), (&"languages".into(), &24.into()), "{last}");
    assert_eq!(last["oversold"], 0, "{last}");
    let names = last["sellers"].as_array().unwrap();
    assert_eq!(names, &["rust", "klingon", "elvish"]);
    let shares: Vec<u64> =
        last["shares"].as_array().unwrap().iter().map(|share| share.as_u64().unwrap()).collect();
    assert!(shares.iter().sum::<u64>() == 24 && shares.iter().all(|share| *share > 0), "{last}");
    let chart = std::fs::read_to_string(out.join("flash-sale.svg")).unwrap();
    assert!(chart.contains(">klingon<") && chart.contains("All languages"));
}

#[test]
fn a_language_that_was_left_out_is_named_in_the_last_line() {
    let place = Place::new();
    let out = place.file("out");
    let ran = place
        .command(&["demo", "--out", out.to_str().unwrap(), "--left-out", "cobol=no compiler"])
        .args(SMALL)
        .output()
        .unwrap();
    let (said, heard) = (stdout(&ran), stderr(&ran));
    assert_eq!(code(&ran), 0, "{said}{heard}");
    assert!(said.contains("sold by rust 24"), "{said}");
    assert!(said.ends_with("promised. 1 language left out: cobol (no compiler).\n"), "{said}");
}

#[test]
fn a_seller_that_fails_or_cheats_is_found_out() {
    let place = Place::new();
    let out = place.file("out");
    let with = |seller: &str| {
        let args = ["demo", "--out", out.to_str().unwrap(), "--seller", seller];
        place.command(&args).args(SMALL).output().unwrap()
    };
    let ran = with("broken=false");
    assert_eq!(code(&ran), 125, "{}", stdout(&ran));
    assert!(stderr(&ran).contains("the seller broken failed"), "{}", stderr(&ran));

    // Waits for its turn as the others do, then sells without it, under one token for ever.
    let cheat = place.file("cheat");
    let honest = fencelock().get_program().to_str().unwrap().to_owned();
    let script = format!(
        "'{honest}' --store \"$1\" run \"$2\" -- sh -c '\n\
         for i in 1 2 3; do echo \"cheat $FENCELOCK_TOKEN 1 2\" >>\"$0/sales\"; done' \"$3\"\n"
    );
    std::fs::write(&cheat, script).unwrap();
    let ran = with(&format!("cheat=sh '{}'", cheat.display()));
    let said = stdout(&ran);
    assert_eq!(code(&ran), 1, "{said}{}", stderr(&ran));
    assert!(said.contains("✗ 27 sold out of 24") && said.contains("overtaken"), "{said}");
}

#[test]
fn without_a_terminal_the_sale_is_told_plainly() {
    let place = Place::new();
    let out = place.file("out");
    let ran =
        place.command(&["demo", "--out", out.to_str().unwrap()]).args(SMALL).output().unwrap();
    let (said, heard) = (stdout(&ran), stderr(&ran));
    assert_eq!(code(&ran), 0, "{said}{heard}");
    assert!(said.contains("SIGSTOP") && said.contains("kill -9") && said.contains("OVERSOLD"));
    assert!(said.ends_with("Every scene showed what it promised.\n"), "{said}");
    assert!(!said.contains('\u{1b}') && !said.contains('\r'));
    assert_eq!(heard, "");
}

#[test]
fn an_interrupted_demo_leaves_nothing_behind() {
    let place = Place::new();
    let temporary = place.file("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut demo = place
        .command(&["demo", "--out", place.file("out").to_str().unwrap()])
        .env("TMPDIR", &temporary)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Interrupted while one of its processes stands still.
    let mut said = BufReader::new(demo.stdout.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("SIGSTOP")));
    let workers = children(demo.id());
    assert_eq!(workers.len(), 4);
    signal("INT", &demo.id().to_string());
    assert_eq!(code(&output(demo)), 128 + 2);
    eventually("its processes are gone", || !workers.iter().any(|pid| lives(pid)));
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_seller_ends_with_the_demo() {
    let place = Place::new();
    let (mark, temporary) = (place.file("mark"), place.file("tmp"));
    std::fs::create_dir(&temporary).unwrap();
    // It never comes to the lock, so that the sale does not open.
    let script = format!("echo $$ >{0}.tmp; mv {0}.tmp {0}; exec sleep 300", mark.display());
    let demo = place
        .command(&["demo", "--out", place.file("out").to_str().unwrap()])
        .args(["--seller", &format!("slow=sh -c '{script}'")])
        .args(SMALL)
        .env("TMPDIR", &temporary)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the seller has begun", || mark.exists());
    let seller = std::fs::read_to_string(&mark).unwrap().trim().to_owned();
    assert!(lives(&seller));
    signal("TERM", &demo.id().to_string());
    assert_eq!(code(&output(demo)), 128 + 15);
    eventually("the seller is gone", || !lives(&seller));
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}

/// The processes whose parent is this one.
fn children(parent: u32) -> Vec<String> {
    let found = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    found.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_store_of_one_process_is_refused() {
    let ran = fencelock().args(["demo", "--store", "memory:"]).output().unwrap();
    assert_eq!(code(&ran), 125);
    assert!(common::is_one_line(&stderr(&ran)) && stderr(&ran).contains("several processes"));
}

#[test]
fn the_hidden_worker_says_that_it_is_not_for_people() {
    let place = Place::new();
    let ran = place.output(&["demo-worker"]);
    assert!(stdout(&ran).contains("part of fencelock demo"), "{}", stdout(&ran));
}
