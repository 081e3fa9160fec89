//! Who logs in, and how.

use std::fmt;

/// A user and a password. Its `Debug` hides the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The ACL user; `None` for the server's default user.
    pub user: Option<String>,
    /// The password.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).field("password", &"***").finish()
    }
}

/// Which protocol to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Protocol {
    /// RESP3 when the server has it, otherwise RESP2.
    #[default]
    Auto,
    /// RESP2, with a second connection for pushes: for proxies that mangle RESP3.
    Resp2,
}
