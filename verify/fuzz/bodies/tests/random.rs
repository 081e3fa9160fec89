//! Each body over its seeds, changed at random: some seconds' worth, the same on every run.

use std::path::Path;

use fencelock_fuzz_bodies::{abi, calls, codec, names, resp, secrets, urls};

/// Feeds `body` its seeds, and `cases` inputs made of them.
fn feed(target: &str, cases: usize, body: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../seeds").join(target);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a seed").path())
        .collect();
    files.sort();
    let seeds: Vec<Vec<u8>> =
        files.iter().map(|file| std::fs::read(file).expect("a seed")).collect();
    assert!(!seeds.is_empty(), "no seeds for {target}");
    for seed in &seeds {
        body(seed);
    }
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..cases {
        let input = change(&seeds, &mut random);
        // On a failure the input is shown by the panic's own output.
        let shown = Shown(&input);
        body(&input);
        std::mem::forget(shown);
    }
}

struct Shown<'a>(&'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        eprintln!("the input was {:?}", self.0.escape_ascii().to_string());
    }
}

/// An input of one or two seeds, or of random bytes, with some bytes changed.
fn change(seeds: &[Vec<u8>], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut input = match random.u8(..8) {
        0 => {
            let length = random.usize(..400);
            std::iter::repeat_with(|| random.u8(..)).take(length).collect()
        }
        1 | 2 => {
            let (first, second) = (&seeds[random.usize(..seeds.len())], random.choice(seeds));
            let mut input = first[..random.usize(..=first.len())].to_vec();
            let second = second.expect("there are seeds");
            input.extend_from_slice(&second[random.usize(..=second.len())..]);
            input
        }
        _ => seeds[random.usize(..seeds.len())].clone(),
    };
    for _ in 0..random.usize(..6) {
        let at = random.usize(..=input.len());
        match random.u8(..4) {
            0 => input.insert(at, random.u8(..)),
            1 if at < input.len() => drop(input.remove(at)),
            2 if at < input.len() => input[at] ^= 1 << random.u8(..8),
            _ if at < input.len() => {
                input[at] = *random.choice(b"\0\r\n 019:%{}@/?&=$*>|-\xff").expect("some")
            }
            _ => {}
        }
    }
    input
}

#[test]
fn urls_and_options() {
    feed("urls", 60_000, urls);
}

#[test]
fn passwords_that_servers_repeat() {
    feed("secrets", 60_000, secrets);
}

#[test]
fn names_of_all_kinds() {
    feed("names", 60_000, names);
}

#[test]
fn replies_and_pushes() {
    feed("codec", 200_000, codec);
}

#[test]
fn bytes_of_a_server() {
    feed("resp", 100_000, resp);
}

#[test]
fn calls_and_events() {
    feed("calls", 20_000, calls);
}

#[test]
fn calls_of_the_c_abi() {
    feed("abi", 1_000, abi);
}
