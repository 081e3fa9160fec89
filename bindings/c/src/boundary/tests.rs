use std::ptr::null_mut;

use super::*;
use crate::error::{fencelock_error_free, fencelock_error_get, fencelock_error_info};
use crate::failure::invalid;
use crate::sized::Growing;
use crate::status::{FENCELOCK_INTERNAL, FENCELOCK_INVALID_ARGUMENT};

fn read(error: *mut fencelock_error) -> (fencelock_status, String) {
    let mut info =
        fencelock_error_info { size: size_of::<fencelock_error_info>(), ..Growing::empty() };
    // SAFETY: both are as the header asks.
    let message = unsafe {
        assert_eq!(fencelock_error_get(error, &raw mut info), FENCELOCK_OK);
        std::ffi::CStr::from_ptr(info.message.data).to_str().unwrap().to_owned()
    };
    // SAFETY: as above.
    assert_eq!(unsafe { fencelock_error_free(error) }, FENCELOCK_OK);
    // SAFETY: as above; it is freed.
    assert_eq!(unsafe { fencelock_error_free(error) }, FENCELOCK_INVALID_ARGUMENT);
    (info.code, message)
}

#[test]
fn a_panic_becomes_a_status() {
    let mut error = null_mut();
    let status = call!(&raw mut error, {
        if size_of::<u8>() == 1 {
            panic!("a planted panic, number {}", 7);
        }
    });
    assert_eq!(status, FENCELOCK_INTERNAL);
    let (code, message) = read(error);
    assert_eq!(code, FENCELOCK_INTERNAL);
    assert!(message.contains("a planted panic, number 7"), "{message}");
    let none: *mut *mut fencelock_error = null_mut();
    let status = call!(none, {
        if size_of::<u8>() == 1 {
            std::panic::panic_any(5_u8);
        }
    });
    assert_eq!(status, FENCELOCK_INTERNAL);
}

#[test]
fn an_error_is_an_object_and_success_clears_it() {
    let mut error = std::ptr::without_provenance_mut(1);
    let status = call!(&raw mut error, { Err(invalid("seven is not allowed"))? });
    assert_eq!(status, FENCELOCK_INVALID_ARGUMENT);
    assert_eq!(read(error), (FENCELOCK_INVALID_ARGUMENT, "seven is not allowed".to_owned()));
    assert_eq!(call!(&raw mut error, {}), FENCELOCK_OK);
    assert!(error.is_null());
}

#[test]
fn results_need_a_place() {
    let mut place = 5;
    assert_eq!(call!({ give(&raw mut place, "place", 6)? }), FENCELOCK_OK);
    assert_eq!(place, 6);
    assert_eq!(call!({ give(null_mut(), "place", 6)? }), FENCELOCK_INVALID_ARGUMENT);
    // One byte beside where it should be.
    let mut bytes = [0_u64; 2];
    let odd = bytes.as_mut_ptr().cast::<u8>().wrapping_add(1).cast::<u64>();
    assert_eq!(call!({ give(odd, "place", u64::MAX)? }), FENCELOCK_OK);
    assert_ne!(bytes, [0; 2]);
}
