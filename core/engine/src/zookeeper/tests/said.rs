//! What a machine says in a test, word for word, beside what it said last time: the folder `said` has it.
//! `TRANSCRIPTS=write` writes it anew, and the difference is looked at.

use std::cell::Cell;
use std::fmt::Write as _;
use std::path::PathBuf;

use crate::event::Event;
use crate::time::Time;
use crate::zookeeper::Output;

thread_local! {
    /// How many conversations this test has begun.
    static BEGUN: Cell<u32> = const { Cell::new(0) };
}

/// So many bytes of a conversation are looked at.
const MOST: usize = 8_192;

/// And of a line, which may name thousands of nodes.
const WIDEST: usize = 800;

/// Fields that say nothing.
const NOTHING: [&str; 17] = [
    ", read_write: false",
    "mode: Exclusive, ",
    ", mode: Exclusive",
    ", apart: false",
    "lock: \"shop/cart\", ",
    ", mzxid: 0",
    ", pzxid: 0",
    ", version: 0",
    ", num_children: 0",
    "token: 0, end: 0, last: 0, lease: 0ns, ",
    "last: 0, ",
    "losses: 0, ",
    "expires_in: None, ",
    "ahead: 0, ",
    ", floor: 0",
    ", attach: None, after: None",
    ", publish_failed: false",
];

/// One conversation.
pub struct Said {
    text: String,
    file: String,
    wake: Option<Time>,
}

impl Said {
    #[allow(clippy::disallowed_methods, reason = "the file is named after the test")]
    pub fn new() -> Said {
        let number = BEGUN.replace(BEGUN.get() + 1);
        let thread = std::thread::current();
        let test = thread.name().unwrap_or_default().rsplit("tests::").next().unwrap_or_default();
        let file = format!("{}.{number}.txt", test.replace("::", "."));
        Said { text: String::new(), file, wake: None }
    }

    /// Of many conversations: each is added.
    pub fn named(file: &str) -> Said {
        Said { text: String::new(), file: file.to_owned(), wake: None }
    }

    /// What was said up to now, which is not looked at here.
    pub fn take(&mut self) -> String {
        self.file.clear();
        std::mem::take(&mut self.text)
    }

    pub fn add(&mut self, title: &str, said: &str) {
        let _ = writeln!(self.text, "{title}");
        // What is heard is known from the title.
        for line in said.lines().filter(|line| line.starts_with(' ')) {
            let _ = writeln!(self.text, "{line}");
        }
    }

    fn line(&mut self, line: &str) {
        if self.text.len() < MOST {
            self.text.extend(line.chars().take(WIDEST));
            self.text.push('\n');
        }
    }

    pub fn input(&mut self, now: Time, what: &str) {
        self.line(&format!("{now:?} {}", brief(what)));
    }

    pub fn output(&mut self, output: &Output) {
        match output {
            Output::Calls(calls) => {
                for call in calls {
                    self.line(&format!("    {} {}", call.id.0, brief(&format!("{:?}", call.op))));
                }
            }
            Output::Event(Event::Reply { request, result }) => {
                let result = brief(&format!("{result:?}"));
                self.line(&format!("    to {}: {result}", request.0));
            }
            other => {
                self.line(&format!("    {}", brief(&format!("{other:?}"))));
            }
        }
    }

    pub fn wake(&mut self, wake: Option<Time>) {
        if wake != self.wake {
            self.wake = wake;
            self.line(&format!("    wake at {wake:?}"));
        }
    }
}

/// Bytes as text, and less of what is the same everywhere.
fn brief(debug: &str) -> String {
    let (mut out, mut rest) = (String::new(), debug);
    while let Some(at) = rest.find("data: [") {
        let (head, tail) = rest.split_at(at + "data: [".len());
        let (bytes, after) = tail.split_once(']').unwrap_or((tail, ""));
        let bytes: Vec<u8> = bytes.split(", ").filter_map(|byte| byte.parse().ok()).collect();
        out += head.trim_end_matches('[');
        let _ = write!(out, "{:?}", String::from_utf8_lossy(&bytes));
        rest = after;
    }
    out += rest;
    NOTHING.iter().fold(out, |text, nothing| text.replace(nothing, ""))
}

impl Drop for Said {
    #[allow(clippy::disallowed_methods, reason = "who runs the test asks for new texts")]
    fn drop(&mut self) {
        if std::thread::panicking() || self.file.is_empty() {
            return;
        }
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/zookeeper/tests/said");
        let path = folder.join(&self.file);
        if std::env::var("TRANSCRIPTS").is_ok_and(|it| it == "write") {
            std::fs::write(&path, &self.text).unwrap();
            return;
        }
        let wanted = std::fs::read_to_string(&path)
            .unwrap_or_else(|_| panic!("{}: TRANSCRIPTS=write makes it", self.file));
        for (number, (said, wanted)) in self.text.lines().zip(wanted.lines()).enumerate() {
            assert_eq!(said, wanted, "{}, line {}", self.file, number + 1);
        }
        assert_eq!(self.text.lines().count(), wanted.lines().count(), "{}", self.file);
    }
}
