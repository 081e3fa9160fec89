//! Commands as bytes.

use crate::redis::Command;

/// Appends `command` to `out`.
pub fn command(out: &mut Vec<u8>, command: &Command) {
    match command {
        Command::Script { script, keys, args } => {
            header(out, b'*', 3 + keys.len() + args.len());
            bulk(out, b"EVALSHA");
            bulk(out, script.sha.as_bytes());
            number(out, keys.len());
            for part in keys.iter().chain(args.iter()) {
                bulk(out, part);
            }
        }
        Command::Plain(parts) => words(out, parts),
    }
}

/// Appends a command given word by word.
pub fn words<W: AsRef<[u8]>>(out: &mut Vec<u8>, words: &[W]) {
    header(out, b'*', words.len());
    for word in words {
        bulk(out, word.as_ref());
    }
}

fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    header(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn number(out: &mut Vec<u8>, value: usize) {
    bulk(out, itoa::Buffer::new().format(value).as_bytes());
}

fn header(out: &mut Vec<u8>, kind: u8, value: usize) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    out.extend_from_slice(b"\r\n");
}
