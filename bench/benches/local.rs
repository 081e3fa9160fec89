//! Re-entry and local hand-off.

mod common;

fn main() {
    common::run(fencelock_bench::local::plans());
}
