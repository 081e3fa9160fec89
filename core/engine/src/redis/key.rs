//! Names of locks as parts of keys.

use std::borrow::Cow;

use crate::name::Name;

/// Writes a name so that it can stand between the braces of a hash tag.
pub(super) fn encode_name(name: &str) -> Cow<'_, str> {
    if !name.bytes().any(|byte| matches!(byte, b'%' | b'{' | b'}')) {
        return Cow::Borrowed(name);
    }
    let mut encoded = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        match c {
            '%' => encoded.push_str("%25"),
            '{' => encoded.push_str("%7B"),
            '}' => encoded.push_str("%7D"),
            c => encoded.push(c),
        }
    }
    Cow::Owned(encoded)
}

/// Reads what [`encode_name`] wrote; `None` for what it never writes.
pub(super) fn decode_name(encoded: &str) -> Option<Name> {
    if !encoded.contains('%') {
        return Name::new(encoded).ok().filter(|_| !encoded.contains(['{', '}']));
    }
    let mut parts = encoded.split('%');
    let mut name = parts.next()?.to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        name.push(match code {
            "25" => '%',
            "7B" => '{',
            "7D" => '}',
            _ => return None,
        });
        name.push_str(rest);
    }
    Name::new(name).ok()
}

/// Puts a backslash before whatever a pattern would not take literally.
pub(super) fn escape_pattern(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\' | '^' | '-') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
