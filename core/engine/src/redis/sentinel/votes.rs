//! Whom to believe, where Sentinels differ.

use crate::redis::sentinel::report::Report;

/// Who is the master, by what each of `all` Sentinels said last, and by what was believed before.
///
/// The highest epoch is right: one that was cut off, or stopped, says what was so before. So a lower epoch
/// than was ever heard of is not believed, also when those who know better are away, unless most of
/// all say so and none says otherwise: then the Sentinels themselves were set up anew. (Just after a
/// failover most of them know less than its leader.) Within one epoch most votes count, and then the
/// order of the list.
pub(super) fn count(reports: &[Report], all: usize, known: Option<&Report>) -> Option<Report> {
    let least = known.map_or(0, |known| known.epoch);
    let anew = reports.len() * 2 > all && reports.iter().all(|report| report.epoch < least);
    let believed = |report: &&Report| anew || report.epoch >= least;
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
