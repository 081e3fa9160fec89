//! Names are chosen by whoever uses the locks: in a log they neither end a line nor move a cursor.

use std::sync::{Arc, Mutex};

use fencelock::blocking::Client;
use tracing::field::{Field, Visit};
use tracing::span;

#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<String>>>);

impl Visit for Logged {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.lock().unwrap().push(format!("{field}={value:?}"));
    }
}

impl tracing::Subscriber for Logged {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("fencelock")
    }
    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        span.record(&mut self.clone());
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

#[test]
fn names_are_escaped_in_the_log() {
    let logged = Logged::default();
    tracing::subscriber::set_global_default(logged.clone()).unwrap();
    let client = Client::connect("memory:untrusted").unwrap();
    let name = "a\u{1b}[31m\nlevel=ERROR \u{202e}b";
    let guard = client.lock(name).unwrap().acquire().unwrap();
    client.break_lock(name, guard.token().get()).unwrap();
    client.close();
    let logged = logged.0.lock().unwrap();
    assert!(logged.iter().any(|line| line.contains("level=ERROR")), "{logged:?}");
    for line in logged.iter() {
        assert!(!line.contains(['\u{1b}', '\n', '\u{202e}']), "{line:?}");
    }
}
