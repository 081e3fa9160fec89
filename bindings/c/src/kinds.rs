//! What kinds of handles there are. What a handle names says so itself, with `kind!`.

#![allow(non_camel_case_types)]

use fencelock_support::{Client, Error, Operation};

use crate::failure::{Failure, Internal, invalid};
use crate::handle::{Pin, Table};

/// What a handle names: its table, and what to call it in a message.
pub(crate) trait Kind: Sized {
    type Object: Send + Sync + 'static;
    const NAME: &'static str;
    fn table() -> &'static Table<Self::Object>;

    /// Uses what a handle names.
    fn get(handle: *const Self) -> Result<Pin<'static, Self::Object>, Error> {
        Self::table().pin(handle.addr() as u64).ok_or_else(|| stale(Self::NAME, handle.is_null()))
    }

    /// Makes a handle.
    fn make(object: Self::Object) -> Result<*mut Self, Failure> {
        match Self::table().insert(object) {
            Some(handle) => Ok(std::ptr::without_provenance_mut(handle as usize)),
            None => Err(Internal("there are 268 million handles that were not freed").into()),
        }
    }

    /// Frees a handle; NULL is none.
    fn free(handle: *const Self) -> Result<(), Failure> {
        if handle.is_null() {
            return Ok(());
        }
        match Self::table().take(handle.addr() as u64) {
            Some(_) => Ok(()),
            None => Err(stale(Self::NAME, false).into()),
        }
    }
}

fn stale(kind: &str, null: bool) -> Error {
    invalid(match null {
        true => format!("the {kind} is NULL"),
        false => format!("this is no {kind}: it was freed before, or is a handle of another kind"),
    })
}

/// A connection to a store. Freed by fencelock_client_free().
pub struct fencelock_client {
    _opaque: [u8; 0],
}

/// The name of a lock on a client's store: made once, used often. Freed by fencelock_lock_free().
pub struct fencelock_lock {
    _opaque: [u8; 0],
}

/// The name of a read-write lock on a client's store. Freed by fencelock_rwlock_free().
pub struct fencelock_rwlock {
    _opaque: [u8; 0],
}

/// The name of a semaphore on a client's store, and the number of its permits. Freed by
/// fencelock_semaphore_free().
pub struct fencelock_semaphore {
    _opaque: [u8; 0],
}

/// A held lock, or permits of a semaphore. Freed by fencelock_hold_release() or fencelock_hold_free().
pub struct fencelock_hold {
    _opaque: [u8; 0],
}

/// What cancels blocking waits. Freed by fencelock_cancel_free().
pub struct fencelock_cancel {
    _opaque: [u8; 0],
}

/// An asynchronous call. Freed by fencelock_operation_free().
pub struct fencelock_operation {
    _opaque: [u8; 0],
}

/// What went wrong. Freed by fencelock_error_free().
pub struct fencelock_error {
    _opaque: [u8; 0],
}

/// A text that the library made. Freed by fencelock_text_free().
pub struct fencelock_text {
    _opaque: [u8; 0],
}

/// Names of locks. Freed by fencelock_names_free().
pub struct fencelock_names {
    _opaque: [u8; 0],
}

/// The state of a lock at one moment. Freed by fencelock_inspection_free().
pub struct fencelock_inspection {
    _opaque: [u8; 0],
}

/// Says what a handle names, and makes its table.
macro_rules! kind {
    ($name:ident: $number:expr, $word:literal, $object:ty) => {
        impl crate::kinds::Kind for $name {
            type Object = $object;
            const NAME: &'static str = $word;
            fn table() -> &'static crate::handle::Table<$object> {
                static TABLE: crate::handle::Table<$object> =
                    crate::handle::Table::new($number as u64);
                &TABLE
            }
        }
    };
}
pub(crate) use kind;

/// The number that stands in a handle of each kind.
pub(crate) enum Number {
    Client = 1,
    Lock,
    Hold,
    Cancel,
    Operation,
    Error,
    Text,
    Names,
    Inspection,
    RwLock,
    Semaphore,
}

kind!(fencelock_client: Number::Client, "client", Client);
kind!(fencelock_operation: Number::Operation, "operation", Operation);
