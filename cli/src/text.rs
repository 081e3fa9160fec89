//! Text from elsewhere, made safe to print.

use std::borrow::Cow;

/// `text` with control characters escaped: a lock's name or a label comes from whoever chose it,
/// and must not move the reader's cursor.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests;
