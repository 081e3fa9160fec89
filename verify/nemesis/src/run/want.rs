//! What actors want.

use std::fmt::Write as _;

use crate::dice::Dice;

/// A name that actors want, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// A lock, for one owner.
    Lock(&'static str),
    /// A read-write lock.
    ReadWrite(&'static str),
    /// A semaphore of so many permits.
    Semaphore(&'static str, u32),
}

/// What an acquisition of it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Writer,
    Reader,
    Permits,
}

impl Want {
    /// Whether a hold of it may be converted.
    pub fn turns(self) -> bool {
        matches!(self, Want::ReadWrite(_))
    }

    /// The words that ask for it.
    pub fn asked(self, tag: &str, dice: &mut Dice) -> (String, Role) {
        let (name, role, mode) = match self {
            Want::Lock(name) => (name, Role::Writer, String::new()),
            Want::ReadWrite(name) if dice.chance(70) => {
                (name, Role::Reader, " mode=shared".to_owned())
            }
            Want::ReadWrite(name) => (name, Role::Writer, String::new()),
            Want::Semaphore(name, of) => {
                // Small requests beside large ones.
                let most = if dice.chance(70) { 1 } else { u64::from(of) };
                let count = dice.between(1, most);
                (name, Role::Permits, format!(" mode=permits:{count}/{of}"))
            }
        };
        let mut line = format!("acquire {tag} c {name}{mode}");
        // Permits have no owner.
        if role != Role::Permits && dice.chance(10) {
            let _ = write!(line, " owner=request");
        }
        (line, role)
    }
}
