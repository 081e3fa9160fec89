//! What a handle of a hold names.

use std::sync::OnceLock;

use fencelock_support::Hold;

use crate::kinds::{Number, fencelock_hold, kind};
use crate::string::Text;

/// What a handle of a hold names.
pub struct HoldObject {
    pub(crate) hold: Hold,
    /// Made when it is asked for.
    pub(crate) name: OnceLock<Text>,
}

impl HoldObject {
    pub(crate) fn new(hold: Hold) -> HoldObject {
        HoldObject { hold, name: OnceLock::new() }
    }
}

kind!(fencelock_hold: Number::Hold, "hold", HoldObject);
