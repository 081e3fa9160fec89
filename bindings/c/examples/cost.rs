//! What the C ABI costs beside the Rust client that it calls, in turn in the same rounds:
//! `cargo run --release -p fencelock-c --example cost -- [redis://…]`

// It calls the C functions.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

use fencelock::blocking;
use fencelock_c::*;

const ROUNDS: usize = 11;
const SLICE: Duration = Duration::from_millis(100);

/// A client, a lock and a hold through the C ABI.
struct C {
    client: *mut fencelock_client,
    lock: *mut fencelock_lock,
    hold: *mut fencelock_hold,
}

fn ok(status: fencelock_status) {
    assert_eq!(status, FENCELOCK_OK);
}

impl C {
    fn new(url: &str, held: bool) -> C {
        let mut this = C { client: null_mut(), lock: null_mut(), hold: null_mut() };
        // SAFETY: as the header asks.
        unsafe {
            let (url, length) = (url.as_ptr().cast(), url.len());
            ok(fencelock_connect(url, length, null(), &mut this.client, null_mut()));
            let name = c"cost/c".as_ptr();
            ok(fencelock_client_lock(this.client, name, usize::MAX, &mut this.lock, null_mut()));
            if held {
                ok(fencelock_lock_acquire(this.lock, null(), &mut this.hold, null_mut()));
                ok(fencelock_lock_enter(this.lock, null(), null_mut(), null_mut()));
            }
        }
        this
    }

    fn pair(&self) {
        let mut hold = null_mut();
        // SAFETY: as the header asks.
        unsafe {
            ok(fencelock_lock_acquire(self.lock, null(), &mut hold, null_mut()));
            ok(fencelock_hold_release(black_box(hold), null_mut()));
        }
    }

    fn enter(&self) {
        // SAFETY: as the header asks.
        unsafe {
            ok(fencelock_lock_enter(self.lock, null(), null_mut(), null_mut()));
            ok(fencelock_lock_leave(self.lock, null(), null_mut()));
        }
    }

    fn valid(&self) {
        let mut valid = false;
        // SAFETY: as the header asks.
        unsafe { ok(fencelock_hold_is_valid(self.hold, &mut valid)) };
        assert!(black_box(valid));
    }

    fn token(&self) {
        let mut token = 0;
        // SAFETY: as the header asks.
        unsafe { ok(fencelock_hold_token(self.hold, &mut token)) };
        black_box(token);
    }
}

impl Drop for C {
    fn drop(&mut self) {
        // SAFETY: as the header asks.
        unsafe {
            fencelock_hold_free(self.hold);
            fencelock_lock_free(self.lock);
            fencelock_client_close(self.client, 0, null_mut());
            fencelock_client_free(self.client);
        }
    }
}

/// Nanoseconds of one turn.
fn time(turn: &dyn Fn()) -> f64 {
    let began = Instant::now();
    let mut turns = 0_u32;
    while began.elapsed() < SLICE {
        for _ in 0..16 {
            turn();
        }
        turns += 16;
    }
    began.elapsed().as_nanos() as f64 / f64::from(turns)
}

/// Runs the sides in turn; prints the median of each, and of the ratio to the first.
fn compare(title: &str, sides: &[(&str, &dyn Fn())]) {
    println!("{title}");
    let mut times = vec![Vec::new(); sides.len()];
    for round in 0..ROUNDS {
        for step in 0..sides.len() {
            let side = if round % 2 == 0 { step } else { sides.len() - 1 - step };
            times[side].push(time(sides[side].1));
        }
    }
    for (side, (name, _)) in sides.iter().enumerate() {
        let ratios = times[side].iter().zip(&times[0]).map(|(own, first)| own / first).collect();
        let least = times[side].iter().copied().fold(f64::INFINITY, f64::min);
        let (median, ratio) = (median(times[side].clone()), median(ratios));
        println!(
            "  {name:<34} least {least:9.1} ns, median {median:9.1} ns, {ratio:5.2} of the first"
        );
    }
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn main() {
    let rust = blocking::Client::connect("memory:cost").expect("a store in memory");
    let lock = rust.lock("cost/rust").expect("a good name");
    let outer = lock.acquire().expect("a free lock");
    let c = C::new("memory:cost", true);
    let reenter = || lock.acquire().expect("a re-entry").release().expect("a release");
    compare(
        "re-entry, in and out, on memory:",
        &[
            ("Rust, acquire and release", &reenter),
            ("C, acquire and release", &|| c.pair()),
            ("C, enter and leave", &|| c.enter()),
        ],
    );
    compare(
        "a look at a hold",
        &[
            ("Rust, is_valid", &|| assert!(black_box(outer.is_valid()))),
            ("C, is_valid", &|| c.valid()),
            ("C, token", &|| c.token()),
        ],
    );
    drop((c, outer));
    if let Some(url) = std::env::args().nth(1) {
        let rust = blocking::Client::connect(&url).expect("a Redis server");
        let lock = rust.lock("cost/rust").expect("a good name");
        let c = C::new(&url, false);
        let pair = || lock.acquire().expect("a free lock").release().expect("a release");
        compare(
            "an uncontended pair on Redis",
            &[
                ("Rust, acquire and release", &pair),
                ("C, acquire and release", &|| c.pair()),
                ("C, enter and leave", &|| c.enter()),
            ],
        );
    }
}
