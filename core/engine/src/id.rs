//! Names for clients, holds and owners.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, ErrorKind};

/// The longest explicit owner id, in bytes of UTF-8.
pub const MAX_OWNER: usize = 256;
/// The longest label of a client, in bytes of UTF-8.
pub const MAX_LABEL: usize = 128;

const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";

/// One acquisition at the store. Minted afresh for each, so that a late or repeated release can
/// never end a hold that came after it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldId(pub u128);

impl HoldId {
    /// Reads the 32 hexadecimal digits that [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<HoldId> {
        if text.len() != 32 || text.starts_with('+') {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(HoldId)
    }

    /// The 32 hexadecimal digits, without the machinery of `format!`.
    pub(crate) fn digits(self) -> [u8; 32] {
        let mut digits = [0; 32];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0.to_be_bytes()) {
            pair[0] = HEXADECIMAL[usize::from(byte >> 4)];
            pair[1] = HEXADECIMAL[usize::from(byte & 15)];
        }
        digits
    }
}

impl fmt::Display for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(std::str::from_utf8(&self.digits()).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06x}", self.0 & 0xff_ffff)
    }
}

/// One client, as the store knows it: a random id, and a label for people.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClientId {
    id: Arc<str>,
    label: Arc<str>,
}

impl ClientId {
    /// A client id from 64 random bits and a label.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] when the label is longer than 128 bytes or has control
    /// characters.
    pub fn new(random: u64, label: &str) -> Result<ClientId, Error> {
        if label.len() > MAX_LABEL || label.chars().any(char::is_control) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("a client's label may have {MAX_LABEL} bytes and no control characters"),
            ));
        }
        Ok(ClientId { id: format!("{random:016x}").into(), label: label.into() })
    }

    /// The 16 hexadecimal digits of the id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The label for people; may be empty.
    pub fn label(&self) -> &str {
        &self.label
    }
}

/// An explicit owner: whoever shows the same id re-enters the same lock, from whichever thread,
/// process or language.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OwnerId(Arc<str>);

impl OwnerId {
    /// Checks `owner` and takes it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] when it is empty, longer than 256 bytes or has control
    /// characters.
    pub fn new(owner: impl AsRef<str>) -> Result<OwnerId, Error> {
        let owner = owner.as_ref();
        if owner.is_empty() || owner.len() > MAX_OWNER || owner.chars().any(char::is_control) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("an owner id has 1 to {MAX_OWNER} bytes and no control characters"),
            ));
        }
        Ok(OwnerId(owner.into()))
    }

    /// The id as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
