use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::{
    Fault, Network, Proxy, RedisServer, Role, ZooKeeper, eventually, leave_out, skip_servers,
};

fn ask(stream: &mut TcpStream, command: &str) -> std::io::Result<String> {
    stream.write_all(command.as_bytes())?;
    let mut reply = [0; 64];
    let length = stream.read(&mut reply)?;
    Ok(String::from_utf8_lossy(&reply[..length]).into_owned())
}

#[test]
fn a_server_starts_dies_and_comes_back() {
    if skip_servers() {
        return;
    }
    let mut server = RedisServer::start().unwrap();
    server.cli(&["SET", "a", "1"]).unwrap();
    server.stop().unwrap();
    server.cont().unwrap();
    server.kill().unwrap();
    assert!(server.cli(&["PING"]).is_err());
    server.restart().unwrap();
    assert_eq!(server.cli(&["GET", "a"]).unwrap(), redis::Value::Nil);

    let mut server = RedisServer::builder().persistent().password("p").start().unwrap();
    server.cli(&["SET", "a", "1"]).unwrap();
    server.restart().unwrap();
    assert_eq!(server.cli(&["GET", "a"]).unwrap(), redis::Value::BulkString(b"1".to_vec()));
}

#[test]
fn the_proxy_passes_swallows_refuses_and_cuts() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let proxy = Proxy::start(&server.address()).unwrap();
    let connect = || {
        let stream = TcpStream::connect(proxy.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    };
    let mut stream = connect();
    assert_eq!(ask(&mut stream, "PING\r\n").unwrap(), "+PONG\r\n");

    proxy.set(Fault::SwallowReplies);
    stream.write_all(b"SET a 1\r\n").unwrap();
    eventually("the reply is swallowed", || (proxy.counts().swallowed_replies == 1).then_some(()));
    assert_eq!(server.cli(&["GET", "a"]).unwrap(), redis::Value::BulkString(b"1".to_vec()));

    proxy.set(Fault::SwallowRequests);
    stream.write_all(b"SET a 2\r\n").unwrap();
    eventually("the request is lost", || (proxy.counts().swallowed_requests == 1).then_some(()));
    proxy.cut();
    assert_eq!(ask(&mut stream, "").unwrap_or_default(), "");
    assert_eq!(server.cli(&["GET", "a"]).unwrap(), redis::Value::BulkString(b"1".to_vec()));

    // What lost a piece passes no other one.
    let mut stream = connect();
    stream.write_all(b"SET a 3\r\n").unwrap();
    eventually("the request is lost", || (proxy.counts().swallowed_requests == 2).then_some(()));
    proxy.mend();
    assert_eq!(ask(&mut stream, "PING\r\n").unwrap_or_default(), "");
    assert_eq!(ask(&mut connect(), "PING\r\n").unwrap(), "+PONG\r\n");

    proxy.set(Fault::Refuse);
    assert_eq!(ask(&mut connect(), "PING\r\n").unwrap_or_default(), "");
    proxy.set(Fault::Pass);
    assert_eq!(ask(&mut connect(), "PING\r\n").unwrap(), "+PONG\r\n");
}

#[test]
fn what_dead_processes_left_is_swept_away() {
    if skip_servers() {
        return;
    }
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let dead = std::env::temp_dir().join(format!("fencelock-test-{}-left", child.id()));
    child.wait().unwrap();
    std::fs::create_dir(&dead).unwrap();
    crate::folder::sweep();
    assert!(!dead.exists());

    let server = RedisServer::start().unwrap();
    crate::folder::sweep();
    assert!(server.folder().exists());
    let folder = server.folder().to_owned();
    drop(server);
    assert!(!folder.exists());
}

#[test]
fn a_zookeeper_dies_and_comes_back_with_its_data() {
    if skip_servers() {
        return;
    }
    let mut server = ZooKeeper::start().unwrap();
    assert_eq!(server.role(0), Some(Role::Standalone));
    assert_eq!(server.counters(0).unwrap()["zk_watch_count"], 0.0);
    server.stop(0).unwrap();
    assert!(server.four_letters(0, "srvr").is_err());
    server.cont(0).unwrap();
    eventually("it answers again", || server.role(0));
    server.kill(0).unwrap();
    assert_eq!((server.role(0), server.is_running(0)), (None, false));
    server.restart(0).unwrap();
    assert_eq!(server.role(0), Some(Role::Standalone));
}

#[test]
fn a_zookeeper_ensemble_elects_another_leader() {
    if skip_servers() {
        return;
    }
    let mut servers = ZooKeeper::ensemble(3).unwrap();
    let leader = servers.await_quorum();
    servers.kill(leader).unwrap();
    let next = servers.await_quorum();
    assert_ne!(next, leader);
    servers.restart(leader).unwrap();
    assert_eq!(servers.role(leader), Some(Role::Follower));
    let follower = servers.follower().unwrap();
    servers.kill(follower).unwrap();
    let other = (0..3).find(|at| *at != follower && *at != next).unwrap();
    servers.kill(other).unwrap();
    eventually("one of three serves nobody", || servers.role(next).is_none().then_some(()));
}

#[test]
fn a_zookeeper_speaks_tls() {
    if skip_servers() {
        return;
    }
    let server = ZooKeeper::builder().tls(true).start().unwrap();
    let files = server.certificates().unwrap();
    assert!(files.client_key.exists());
    assert!(TcpStream::connect(server.tls_address(0)).is_ok());
}

#[test]
fn a_cable_of_a_network_is_cut_and_mended() {
    if skip_servers() {
        return;
    }
    let network = match Network::new(2) {
        Ok(network) => network,
        Err(error) => return leave_out("a cable of a network is cut and mended", &error),
    };
    let listen = "import socket\ns = socket.create_server(('0.0.0.0', 7))\nwhile True: s.accept()";
    let mut words = network.host(0).prefix();
    words.extend(["python3", "-c", listen].map(str::to_owned));
    let mut command = std::process::Command::new(&words[0]);
    command.args(&words[1..]);
    let mut server = crate::children::spawn(command).unwrap();
    let here = std::net::SocketAddr::new(network.host(0).address(), 7);
    let reach = || TcpStream::connect_timeout(&here, Duration::from_millis(300));
    let there = || {
        let text = format!(
            "import socket; socket.create_connection(('{}', 7), 0.3)",
            network.host(0).address()
        );
        let mut words = network.host(1).prefix();
        words.extend(["python3".to_owned(), "-c".to_owned(), text]);
        let mut command = std::process::Command::new(&words[0]);
        command.args(&words[1..]).stderr(std::process::Stdio::null());
        command.status().unwrap().success()
    };
    eventually("the test itself reaches it", || reach().ok());
    assert!(there());
    network.cut(0, 1).unwrap();
    assert!(!there());
    assert!(reach().is_ok());
    network.mend(1, 0).unwrap();
    assert!(there());
    server.kill().unwrap();
    server.wait().unwrap();
}
