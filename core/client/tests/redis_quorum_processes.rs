//! Several processes on one quorum, one of which may stand still.
#![cfg(unix)]

mod actor;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use actor::Actor;
use fencelock::blocking::Client;
use fencelock_testkit::{RedisQuorum, skip_servers};

const LIMIT: Duration = Duration::from_secs(60);
const CALLERS: usize = 4;
const ROUNDS: usize = 25;

/// What a child does. An ordinary test run has no role and does nothing here.
#[test]
fn role() {
    let Some((role, url)) = actor::cast() else { return };
    let client = Client::connect(&url).unwrap();
    match role.split_once('=').unwrap_or((&role, "")) {
        ("hold", _) => {
            let guard = client.lock("shared").unwrap().acquire().unwrap();
            println!("<held> {}", guard.token());
            while guard.is_valid() {
                std::thread::sleep(Duration::from_millis(5));
            }
            println!("<lost> {}", guard.release().unwrap_err().kind());
        }
        ("count", file) => {
            std::thread::scope(|scope| {
                for _ in 0..CALLERS {
                    scope.spawn(|| count(&client, Path::new(file)));
                }
            });
            println!("<counted>");
        }
        (role, _) => panic!("unknown role {role}"),
    }
}

/// Adds tokens to a list that is read before, as only who is alone may.
fn count(client: &Client, file: &Path) {
    for _ in 0..ROUNDS {
        let guard = client.lock("shared").unwrap().acquire_timeout(LIMIT).unwrap();
        let token = guard.token().get();
        let last = tokens(file).last().copied().unwrap_or(0);
        assert!(token > last, "{token} after {last}");
        let mut file = OpenOptions::new().append(true).create(true).open(file).unwrap();
        file.write_all(format!("{token}\n").as_bytes()).unwrap();
        guard.release().unwrap();
    }
}

fn tokens(file: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// Four processes with as many callers each; `meanwhile` happens until all have counted.
fn contended(all: &RedisQuorum, meanwhile: impl Fn(usize)) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    let role = format!("count={}", file.display());
    let url = format!("{}&claim=900ms&request_timeout=1s", all.url());
    let mut actors: Vec<Actor> = (0..4).map(|_| Actor::start(&role, &url)).collect();
    let whole = actors.len() * CALLERS * ROUNDS;
    let mut round = 0;
    while tokens(&file).len() < whole && actors.iter_mut().all(|it| lives(&mut it.child)) {
        meanwhile(round);
        round += 1;
    }
    for actor in &mut actors {
        actor.says("counted");
    }
    let tokens = tokens(&file);
    assert_eq!(tokens.len(), whole);
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
}

fn lives(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_none()
}

#[test]
fn p01_p02_sixteen_callers_in_four_processes_exclude_each_other() {
    if !skip_servers() {
        contended(&RedisQuorum::start().unwrap(), |_| {
            std::thread::sleep(Duration::from_millis(20))
        });
    }
}

#[test]
fn p01_p02_they_do_while_one_server_after_another_stands_still_or_is_cut_off() {
    if skip_servers() {
        return;
    }
    let all = RedisQuorum::start().unwrap();
    contended(&all, |round| {
        let at = round / 2 % 3;
        match round % 2 {
            0 => all.servers[at].stop().unwrap(),
            _ => all.proxies[at].cut(),
        }
        std::thread::sleep(Duration::from_millis(150));
        all.servers[at].cont().unwrap();
    });
}

#[test]
fn p01_p08_a_process_that_stood_still_finds_its_hold_lost() {
    if skip_servers() {
        return;
    }
    let all = RedisQuorum::start().unwrap();
    let url = format!("{}&claim=900ms", all.url());
    let mut holder = Actor::start("hold", &format!("{url}&lease=2s"));
    let token: u64 = holder.says("held").parse().unwrap();
    holder.signal(libc::SIGSTOP);
    let client = Client::connect(&url).unwrap();
    let guard = client.lock("shared").unwrap().acquire_timeout(LIMIT).unwrap();
    assert!(guard.token().get() > token);
    holder.signal(libc::SIGCONT);
    assert_eq!(holder.says("lost"), "lost");
    assert!(guard.is_valid());
    guard.release().unwrap();
}
