//! Commands as bytes.

use fencelock_engine::redis::Command;

/// Appends `command` to `out`.
pub(crate) fn command(out: &mut Vec<u8>, command: &Command) {
    match command {
        Command::Script { script, keys, args } => {
            header(out, b'*', 3 + keys.len() + args.len());
            bulk(out, b"EVALSHA");
            bulk(out, script.sha.as_bytes());
            number(out, keys.len());
            for part in keys.iter().chain(args) {
                bulk(out, part);
            }
        }
        Command::Plain(parts) => words(out, parts),
    }
}

/// Appends a command given word by word.
pub(crate) fn words<W: AsRef<[u8]>>(out: &mut Vec<u8>, words: &[W]) {
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
    let mut digits = [0; 20];
    bulk(out, decimal(value, &mut digits));
}

fn header(out: &mut Vec<u8>, kind: u8, value: usize) {
    let mut digits = [0; 20];
    out.push(kind);
    out.extend_from_slice(decimal(value, &mut digits));
    out.extend_from_slice(b"\r\n");
}

/// Decimal digits without an allocation or the machinery of `format!`.
fn decimal(mut value: usize, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return &digits[at..];
        }
    }
}
