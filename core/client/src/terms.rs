//! What a hold's grant says, and a conversion changes.

use fencelock_engine::request::Mode;

use crate::{Abandoned, Token};

/// What changes when the hold is converted.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) mode: Mode,
    pub(crate) token: Token,
    pub(crate) abandoned: Abandoned,
}
