//! Whom to believe, where Sentinels differ.

use crate::redis::sentinel::report::Report;

/// Whether most of `all` Sentinels say a lower epoch than is known, and none says otherwise. Just after a
/// failover it is so, if its leader is away; when it lasts, the Sentinels were set up anew, or have
/// forgotten that failover.
pub(super) fn are_behind(reports: &[Report], all: usize, known: Option<&Report>) -> bool {
    let least = known.map_or(0, |known| known.epoch);
    reports.len() * 2 > all && reports.iter().all(|report| report.epoch < least)
}

/// Who is the master, by what each Sentinel said last, and by what was believed before, unless that is
/// forgotten.
///
/// The highest epoch is right: one that was cut off, or stopped, says what was so before. So a lower epoch
/// than was ever heard of is not believed, also when those who know better are away. Within one epoch
/// most votes count, and then the order of the list.
pub(super) fn count(reports: &[Report], known: Option<&Report>) -> Option<Report> {
    let known = known.filter(|_| !planted!(FirstSentinelBelieved));
    let least = known.map_or(0, |known| known.epoch);
    let believed = |report: &&Report| report.epoch >= least;
    let Some(epoch) = reports.iter().filter(believed).map(|report| report.epoch).max() else {
        return known.cloned();
    };
    let votes = |report: &Report| reports.iter().filter(|other| *other == report).count();
    let mut best: Option<&Report> = None;
    for report in reports.iter().filter(|report| report.epoch == epoch) {
        if best.is_none_or(|best| votes(report) > votes(best)) {
            best = Some(report);
        }
    }
    best.cloned()
}
