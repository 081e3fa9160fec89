//! The model of ZooKeeper and a real, standalone server do the same: the same random operations of
//! several sessions, and every answer, stat, sequence, transaction number and watch compared.

mod deed;
mod model;
mod real;
mod wire;

use std::io::Write as _;

use deed::{Deed, Dice};
use model::Model;
use real::Real;

/// How many sessions act by turns.
const SESSIONS: usize = 3;
/// How many operations are compared.
const STEPS: u64 = 20_000;

/// A server with its sessions, as the comparison sees it: everything as text.
trait Server {
    /// Opens a session, or the same one anew by another connection.
    fn connect(&mut self, session: usize, again: bool) -> String;
    /// Does something; gives the answer.
    fn act(&mut self, session: usize, deed: &Deed) -> String;
    /// The watches that fired for a session since the last look.
    fn fired(&mut self, session: usize) -> Vec<String>;
}

/// Says that the test cannot run here: the runner counts it as skipped.
fn left_out(why: &str) {
    let line = format!("the_model_does_what_the_server_does: {why}\n");
    eprint!("left out: {line}");
    if let Some(file) = std::env::var_os("FENCELOCK_SKIPPED") {
        let file = std::fs::File::options().append(true).create(true).open(file);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("a file for what is skipped");
    }
}

#[test]
fn the_model_does_what_the_server_does() {
    let Some(real) = Real::start() else {
        left_out("Java or the jars of Debian's zookeeper package are missing");
        return;
    };
    let mut servers: [Box<dyn Server>; 2] = [Box::new(real), Box::new(Model::default())];
    let mut dice = Dice::new(11);
    let mut done = Vec::new();
    for session in 0..SESSIONS {
        for server in &mut servers {
            server.connect(session, false);
        }
    }
    for step in 0..STEPS {
        let session = dice.below(SESSIONS as u64) as usize;
        let said: Vec<String> = if dice.below(300) == 0 {
            let again = dice.below(2) == 0;
            done.push(format!("{step}: {session} connects, the same session: {again}"));
            servers.iter_mut().map(|server| server.connect(session, again)).collect()
        } else {
            let deed = Deed::draw(&mut dice);
            done.push(format!("{step}: {session} {deed:?}"));
            servers.iter_mut().map(|server| server.act(session, &deed)).collect()
        };
        let tail = || done[done.len().saturating_sub(12)..].join("\n");
        assert_eq!(said[0], said[1], "the server, and the model, after\n{}", tail());
        for watcher in 0..SESSIONS {
            let fired: Vec<_> = servers.iter_mut().map(|server| server.fired(watcher)).collect();
            assert_eq!(fired[0], fired[1], "fired for {watcher}, after\n{}", tail());
        }
    }
    println!("{STEPS} operations compared, no difference");
}
