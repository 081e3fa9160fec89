//! What docs/redis.md promises of its ACL: what it keeps apart, and what it cannot.

mod common;

use common::{Client, hold, refused};
use fencelock_engine::reply::{Push, RefusalKind, Standing};
use fencelock_redis::Options;
use fencelock_testkit::{RedisServer, documented_acl, skip_servers, team_acl};

fn allow(server: &RedisServer, acl: &[String]) {
    server.cli(&acl.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
}

fn options(server: &RedisServer, user: &str, prefix: &str) -> Options {
    let address = server.address();
    Options::from_url(&format!("redis://{user}:a-long-password@{address}?prefix={prefix}")).unwrap()
}

/// One command after another as a user of the server.
struct Shell(redis::Connection);

impl Shell {
    fn new(server: &RedisServer, user: &str) -> Shell {
        let mut shell = Shell(server.connection().unwrap());
        shell.run(&["AUTH", user, "a-long-password"]).unwrap();
        shell
    }

    fn run(&mut self, words: &[&str]) -> redis::RedisResult<redis::Value> {
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(word);
        }
        command.query(&mut self.0)
    }

    fn forbidden(&mut self, words: &[&str]) {
        match self.run(words) {
            Err(error) => {
                let said = error.to_string().to_lowercase();
                let acl = ["noperm", "permission", "the script can't"]
                    .iter()
                    .any(|why| said.contains(why));
                assert!(acl, "{words:?}: {error}");
            }
            Ok(value) => panic!("{words:?} was allowed: {value:?}"),
        }
    }
}

#[test]
fn teams_reach_neither_keys_nor_inboxes_of_each_other() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let teams = [("locks", "fl:"), ("payments", "payments:"), ("inner", "fl:payments:")];
    for (user, prefix) in teams {
        allow(&server, &team_acl(user, prefix));
    }
    let clients = teams.map(|(user, prefix)| Client::up(options(&server, user, prefix)));
    for client in &clients {
        client.grant("held");
    }
    for (user, own) in teams {
        let mut shell = Shell::new(&server, user);
        let script = |shell: &mut Shell, text: &str| match shell.run(&["SCRIPT", "LOAD", text]) {
            Ok(redis::Value::BulkString(sha)) => String::from_utf8(sha).unwrap(),
            other => panic!("{other:?}"),
        };
        let write = script(&mut shell, "return redis.call('HSET', ARGV[1], 'v', '1')");
        let publish = script(&mut shell, "return redis.call('PUBLISH', ARGV[1], 'x')");
        for (at, (_, prefix)) in teams.iter().enumerate() {
            let (key, queue) = (format!("{prefix}{{held}}"), format!("{prefix}{{held}}:q"));
            let inbox = format!("{prefix}inbox:{}", clients[at].id.id());
            if *prefix == own {
                shell.run(&["HGETALL", &key]).unwrap();
                shell.run(&["HGETALL", &queue]).unwrap();
                shell.run(&["PUBLISH", &inbox, ""]).unwrap();
                shell.run(&["EVALSHA", &publish, "0", &inbox]).unwrap();
                continue;
            }
            for key in [&key, &queue] {
                shell.forbidden(&["HGETALL", key]);
                shell.forbidden(&["HSET", key, "v", "1"]);
                shell.forbidden(&["EVALSHA", &write, "1", key, key]);
                shell.forbidden(&["EVALSHA", &write, "0", key]);
            }
            shell.forbidden(&["PUBLISH", &inbox, ""]);
            shell.forbidden(&["EVALSHA", &publish, "0", &inbox]);
            shell.forbidden(&["SUBSCRIBE", &inbox]);
            // Nor by the library, with another's prefix.
            let intruder = Client::up(options(&server, user, prefix));
            let (kind, message) = refused(intruder.acquire("held", hold(), false));
            assert_eq!(kind, RefusalKind::Misconfigured, "{user} at {prefix}: {message}");
        }
        // What is under the prefix and no lock's.
        shell.forbidden(&["HGETALL", &format!("{own}settings")]);
        shell.forbidden(&["PUBLISH", &format!("{own}news"), ""]);
        shell.forbidden(&["PSUBSCRIBE", &format!("{own}inbox:*")]);
        shell.forbidden(&["RENAME", &format!("{own}{{held}}"), &format!("{own}{{kept}}")]);
        shell.forbidden(&["FLUSHALL"]);
        shell.forbidden(&["CONFIG", "GET", "*"]);
        // Names of keys are not kept apart, as the page says.
        let found = format!("{:?}", shell.run(&["SCAN", "0", "COUNT", "1000"]).unwrap());
        assert!(teams.iter().all(|(_, prefix)| found.contains(&format!("{prefix}{{held}}"))));
    }
    // All of that changed nothing.
    for client in &clients {
        assert_eq!(client.acquire("held", hold(), false).unwrap().standing, Standing::Contended);
    }
}

#[test]
fn clients_of_one_prefix_can_forge() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    allow(&server, &documented_acl("ACL SETUSER locks on"));
    let (a, b) = (0, 1);
    let clients = [a, b].map(|_| Client::up(options(&server, "locks", "fl:")));
    let held = clients[a].grant("forged");
    let waiting = hold();
    let state = clients[b].acquire("forged", waiting, true).unwrap();
    assert_eq!(state.standing, Standing::Queued);
    assert!(matches!(clients[a].await_push(), Push::Wanted { .. }));

    let mut shell = Shell::new(&server, "locks");
    // The ids, and so the inboxes, stand in the keys.
    let seen = format!("{:?}", shell.run(&["HGETALL", "fl:{forged}:q"]).unwrap());
    let id = clients[b].id.id();
    assert!(seen.contains(id), "{id}: {seen}");
    let inbox = format!("fl:inbox:{id}");
    let token = state.last + 1;
    shell
        .run(&["PUBLISH", &inbox, &format!("1 granted {waiting} {token} {token} 0 0 forged")])
        .unwrap();
    match clients[b].await_push() {
        Push::Granted { hold, token: said, .. } => assert_eq!((hold, said), (waiting, token)),
        other => panic!("{other:?}"),
    }
    // The store knows better.
    let answer = clients[b].call(common::beat(&[("forged", waiting)])).unwrap();
    let fencelock_engine::reply::Body::Beat(states) = answer.body else { panic!() };
    assert_eq!(states[0].as_ref().unwrap().standing, Standing::Queued);

    let inbox = format!("fl:inbox:{}", clients[a].id.id());
    shell.run(&["PUBLISH", &inbox, &format!("1 broken {held} forged")]).unwrap();
    assert!(matches!(clients[a].await_push(), Push::Broken { hold, .. } if hold == held));
    // And the record itself.
    shell.run(&["PEXPIRE", "fl:{forged}", "0"]).unwrap();
    let ask = || {
        let answer = clients[a].call(common::beat(&[("forged", held)])).unwrap();
        let fencelock_engine::reply::Body::Beat(mut states) = answer.body else { panic!() };
        states.remove(0)
    };
    // Who waits behind it may want to share the lock: that takes all keys.
    assert_eq!(ask().unwrap_err().kind, fencelock_engine::reply::RefusalKind::Again);
    assert_ne!(ask().unwrap().standing, Standing::Granted);
    // Listening to another's inbox.
    shell.run(&["SUBSCRIBE", &inbox]).unwrap();
}

/// The page says that a selector could narrow SUBSCRIBE, were there anything to name in it.
#[test]
fn a_selector_knows_no_client_before_it_is_made() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    allow(&server, &documented_acl("ACL SETUSER locks on"));
    let narrow = "(+subscribe &fl:inbox:0123456789abcdef)";
    server.cli(&["ACL", "SETUSER", "locks", "-subscribe", narrow]).unwrap();
    let mut shell = Shell::new(&server, "locks");
    shell.run(&["PUBLISH", "fl:inbox:fedcba9876543210", ""]).unwrap();
    shell.forbidden(&["SUBSCRIBE", "fl:inbox:fedcba9876543210"]);
    shell.run(&["SUBSCRIBE", "fl:inbox:0123456789abcdef"]).unwrap();
    // A client draws another id: it polls.
    let survey = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let survey = survey.block_on(fencelock_redis::survey(options(&server, "locks", "fl:")));
    assert!(!survey.unwrap().pubsub);
}
