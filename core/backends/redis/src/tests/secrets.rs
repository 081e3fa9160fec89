//! A server, or a proxy before it, that says back whatever it is told: no password comes through.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock_engine::ClientId;
use fencelock_engine::event::Event;
use fencelock_engine::transport::Sink;
use tracing::field::{Field, Visit};
use tracing::span;

use crate::{Options, Protocol, open};

/// Nothing of it stands in any of our texts.
const PASSWORD: &str = "qX7!vZ9%Kj2@wY5 é4";

type Answer = fn(&[String]) -> String;

/// What it says to a command, in every form that errors, and more than errors, have.
const ANSWERS: [Answer; 8] = [
    |words| format!("-ERR unknown command '{}', with args beginning with: {words:?}\r\n", words[0]),
    |words| {
        let args = words.join(" ");
        format!("-ERR unknown command, args: {}\r\n", args.chars().take(20).collect::<String>())
    },
    |words| format!("-NOAUTH Authentication required, not {words:?}\r\n"),
    |words| format!("-WRONGPASS {}\r\n", words.join("' '")),
    |words| format!("-{}\r\n", words.concat().to_uppercase()),
    |words| format!("+{}\r\n", words.join(" ")),
    |words| {
        let text = words.join(" ");
        format!("${}\r\n{text}\r\n", text.len())
    },
    |words| format!("-MISCONF redis://u:{}@h\r\n", percent(&words.join(" "))),
];

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Reads commands, and answers each of them so.
fn serve(answer: Answer) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            while let Some(words) = command(&mut lines) {
                if stream.write_all(answer(&words).as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    port
}

fn command(lines: &mut impl BufRead) -> Option<Vec<String>> {
    let mut number = |lead: char| {
        let mut line = String::new();
        lines.read_line(&mut line).ok()?;
        line.trim_end().strip_prefix(lead)?.parse::<usize>().ok()
    };
    let count = number('*')?;
    let mut words = Vec::new();
    for _ in 0..count {
        let mut line = String::new();
        lines.read_line(&mut line).ok()?;
        let length: usize = line.trim_end().strip_prefix('$')?.parse().ok()?;
        let mut word = vec![0; length + 2];
        lines.read_exact(&mut word).ok()?;
        words.push(String::from_utf8_lossy(&word[..length]).into_owned());
    }
    Some(words)
}

/// Keeps all that is delivered and logged.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Sink for Heard {
    fn deliver(&self, event: Event) {
        self.0.lock().unwrap().push(format!("{event:?}"));
    }
}

impl Visit for Heard {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.lock().unwrap().push(format!("{field}={value:?}"));
    }
}

impl tracing::Subscriber for Heard {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("fencelock")
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// Six characters of the password, one after the other, however they are written.
fn shows(text: &str) -> bool {
    let forms = [PASSWORD.to_owned(), percent(PASSWORD), format!("{PASSWORD:?}")];
    let text = text.to_lowercase();
    forms.iter().any(|form| {
        let letters: Vec<char> = form.to_lowercase().chars().collect();
        letters.windows(6).any(|run| text.contains(&run.iter().collect::<String>()))
    })
}

#[test]
fn what_a_server_says_back_is_not_shown() {
    let heard = Heard::default();
    let _logs = tracing::subscriber::set_default(heard.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for answer in ANSWERS {
        for protocol in [Protocol::Auto, Protocol::Resp2] {
            for user in ["", "app"] {
                let login = format!("{user}:{}", percent(PASSWORD));
                let url = format!("redis://{login}@127.0.0.1:{}", serve(answer));
                let mut options = Options::from_url(&url).unwrap();
                options.protocol = protocol;
                options.connect_timeout = Duration::from_millis(300);
                assert!(!shows(&format!("{options:?}")));
                heard.0.lock().unwrap().clear();
                let client = ClientId::new(7, "test").unwrap();
                let sink = Arc::new(heard.clone());
                let transport = open(options.clone(), client, sink, runtime.handle());
                // The answer, or that none was understood in time.
                runtime.block_on(async {
                    for _ in 0..3_000 {
                        let said =
                            heard.0.lock().unwrap().iter().any(|it| {
                                it.starts_with("Down") || it.starts_with("Misconfigured")
                            });
                        if said {
                            return;
                        }
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                    panic!("no word of {url}");
                });
                drop(transport);
                let surveyed = runtime.block_on(crate::survey(options));
                heard.0.lock().unwrap().push(format!("{surveyed:?}"));
                for text in heard.0.lock().unwrap().iter() {
                    assert!(!shows(text), "{text}");
                }
            }
        }
    }
}
