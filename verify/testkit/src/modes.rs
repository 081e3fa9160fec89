//! Readers, writers and permits at a store, request by request: the same for every store.

use fencelock_engine::reply::{Broken, Failure, Push, RefusalKind, Released, Standing, State};
use fencelock_engine::request::{Break, Mode, Op};
use fencelock_engine::transport::Transport;
use fencelock_engine::{HoldId, Name};

use crate::recorder::{BOUND, Client, hold};

const READ: Mode = Mode::Shared;
const WRITE: Mode = Mode::Exclusive;

fn permits(count: u32, of: u32) -> Mode {
    Mode::Permits { count, of }
}

impl<T: Transport> Client<T> {
    /// Queues in a mode.
    fn ask_in(&self, lock: &Name, id: HoldId, mode: Mode) -> State {
        let ask = self.request(lock, id, true);
        self.acquire(fencelock_engine::request::Acquire { mode, ..ask })
    }

    fn try_in(&self, lock: &Name, mode: Mode) -> State {
        let ask = self.request(lock, hold(), false);
        self.acquire(fencelock_engine::request::Acquire { mode, ..ask })
    }

    /// A queued hold is granted: its token and the last one. A store that only says that something has
    /// changed is asked.
    fn let_in(&self, lock: &Name, id: HoldId) -> Option<(u64, u64)> {
        let told = |push: &Push| match push {
            Push::Granted { hold, .. } | Push::Changed { hold, .. } => *hold == id,
            _ => false,
        };
        match self.push(BOUND, told)? {
            Push::Granted { token, end, .. } => Some((token, end)),
            _ => {
                let state = self.beat(lock, id);
                (state.standing == Standing::Granted).then_some((state.token, state.end))
            }
        }
    }

    fn refusal(&self, lock: &Name, mode: Mode) -> (RefusalKind, String) {
        let ask = self.request(lock, hold(), false);
        let ask = fencelock_engine::request::Acquire { mode, ..ask };
        match self.ask(Op::Acquire(ask)) {
            Err(Failure::Refused(refusal)) => (refusal.kind, refusal.message),
            other => panic!("not refused: {other:?}"),
        }
    }
}

/// Readers hold together; a writer waits for all of them, and whoever comes behind it for the writer.
pub fn readers_and_a_writer<T: Transport>(open: impl Fn() -> Client<T>, lock: &Name) {
    let (one, two, three, four) = (open(), open(), open(), open());
    let [first, second, third, fourth] = [hold(), hold(), hold(), hold()];
    let reader = one.ask_in(lock, first, READ);
    let other = two.ask_in(lock, second, READ);
    assert_eq!([reader.standing, other.standing], [Standing::Granted; 2]);
    assert!(other.token > reader.token, "a number each");
    assert_eq!(three.ask_in(lock, third, WRITE).standing, Standing::Queued);
    let wanted = |push: &Push| matches!(push, Push::Wanted { hold, .. } if *hold == first);
    assert!(one.push(BOUND, wanted).is_some(), "a reader hears that a writer waits");
    assert_eq!(four.ask_in(lock, fourth, READ).standing, Standing::Queued, "not past the writer");
    assert_eq!(four.try_in(lock, READ).standing, Standing::Contended, "nor does a try");
    let info = one.inspect(lock).unwrap();
    assert_eq!(info.holds.iter().map(|hold| hold.mode).collect::<Vec<_>>(), [READ; 2]);
    assert_eq!(info.waiters.iter().map(|it| it.mode).collect::<Vec<_>>(), [WRITE, READ]);
    assert_eq!(one.beat(lock, first).standing, Standing::Granted);
    assert_eq!(one.release(lock, first), Released::Done);
    let over = [Standing::Released, Standing::Gone];
    assert!(over.contains(&one.beat(lock, first).standing));
    assert_eq!(two.release(lock, second), Released::Done);
    let (writer, end) = three.let_in(lock, third).expect("the writer is told");
    assert!(writer > other.token && end > writer, "above all readers before it, with a block");
    assert_eq!(three.beat(lock, third).token, writer);
    assert_eq!(three.release(lock, third), Released::Done);
    let (late, _) = four.let_in(lock, fourth).expect("the reader behind it is told");
    assert!(late > writer);
    assert_eq!(four.beat(lock, fourth).token, late);
    let named = Break { lock: lock.clone(), token: late, hold: Some(fourth) };
    match one.ask(Op::Break(named)).expect("the hold is broken").body {
        fencelock_engine::reply::Body::Break(broken) => assert_eq!(broken, Broken::Ended(1)),
        other => panic!("not the reply of a break: {other:?}"),
    }
    let broken = |push: &Push| matches!(push, Push::Broken { hold, .. } if *hold == fourth);
    assert!(four.push(BOUND, broken).is_some());
    // A store may have forgotten by now what nobody has.
    assert!(one.inspect(lock).is_none_or(|info| info.holds.is_empty()));
}

/// Permits are counted, come back once, and nobody passes a larger request.
pub fn permits_of_a_semaphore<T: Transport>(open: impl Fn() -> Client<T>, lock: &Name) {
    let (one, two, three) = (open(), open(), open());
    let [first, second, third, fourth] = [hold(), hold(), hold(), hold()];
    assert_eq!(one.ask_in(lock, first, permits(2, 3)).standing, Standing::Granted);
    assert_eq!(two.ask_in(lock, second, permits(1, 3)).standing, Standing::Granted);
    let large = three.ask_in(lock, third, permits(3, 3));
    assert_eq!(large.standing, Standing::Queued);
    assert_eq!(two.ask_in(lock, fourth, permits(1, 3)).standing, Standing::Queued);
    let (kind, message) = one.refusal(lock, permits(1, 4));
    assert_eq!(kind, RefusalKind::OtherPermits { of: 3 });
    assert!(message.contains('3') && message.contains('4'), "both numbers: {message}");
    assert_eq!(one.refusal(lock, WRITE).0, RefusalKind::Misconfigured);
    assert_eq!(one.release(lock, first), Released::Done);
    assert_eq!(one.release(lock, first), Released::Done, "a repeat adds nothing");
    assert_eq!(two.beat(lock, fourth).standing, Standing::Queued, "not past the larger request");
    assert_eq!(two.release(lock, second), Released::Done);
    assert!(three.let_in(lock, third).is_some());
    assert_eq!(three.beat(lock, third).standing, Standing::Granted);
    let info = two.inspect(lock).unwrap();
    assert_eq!(info.holds.iter().map(|hold| hold.mode).collect::<Vec<_>>(), [permits(3, 3)]);
    assert_eq!(three.release(lock, third), Released::Done);
    assert!(two.let_in(lock, fourth).is_some());
    assert_eq!(two.release(lock, fourth), Released::Done);
    // Nobody holds or waits: the next one says what the name is.
    assert_eq!(one.try_in(lock, permits(1, 4)).standing, Standing::Granted);
}

/// Those who are let in together by one release are each told its own token.
pub fn tokens_of_a_hand_off<T: Transport>(open: impl Fn() -> Client<T>, lock: &Name) {
    for mode in [READ, permits(1, 3)] {
        let (one, two, three) = (open(), open(), open());
        let [first, second, third] = [hold(), hold(), hold()];
        let whole = if mode == READ { WRITE } else { permits(3, 3) };
        assert_eq!(one.ask_in(lock, first, whole).standing, Standing::Granted);
        assert_eq!(two.ask_in(lock, second, mode).standing, Standing::Queued);
        assert_eq!(three.ask_in(lock, third, mode).standing, Standing::Queued);
        assert_eq!(one.release(lock, first), Released::Done);
        let (token, end) = two.let_in(lock, second).expect("the first is told");
        let (later, its_end) = three.let_in(lock, third).expect("the second is told");
        assert!(token < later, "{mode:?}: {token} and {later}");
        assert_eq!([end, its_end], [token, later], "one number each");
        assert_eq!(two.beat(lock, second).token, token);
        assert_eq!(three.beat(lock, third).token, later);
        assert_eq!(two.release(lock, second), Released::Done);
        assert_eq!(three.release(lock, third), Released::Done);
    }
}
