//! Passwords, and texts of others that may repeat them.
//!
//! A server or proxy that does not know a command says back what it was given: whole, cut short, or
//! with some of its characters changed. So what is hidden is not only the password, but each run of
//! its characters.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// So many characters of a secret, one after the other, are hidden wherever they stand.
const RUN: usize = 6;

/// What stands in place of a secret.
const MASK: &str = "***";

/// What must not be shown. Its `Debug` says nothing of it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// In small letters: all runs of the long ones, and the short ones.
    runs: BTreeSet<Vec<u8>>,
}

impl Secrets {
    /// Hides this text from now on, also as a URL has it.
    pub fn add(&mut self, secret: &str) {
        // Repeated as it is, or encoded: both are decoded below.
        let decoded = letters(secret).into_iter().map(|(letter, _)| letter).collect();
        for form in [secret.to_ascii_lowercase().into_bytes(), decoded] {
            if form.len() < RUN && !form.is_empty() {
                self.runs.insert(form);
            } else {
                self.runs.extend(form.windows(RUN).map(<[u8]>::to_vec));
            }
        }
    }

    /// The text without what must not be shown.
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let (small, places): (Vec<u8>, Vec<Range<usize>>) = letters(text).into_iter().unzip();
        let mut hidden = vec![false; text.len()];
        let lengths: BTreeSet<usize> = self.runs.iter().map(Vec::len).collect();
        for length in lengths {
            for (at, window) in small.windows(length).enumerate() {
                if self.runs.contains(window) {
                    hidden[places[at].start..places[at + length - 1].end].fill(true);
                }
            }
        }
        if !hidden.contains(&true) {
            return Cow::Borrowed(text);
        }
        let mut shown = String::with_capacity(text.len());
        let mut masked = false;
        for (at, letter) in text.char_indices() {
            let was = masked;
            masked = hidden[at..at + letter.len_utf8()].contains(&true);
            match (masked, was) {
                (true, false) => shown.push_str(MASK),
                (true, true) => {}
                (false, _) => shown.push(letter),
            }
        }
        Cow::Owned(shown)
    }
}

/// The text's bytes in small letters, with percent-encoding undone, and where each of them stands.
fn letters(text: &str) -> Vec<(u8, Range<usize>)> {
    let bytes = text.as_bytes();
    let mut letters = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
        let code = match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => u8::try_from(high * 16 + low).ok(),
            _ => None,
        };
        let end = at + if code.is_some() { 3 } else { 1 };
        letters.push((code.unwrap_or(byte).to_ascii_lowercase(), at..end));
        at = end;
    }
    letters
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(secret: &str, text: &str) -> String {
        let mut secrets = Secrets::default();
        secrets.add(secret);
        assert_eq!(format!("{secrets:?}"), "Secrets");
        secrets.hide(text).into_owned()
    }

    #[test]
    fn a_secret_is_hidden_whole_cut_short_and_encoded() {
        let secret = "hunter2 p@ss wörd";
        let echo = format!("ERR unknown command 'AUTH', with args: '{secret}'");
        assert_eq!(hidden(secret, &echo), "ERR unknown command 'AUTH', with args: '***'");
        assert_eq!(hidden(secret, "args: 'hunter2 p"), "args: '***");
        assert_eq!(hidden(secret, "args: 'HUNTER2 P@SS"), "args: '***");
        assert_eq!(hidden(secret, "redis://u:hunter2%20p%40ss%20w%C3%B6rd@h"), "redis://u:***@h");
        // With a character in the middle changed, the runs around it are hidden.
        assert_eq!(hidden("%41bcdef", "args: %2541bcdef or %41bcdef"), "args: *** or ***");
        assert_eq!(hidden("hunter2", "%68%75%6E%74%65%72%32 100%"), "*** 100%");
        assert_eq!(hidden("0123456789\n0123456789", "'0123456789 0123456789'"), "'*** ***'");
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        assert_eq!(
            hidden("hunter2", "ERR max number of clients reached"),
            "ERR max number of clients reached"
        );
        assert_eq!(hidden("", "nothing to hide"), "nothing to hide");
        assert_eq!(hidden("pw", "ERR 'pw' is no command"), "ERR '***' is no command");
        assert_eq!(hidden("wör", "ein wör"), "ein ***");
        assert_eq!(Secrets::default().hide("a"), "a");
    }
}
