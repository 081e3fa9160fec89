use crate::error::ErrorKind;
use crate::id::ClientId;
use crate::redis::session::tests::{Answers, Reads, all_scripts, old, script, sound};
use crate::redis::session::{Greeted, Greeting, Login, NoSession, Protocol, Purpose};
use crate::redis::{Charter, Codec, Command, Inbox, Node, Value};
use crate::request::{Acquire, Beat, Op};
use crate::{HoldId, Name};
use std::time::Duration;

fn requests(db: u32) -> Purpose {
    let client = ClientId::new(7, "a b").unwrap();
    let channel = b"fl:inbox:7".to_vec();
    Purpose::Requests { client, channel, db, master: false, cluster: false, charter: None }
}

fn pushes() -> Purpose {
    Purpose::Pushes { channel: b"fl:inbox:7".to_vec() }
}

fn login(user: Option<&str>) -> Option<Login> {
    Some(Login { user: user.map(str::to_owned), password: "s3cret-word".to_owned() })
}

/// What was said, and what became of it.
struct Talk {
    /// The commands, scripts by their names, in the bursts in which they left.
    said: Vec<Vec<String>>,
    /// How many bytes were answered.
    heard: usize,
    end: Option<Result<Greeted, NoSession>>,
}

/// Lets a greeting talk to a server, which is heard in two pieces that meet at `cut`, and to the byte
/// `until`; the rest is lost.
fn talk(mut greeting: Greeting, answers: Answers, cut: usize, until: usize) -> Talk {
    let mut reads = Reads::default();
    let mut talk = Talk { said: Vec::new(), heard: 0, end: None };
    loop {
        let out = greeting.take();
        if out.is_empty() {
            return talk;
        }
        let mut answer = String::new();
        let mut burst = Vec::new();
        for mut words in reads.commands(&out) {
            answer += &answers(&words);
            if words[0] == "SCRIPT" {
                words[2] = script(&words[2]).name.to_owned();
            }
            burst.push(words.join(" "));
        }
        talk.said.push(burst);
        let bytes = &answer.as_bytes()[..answer.len().min(until - talk.heard)];
        let (one, two) = bytes.split_at(cut.saturating_sub(talk.heard).min(bytes.len()));
        for piece in [one, two] {
            talk.heard += piece.len();
            match greeting.receive(piece) {
                Ok(None) => {}
                Ok(Some(greeted)) => talk.end = Some(Ok(greeted)),
                Err(why) => talk.end = Some(Err(why)),
            }
            if talk.end.is_some() {
                return talk;
            }
        }
    }
}

fn whole(greeting: Greeting, answers: Answers) -> Talk {
    talk(greeting, answers, 0, usize::MAX)
}

fn greeted(greeting: Greeting, answers: Answers) -> (Vec<Vec<String>>, Greeted) {
    let Talk { said, end, .. } = whole(greeting, answers);
    (said, end.unwrap().unwrap())
}

/// Why there is no session, in words; the kind first.
fn refused(greeting: Greeting, answers: Answers) -> String {
    match whole(greeting, answers).end {
        Some(Err(NoSession::Later(reason))) => format!("later: {reason}"),
        Some(Err(NoSession::Misconfigured(error))) => {
            assert_eq!(error.kind(), ErrorKind::Misconfigured);
            format!("misconfigured: {}", error.message())
        }
        other => panic!("{other:?}"),
    }
}

fn auto(login: Option<Login>) -> Greeting {
    Greeting::new(requests(0), Protocol::Auto, login)
}

const SET_UP: [&str; 7] = [
    "SCRIPT LOAD acquire",
    "SCRIPT LOAD beat",
    "SCRIPT LOAD release",
    "SCRIPT LOAD break",
    "SCRIPT LOAD inspect",
    "SCRIPT LOAD convert",
    "SCRIPT LOAD resize",
];

#[test]
fn a_session_takes_two_round_trips() {
    let name = "CLIENT SETNAME fencelock:0000000000000007:a_b";
    let (said, greeted) = greeted(Greeting::new(requests(3), Protocol::Auto, login(None)), sound);
    let mut all = vec![name, "SELECT 3"];
    all.extend(SET_UP);
    all.extend(["SUBSCRIBE fl:inbox:7", "TIME"]);
    assert_eq!(said, [vec!["HELLO 3 AUTH default s3cret-word"], all]);
    assert!(greeted.resp3);
    assert_eq!((greeted.inbox, greeted.denied), (Inbox::Subscribed, None));
    assert_eq!(greeted.now, 1_700_000_000_000_123);
    assert_eq!(greeted.secrets.hide("it is s3cret-word"), "it is ***");
}

#[test]
fn an_old_server_is_greeted_in_its_own_words_and_pushes_take_another_connection() {
    let first = |user: Option<Option<&str>>, protocol| {
        let login = user.and_then(login);
        greeted(Greeting::new(requests(0), protocol, login), old).0.concat()
    };
    assert_eq!(first(None, Protocol::Auto)[..2], ["HELLO 3", "PING"]);
    assert_eq!(first(None, Protocol::Resp2)[0], "PING");
    assert_eq!(first(Some(None), Protocol::Auto)[1], "AUTH s3cret-word");
    assert_eq!(first(Some(Some("ann")), Protocol::Auto)[1], "AUTH ann s3cret-word");
    assert_eq!(first(Some(Some("ann")), Protocol::Resp2)[0], "AUTH ann s3cret-word");

    let (said, main) = greeted(auto(None), old);
    assert!(!main.resp3);
    assert_eq!(main.inbox, Inbox::Polling);
    assert!(!said.concat().iter().any(|command| command.starts_with("SUBSCRIBE")), "{said:?}");
    // Also where it is not told to: there is no use for RESP3.
    for protocol in [Protocol::Auto, Protocol::Resp2] {
        let (said, apart) = greeted(Greeting::new(pushes(), protocol, None), old);
        assert_eq!(said.concat(), ["PING", "SUBSCRIBE fl:inbox:7"]);
        assert_eq!(apart.inbox, Inbox::Subscribed);
    }
}

/// As a server of a cluster says which version it is.
fn of_version(version: &str, words: &[String]) -> String {
    let pairs = format!("$7\r\nversion\r\n${}\r\n{version}\r\n", version.len());
    match (words[0].as_str(), words.len()) {
        ("HELLO", 1) => format!("*2\r\n{pairs}"),
        ("HELLO", _) => format!("%1\r\n{pairs}"),
        _ => sound(words),
    }
}

fn in_cluster(protocol: Protocol) -> Greeting {
    let Purpose::Requests { client, channel, .. } = requests(0) else { panic!() };
    let purpose =
        Purpose::Requests { client, channel, db: 0, master: true, cluster: true, charter: None };
    Greeting::new(purpose, protocol, None)
}

#[test]
fn in_a_cluster_the_version_decides_which_channels_there_are() {
    let seven: Answers = |words| of_version("7.0.15", words);
    let six: Answers = |words| of_version("6.2.14", words);
    let ten: Answers = |words| of_version("10.1.0", words);
    let mute: Answers = |words| match words[0].as_str() {
        "HELLO" => "-ERR unknown command 'HELLO'\r\n".to_owned(),
        _ => sound(words),
    };
    for (server, protocol, inbox) in [
        (seven, Protocol::Auto, Inbox::Sharded(true)),
        (ten, Protocol::Auto, Inbox::Sharded(true)),
        (seven, Protocol::Resp2, Inbox::Sharded(false)),
        (six, Protocol::Auto, Inbox::Subscribed),
        (six, Protocol::Resp2, Inbox::Polling),
        (mute, Protocol::Auto, Inbox::Polling),
    ] {
        let (said, greeted) = greeted(in_cluster(protocol), server);
        assert_eq!(greeted.inbox, inbox, "{said:?}");
        let subscribes = said.concat().iter().any(|it| it.starts_with("SUBSCRIBE"));
        assert_eq!(subscribes, inbox == Inbox::Subscribed, "{said:?}");
    }
    // The scripts are those of the version; one server alone is not asked.
    let loads = |said: Vec<Vec<String>>| said.concat().contains(&"SCRIPT LOAD acquire".to_owned());
    assert!(loads(greeted(in_cluster(Protocol::Auto), seven).0));
    let (said, alone) = greeted(auto(None), seven);
    assert!(loads(said));
    assert_eq!(alone.inbox, Inbox::Subscribed);
}

#[test]
fn whoever_has_questions_is_logged_in_and_may_subscribe_later() {
    let (said, greeted) = greeted(Greeting::new(Purpose::Questions, Protocol::Auto, None), sound);
    assert_eq!(said.concat(), ["HELLO 3"]);
    let (said, greeted) = self::greeted(Greeting::further(greeted, pushes()), sound);
    assert_eq!(said.concat(), ["SUBSCRIBE fl:inbox:7"]);
    assert!(greeted.resp3);
    assert_eq!(greeted.inbox, Inbox::Subscribed);
}

#[test]
fn a_greeting_that_is_cut_anywhere_says_and_hears_the_same() {
    let all: [(fn() -> Greeting, Answers); 5] = [
        (|| Greeting::new(requests(3), Protocol::Auto, login(Some("ann"))), sound),
        (|| auto(login(None)), old),
        (|| Greeting::new(requests(0), Protocol::Resp2, None), old),
        (|| Greeting::new(pushes(), Protocol::Resp2, None), old),
        (|| Greeting::new(Purpose::Questions, Protocol::Auto, None), sound),
    ];
    for (greeting, answers) in all {
        let once = whole(greeting(), answers);
        let ready = once.end.unwrap().unwrap();
        for cut in 0..once.heard {
            let cut = talk(greeting(), answers, cut, usize::MAX);
            assert_eq!((&cut.said, cut.heard), (&once.said, once.heard));
            let greeted = cut.end.unwrap().unwrap();
            assert_eq!(
                (greeted.resp3, greeted.inbox, greeted.now, greeted.early),
                (ready.resp3, ready.inbox, ready.now, ready.early.clone())
            );
        }
        // A connection that is lost at any byte is no session, and nothing was said out of turn.
        for until in 0..once.heard {
            let lost = talk(greeting(), answers, 0, until);
            assert!(lost.end.is_none(), "ready after {until} of {} bytes", once.heard);
            assert_eq!(lost.said[..], once.said[..lost.said.len()]);
        }
    }
    assert!(matches!(Greeting::closed(), NoSession::Later(reason) if reason.contains("rediss://")));
}

#[test]
fn what_a_server_refuses_says_what_to_do() {
    fn at(step: &str, words: &[String], line: &str, others: Answers) -> String {
        if words[0] == step { format!("-{line}\r\n") } else { others(words) }
    }
    let wrong = refused(auto(login(None)), |words| {
        at("HELLO", words, "WRONGPASS invalid username-password pair or user is disabled.", sound)
    });
    assert!(
        wrong.starts_with("misconfigured: Redis refused HELLO: the user or the password"),
        "{wrong}"
    );
    let wrong = refused(auto(login(None)), |words| {
        at("AUTH", words, "WRONGPASS invalid username-password pair or user is disabled.", old)
    });
    assert!(
        wrong.starts_with("misconfigured: Redis refused AUTH: the user or the password"),
        "{wrong}"
    );
    let wrong = refused(auto(login(None)), |words| at("AUTH", words, "ERR invalid password", old));
    assert!(wrong.contains("the password is wrong"), "{wrong}");
    let wrong = refused(auto(login(None)), |words| {
        at(
            "HELLO",
            words,
            "ERR AUTH <password> called without any password configured for the default user. Are \
             you sure?",
            sound,
        )
    });
    assert!(wrong.contains("the server has none for the default user"), "{wrong}");
    // It wants a login, which is found out before a script is sent.
    let noauth: Answers = |words| match words[0].as_str() {
        "HELLO" => "-NOAUTH HELLO must be called with the client already authenticated, otherwise \
                    the HELLO <proto> AUTH <user> <pass> option can be used\r\n"
            .to_owned(),
        _ => "-NOAUTH Authentication required.\r\n".to_owned(),
    };
    for protocol in [Protocol::Auto, Protocol::Resp2] {
        let wrong = refused(Greeting::new(requests(0), protocol, None), noauth);
        assert!(wrong.contains("the server wants a password"), "{protocol:?}: {wrong}");
    }
    let wrong = refused(auto(None), |words| {
        at("HELLO", words, "DENIED Redis is running in protected mode", old)
    });
    assert!(wrong.contains("local connections only"), "{wrong}");
    let wrong =
        refused(auto(None), |words| at("HELLO", words, "ERR max number of clients reached", old));
    assert_eq!(wrong, "later: HELLO: ERR max number of clients reached");
    let wrong = refused(Greeting::new(requests(99), Protocol::Auto, None), |words| {
        at("SELECT", words, "ERR DB index is out of range", sound)
    });
    assert!(wrong.contains("the database number does not exist"), "{wrong}");
    let scripts: [(Answers, &str); 4] = [
        (|words| at("SCRIPT", words, "LOADING it is", sound), "later: SCRIPT LOAD: LOADING it is"),
        (|words| at("SCRIPT", words, "READONLY no", sound), "later: SCRIPT LOAD: READONLY no"),
        (|words| at("SCRIPT", words, "NOPERM no", sound), "docs/redis.md lists the smallest ACL"),
        (
            |words| at("SCRIPT", words, "ERR unknown command 'SCRIPT'", sound),
            "does not know a command that locks need; Sentinels are named as redis+sentinel://",
        ),
    ];
    for (answers, part) in scripts {
        let wrong = refused(auto(None), answers);
        assert!(wrong.contains(part), "{wrong}");
    }
}

#[test]
fn whoever_may_not_subscribe_polls_and_whoever_may_not_yet_waits() {
    let denied: Answers = |words| match words[0].as_str() {
        "SUBSCRIBE" => "-NOPERM this user has no s3cret-word\r\n".to_owned(),
        _ => sound(words),
    };
    let (_, main) = greeted(auto(login(None)), denied);
    assert_eq!(main.inbox, Inbox::Polling);
    assert_eq!(main.denied.unwrap(), "NOPERM this user has no ***");
    assert_eq!(main.now, 1_700_000_000_000_123);
    let (_, apart) = greeted(Greeting::new(pushes(), Protocol::Resp2, None), denied);
    assert_eq!(apart.inbox, Inbox::Polling);
    let later = refused(auto(None), |words| match words[0].as_str() {
        "SUBSCRIBE" => "-LOADING it is\r\n".to_owned(),
        _ => sound(words),
    });
    assert_eq!(later, "later: SUBSCRIBE: LOADING it is");
}

#[test]
fn a_user_who_may_not_set_its_name_goes_without() {
    let (_, main) = greeted(auto(None), |words| match words[0].as_str() {
        "CLIENT" => "-NOPERM no\r\n".to_owned(),
        _ => sound(words),
    });
    assert_eq!(main.inbox, Inbox::Subscribed);
}

#[test]
fn what_is_pushed_between_and_after_the_answers_is_kept() {
    let (_, main) = greeted(auto(None), |words| match words[0].as_str() {
        "SUBSCRIBE" => format!(">1\r\n$5\r\nearly\r\n{}>1\r\n$4\r\nthen\r\n", sound(words)),
        "TIME" => format!("{}>1\r\n$5\r\nafter\r\n>1\r\n$", sound(words)),
        _ => sound(words),
    });
    assert_eq!(main.inbox, Inbox::Subscribed, "a push of another kind is no answer");
    let push = |text: &str| vec![Value::Bytes(text.as_bytes().to_vec())];
    assert_eq!(main.early, [push("early"), push("then")]);
    let mut rest = main.incoming;
    assert!(matches!(rest.frame(), Ok(Some(frame)) if format!("{frame:?}").contains("Push")));
    assert_eq!(rest.frame(), Ok(None));
}

#[test]
fn answers_that_are_none_are_told_as_such() {
    let garbage = refused(auto(None), |_| "HTTP/1.1 400 Bad Request\r\n".to_owned());
    assert!(garbage.starts_with("misconfigured: ") && garbage.contains("is this a Redis server?"));
    let changed = refused(auto(None), |words| match words[0].as_str() {
        "SCRIPT" => "$2\r\nno\r\n".to_owned(),
        _ => sound(words),
    });
    assert!(changed.contains("the server changed the script 'acquire'"), "{changed}");
    let times: [(Answers, &str); 4] = [
        (|_| "*2\r\n$1\r\nx\r\n$1\r\n1\r\n".to_owned(), "no time"),
        (|_| "+OK\r\n".to_owned(), "no time"),
        (|_| "*2\r\n$20\r\n18446744073709551615\r\n$1\r\n1\r\n".to_owned(), "no time"),
        (|_| "*2\r\n$10\r\n9007199254\r\n$6\r\n740992\r\n".to_owned(), "clock"),
    ];
    for (time, part) in times {
        let mut greeting = auto(None);
        let mut reads = Reads::default();
        let end = loop {
            let mut answer = String::new();
            for words in reads.commands(&greeting.take()) {
                answer += &if words[0] == "TIME" { time(&words) } else { sound(&words) };
            }
            match greeting.receive(answer.as_bytes()) {
                Ok(None) => {}
                end => break end,
            }
        };
        let Err(NoSession::Misconfigured(error)) = end else { panic!("{end:?}") };
        assert!(error.message().contains(part), "{error}");
    }
}

#[test]
fn whatever_a_server_repeats_no_text_shows_the_password() {
    let says: [Answers; 3] = [
        |words| format!("-ERR unknown command, with args: {words:?}\r\n"),
        |words| format!("-NOAUTH Authentication required, not {words:?}\r\n"),
        |words| format!("-WRONGPASS {}\r\n", words.join("' '").to_uppercase()),
    ];
    for answers in says {
        for protocol in [Protocol::Auto, Protocol::Resp2] {
            for user in [None, Some("ann")] {
                let said = refused(Greeting::new(requests(0), protocol, login(user)), answers);
                assert!(!said.to_lowercase().contains("s3cret"), "{said}");
            }
        }
    }
}

fn charter(nodes: &[&str], max_lease: u64) -> Charter {
    let nodes: Vec<Node> = nodes.iter().filter_map(|node| Node::parse(node, 6379)).collect();
    Charter::new(&nodes, Duration::from_secs(max_lease), "fl:")
}

fn of_a_quorum() -> Greeting {
    let client = ClientId::new(7, "a b").unwrap();
    let charter = Some(charter(&["b", "a", "c"], 60));
    let channel = b"fl:inbox:7".to_vec();
    let purpose =
        Purpose::Requests { client, channel, db: 0, master: false, cluster: false, charter };
    Greeting::new(purpose, Protocol::Auto, None)
}

/// A server that remembers since the second before it is asked; its marker is of the list that asks, unless
/// another is written here.
fn member(words: &[String], list: Option<&str>) -> String {
    match words[0].as_str() {
        "INFO" => "$32\r\n# Server\r\nrun_id:0123abcd\r\nx:1\r\n\r\n".to_owned(),
        "EVALSHA" => {
            let list = list.unwrap_or(&words[5]);
            format!("*3\r\n:1700000001000000\r\n$16\r\n{list}\r\n$16\r\n1700000000000000\r\n")
        }
        _ => sound(words),
    }
}

#[test]
fn all_clients_of_a_quorum_must_agree_on_its_servers_and_its_longest_lease() {
    let agreed = charter(&["a", "b:6379", "c"], 60);
    assert_eq!(charter(&["c:6379", "a", "b"], 60), agreed);
    assert_eq!(agreed.marker(), b"fl:quorum");
    for (nodes, max_lease) in [
        (&["a", "b", "c"][..], 61),
        (&["a", "b", "d"], 60),
        (&["a", "b", "c:1"], 60),
        (&["a", "b", "c", "d", "e"], 60),
    ] {
        assert_ne!(charter(nodes, max_lease).fingerprint(), agreed.fingerprint());
    }
}

#[test]
fn a_server_of_a_quorum_says_since_when_it_remembers_and_requests_name_that() {
    let (said, greeted) = greeted(of_a_quorum(), |words| member(words, None));
    let last = &said[2];
    let birth = all_scripts().find(|script| script.name == "birth").unwrap();
    let agreed = charter(&["a", "b", "c"], 60);
    let asked = format!("EVALSHA {} 1 fl:quorum 0123abcd {}", birth.sha, agreed.fingerprint());
    assert_eq!(last, &[asked]);
    assert!(said[1].contains(&"INFO server".to_owned()), "{said:?}");
    let born = greeted.birth.clone().unwrap();
    assert_eq!((born.run.as_str(), born.at), ("0123abcd", 1_700_000_000_000_000));
    assert_eq!(born.votes_from, born.at + 60_000_000);
    assert_eq!(greeted.now, 1_700_000_001_000_000);

    let lock = Name::new("job").unwrap();
    let lease = Duration::from_secs(9);
    let acquire = Op::Acquire(Acquire::new(lock.clone(), HoldId(1), lease, 5));
    let beat = Op::Beat(vec![Beat::new(lock, HoldId(1), lease)]);
    let mut codec = Codec::new(ClientId::new(7, "a b").unwrap(), "fl:").unwrap();
    for (op, votes_from) in [(acquire, "1700000060000000"), (beat, "0")] {
        codec.set_birth(None);
        let Command::Script { script: alone, keys, args } = codec.encode(&op) else { panic!() };
        codec.set_birth(greeted.birth.clone());
        let Command::Script { script, keys: more, args: further } = codec.encode(&op) else {
            panic!()
        };
        assert_eq!(script.name, alone.name);
        assert_ne!(script.sha, alone.sha);
        let marker = [b"fl:quorum".as_slice()];
        assert!(more.iter().eq(keys.iter().chain(marker)));
        let server = ["0123abcd", "1700000000000000", votes_from].map(str::as_bytes);
        assert!(further.iter().eq(args.iter().chain(server)));
    }
}

#[test]
fn a_server_of_another_quorum_or_without_a_run_is_of_no_use() {
    let other = refused(of_a_quorum(), |words| member(words, Some("00112233445566ff")));
    assert!(other.starts_with("misconfigured: "), "{other}");
    for part in ["00112233445566ff", "max_lease", "fencelock quorum init"] {
        assert!(other.contains(part), "{part}: {other}");
    }
    let mute = refused(of_a_quorum(), |words| match words[0].as_str() {
        "INFO" => "$-1\r\n".to_owned(),
        _ => member(words, None),
    });
    assert!(mute.starts_with("misconfigured: INFO tells no run_id"), "{mute}");
    let denied = refused(of_a_quorum(), |words| match words[0].as_str() {
        "INFO" => "-NOPERM this user has no permissions to run the 'info' command\r\n".to_owned(),
        _ => member(words, None),
    });
    assert!(denied.starts_with("misconfigured: Redis refused INFO"), "{denied}");
}
