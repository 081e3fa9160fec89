//! The examples without a lock, from several threads at once.

use std::path::Path;
use std::thread;

use fencelock_examples::{unique_index, version_check};
use rusqlite::Connection;

fn open(path: &Path) -> Connection {
    let shop = Connection::open(path).unwrap();
    shop.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
    shop
}

#[test]
fn a_unique_index_gives_one_to_each() {
    let folder = std::env::temp_dir().join(format!("fencelock-unique-{}", std::process::id()));
    let _ = std::fs::remove_file(&folder);
    unique_index::prepare(&open(&folder)).unwrap();
    let claims: Vec<_> = (0..4)
        .map(|_| {
            let path = folder.clone();
            thread::spawn(move || {
                let shop = open(&path);
                (0..25).filter(|n| unique_index::claim(&shop, &format!("p{n}")).unwrap()).count()
            })
        })
        .collect();
    let claimed: usize = claims.into_iter().map(|claim| claim.join().unwrap()).sum();
    assert_eq!(claimed, 25);
    std::fs::remove_file(&folder).unwrap();
}

#[test]
fn a_version_check_loses_no_update() {
    let folder = std::env::temp_dir().join(format!("fencelock-version-{}", std::process::id()));
    let _ = std::fs::remove_file(&folder);
    version_check::prepare(&open(&folder), 50).unwrap();
    let takers: Vec<_> = (0..4)
        .map(|_| {
            let path = folder.clone();
            thread::spawn(move || {
                let shop = open(&path);
                let mut taken = 0;
                while version_check::take_one(&shop).unwrap() {
                    taken += 1;
                }
                taken
            })
        })
        .collect();
    let taken: usize = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
    assert_eq!(taken, 50);
    std::fs::remove_file(&folder).unwrap();
}
