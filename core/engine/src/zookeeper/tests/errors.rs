//! Each request, with each of its calls answered by each error in turn, and what becomes of it.

use super::*;
use crate::request::Break;

const ERRORS: [fn() -> ZkError; 9] = [
    || ZkError::NoNode,
    || ZkError::NodeExists,
    || ZkError::NotEmpty,
    || ZkError::NoAuth,
    || ZkError::ConnectionLoss,
    || ZkError::NotSent,
    || ZkError::At(0, Box::new(ZkError::NoAuth)),
    || ZkError::At(1, Box::new(ZkError::NoNode)),
    || ZkError::Other("no".to_owned()),
];
const ALL: [&str; 9] =
    ["wait", "try", "beat", "release", "release and wait", "inspect", "break", "revoke", "list"];
/// Calls that are answered at the most.
const CALLS: usize = 12;

/// What ZooKeeper says when nothing is wrong: a stranger is before whoever asks, or nobody is.
fn usual(op: &ZkOp, alone: bool) -> Result {
    let stat = |own: bool| Stat {
        czxid: 100,
        ephemeral_owner: if own { SESSION } else { SESSION + 1 },
        num_children: 2,
        ..Stat::default()
    };
    match op {
        ZkOp::Create { path, .. } if path.ends_with('-') => {
            Ok(ZkReply::Created { path: format!("{path}0000000005"), stat: stat(true) })
        }
        ZkOp::Create { .. } if !alone => Err(ZkError::NodeExists),
        ZkOp::Create { path, .. } => Ok(ZkReply::Created { path: path.clone(), stat: stat(true) }),
        ZkOp::Children { path, .. } if path == LOCK => {
            let before = (!alone).then(|| node(9, 4));
            let names = before.into_iter().chain([node(1, 5)]).collect();
            Ok(ZkReply::Children { names, stat: stat(false) })
        }
        ZkOp::Children { .. } => Ok(ZkReply::Children { names: Vec::new(), stat: stat(true) }),
        ZkOp::GetData { path, .. } if path == LOCK => {
            let data = b"fencelock 1 released 4 1".to_vec();
            Ok(ZkReply::Data { data, stat: stat(alone) })
        }
        ZkOp::GetData { .. } => {
            let data = b"fencelock 1 6000 00 other".to_vec();
            Ok(ZkReply::Data { data, stat: stat(alone) })
        }
        ZkOp::Exists { path, .. } => {
            Ok(ZkReply::Exists(Some(stat(path.contains(&hold(1).to_string()) || alone))))
        }
        _ => done(),
    }
}

impl Talk {
    /// Answers calls as usual, but the one at this place with the error.
    fn run(&mut self, alone: bool, wrong: Option<(usize, ZkError)>) -> usize {
        let mut answered = 0;
        while answered < CALLS && !self.calls.is_empty() {
            let Call { id, op } = self.calls.remove(0);
            let result = match &wrong {
                Some((at, error)) if *at == answered => Err(error.clone()),
                _ => usual(&op, alone),
            };
            answered += 1;
            self.hear(Input::Result { call: id, result });
        }
        answered
    }
}

fn asked(talk: &mut Talk, what: &str) {
    match what {
        "wait" => talk.acquire(1, true),
        "try" => talk.acquire(1, false),
        "beat" => talk.beat(1),
        "release" => talk.release(1, true, false),
        "release and wait" => talk.release_and_wait(1, 2),
        "inspect" => talk.ask(Op::Inspect(name())),
        "break" => {
            let (lock, token, hold) = (name(), u64::MAX, Some(hold(1)));
            talk.ask(Op::Break(Break { lock, token, hold }))
        }
        "revoke" => talk.ask(Op::Revoke(name())),
        _ => talk.ask(Op::List { prefix: "s".to_owned(), limit: 9 }),
    };
}

fn sweep(recipe: Recipe, alone: bool, file: &str) {
    let mut all = said::Said::named(file);
    for what in ALL {
        let begin = || {
            let mut talk = Talk::with(recipe);
            if ["beat", "release", "release and wait"].contains(&what) {
                talk.acquire(1, true);
                talk.run(alone, None);
                talk.pass(Duration::from_millis(20));
                talk.run(alone, None);
            }
            talk.said.take();
            asked(&mut talk, what);
            talk
        };
        let mut talk = begin();
        let calls = talk.run(alone, None);
        all.add(&format!("{what}, as usual"), &talk.said.take());
        for at in 0..calls {
            for error in ERRORS {
                let mut talk = begin();
                talk.said.take();
                talk.run(alone, Some((at, error())));
                all.add(&format!("{what}, call {at}: {:?}", error()), &talk.said.take());
            }
        }
    }
}

#[test]
fn whoever_is_first_meets_any_error() {
    sweep(Recipe::Queue, true, "errors.queue.alone.txt");
}

#[test]
fn whoever_is_behind_another_meets_any_error() {
    sweep(Recipe::Queue, false, "errors.queue.behind.txt");
}

#[test]
fn whoever_has_the_one_node_meets_any_error() {
    sweep(Recipe::Simple, true, "errors.simple.alone.txt");
}

#[test]
fn whoever_watches_the_one_node_meets_any_error() {
    sweep(Recipe::Simple, false, "errors.simple.behind.txt");
}
