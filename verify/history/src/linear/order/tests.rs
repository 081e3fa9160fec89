//! The search agrees with stateright's tester, which remembers nothing, on histories that are small
//! enough for it; and it comes to an end on one that is not.

use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};

use super::{Answer, Call, Operation, exists};

/// A lock that is tried, and never expires.
#[derive(Clone, Debug, Default)]
struct TryLock(Option<usize>);

impl SequentialSpec for TryLock {
    type Op = Operation;
    type Ret = Answer;

    fn invoke(&mut self, operation: &Operation) -> Answer {
        match *operation {
            Operation::Try(hold) if self.0.is_none() => {
                self.0 = Some(hold);
                Answer::Granted
            }
            Operation::Try(_) => Answer::Contended,
            Operation::Release(hold) => {
                self.0 = self.0.filter(|it| *it != hold);
                Answer::Released
            }
        }
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
fn drawn(draw: &mut Draw) -> (Vec<Call>, bool) {
    let mut tester = LinearizabilityTester::new(TryLock::default());
    let mut calls: Vec<Call> = Vec::new();
    let mut holder = None;
    let mut running = [None::<usize>; 3];
    for at in 0..14 {
        let thread = draw.below(running.len());
        if let Some(index) = running[thread].take() {
            let answer = match calls[index].operation {
                Operation::Release(_) => Answer::Released,
                Operation::Try(_) if draw.below(2) == 0 => Answer::Contended,
                Operation::Try(_) => Answer::Granted,
            };
            tester.on_return(thread, answer).unwrap();
            calls[index].answer = Some((at, answer));
            if let (Operation::Try(hold), Answer::Granted) = (calls[index].operation, answer) {
                holder = Some(hold);
            }
        } else {
            let operation = match holder.take() {
                Some(hold) if draw.below(3) > 0 => Operation::Release(hold),
                _ => Operation::Try(calls.len()),
            };
            tester.on_invoke(thread, operation).unwrap();
            running[thread] = Some(calls.len());
            calls.push(Call { operation, from: at, answer: None });
        }
    }
    (calls, tester.is_consistent())
}

#[test]
fn it_agrees_with_a_search_that_remembers_nothing() {
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    let mut right = 0;
    for _ in 0..20_000 {
        let (calls, consistent) = drawn(&mut draw);
        assert_eq!(exists(&calls), consistent, "{calls:?}");
        right += usize::from(consistent);
    }
    // Neither side of the comparison is empty.
    assert!((2_000..18_000).contains(&right), "{right}");
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
            from: at,
            answer: Some((at + 5, Answer::Contended)),
        }));
        let hold = 1000 + turn;
        let granted = Some((at + 6, Answer::Granted));
        let released = Some((at + 8, Answer::Released));
        calls.push(Call { operation: Operation::Try(hold), from: at, answer: granted });
        calls.push(Call { operation: Operation::Release(hold), from: at + 7, answer: released });
    }
    assert!(exists(&calls));
    let refused = Some((100, Answer::Contended));
    calls.push(Call { operation: Operation::Try(2000), from: 99, answer: refused });
    assert!(!exists(&calls));
}
