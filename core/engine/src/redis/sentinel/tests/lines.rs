use std::time::Duration;

use super::Sentinel::{Away, Says, Server, Silent};
use super::{Host, MILLI, Said, server};

#[test]
fn a_switch_that_is_told_is_asked_after_at_once() {
    let mut host = Host::new(&[Says { epoch: 1, master: 1 }; 3]);
    host.seek();
    host.said();
    host.pass(MILLI * 100);
    host.sentinels[1] = Says { epoch: 2, master: 2 };
    host.switch(1, "shop 10.0.0.1 6379 10.0.0.2 6379");
    assert_eq!(host.said(), [Said::Moved]);
    host.seek();
    assert_eq!(host.said(), [Said::Found(server(2))]);
}

#[test]
fn a_switch_of_another_master_is_nothing() {
    let mut host = Host::new(&[Says { epoch: 1, master: 1 }]);
    host.seek();
    host.said();
    host.sentinels[0] = Says { epoch: 2, master: 2 };
    host.switch(0, "shops 10.0.0.1 6379 10.0.0.2 6379");
    host.switch(0, "other 10.0.0.1 6379 10.0.0.2 6379");
    assert_eq!(host.said(), []);
}

#[test]
fn a_switch_that_nobody_told_is_noticed_within_two_seconds() {
    let mut host = Host::new(&[Says { epoch: 1, master: 1 }; 3]);
    host.seek();
    host.pass(MILLI * 10_000);
    host.said();
    host.sentinels = vec![Says { epoch: 2, master: 2 }; 3];
    host.pass(MILLI * 2_000);
    assert_eq!(host.said(), [Said::Moved], "once");
}

#[test]
fn one_that_comes_back_is_asked_as_it_does() {
    let mut host = Host::new(&[Says { epoch: 1, master: 1 }, Away]);
    host.seek();
    assert_eq!(host.said(), [Said::Found(server(1))]);
    host.sentinels[1] = Says { epoch: 2, master: 2 };
    host.pass(MILLI * 1_000);
    assert_eq!(host.said(), [Said::Moved]);
}

#[test]
fn one_that_answers_nothing_is_connected_to_anew_with_growing_pauses() {
    let mut host = Host::new(&[Silent]);
    host.pass(Duration::from_secs(60));
    assert!((10..=12).contains(&host.dials), "{}", host.dials);
    let mut host = Host::new(&[Away]);
    host.pass(Duration::from_secs(60));
    assert!((60..=130).contains(&host.dials), "{}", host.dials);
}

#[test]
fn one_that_is_no_sentinel_is_connected_to_anew_with_growing_pauses() {
    let mut host = Host::new(&[Server]);
    host.pass(Duration::from_secs(60));
    assert!((60..=130).contains(&host.dials), "{}", host.dials);
}

#[test]
fn who_asks_does_not_wait_for_the_pause() {
    let mut host = Host::new(&[Away]);
    host.pass(Duration::from_secs(20));
    host.sentinels[0] = Says { epoch: 1, master: 1 };
    host.seek();
    assert_eq!(host.said(), [Said::Found(server(1))]);
}

#[test]
fn one_that_stands_still_in_the_middle_is_given_up() {
    let mut host = Host::new(&[Says { epoch: 1, master: 1 }, Says { epoch: 1, master: 1 }]);
    host.seek();
    host.said();
    host.sentinels[0] = Silent;
    host.pass(Duration::from_secs(8));
    let before = host.dials;
    host.sentinels[0] = Says { epoch: 2, master: 2 };
    host.pass(Duration::from_secs(6));
    assert!(host.dials > before);
    assert_eq!(host.said(), [Said::Moved]);
}
