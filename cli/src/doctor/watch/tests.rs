use std::time::{Duration, Instant};

use super::{STEP, Seen, round_up};
use crate::doctor::finding::Severity;
use crate::doctor::trial::Trips;

fn trips() -> Trips {
    let millis = Duration::from_millis;
    Trips { best: millis(1), median: millis(2), worst: millis(100), ahead: 0 }
}

#[test]
fn a_whole_hold_gives_a_lease_of_twice_its_length() {
    let start = Instant::now();
    let mut seen = Seen { looks: 2, ..Seen::default() };
    seen.note("a".into(), start);
    seen.looks = 3;
    seen.note("a".into(), start + Duration::from_secs(4));
    seen.looks = 4;
    assert_eq!(seen.longest(), Some((Duration::from_secs(4) + STEP, true)));
    let finding = seen.finding(Duration::from_secs(30), &trips());
    assert_eq!(finding.severity, Severity::Good);
    assert!(finding.advice.unwrap().contains("10 s"));
}

#[test]
fn a_hold_without_beginning_or_end_is_said_to_be_longer() {
    let mut seen = Seen { looks: 1, ..Seen::default() };
    seen.note("a".into(), Instant::now());
    let finding = seen.finding(Duration::from_secs(30), &trips());
    assert_eq!(finding.severity, Severity::Note);
    assert!(finding.value.contains("at least"));
    let idle = Seen::default().finding(Duration::from_secs(30), &trips());
    assert!(idle.value.contains("no hold"));
}

#[test]
fn leases_are_lengths_that_people_choose() {
    assert_eq!(round_up(Duration::from_millis(1_001)), Duration::from_secs(2));
    assert_eq!(round_up(Duration::from_secs(61)), Duration::from_secs(120));
    assert_eq!(round_up(Duration::from_secs(3601)), Duration::from_secs(7200));
}
