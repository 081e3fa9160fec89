use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::{Fault, Proxy, RedisServer, eventually, skip_servers};

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
    let dead = std::env::temp_dir().join(format!("fencelock-redis-{}-left", child.id()));
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
