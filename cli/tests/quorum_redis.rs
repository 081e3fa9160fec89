//! The command and a quorum of real Redis servers.

mod common;

use std::time::Duration;

use common::{Place, code, json, stderr, stdout};
use fencelock_testkit::{RedisQuorum, skip_servers};

/// What `status` says of each server.
fn votes(status: &serde_json::Value) -> Vec<bool> {
    let servers = status["servers"].as_array().unwrap();
    servers.iter().map(|server| server["votes"].as_bool().unwrap()).collect()
}

#[test]
fn init_lets_servers_vote_and_status_says_who_does() {
    if skip_servers() {
        return;
    }
    let mut all = RedisQuorum::builder().fresh().start().unwrap();
    let place = Place::on(&all.url());
    let status = |place: &Place| place.output(&["quorum", "status", "--json"]);
    let told = status(&place);
    assert_eq!((code(&told), votes(&json(&told))), (1, vec![false; 3]));

    let asked = place.output(&["quorum", "init"]);
    assert_eq!(code(&asked), 2);
    assert!(stderr(&asked).contains("--yes"), "{}", stderr(&asked));
    assert_eq!(votes(&json(&status(&place))), [false; 3], "nothing was written");

    let done = place.output(&["quorum", "init", "--yes"]);
    assert_eq!(code(&done), 0, "{}", stderr(&done));
    assert!(stdout(&done).contains("3 of 3 give votes"), "{}", stdout(&done));
    let ran = place.output(&["run", "-n", "job", "--", "true"]);
    assert_eq!(code(&ran), 0, "{}", stderr(&ran));

    all.servers[2].restart().unwrap();
    all.servers[0].kill().unwrap();
    let told = json(&status(&place));
    assert_eq!(votes(&told), [false, true, false], "{told}");
    assert!(told["servers"][0]["error"].is_string(), "{told}");
    assert_eq!(told["servers"][1]["role"], "master");
    assert_eq!(told["servers"][1]["fingerprint"], told["fingerprint"]);

    // Another max_lease is another quorum, until an operator says otherwise.
    let longer = all.url().replace("max_lease=60000ms", "max_lease=90s");
    let longer = Place::on(&longer);
    let page = stdout(&longer.output(&["quorum", "status"]));
    assert!(page.contains("is of another quorum"), "{page}");
    assert_eq!(code(&longer.output(&["quorum", "init", "--yes"])), 0);
    assert_eq!(votes(&json(&status(&longer))), [false, true, true]);
    assert_eq!(votes(&json(&status(&place))), [false; 3]);
}

#[test]
fn doctor_finds_a_quorum_usable_and_says_what_is_away() {
    if skip_servers() {
        return;
    }
    let mut all = RedisQuorum::builder().max_lease(Duration::from_secs(60)).start().unwrap();
    let place = Place::on(&all.url());
    let finding = |told: &serde_json::Value, name: &str| {
        let findings = told["findings"].as_array().unwrap();
        let found = findings.iter().find(|finding| finding["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {told}")).clone()
    };
    let told = place.output(&["doctor", "--json"]);
    assert_eq!(code(&told), 0, "{}", stdout(&told));
    let told = json(&told);
    for name in ["quorum", "fingerprint", "servers", "clocks", "lock", "permissions"] {
        assert_eq!(finding(&told, name)["severity"], "good", "{told}");
    }
    all.servers[1].kill().unwrap();
    let told = json(&place.output(&["doctor", "--json"]));
    let quorum = finding(&told, "quorum");
    assert_eq!(quorum["severity"], "warning", "{told}");
    assert!(quorum["value"].as_str().unwrap().contains("q2:6379"), "{told}");
}

#[test]
fn a_quorum_is_asked_of_a_quorum_alone() {
    let told = Place::on("redis://127.0.0.1:1").output(&["quorum", "status"]);
    assert_eq!(code(&told), 2);
    assert!(stderr(&told).contains("redis+quorum://"), "{}", stderr(&told));
}
