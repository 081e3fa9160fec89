//! The driver of Rust's libraries does what it is told, as bench/drivers/README.md has it.

use std::process::Command;

use fencelock_testkit::{Driver, RedisServer, skip_servers};

fn start(library: &str, url: &str) -> Driver {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencelock-bench"));
    command.args(["driver", library, url]);
    let driver = Driver::start(command).unwrap();
    driver.wait_for("ready");
    driver
}

fn numbers(said: &str) -> Vec<u64> {
    said.split_whitespace().map(|it| it.parse().unwrap()).collect()
}

#[test]
fn each_library_obeys_each_order() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let url = server.url();
    for library in ["fencelock", "fencelock-no-handoff", "rslock", "redis"] {
        let mut driver = start(library, &url);
        for order in ["pairs a 20", "keys 4 b 20"] {
            let did = numbers(&driver.ask(order, "did"));
            assert!(did[0] > 0 && did[1] >= 20_000_000, "{library}: {order}: {did:?}");
        }
        let did = numbers(&driver.ask("hot 4 c 50", "did"));
        let [count, _, least, most, longest] = did[..] else { panic!("{library}: {did:?}") };
        assert!(least <= count / 4 && most >= count / 4 && longest > 0, "{library}: {did:?}");
        for order in ["read 4 90 e 50", "permits 4 2 f 50"] {
            driver.tell(order);
            let (which, said) = driver.wait_for_any(["did", "cannot"]);
            assert_eq!(which == 0, library.starts_with("fencelock"), "{library}: {order}: {said}");
            assert!(which == 1 || numbers(&said)[0] >= 4, "{library}: {order}: {said}");
        }
        driver.tell("reenter d 3 20");
        let (which, said) = driver.wait_for_any(["did", "cannot"]);
        assert_eq!(which == 0, library.starts_with("fencelock"), "{library}: {said}");
    }
}

#[test]
fn a_lock_passes_between_two_processes_and_a_sale_comes_out_even() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let url = server.url();
    for library in ["fencelock", "rslock", "redis"] {
        let (mut one, mut other) = (start(library, &url), start(library, &url));
        one.ask(&format!("acquire a {library} default"), "granted a");
        other.ask(&format!("acquire b {library} default"), "asked b");
        one.ask(&format!("wait 10 {library}"), "waiting 10");
        assert!(!other.has_said("granted b"), "{library}");
        one.tell("release a");
        one.wait_for("released a");
        if library == "fencelock" {
            // Its queue is fair; those of the others who asks first gets it.
            other.wait_for("granted b");
        }
        let mut wire = server.connection().unwrap();
        redis::cmd("SET").arg("bench:stock").arg(40).exec(&mut wire).unwrap();
        one.tell("sell 2 sale");
        other.tell("sell 2 sale");
        let sold: u64 = [&one, &other].map(|it| numbers(&it.wait_for("sold"))[0]).iter().sum();
        assert_eq!(sold, 40, "{library}");
    }
}
