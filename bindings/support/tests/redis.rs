//! Asynchronous and blocking calls of one client, on a real server.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use fencelock_support::{
    CancelToken, Client, ConnectOptions, ErrorKind, OptionValue, Owner, Patience,
};
use fencelock_testkit::{RedisServer, eventually, skip_servers};

const BOUND: Duration = Duration::from_secs(30);

#[test]
fn both_kinds_of_calls_share_one_client() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let client = Client::connect(&server.url(), ConnectOptions::default()).unwrap();
    let other = Client::connect(&server.url(), ConnectOptions::default()).unwrap();
    let (mine, theirs) = (
        client.lock("x").unwrap().owner(Owner::Fresh),
        other.lock("x").unwrap().owner(Owner::Fresh),
    );
    let mut last = 0;
    for round in 0..50 {
        let (told, ended) = mpsc::channel();
        let holder = theirs.acquire(Patience::For(BOUND), None).unwrap();
        let operation = mine.acquire_async(Patience::Forever, move |hold| {
            told.send(hold).unwrap();
        });
        if round % 2 == 0 {
            operation.cancel();
            let error = ended.recv_timeout(BOUND).unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Cancelled);
            holder.release().unwrap();
        } else {
            holder.release().unwrap();
            let hold = ended.recv_timeout(BOUND).unwrap().unwrap();
            assert!(hold.token() > holder.token());
            let (told, released) = mpsc::channel();
            hold.release_async(move |result| told.send(result).unwrap());
            released.recv_timeout(BOUND).unwrap().unwrap();
        }
        assert!(holder.token() > last);
        last = holder.token();
    }
    let (told, closed) = mpsc::channel();
    client.close_async(move |result| told.send(result).unwrap());
    closed.recv_timeout(BOUND).unwrap().unwrap();
    assert!(client.is_closed());
    let info = other.inspect("x").unwrap();
    assert!(info.is_none_or(|info| info.holds.is_empty() && info.waiters.is_empty()));
}

#[test]
fn a_try_is_cancelled_while_the_store_is_silent() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let mut options = ConnectOptions::default();
    let long = Duration::from_secs(3600);
    options.set("request_timeout", OptionValue::Duration(long)).unwrap();
    let client = Client::connect(&server.url(), options).unwrap();
    let lock = client.lock("x").unwrap().owner(Owner::Fresh);
    let (told, ended) = mpsc::channel();
    let cancel = Arc::new(CancelToken::new());
    server.stop().unwrap();
    let (mine, trying) = (cancel.clone(), lock.clone());
    std::thread::spawn(move || told.send(trying.acquire(Patience::Try, Some(&mine))).unwrap());
    eventually("the try is under way", || (client.metrics().waiting == 1).then_some(()));
    cancel.cancel();
    let error = ended.recv_timeout(BOUND).unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    server.cont().unwrap();
    lock.acquire(Patience::For(BOUND), None).unwrap();
}

#[test]
fn connecting_in_the_background_tells_how_it_ended() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let (told, connected) = mpsc::channel();
    let good = told.clone();
    let options = ConnectOptions::default();
    Client::connect_async(server.url(), options.clone(), move |client| {
        good.send(client).unwrap();
    })
    .unwrap();
    assert!(connected.recv_timeout(BOUND).unwrap().is_ok());
    Client::connect_async("pigeon://roof".to_owned(), options, move |client| {
        told.send(client).unwrap();
    })
    .unwrap();
    let error = connected.recv_timeout(BOUND).unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}
