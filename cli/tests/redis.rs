//! The same commands on a real Redis server.

mod common;

use common::{Place, code, eventually, is_one_line, json, output, stderr, stdout};
use fencelock_testkit::{RedisSentinels, RedisServer, skip_servers};

fn server() -> Option<RedisServer> {
    (!skip_servers()).then(|| RedisServer::start().unwrap())
}

#[test]
fn run_ls_show_and_break_work_on_redis() {
    let Some(server) = server() else { return };
    let place = Place::on(&server.url());
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
    assert_eq!(code(&holder.end()), 124);
    assert_eq!(code(&output(waiter)), 0);
}

#[test]
fn a_server_that_forgot_everything_ends_the_command() {
    let Some(mut server) = server() else { return };
    let place = Place::on(&server.url());
    let holder = place.holder(&["--lease", "1s"], "job");
    server.kill().unwrap();
    server.restart().unwrap();
    let ended = holder.end();
    assert_eq!(code(&ended), 124, "{}", stderr(&ended));
    assert!(is_one_line(&stderr(&ended)), "{}", stderr(&ended));
}

#[test]
fn doctor_finds_a_plain_server_usable() {
    let Some(server) = server() else { return };
    let told = Place::on(&format!("{}?lease=10s", server.url())).output(&["doctor", "--json"]);
    assert_eq!(code(&told), 0, "{}", stdout(&told));
    let told = json(&told);
    let findings = told["findings"].as_array().unwrap();
    for name in
        ["server", "permissions", "resp3", "pubsub", "eviction", "persistence", "replicas", "clock"]
    {
        assert!(findings.iter().any(|finding| finding["name"] == name), "{name}: {told}");
    }
    let lock = findings.iter().find(|finding| finding["name"] == "lock").unwrap();
    assert_eq!(lock["severity"], "good", "{told}");
}

#[test]
fn doctor_warns_of_eviction_and_says_what_to_do() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::builder()
        .config("maxmemory 100mb")
        .config("maxmemory-policy allkeys-lru")
        .start()
        .unwrap();
    let place = Place::on(&server.url());
    let told = json(&place.output(&["doctor", "--json"]));
    let findings = told["findings"].as_array().unwrap();
    let eviction = findings.iter().find(|finding| finding["name"] == "eviction").unwrap();
    assert_ne!(eviction["severity"], "good", "{told}");
    assert!(eviction["advice"].as_str().unwrap().contains("noeviction"), "{told}");
    let page = stdout(&place.output(&["doctor"]));
    assert!(page.contains("allkeys-lru") && page.contains("→"), "{page}");
}

#[test]
fn a_wrong_password_is_one_clear_line() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::builder().password("right").start().unwrap();
    let place = Place::on(&format!("redis://:wrong@{}", server.address()));
    for arguments in [&["ls"][..], &["run", "job", "--", "true"]] {
        let failed = place.output(arguments);
        assert_eq!(code(&failed), 125);
        let said = stderr(&failed);
        assert!(
            is_one_line(&said) && !said.contains("wrong@") && said.contains("password"),
            "{said}"
        );
    }
    assert_eq!(code(&place.output(&["doctor"])), 1);
    let place = Place::on(&format!("redis://:right@{}", server.address()));
    assert_eq!(code(&place.output(&["run", "job", "--", "true"])), 0);
}

#[test]
fn the_demo_runs_on_redis() {
    let Some(server) = server() else { return };
    let place = Place::on(&server.url());
    let out = place.file("out");
    let ran = place.output(&[
        "demo",
        "--json",
        "--coupons",
        "24",
        "--processes",
        "2",
        "--workers",
        "2",
        "--out",
        out.to_str().unwrap(),
    ]);
    assert_eq!(code(&ran), 0, "{}{}", stdout(&ran), stderr(&ran));
    assert_eq!(json(&ran)["as_promised"], true);
}

#[test]
fn a_sale_goes_on_when_another_server_takes_over() {
    if skip_servers() {
        return;
    }
    let all = RedisSentinels::start().unwrap();
    let place = Place::on(&all.url());
    let sale = |failover: &str| {
        let small = ["--coupons", "24", "--processes", "2", "--workers", "2"];
        let out = place.file("out");
        let out = ["demo", "--json", "--out", out.to_str().unwrap(), "--failover", failover];
        place.command(&out).args(small).output().unwrap()
    };
    // The lock's name is the argument.
    let kill = format!("test \"$1\" && kill -9 {}", all.servers[0].pid().unwrap());
    let ran = sale(&kill);
    assert_eq!(code(&ran), 0, "{}{}", stdout(&ran), stderr(&ran));
    let told = json(&ran);
    let scene = told["scenes"].as_array().unwrap().last().unwrap();
    assert_eq!((&scene["scene"], &scene["sold"]), (&"failover".into(), &24.into()), "{scene}");
    assert_eq!((&scene["oversold"], &scene["bought_twice"]), (&0.into(), &0.into()), "{scene}");
    let saw = |check: &serde_json::Value| check["saw"].as_str().unwrap().contains("failover");
    assert!(scene["checks"].as_array().unwrap().iter().any(saw), "{scene}");
    assert_eq!(all.says(0).filter(|master| *master != 0), all.says(1), "another is the master");

    let ran = sale("echo out of order >&2; false");
    assert_eq!(code(&ran), 125, "{}", stdout(&ran));
    assert!(stderr(&ran).contains("out of order"), "{}", stderr(&ran));
}
