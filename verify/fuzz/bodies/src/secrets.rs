//! What servers say back, with a password in it.

use std::borrow::Cow;

use fencelock_engine::secret::Secrets;

use crate::bytes::Bytes;

/// So many letters of a password in a row are not shown.
const RUN: usize = 6;

/// Hides a password in a text that repeats it: whole, cut short, in other letters, encoded, or with
/// some of its characters changed.
pub fn secrets(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    let length = 1 + bytes.below(40);
    // What stands in a secret's place is made of asterisks.
    let secret = bytes.text(length).replace('*', "+");
    let mut text = String::new();
    while !bytes.is_empty() {
        text += &piece(&mut bytes, &secret);
    }
    let mut secrets = Secrets::default();
    secrets.add(&secret);
    let shown = secrets.hide(&text);
    if let Cow::Borrowed(same) = shown {
        assert_eq!(same, text);
    }
    let seen = decoded(shown.as_bytes());
    for form in [secret.to_ascii_lowercase().into_bytes(), decoded(secret.as_bytes())] {
        if form.is_empty() {
            continue;
        }
        for run in form.windows(RUN.min(form.len())) {
            let there = seen.windows(run.len()).any(|window| window == run);
            assert!(!there, "{secret:?} in {text:?} is shown as {shown:?}");
        }
    }
    let mut stranger = Secrets::default();
    stranger.add("\u{1}no-such-text\u{1}");
    assert!(text.contains('\u{1}') || stranger.hide(&text) == text);
}

/// A part of an echo.
fn piece(bytes: &mut Bytes<'_>, secret: &str) -> String {
    let letters: Vec<char> = secret.chars().collect();
    let from = bytes.below(letters.len() + 1);
    let to = from + bytes.below(letters.len() - from + 1);
    let cut: String = letters[from..to].iter().collect();
    match bytes.below(7) {
        0 => secret.to_owned(),
        1 => cut,
        2 => cut.to_uppercase(),
        3 => cut.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        4 => {
            let coded = |c: char| if c.is_alphanumeric() { c.to_string() } else { encoded(c) };
            secret.chars().map(coded).collect()
        }
        5 => {
            let changed = char::from(bytes.byte());
            letters
                .iter()
                .enumerate()
                .map(|(at, &c)| if at == from { changed } else { c })
                .collect()
        }
        _ => {
            let length = bytes.below(20);
            bytes.text(length)
        }
    }
}

fn encoded(c: char) -> String {
    c.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// In small letters, with percent-encoding undone.
fn decoded(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let two = digits.filter(|two| two.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match two.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                out.push(byte);
                rest = &tail[2..];
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    out.make_ascii_lowercase();
    out
}
