//! `fencelock run`: exit codes, environment, signals, exclusion, loss.

mod common;

use std::process::Stdio;

use common::{
    Place, code, eventually, fencelock, is_one_line, json, lives, output, signal, stderr, stdout,
};

#[test]
fn the_commands_own_code_is_passed_on() {
    let place = Place::new();
    for wanted in [0, 1, 7, 124, 255] {
        let ended = place.run(&[], "job", &format!("exit {wanted}")).output().unwrap();
        assert_eq!(code(&ended), wanted, "{}", stderr(&ended));
    }
}

#[test]
fn a_command_ended_by_a_signal_gives_128_and_its_number() {
    let place = Place::new();
    assert_eq!(code(&place.run(&[], "job", "kill -KILL $$").output().unwrap()), 128 + 9);
    assert_eq!(code(&place.run(&[], "job", "kill -TERM $$").output().unwrap()), 128 + 15);
}

#[test]
fn a_command_that_is_not_there_gives_127_and_one_that_cannot_run_126() {
    let place = Place::new();
    let missing = place.output(&["run", "job", "--", "no-such-command-here"]);
    assert_eq!(code(&missing), 127);
    assert!(is_one_line(&stderr(&missing)), "{}", stderr(&missing));

    let plain = place.file("plain");
    std::fs::write(&plain, "not a program").unwrap();
    let cannot = place.output(&["run", "job", "--", plain.to_str().unwrap()]);
    assert_eq!(code(&cannot), 126);
    assert!(is_one_line(&stderr(&cannot)), "{}", stderr(&cannot));

    // The lock was given back both times.
    assert_eq!(code(&place.output(&["run", "--no-wait", "job", "--", "true"])), 0);
}

#[test]
fn fencelocks_own_failure_gives_125() {
    let place = Place::new();
    for arguments in [
        &["run"][..],
        &["run", "job"],
        &["run", "--wait", "soon", "job", "--", "true"],
        &["run", "--store", "pigeon://roof", "job", "--", "true"],
        &["--json", "--store", "memory:", "run", "--bad"],
        &["run", "--store", "sqlite:/no/such/directory/x", "job", "--", "true"],
        &["run", "--store", "", "job", "--", "true"],
        &["run", "--store", "memory:", "job", "--", "true"],
        &["run", "--lease", "1ms", "job", "--", "true"],
        &["run", "", "--", "true"],
    ] {
        let failed = place.output(arguments);
        assert_eq!(code(&failed), 125, "{arguments:?}: {}", stderr(&failed));
        assert!(!stderr(&failed).is_empty() && stdout(&failed).is_empty());
        assert!(!stderr(&failed).contains("panicked"), "{}", stderr(&failed));
    }
}

#[test]
fn the_lease_is_the_urls_unless_one_is_given() {
    let place = Place::new();
    let url = Place::on(&format!("{}?lease=7s", place.store));
    let lease = |place: &Place, name: &str, options: &[&str]| {
        let _holder = place.holder(options, name);
        json(&place.output(&["show", name, "--json"]))["holds"][0]["lease_ms"].as_u64().unwrap()
    };
    assert_eq!(lease(&url, "the URL's", &[]), 7_000);
    assert_eq!(lease(&url, "the option's", &["--lease", "9s"]), 9_000);
    assert_eq!(lease(&place, "the default", &[]), 30_000);
}

#[test]
fn the_child_finds_lock_and_token_in_its_environment() {
    let place = Place::new();
    let script = "echo \"$FENCELOCK_LOCK $FENCELOCK_TOKEN ${FENCELOCK_TICKET-none}\"";
    let mut last = 0;
    for _ in 0..3 {
        let ran = stdout(&place.run(&[], "a job", script).output().unwrap());
        let rest = ran.trim().strip_prefix("a job ").unwrap().strip_suffix(" none").unwrap();
        let token: u64 = rest.parse().unwrap();
        assert!(token > last, "{token} after {last}");
        last = token;
    }
}

#[test]
fn an_owner_gets_a_ticket_and_reenters_from_another_process() {
    let place = Place::new();
    let inner = format!(
        "{} run -n --owner trace-1 job -- printenv FENCELOCK_TOKEN",
        env!("CARGO_BIN_EXE_fencelock")
    );
    let script = format!(
        "test -n \"$FENCELOCK_TICKET\" && echo $FENCELOCK_OWNER $FENCELOCK_TOKEN && {inner}"
    );
    let ran = place.run(&["--owner", "trace-1"], "job", &script).output().unwrap();
    assert_eq!(code(&ran), 0, "{}", stderr(&ran));
    let lines: Vec<String> = stdout(&ran).lines().map(str::to_owned).collect();
    assert_eq!(lines[0], format!("trace-1 {}", lines[1]));

    let stranger = script.replace("--owner trace-1", "--owner trace-2");
    let ran = place.run(&["--owner", "trace-1"], "job", &stranger).output().unwrap();
    assert_eq!(code(&ran), 1);
}

#[test]
fn no_wait_and_a_wait_that_ends_give_1_or_what_was_asked() {
    let place = Place::new();
    let _holder = place.holder(&[], "job");
    for (options, wanted) in [
        (&["--no-wait"][..], 1),
        (&["-w", "50ms"], 1),
        (&["-w", "0.05"], 1),
        (&["-n", "-E", "75"], 75),
        (&["-w", "50ms", "-E", "75"], 75),
    ] {
        let refused = place.run(options, "job", "echo ran").output().unwrap();
        assert_eq!(code(&refused), wanted, "{options:?}: {}", stderr(&refused));
        assert_eq!(stdout(&refused), "");
        assert!(is_one_line(&stderr(&refused)), "{}", stderr(&refused));
    }
}

#[test]
fn runs_exclude_each_other() {
    let place = Place::new();
    let log = place.file("log");
    let script = format!("echo in >> {0}; sleep 0.05; echo out >> {0}", log.display());
    let runs: Vec<_> = (0..6).map(|_| place.run(&[], "job", &script).spawn().unwrap()).collect();
    for run in runs {
        assert_eq!(code(&output(run)), 0);
    }
    let log = std::fs::read_to_string(log).unwrap();
    assert_eq!(log, "in\nout\n".repeat(6));
}

#[test]
fn a_waiting_run_gets_the_lock_when_the_holder_ends() {
    let place = Place::new();
    let holder = place.holder(&[], "job");
    let waiter = place.run(&[], "job", "echo mine").stdout(Stdio::piped()).spawn().unwrap();
    eventually("it waits", || {
        json(&place.output(&["show", "job", "--json"]))["waiters"].as_array().unwrap().len() == 1
    });
    signal("TERM", &holder.own_pid());
    assert_eq!(code(&holder.end()), 128 + 15);
    let waited = output(waiter);
    assert_eq!((code(&waited), stdout(&waited).as_str()), (0, "mine\n"));
}

#[test]
fn a_signal_while_waiting_ends_the_wait_and_leaves_the_queue() {
    let place = Place::new();
    let _holder = place.holder(&[], "job");
    let waiter = place.run(&[], "job", "echo ran").stdout(Stdio::piped()).spawn().unwrap();
    let waiters = || json(&place.output(&["show", "job", "--json"]))["waiters"].clone();
    eventually("it waits", || waiters().as_array().unwrap().len() == 1);
    signal("INT", &waiter.id().to_string());
    let ended = output(waiter);
    assert_eq!((code(&ended), stdout(&ended).as_str()), (128 + 2, ""));
    eventually("it has left", || waiters().as_array().unwrap().is_empty());
}

#[test]
fn signals_reach_the_command_and_what_it_started() {
    let place = Place::new();
    let (ready, got) = (place.file("ready"), place.file("got"));
    // The inner shell is a process of its own in the command's group, and ready after the outer.
    let script = format!(
        "trap 'wait; echo outer >> {got}; exit 42' USR1
         sh -c 'trap \"echo inner >> {got}; exit 0\" USR1; touch {ready}; while :; do sleep 0.02; done' &
         while :; do sleep 0.02; done",
        got = got.display(),
        ready = ready.display()
    );
    let run = place.run(&[], "job", &script).spawn().unwrap();
    eventually("it is ready", || ready.exists());
    signal("USR1", &run.id().to_string());
    assert_eq!(code(&output(run)), 42);
    assert_eq!(std::fs::read_to_string(got).unwrap(), "inner\nouter\n");
}

#[test]
fn a_lost_lock_ends_the_command_with_124() {
    let place = Place::new();
    let holder = place.holder(&["--lease", "500ms"], "job");
    let broken = place.output(&["break", "job", "--yes"]);
    assert_eq!(code(&broken), 0, "{}", stderr(&broken));
    let pid = holder.pid.clone();
    let ended = holder.end();
    assert_eq!(code(&ended), 124);
    assert!(is_one_line(&stderr(&ended)) && stderr(&ended).contains("lost the lock job"));
    assert!(!lives(&pid));
}

#[test]
fn a_command_that_does_not_heed_sigterm_is_killed_after_the_grace() {
    let place = Place::new();
    let mark = place.file("mark");
    let script = format!(
        "trap 'echo term >> {0}.term' TERM; echo $$ > {0}.tmp; mv {0}.tmp {0}; \
         while :; do sleep 0.02; done",
        mark.display()
    );
    let run = place.run(&["--lease", "500ms", "--grace", "300ms"], "job", &script).spawn().unwrap();
    eventually("it runs", || mark.exists());
    assert_eq!(code(&place.output(&["break", "job", "--yes"])), 0);
    assert_eq!(code(&output(run)), 124);
    assert!(place.file("mark.term").exists(), "SIGTERM came first");
    assert!(!lives(std::fs::read_to_string(&mark).unwrap().trim()));
}

#[test]
fn a_ceiling_over_the_hold_ends_the_command() {
    let place = Place::new();
    let ended = place.run(&["--max-hold", "300ms"], "job", "exec sleep 300").output().unwrap();
    assert_eq!(code(&ended), 124);
}

#[test]
fn a_pause_past_the_lease_loses_the_lock() {
    let place = Place::new();
    let holder = place.holder(&["--lease", "400ms"], "job");
    signal("STOP", &holder.own_pid());
    // Granted only when the lease of the stopped one is over.
    let next = place.output(&["run", "-w", "30s", "job", "--", "printenv", "FENCELOCK_TOKEN"]);
    assert_eq!(code(&next), 0, "{}", stderr(&next));
    signal("CONT", &holder.own_pid());
    let pid = holder.pid.clone();
    assert_eq!(code(&holder.end()), 124);
    assert!(!lives(&pid));
}

#[test]
fn the_next_command_is_told_what_became_of_the_holder_before() {
    let place = Place::new();
    let told = || {
        let ran = place.run(&[], "job", "echo $FENCELOCK_ABANDONED").output().unwrap();
        stdout(&ran).trim().to_owned()
    };
    assert_eq!([told(), told()], ["unknown", "no"]);
    drop(place.holder(&["--lease", "300ms"], "job"));
    assert_eq!([told(), told()], ["yes", "no"]);
}

#[test]
fn a_killed_fencelock_takes_its_command_along() {
    let place = Place::new();
    let holder = place.holder(&[], "job");
    let pid = holder.pid.clone();
    signal("KILL", &holder.own_pid());
    drop(holder);
    eventually("the command is gone", || !lives(&pid));
}

#[test]
fn without_a_store_runs_of_one_user_share_one() {
    // The place is fixed; the lock's name is not.
    let name = format!("fencelock-test/{}", std::process::id());
    let inner = format!("{} run -n {name} -- true", env!("CARGO_BIN_EXE_fencelock"));
    let ran = fencelock()
        .args(["run", &name, "--", "sh", "-c", &inner])
        .env("XDG_RUNTIME_DIR", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(code(&ran), 1, "{}", stderr(&ran));
}
