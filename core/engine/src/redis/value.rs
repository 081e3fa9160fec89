//! A reply of Redis, as far as the codec needs it.

/// A RESP value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Null.
    Nil,
    /// An integer.
    Int(i64),
    /// A simple or bulk string.
    Bytes(Vec<u8>),
    /// An array, or a set.
    Array(Vec<Value>),
    /// An error reply: the whole line, the code first (`WRONGTYPE Operation …`).
    Error(String),
}

impl Value {
    /// A number that is not negative, also one written as text.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Value::Int(n) => u64::try_from(*n).ok(),
            Value::Bytes(text) => core::str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Value::Bytes(text) => core::str::from_utf8(text).ok(),
            _ => None,
        }
    }

    pub(super) fn array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }
}
