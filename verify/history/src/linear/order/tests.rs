//! The search agrees with stateright's tester, which remembers nothing, on histories that are small
//! enough for it; and it comes to an end on one that is not.

use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};

use super::{Answer, Call, Operation};
use crate::check::Mode;
use crate::linear::Tries;

fn exists(calls: &[Call]) -> bool {
    super::exists(calls, Tries::AtOnce)
}

/// A lock that is tried, and never expires.
#[derive(Clone, Debug, Default)]
struct TryLock {
    held: Vec<(usize, Mode)>,
    /// How many permits there are, while some are out.
    of: u64,
}

impl SequentialSpec for TryLock {
    type Op = (Operation, Mode);
    type Ret = Answer;

    fn invoke(&mut self, &(operation, mode): &(Operation, Mode)) -> Answer {
        match operation {
            Operation::Try(_) if self.says_another(mode) => Answer::OtherNumber,
            Operation::Try(hold) if self.lets_in(mode) => {
                if let (true, Mode::Permits { of, .. }) = (self.held.is_empty(), mode) {
                    self.of = of;
                }
                self.held.push((hold, mode));
                Answer::Granted
            }
            Operation::Try(_) => Answer::Contended,
            Operation::Resize(of) => {
                let used = !self.held.is_empty();
                self.of = if used { of } else { 0 };
                Answer::Resized { used }
            }
            Operation::Convert(hold) => self.converts(hold, mode),
            Operation::Release(hold) => {
                self.held.retain(|it| it.0 != hold);
                Answer::Released
            }
        }
    }
}

impl TryLock {
    fn converts(&mut self, hold: usize, mode: Mode) -> Answer {
        let alone = self.held.iter().all(|it| it.0 == hold);
        match self.held.iter_mut().find(|it| it.0 == hold) {
            Some(it) if alone || mode == Mode::Shared => {
                it.1 = mode;
                Answer::Converted
            }
            _ => Answer::Contended,
        }
    }

    fn lets_in(&self, mode: Mode) -> bool {
        match mode {
            Mode::Exclusive => self.held.is_empty(),
            Mode::Shared => self.held.iter().all(|it| it.1 == Mode::Shared),
            Mode::Permits { count, of } => {
                let of = if self.held.is_empty() { of } else { self.of };
                self.held.iter().map(|it| it.1.count()).sum::<u64>() + count <= of
            }
        }
    }

    fn says_another(&self, mode: Mode) -> bool {
        let Mode::Permits { of, .. } = mode else { return false };
        !self.held.is_empty() && of != self.of
    }
}

/// Numbers that look random (xorshift).
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}

/// A history of a few threads whose answers are drawn too, so that about half of them are right.
fn drawn(draw: &mut Draw, kind: usize) -> (Vec<Call>, bool) {
    let mut tester = LinearizabilityTester::new(TryLock::default());
    let mut calls: Vec<Call> = Vec::new();
    let mut holders: Vec<(usize, Mode)> = Vec::new();
    let mut running = [None::<usize>; 3];
    for at in 0..14 {
        let thread = draw.below(running.len());
        if let Some(index) = running[thread].take() {
            let answer = match calls[index].operation {
                Operation::Release(_) => Answer::Released,
                Operation::Resize(_) => Answer::Resized { used: draw.below(6) > 0 },
                Operation::Try(_) if kind == 4 && draw.below(6) == 0 => Answer::OtherNumber,
                Operation::Try(_) | Operation::Convert(_) if draw.below(2) == 0 => {
                    Answer::Contended
                }
                Operation::Try(_) => Answer::Granted,
                Operation::Convert(_) => Answer::Converted,
            };
            tester.on_return(thread, answer).unwrap();
            calls[index].answer = Some((at, answer));
            if let (Operation::Try(hold), Answer::Granted) = (calls[index].operation, answer) {
                holders.push((hold, calls[index].mode));
            }
            if let Operation::Convert(hold) = calls[index].operation {
                holders.push((hold, calls[index].mode));
            }
        } else {
            let (operation, mode) = match holders.pop() {
                Some((hold, Mode::Shared)) if kind == 3 && draw.below(2) > 0 => {
                    (Operation::Convert(hold), Mode::Exclusive)
                }
                Some((hold, Mode::Exclusive)) if kind == 3 && draw.below(2) > 0 => {
                    (Operation::Convert(hold), Mode::Shared)
                }
                Some(it) if kind == 4 && draw.below(3) == 0 => {
                    holders.push(it);
                    (Operation::Resize(2 + draw.below(2) as u64), Mode::Exclusive)
                }
                Some((hold, mode)) if draw.below(3) > 0 => (Operation::Release(hold), mode),
                _ => (Operation::Try(calls.len()), one_of(draw, kind)),
            };
            tester.on_invoke(thread, (operation, mode)).unwrap();
            running[thread] = Some(calls.len());
            calls.push(Call { operation, mode, adopts: false, from: at, answer: None });
        }
    }
    (calls, tester.is_consistent())
}

/// Of a lock for one, of a read-write lock, of a semaphore, of a read-write lock with conversions, of a
/// semaphore whose number changes.
fn one_of(draw: &mut Draw, kind: usize) -> Mode {
    match kind {
        1 | 3 if draw.below(3) > 0 => Mode::Shared,
        2 => Mode::Permits { count: 1 + draw.below(2) as u64, of: 3 },
        4 => {
            let of = 2 + draw.below(2) as u64;
            Mode::Permits { count: 1 + draw.below(2) as u64, of }
        }
        _ => Mode::Exclusive,
    }
}

#[test]
fn it_agrees_with_a_search_that_remembers_nothing() {
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    for kind in 0..5 {
        let mut right = 0;
        for _ in 0..20_000 {
            let (calls, consistent) = drawn(&mut draw, kind);
            assert_eq!(exists(&calls), consistent, "{calls:?}");
            // What happens at once could have happened in line.
            assert!(!consistent || super::exists(&calls, Tries::InLine), "{calls:?}");
            right += usize::from(consistent);
        }
        // Neither side of the comparison is empty.
        assert!((1_000..18_000).contains(&right), "{kind}: {right}");
    }
}

/// Forty callers at once, of whom one after the other gets the lock, and at last one too many.
#[test]
fn a_crowd_is_judged_too() {
    let crowd = 40;
    let mut calls = Vec::new();
    for turn in 0..10 {
        let at = turn * 10;
        calls.extend((0..crowd).map(|caller| Call {
            operation: Operation::Try(turn * crowd + caller),
            mode: Mode::Exclusive,
            adopts: false,
            from: at,
            answer: Some((at + 5, Answer::Contended)),
        }));
        let hold = 1000 + turn;
        let granted = Some((at + 6, Answer::Granted));
        let released = Some((at + 8, Answer::Released));
        let mode = Mode::Exclusive;
        let (tries, releases) = (Operation::Try(hold), Operation::Release(hold));
        calls.push(Call { operation: tries, mode, adopts: false, from: at, answer: granted });
        let from = at + 7;
        calls.push(Call { operation: releases, mode, adopts: false, from, answer: released });
    }
    assert!(exists(&calls));
    let refused = Some((100, Answer::Contended));
    let (operation, mode) = (Operation::Try(2000), Mode::Exclusive);
    calls.push(Call { operation, mode, adopts: false, from: 99, answer: refused });
    assert!(!exists(&calls));
}
