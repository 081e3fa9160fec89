//! A process that does not ignore SIGPIPE, as one in C, C++ or Swift does not, survives that its
//! connection breaks while it writes. Rust's own programs ignore the signal, so this one takes that
//! back first.
#![cfg(unix)]
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fencelock::blocking::Client;
use fencelock_testkit::{Proxy, ZooKeeper, skip_servers};

fn disposition(signal: libc::c_int) -> libc::sighandler_t {
    // SAFETY: `action` is written by the call and read afterwards; nothing is changed.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        assert_eq!(libc::sigaction(signal, std::ptr::null(), &raw mut action), 0);
        action.sa_sigaction
    }
}

#[test]
fn a_connection_that_breaks_while_it_is_written_to_ends_no_process() {
    if skip_servers() {
        return;
    }
    // SAFETY: no handler of ours is installed, only the default restored.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let server = ZooKeeper::start().unwrap();
    let proxy = Proxy::start(&server.address(0)).unwrap();
    let client = Client::connect(format!("zk://{}?lease=60s", proxy.address())).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..8 {
            let lock = client.lock(format!("sigpipe-{thread}")).unwrap();
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    // What comes of it is not the point.
                    if let Ok(guard) = lock.acquire_timeout(Duration::from_millis(200)) {
                        drop(guard);
                    }
                }
            });
        }
        for _ in 0..200 {
            thread::sleep(Duration::from_millis(30));
            proxy.cut();
        }
        done.store(true, Ordering::Relaxed);
    });
    // The library left the process' own choice as it was, and the client works.
    assert_eq!(disposition(libc::SIGPIPE), libc::SIG_DFL);
    let after = client.lock("after").unwrap();
    after.acquire_timeout(Duration::from_secs(30)).unwrap().release().unwrap();
}
