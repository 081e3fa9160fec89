//! Servers that come and go, and what the engine hears of it.

use super::*;
use crate::error::Error;

#[test]
fn a_list_is_of_three_and_more_and_has_nobody_twice() {
    assert_eq!(config(&["a", "b", "c"]).check(), Ok(()));
    assert_eq!(config(&["a", "b", "c", "d"]).quorum(), 3);
    for list in [&["a", "b"][..], &["a", "b", "a"], &[]] {
        let error = Machine::new(config(list), [0; 32]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{list:?}");
    }
}

#[test]
fn the_first_of_the_list_has_a_moment_to_come_up() {
    let mut talk = Talk::idle();
    talk.up(1, Duration::ZERO);
    talk.up(2, Duration::ZERO);
    assert_eq!(talk.events(), []);
    talk.wait(Duration::from_millis(301));
    assert!(matches!(talk.events()[..], [Event::Up { .. }]));
    let mut talk = Talk::idle();
    talk.up(1, Duration::ZERO);
    talk.up(2, Duration::ZERO);
    talk.down(0);
    assert!(matches!(talk.events()[..], [Event::Up { .. }]));
}

#[test]
fn the_store_is_up_while_enough_servers_are() {
    let mut talk = Talk::new();
    talk.down(2);
    assert_eq!(talk.events(), []);
    talk.down(0);
    match &talk.events()[..] {
        [Event::Down { reason }] => {
            assert!(reason.starts_with("1 of 3 servers answer"), "{reason}");
            assert!(reason.contains("a: cut"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    let id = talk.acquire(1, true);
    assert_eq!(talk.reply(id), Some(Err(Failure::NotSent)));
    talk.up(0, Duration::ZERO);
    assert!(matches!(talk.events()[..], [Event::Up { .. }]));
}

#[test]
fn an_operator_is_called_when_too_few_servers_are_left() {
    let mut talk = Talk::new();
    let wrong = || Error::new(ErrorKind::Misconfigured, "another list");
    talk.tell(0, Input::Event(Event::Misconfigured(wrong())));
    assert_eq!(talk.events(), []);
    talk.tell(1, Input::Event(Event::Misconfigured(wrong())));
    assert_eq!(talk.events(), [Event::Misconfigured(wrong())]);
    // Once.
    talk.tell(1, Input::Event(Event::Misconfigured(wrong())));
    talk.wait(MS);
    assert_eq!(talk.events(), []);
}

#[test]
fn the_engines_time_does_not_go_back_with_a_server_that_is_behind() {
    let mut talk = Talk::idle();
    talk.servers[0].ahead = 3_000_000;
    talk.servers[1].ahead = 2_000_000;
    talk.up(0, Duration::ZERO);
    talk.up(1, Duration::ZERO);
    talk.down(2);
    let before = talk.read(1);
    assert_eq!(talk.events(), [Event::Up { now: before }]);
    talk.up(2, Duration::ZERO);
    // What may take effect until then is said to each server by its own clock.
    talk.acquire(1, true);
    for server in 0..3 {
        match &talk.servers[server].arrived[0].op {
            Op::Acquire(ask) => {
                assert_eq!(ask.not_after, talk.read(server) + 3_000_000, "{server}");
            }
            other => panic!("{other:?}"),
        }
    }
    talk.serve_all();
    let state = Event::Up { now: before };
    assert!(!talk.events().contains(&state));
}
