//! Text that goes out: the library's own, and how a caller sees it.

#![allow(non_camel_case_types)]

use std::ffi::{CStr, c_char};

use crate::kinds::{Number, fencelock_names, fencelock_text, kind};

/// A text that belongs to the library: `length` bytes of UTF-8, and a NUL behind them that is not
/// counted. `data` is NULL where there is none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fencelock_string {
    /// The bytes.
    pub data: *const c_char,
    /// How many.
    pub length: usize,
}

impl fencelock_string {
    pub(crate) const NONE: fencelock_string =
        fencelock_string { data: std::ptr::null(), length: 0 };

    pub(crate) fn of(text: &'static CStr) -> fencelock_string {
        fencelock_string { data: text.as_ptr(), length: text.count_bytes() }
    }
}

/// Bytes of UTF-8 with a NUL behind them.
pub struct Text(Box<[u8]>);

impl Text {
    pub(crate) fn new(text: &str) -> Text {
        let mut bytes = Vec::with_capacity(text.len() + 1);
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
        Text(bytes.into_boxed_slice())
    }

    pub(crate) fn borrow(&self) -> fencelock_string {
        fencelock_string { data: self.0.as_ptr().cast(), length: self.0.len() - 1 }
    }
}

kind!(fencelock_text: Number::Text, "text", Text);
kind!(fencelock_names: Number::Names, "list of names", Vec<Text>);
