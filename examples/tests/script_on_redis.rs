//! The atomic script, from several threads at once.

use std::thread;

use fencelock_examples::atomic_script;
use fencelock_testkit::{RedisServer, skip_servers};

#[test]
fn an_atomic_script_never_oversells() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    server.cli(&["SET", "{sale}:stock", "20"]).unwrap();
    let sellers = (0..4).map(|seller| {
        let mut connection = server.connection().unwrap();
        thread::spawn(move || {
            let sell = |person| {
                atomic_script::sell(&mut connection, &format!("person-{}", person % 30)).unwrap()
            };
            (0..30)
                .map(|n| n + seller)
                .map(sell)
                .filter(|s| *s == atomic_script::Sale::Sold)
                .count()
        })
    });
    let sellers: Vec<_> = sellers.collect();
    let sold: usize = sellers.into_iter().map(|seller| seller.join().unwrap()).sum();
    assert_eq!(sold, 20);
    let orders: i64 =
        redis::from_redis_value(server.cli(&["LLEN", "{sale}:orders"]).unwrap()).unwrap();
    assert_eq!(orders, 20);
}
