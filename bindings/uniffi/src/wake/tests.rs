use std::io::{PipeReader, PipeWriter, Read, pipe};
use std::os::fd::AsRawFd;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::wake;
use crate::*;

fn pair() -> (PipeReader, PipeWriter, u64) {
    let (reader, writer) = pipe().unwrap();
    let descriptor = writer.as_raw_fd().try_into().unwrap();
    (reader, writer, descriptor)
}

/// Reads so many bytes, for 30 s at the most.
fn read<const N: usize>(mut reader: PipeReader) -> [u8; N] {
    let (told, heard) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = [0; N];
        reader.read_exact(&mut bytes).unwrap();
        told.send(bytes).unwrap();
    });
    heard.recv_timeout(Duration::from_secs(30)).unwrap()
}

#[test]
fn a_byte_says_how_a_poll_went() {
    let (reader, _writer, descriptor) = pair();
    assert_eq!(wake_by_pipe(), wake as *const () as usize as u64);
    wake(descriptor, 1);
    wake(descriptor, -1);
    assert_eq!(read(reader), [1, 0xff]);
}

#[test]
fn a_hold_tells_what_happens_through_a_pipe() {
    let client = connect("memory:news".to_owned(), None).unwrap();
    let lock =
        |name: &str| client.lock(name.to_owned(), None).unwrap().acquire(None, None).unwrap();
    let (reader, _writer, descriptor) = pair();
    let released = lock("released");
    released.lost_to_pipe(descriptor, 7).unwrap();
    released.release().unwrap();
    drop(released);
    let expected = [7_u64.to_le_bytes(), 0_u64.to_le_bytes()].concat();
    assert_eq!(read::<16>(reader).to_vec(), expected);

    let (reader, _writer, descriptor) = pair();
    let lost = lock("lost");
    lost.lost_to_pipe(descriptor, u64::MAX).unwrap();
    client.shut_down();
    let closed = 1 + LossReason::Closed as u64;
    let expected = [u64::MAX.to_le_bytes(), closed.to_le_bytes()].concat();
    assert_eq!(read::<16>(reader).to_vec(), expected);
}
