//! Every way to log in, and every way to fail at it.

mod common;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::{Client, hold, refused};
use fencelock_engine::reply::{Push, RefusalKind, Standing};
use fencelock_engine::{Error, ErrorKind};
use fencelock_redis::{Address, Login, Options, Protocol};
use fencelock_testkit::{RedisServer, documented_acl, free_port, skip_servers};

fn set_acl(server: &RedisServer, acl: &[String]) {
    let words: Vec<&str> = acl.iter().map(String::as_str).collect();
    server.cli(&words).unwrap();
}

fn options(server: &RedisServer, login: &str) -> Options {
    Options::from_url(&format!("redis://{login}@{}", server.address())).unwrap()
}

/// A lock is taken, waited for and handed over.
fn exercise(options: &Options) {
    let (a, b) = (Client::up(options.clone()), Client::up(options.clone()));
    let first = a.grant("exercise");
    let second = hold();
    assert_eq!(b.acquire("exercise", second, true).unwrap().standing, Standing::Queued);
    a.release("exercise", first).unwrap();
    match b.await_push() {
        Push::Granted { hold, .. } => assert_eq!(hold, second),
        other => panic!("{other:?}"),
    }
    b.release("exercise", second).unwrap();
}

#[test]
fn password_and_what_is_said_when_it_is_wrong() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::builder().password("pa:ss").start().unwrap();
    exercise(&options(&server, ":pa%3Ass"));
    exercise(&Options { protocol: Protocol::Resp2, ..options(&server, ":pa%3Ass") });
    exercise(&options(&server, "default:pa%3Ass"));

    for protocol in [Protocol::Auto, Protocol::Resp2] {
        let wrong = Client::open(Options { protocol, ..options(&server, ":wr0ng") });
        let error = wrong.await_misconfigured();
        assert_eq!(error.kind(), ErrorKind::Misconfigured);
        assert!(error.message().contains("password is wrong"), "{error}");
        assert!(!error.message().contains("wr0ng"), "{error}");

        let none = Options { protocol, ..Options::from_url(&server.url()).unwrap() };
        let error = Client::open(none).await_misconfigured();
        assert!(error.message().contains("wants a password"), "{error}");
    }
    // It goes on trying: an operator may mend it.
    let wrong = Client::open(options(&server, ":later"));
    wrong.await_misconfigured();
    server.cli(&["CONFIG", "SET", "requirepass", "later"]).unwrap();
    wrong.await_up();
}

#[test]
fn a_password_that_the_server_has_not() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let client =
        Client::open(Options { protocol: Protocol::Resp2, ..options(&server, ":needless") });
    let error = client.await_misconfigured();
    assert!(error.message().contains("the server has none"), "{error}");
}

#[test]
fn the_smallest_acl_of_the_documentation() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let acl = documented_acl("ACL SETUSER locks on");
    set_acl(&server, &acl);
    let options = options(&server, "locks:a-long-password");
    exercise(&options);
    exercise(&Options { protocol: Protocol::Resp2, ..options.clone() });
    let client = Client::up(options.clone());
    let held = client.grant("held");
    client.call(common::beat(&[("held", held)])).unwrap();
    for op in [
        fencelock_engine::request::Op::List { prefix: String::new(), limit: 10 },
        fencelock_engine::request::Op::Inspect(common::name("held")),
        fencelock_engine::request::Op::Break(fencelock_engine::request::Break {
            lock: common::name("held"),
            token: u64::MAX,
            hold: None,
        }),
        fencelock_engine::request::Op::Time,
    ] {
        client.call(op).unwrap();
    }

    // Each permission is needed: without it something is refused.
    let needed = acl.iter().filter(|word| word.starts_with('+') && !word.contains("setname"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for word in needed {
        set_acl(&server, &acl);
        server.cli(&["ACL", "SETUSER", "locks", &word.replacen('+', "-", 1)]).unwrap();
        let survey = runtime.block_on(fencelock_redis::survey(options.clone()));
        match survey {
            Ok(survey) => assert!(!survey.missing.is_empty() || !survey.pubsub, "{word}"),
            Err(error) => assert!(error.message().contains("docs/redis.md"), "{word}: {error}"),
        }
    }
    // So are the keys and the channels.
    set_acl(&server, &acl);
    server.cli(&["ACL", "SETUSER", "locks", "resetkeys", "~other:*"]).unwrap();
    let client = Client::up(options.clone());
    let (kind, message) = refused(client.acquire("held", hold(), false));
    assert_eq!(kind, RefusalKind::Misconfigured, "{message}");
}

#[test]
fn without_pubsub_permission_it_polls() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    set_acl(&server, &documented_acl("ACL SETUSER locks on"));
    server.cli(&["ACL", "SETUSER", "locks", "-subscribe"]).unwrap();
    for protocol in [Protocol::Auto, Protocol::Resp2] {
        let options = Options { protocol, ..options(&server, "locks:a-long-password") };
        let (a, b) = (Client::up(options.clone()), Client::up(options));
        let lock = format!("polled {protocol:?}");
        let first = a.grant(&lock);
        let second = hold();
        assert_eq!(b.acquire(&lock, second, true).unwrap().standing, Standing::Queued);
        a.release(&lock, first).unwrap();
        let answer = b.call(common::beat(&[(lock.as_str(), second)])).unwrap();
        let fencelock_engine::reply::Body::Beat(states) = answer.body else { panic!() };
        assert_eq!(states[0].as_ref().unwrap().standing, Standing::Granted, "handed to a poller");
        b.release(&lock, second).unwrap();
    }
}

#[test]
fn a_needed_command_is_forbidden() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let acl = documented_acl("ACL SETUSER locks on");
    set_acl(&server, &acl);
    server.cli(&["ACL", "SETUSER", "locks", "-script|load"]).unwrap();
    let error = Client::open(options(&server, "locks:a-long-password")).await_misconfigured();
    assert!(error.message().contains("docs/redis.md"), "{error}");

    set_acl(&server, &acl);
    server.cli(&["ACL", "SETUSER", "locks", "-evalsha"]).unwrap();
    let client = Client::up(options(&server, "locks:a-long-password"));
    let (kind, message) = refused(client.acquire("x", hold(), false));
    assert_eq!(kind, RefusalKind::Misconfigured);
    assert!(message.contains("NOPERM"), "{message}");

    set_acl(&server, &acl);
    server.cli(&["ACL", "SETUSER", "locks", "off"]).unwrap();
    let error = Client::open(options(&server, "locks:a-long-password")).await_misconfigured();
    assert!(error.message().contains("switched off"), "{error}");
}

#[test]
fn credentials_are_asked_at_every_connect() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    server.cli(&["ACL", "SETUSER", "app", "on", ">one", "~*", "&*", "+@all"]).unwrap();
    let login = Arc::new(Mutex::new("one".to_owned()));
    let asked = Arc::new(AtomicUsize::new(0));
    let mut options = Options::from_url(&server.url()).unwrap();
    let (current, count) = (login.clone(), asked.clone());
    options.credentials = Some(Arc::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
        let password = current.lock().unwrap().clone();
        Ok::<_, Error>(Login { user: Some("app".to_owned()), password })
    }));
    let client = Client::up(options.clone());
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // Taking a password away ends its connections.
    server.cli(&["ACL", "SETUSER", "app", "resetpass", ">two"]).unwrap();
    *login.lock().unwrap() = "two".to_owned();
    server.cli(&["CLIENT", "KILL", "USER", "app"]).unwrap();
    client.await_down();
    client.await_up();
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    client.grant("after");

    options.credentials = Some(Arc::new(|| {
        Err::<Login, _>(Error::new(ErrorKind::Unavailable, "the vault is sealed"))
    }));
    assert!(Client::open(options).await_down().contains("the vault is sealed"));
}

#[test]
fn databases() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    exercise(&Options::from_url(&format!("{}/7", server.url())).unwrap());
    let options = Options::from_url(&format!("{}/7000", server.url())).unwrap();
    let error = Client::open(options).await_misconfigured();
    assert!(error.message().contains("database number"), "{error}");
}

#[test]
fn a_unix_socket() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::builder().password("pw").start().unwrap();
    let url = format!("redis+unix://{}?db=3&pass=pw", server.socket().display());
    let options = Options::from_url(&url).unwrap();
    exercise(&options);
    exercise(&Options { protocol: Protocol::Resp2, ..options.clone() });
    let nowhere = Options { address: Address::Unix("/nowhere/redis.sock".into()), ..options };
    assert!(Client::open(nowhere).await_down().contains("/nowhere/redis.sock"));
}

#[test]
fn resp2_gets_its_pushes_by_a_second_connection() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let url = format!("{}?protocol=2", server.url());
    exercise(&Options::from_url(&url).unwrap());
    let client = Client::up(Options::from_url(&url).unwrap());
    // Losing only the connection of the pushes is a loss, too: grants would go unheard.
    server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]).unwrap();
    client.await_down();
    client.await_up();
    client.grant("after");
}

#[test]
fn tls_with_an_own_authority_and_a_client_certificate() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::builder().tls(true).password("pw").start().unwrap();
    let files = server.certificates().unwrap().clone();
    let url = format!("rediss://:pw@localhost:{}", server.tls_port());
    let mut good = Options::from_url(&url).unwrap();
    good.tls.ca = Some(files.ca.clone());
    good.tls.cert = Some(files.client_cert.clone());
    good.tls.key = Some(files.client_key.clone());
    exercise(&good);
    exercise(&Options { protocol: Protocol::Resp2, ..good.clone() });

    // A load that the socket does not take at once.
    let client = Client::up(good.clone());
    let asked: Vec<_> = (0..2000)
        .map(|n| client.enqueue(common::acquire(&format!("tls {n}"), hold(), false)))
        .collect();
    fencelock_engine::transport::Transport::flush(&*client.transport);
    for id in asked {
        client.answer(id).unwrap();
    }

    let said = |change: &dyn Fn(&mut Options)| {
        let mut options = good.clone();
        change(&mut options);
        let error = Client::open(options).await_misconfigured();
        assert_eq!(error.kind(), ErrorKind::Misconfigured);
        error.message().to_owned()
    };
    let message = said(&|options| {
        (options.tls.cert, options.tls.key) = (None, None);
    });
    assert!(message.contains("client certificate"), "{message}");
    let other = RedisServer::builder().tls(false).start().unwrap();
    let strange = other.certificates().unwrap().ca.clone();
    let message = said(&|options| options.tls.ca = Some(strange.clone()));
    assert!(message.contains("not trusted"), "{message}");
    let message = said(&|options| options.tls.ca = Some(PathBuf::from("/nowhere/ca.pem")));
    assert!(message.contains("tls_ca") && message.contains("/nowhere/ca.pem"), "{message}");
    let message = said(&|options| options.tls.key = Some(files.ca.clone()));
    assert!(message.contains("tls_key"), "{message}");
    let message = said(&|options| options.tls.key = Some(files.server_key.clone()));
    assert!(message.contains("do not go together"), "{message}");
    // Redis waits for the end of what it takes for a line.
    let mut plain = good.clone();
    plain.address = Address::Tls { host: "127.0.0.1".into(), port: server.port() };
    plain.connect_timeout = std::time::Duration::from_millis(300);
    let reason = Client::open(plain).await_down();
    assert!(reason.contains("does this port speak TLS?"), "{reason}");
    let system = Client::open(Options { tls: Default::default(), ..good.clone() });
    let message = system.await_misconfigured().message().to_owned();
    assert!(message.contains("TLS:"), "{message}");
}

#[test]
fn tls_without_a_client_certificate() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::builder().tls(false).start().unwrap();
    let ca = server.certificates().unwrap().ca.clone();
    let url = format!("rediss://127.0.0.1:{}?tls_ca={}", server.tls_port(), ca.display());
    exercise(&Options::from_url(&url).unwrap());
}

#[test]
fn plain_text_to_a_tls_port() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::builder().tls(false).start().unwrap();
    let url = format!("redis://127.0.0.1:{}", server.tls_port());
    let reason = Client::open(Options::from_url(&url).unwrap()).await_down();
    assert!(reason.contains("rediss://"), "{reason}");
}

#[test]
fn a_wrong_host_or_port_is_down_and_not_misconfigured() {
    let port = free_port().unwrap();
    let options = Options::from_url(&format!("redis://127.0.0.1:{port}")).unwrap();
    let reason = Client::open(options).await_down();
    assert!(reason.contains("refused"), "{reason}");
    let options = Options::from_url("redis://no-such-host.invalid").unwrap();
    let reason = Client::open(options).await_down();
    assert!(reason.contains("no-such-host.invalid"), "{reason}");
}

#[test]
fn something_that_is_no_redis() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(1) {
            use std::io::Write;
            stream.unwrap().write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        }
    });
    let client = Client::open(Options::from_url(&format!("redis://{address}")).unwrap());
    let error = client.await_misconfigured();
    assert!(error.message().contains("is this a Redis server?"), "{error}");
}

#[test]
fn a_server_whose_clock_leaves_no_room_for_tokens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // The first word, the name, the scripts, the time: 2^53 microseconds.
    let mut said = "+PONG\r\n+OK\r\n".to_owned();
    for script in fencelock_engine::redis::Codec::scripts() {
        said += &format!("$40\r\n{}\r\n", script.sha);
    }
    said += "*2\r\n$10\r\n9007199254\r\n$6\r\n740992\r\n";
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.write_all(said.as_bytes()).unwrap();
            // Until the client has gone; an error says the same.
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    let options = Options::from_url(&format!("redis://{address}?protocol=2")).unwrap();
    let error = Client::open(options).await_misconfigured();
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.message().contains("clock of the store's host"), "{error}");
}
