//! A hold's ticket: what another process needs to go on with it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::{Error, ErrorKind, Name, OwnerId, Result, Token};

/// The layout of the text.
const VERSION: &str = "fl1";

/// A short text that names a hold of an explicit owner, fit for a header; from
/// [`Guard::ticket`](crate::Guard::ticket), for [`Client::attach`](crate::Client::attach).
///
/// `fl1.<token>.<owner>.<lock>`, owner and lock in URL-safe base64.
///
/// ```
/// # use fencelock::Ticket;
/// let ticket = Ticket::parse("fl1.17.dHJhY2U.Y2FydA")?;
/// assert_eq!(ticket.lock(), "cart");
/// assert_eq!(ticket.owner().as_str(), "trace");
/// assert_eq!(ticket.token().get(), 17);
/// assert_eq!(ticket.to_string(), "fl1.17.dHJhY2U.Y2FydA");
/// # Ok::<(), fencelock::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    text: String,
    lock: Name,
    owner: OwnerId,
    token: Token,
}

impl Ticket {
    pub(crate) fn new(lock: &Name, owner: &OwnerId, token: Token) -> Ticket {
        let text = format!(
            "{VERSION}.{token}.{}.{}",
            URL_SAFE_NO_PAD.encode(owner.as_str()),
            URL_SAFE_NO_PAD.encode(lock.as_str()),
        );
        Ticket { text, lock: lock.clone(), owner: owner.clone(), token }
    }

    /// Reads a ticket's text.
    ///
    /// # Errors
    /// `InvalidArgument` when it is not one, or of a later version.
    pub fn parse(text: &str) -> Result<Ticket> {
        let wrong = |why: &str| {
            Error::new(ErrorKind::InvalidArgument, format!("this is not a hold's ticket: {why}"))
        };
        let mut parts = text.split('.');
        let version = parts.next().unwrap_or_default();
        if version != VERSION {
            return Err(wrong("it does not begin with `fl1.`; was it made by a later version?"));
        }
        let (Some(token), Some(owner), Some(lock), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong("it does not have four parts"));
        };
        let number = token.parse::<u64>().map_err(|_| wrong("its token is not a number"))?;
        let decode = |part: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
            String::from_utf8(bytes).ok()
        };
        let owner = decode(owner).ok_or_else(|| wrong("its owner cannot be decoded"))?;
        let lock = decode(lock).ok_or_else(|| wrong("its lock cannot be decoded"))?;
        let ticket = Ticket::new(&Name::new(lock)?, &OwnerId::new(owner)?, Token(number));
        if ticket.text != text {
            return Err(wrong("it is not in its canonical form"));
        }
        Ok(ticket)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The lock's name.
    pub fn lock(&self) -> &str {
        self.lock.as_str()
    }

    /// The owner.
    pub fn owner(&self) -> &OwnerId {
        &self.owner
    }

    /// The hold's token.
    pub fn token(&self) -> Token {
        self.token
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl AsRef<str> for Ticket {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl std::str::FromStr for Ticket {
    type Err = Error;
    fn from_str(text: &str) -> Result<Ticket> {
        Ticket::parse(text)
    }
}
