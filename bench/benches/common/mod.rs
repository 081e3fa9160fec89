//! Cases as criterion wants them.

use std::time::Duration;

use criterion::Criterion;
use fencelock_bench::Plan;

/// What the command line asks for, within the time that `QUICK=1` leaves.
pub fn criterion() -> Criterion {
    let (samples, warm, long) = if std::env::var("QUICK").is_ok_and(|quick| quick == "1") {
        (10, 50, 200)
    } else {
        (30, 500, 3000)
    };
    Criterion::default()
        .sample_size(samples)
        .warm_up_time(Duration::from_millis(warm))
        .measurement_time(Duration::from_millis(long))
        .configure_from_args()
}

/// Measures each side. A sample of one side runs the others too, so that all see the same machine.
pub fn run(plans: Vec<Plan>) {
    let mut criterion = criterion();
    for plan in plans {
        let mut group = criterion.benchmark_group(plan.name);
        let mut case = plan.make().unwrap_or_else(|error| panic!("{error}"));
        for measured in 0..case.sides.len() {
            group.bench_function(case.sides[measured].name, |bencher| {
                bencher.iter_custom(|count| {
                    let mut took = Duration::ZERO;
                    for (at, side) in case.sides.iter_mut().enumerate() {
                        let time = side.run(count).unwrap_or_else(|error| panic!("{error}"));
                        if at == measured {
                            took = time;
                        }
                    }
                    took
                });
            });
        }
        group.finish();
    }
    criterion.final_summary();
}
