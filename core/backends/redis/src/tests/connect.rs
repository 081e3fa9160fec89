use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;

use crate::connect::race;

const BOUND: Duration = Duration::from_secs(30);

/// A port whose queue is full: the system drops what asks for a connection. It is so as long as the
/// sockets are there.
fn black_hole() -> (SocketAddr, Vec<Socket>) {
    let socket = || Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let listener = socket();
    listener.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut sockets = vec![listener];
    for _ in 0..4 {
        let filler = socket();
        filler.set_nonblocking(true).unwrap();
        // It says that it is not connected yet, and some never will be.
        let _ = filler.connect(&address);
        sockets.push(filler);
    }
    (address.as_socket().unwrap(), sockets)
}

async fn listener() -> (SocketAddr, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    (listener.local_addr().unwrap(), listener)
}

#[tokio::test]
async fn an_address_that_swallows_packets_does_not_keep_the_next_from_its_turn() {
    let (hole, _full) = black_hole();
    let (address, _listener) = listener().await;
    // Long before the system would give the first one up, also with little time.
    for limit in [BOUND, Duration::from_millis(100)] {
        let stream = tokio::time::timeout(BOUND, race(vec![hole, address], limit)).await;
        assert_eq!(stream.unwrap().unwrap().peer_addr().unwrap(), address);
    }
}

#[tokio::test]
async fn an_address_that_refuses_is_passed_over_and_all_are_named_in_the_end() {
    let ((first, one), (second, two)) = (listener().await, listener().await);
    drop(one);
    let stream = race(vec![first, second], BOUND).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), second);
    drop(two);
    let reason = race(vec![first, second], BOUND).await.unwrap_err();
    for address in [first, second] {
        assert!(reason.contains(&format!("{address}: ")), "{reason}");
    }
}
