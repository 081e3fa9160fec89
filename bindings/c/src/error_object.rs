//! What a handle of an error names.

use crate::failure::Failure;
use crate::kinds::{Kind, Number, fencelock_error, kind};
use crate::status::fencelock_status;
use crate::string::Text;

/// What a handle of an error names.
pub struct ErrorObject {
    pub(crate) status: fencelock_status,
    pub(crate) message: Text,
}

impl ErrorObject {
    fn new(failure: Failure) -> ErrorObject {
        let status = failure.status();
        let message = match &failure {
            Failure::Error(error) => Text::new(error.message()),
            Failure::Internal(message) => Text::new(message),
        };
        ErrorObject { status, message }
    }
}

kind!(fencelock_error: Number::Error, "error", ErrorObject);

/// The handle of an error object; NULL when there is no room for it.
pub(crate) fn object(failure: Failure) -> *mut fencelock_error {
    fencelock_error::make(ErrorObject::new(failure)).unwrap_or(std::ptr::null_mut())
}
