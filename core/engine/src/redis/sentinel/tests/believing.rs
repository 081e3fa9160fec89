use std::collections::BTreeMap;

use super::Sentinel::{Away, Closed, Knows, Leads, Says, Silent};
use super::{Host, MILLI, Said, Sentinel, server};
use crate::redis::Node;

fn found(number: u64) -> Said {
    Said::Found(server(number))
}

/// What is said to who asks first, at the latest when `millis` have passed.
fn first(sentinels: &[Sentinel], millis: u32) -> Vec<Said> {
    let mut host = Host::new(sentinels);
    host.seek();
    host.pass(MILLI * millis);
    host.said()
}

#[test]
fn the_highest_epoch_is_believed_and_not_the_first_answer() {
    let [old, new] = [Says { epoch: 3, master: 1 }, Says { epoch: 4, master: 2 }];
    assert_eq!(first(&[old, old, new], 0), [found(2)]);
    assert_eq!(first(&[new, old, old], 0), [found(2)]);
    assert_eq!(first(&[old, old, old], 0), [found(1)]);
}

#[test]
fn the_leader_of_a_failover_says_the_new_address_elsewhere_than_the_epoch() {
    let leader = Leads { epoch: 4, master: 2, old: 1 };
    assert_eq!(first(&[Says { epoch: 3, master: 1 }, leader], 0), [found(2)]);
}

#[test]
fn within_an_epoch_most_votes_count_and_nobody_goes_to_and_fro() {
    let [one, two] = [Says { epoch: 0, master: 1 }, Says { epoch: 0, master: 2 }];
    let mut host = Host::new(&[one, two, two]);
    host.seek();
    host.pass(MILLI * 60_000);
    assert_eq!(host.said(), [found(2)]);
}

#[test]
fn others_have_three_hundred_milliseconds_once_one_has_answered() {
    let says = Says { epoch: 3, master: 1 };
    assert_eq!(first(&[says, Silent, Silent], 299), []);
    assert_eq!(first(&[says, Silent, Silent], 300), [found(1)]);
    assert_eq!(first(&[says, Away, Away], 0), [found(1)], "those who cannot are not waited for");
}

#[test]
fn a_stale_sentinel_is_not_believed_although_those_who_know_better_are_away() {
    let mut host = Host::new(&[Says { epoch: 3, master: 1 }, Says { epoch: 4, master: 2 }, Away]);
    host.seek();
    assert_eq!(host.said(), [found(2)]);
    host.sentinels[1] = Away;
    host.cut(1);
    host.pass(MILLI * 10_000);
    assert_eq!(host.said(), [], "nothing has moved");
    host.seek();
    host.pass(MILLI * 1_000);
    assert_eq!(host.said(), [found(2)]);
}

#[test]
fn sentinels_that_were_set_up_anew_are_believed_when_nobody_says_otherwise() {
    let mut host = Host::new(&[Says { epoch: 9, master: 1 }; 3]);
    host.seek();
    assert_eq!(host.said(), [found(1)]);
    host.sentinels[0] = Says { epoch: 0, master: 2 };
    host.pass(MILLI * 5_000);
    assert_eq!(host.said(), []);
    host.sentinels[1] = Says { epoch: 0, master: 2 };
    host.pass(MILLI * 5_000);
    assert_eq!(host.said(), [], "so it is just after a failover, too");
    host.sentinels[2] = Away;
    host.cut(2);
    assert_eq!(host.said(), []);
    host.pass(MILLI * 9_000);
    assert_eq!(host.said(), [], "nor is it long");
    host.pass(MILLI * 5_000);
    assert_eq!(host.said(), [Said::Moved]);
    host.seek();
    assert_eq!(host.said(), [found(2)]);
}

/// A session that was silent for a while is answered again when another master has been found.
#[test]
fn a_session_that_outlives_its_doubt_is_left_when_the_master_is_another() {
    let mut host = Host::new(&[Says { epoch: 1, master: 1 }; 3]);
    host.seek();
    host.session(Some(1));
    host.sentinels = vec![Says { epoch: 2, master: 2 }; 3];
    host.seek();
    assert_eq!(host.said(), [found(1), found(2)], "for the second connection, which is given up");
    host.pass(MILLI * 2_000);
    assert_eq!(host.said(), [Said::Moved]);
}

#[test]
fn a_name_that_nobody_knows_is_the_users_to_mend() {
    for sentinels in [&[Knows, Knows, Knows][..], &[Knows, Knows, Away]] {
        match first(sentinels, 0).as_slice() {
            [Said::Misconfigured(why)] => {
                assert!(why.contains("'shop'") && why.contains("sentinel monitor"), "{why}");
            }
            said => panic!("{said:?}"),
        }
    }
    assert_eq!(first(&[Knows, Knows, Says { epoch: 0, master: 1 }], 0), [found(1)]);
}

#[test]
fn why_nobody_is_known_is_said_of_each() {
    match first(&[Knows, Away, Away], 0).as_slice() {
        [Said::Nobody(why)] => {
            assert!(why.contains("s0:26379: it knows no such master"), "{why}");
            assert!(why.contains("s1:26379: refused; s2:26379: refused"), "{why}");
        }
        said => panic!("{said:?}"),
    }
    match first(&[Closed, Away], 0).as_slice() {
        [Said::Misconfigured(why)] => {
            assert!(why.contains("NOAUTH") && why.contains("sentinel_password"), "{why}");
        }
        said => panic!("{said:?}"),
    }
    // One that wants a password keeps nobody from asking the others.
    assert_eq!(first(&[Closed, Says { epoch: 1, master: 1 }], 0), [found(1)]);
}

#[test]
fn a_server_behind_nat_is_reached_by_its_other_address() {
    let other = Node { host: "nat.example".to_owned(), port: 7001 };
    let map = BTreeMap::from([(server(1), other.clone())]);
    let mut host = Host::behind_nat(&[Says { epoch: 1, master: 1 }], map);
    host.seek();
    host.pass(MILLI * 10_000);
    assert_eq!(host.said(), [Said::Found(other)]);
    host.sentinels[0] = Says { epoch: 2, master: 2 };
    host.pass(MILLI * 2_000);
    host.seek();
    assert_eq!(host.said(), [Said::Moved, found(2)]);
}

#[test]
fn how_many_replicas_there_are_is_told_once_and_before_the_master() {
    let mut host = Host::new(&[Says { epoch: 1, master: 1 }, Knows, Away]);
    host.seek();
    assert_eq!(host.replicas, [2]);
    host.pass(MILLI * 10_000);
    assert_eq!(host.replicas, [2]);
    assert_eq!(host.said(), [found(1)]);
}
