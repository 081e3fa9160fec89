//! The same commands on real ZooKeeper servers.

mod common;

use common::{Place, code, eventually, json, output, stderr, stdout};
use fencelock_testkit::{ZooKeeper, skip_servers};
use serde_json::Value;

fn finding<'a>(told: &'a Value, name: &str) -> &'a Value {
    let findings = told["findings"].as_array().unwrap();
    findings
        .iter()
        .find(|finding| finding["name"] == name)
        .unwrap_or_else(|| panic!("{name}: {told}"))
}

#[test]
fn run_ls_show_and_break_work_on_zookeeper() {
    if skip_servers() {
        return;
    }
    let server = ZooKeeper::start().unwrap();
    let place = Place::on(&format!("{}/locks?lease=5s", server.url()));
    let holder = place.holder(&["--label", "billing"], "shop/a");
    assert_eq!(code(&place.output(&["run", "-n", "shop/a", "--", "true"])), 1);
    let waiter = place.run(&["--label", "next"], "shop/a", "true").spawn().unwrap();
    let show = || json(&place.output(&["show", "shop/a", "--json"]));
    eventually("it waits", || show()["waiters"].as_array().unwrap().len() == 1);
    assert_eq!(show()["holds"][0]["label"], "billing");
    assert_eq!(show()["waiters"][0]["label"], "next");
    let listed = stdout(&place.output(&["ls", "shop/"]));
    assert!(listed.lines().nth(1).unwrap().starts_with("shop/a  held   billing"), "{listed}");

    assert_eq!(code(&place.output(&["break", "shop/a", "--yes"])), 0);
    let ended = holder.end();
    assert_eq!(code(&ended), 124, "{}", stderr(&ended));
    assert_eq!(code(&output(waiter)), 0);
}

#[test]
fn doctor_on_four_servers_of_which_two_die() {
    if skip_servers() {
        return;
    }
    let mut servers = ZooKeeper::ensemble(4).unwrap();
    let place = Place::on(&format!("{}?lease=10s&connect_timeout=5s", servers.url()));
    let told = place.output(&["doctor", "--json"]);
    assert_eq!(code(&told), 0, "{}", stdout(&told));
    let told = json(&told);
    for name in ["quorum", "server", "session", "lock"] {
        assert_eq!(finding(&told, name)["severity"], "good", "{told}");
    }
    let ensemble = finding(&told, "ensemble");
    assert_eq!(ensemble["severity"], "warning", "{told}");
    assert!(ensemble["meaning"].as_str().unwrap().contains("3 of 4"), "{told}");
    // Two are left: half of them, and that is no majority.
    servers.kill(0).unwrap();
    servers.kill(1).unwrap();
    eventually("no quorum is left", || (2..4).all(|at| servers.role(at).is_none()));
    let told = place.output(&["doctor", "--json"]);
    assert_eq!(code(&told), 1, "{}", stdout(&told));
    let told = json(&told);
    assert_eq!(finding(&told, "connection")["severity"], "problem", "{told}");
    let quorum = finding(&told, "quorum");
    assert_eq!(quorum["severity"], "problem", "{told}");
    assert!(quorum["meaning"].as_str().unwrap().contains("no quorum"), "{told}");
}
