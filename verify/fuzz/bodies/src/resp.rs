//! Bytes from a server.

use fencelock_engine::redis::session::{Parsed, parse};

/// Parses what a server sent: a frame is the same however much of it, or after it, has come.
pub fn resp(bytes: &[u8]) {
    match parse(bytes) {
        Ok(Parsed::Frame(frame, length)) => {
            assert!(0 < length && length <= bytes.len());
            assert_eq!(parse(&bytes[..length]), Ok(Parsed::Frame(frame, length)));
            // All beginnings of a short frame, and some of a long one.
            for end in (0..length).step_by(length / 64 + 1) {
                match parse(&bytes[..end]) {
                    Ok(Parsed::Partial(needed)) => {
                        assert!(end < needed && needed <= length, "{end} < {needed} <= {length}");
                    }
                    other => panic!("{end} of {length} bytes are {other:?}"),
                }
            }
        }
        Ok(Parsed::Partial(needed)) => assert!(needed > bytes.len()),
        Err(garbage) => assert!(!garbage.to_string().is_empty()),
    }
}
