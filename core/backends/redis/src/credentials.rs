//! Who logs in, and with what.

use std::future::Future;
use std::pin::Pin;

use fencelock_engine::Error;
use fencelock_engine::redis::session::Login;

/// What [`Credentials::login`] gives.
pub type CredentialsFuture<'a> = Pin<Box<dyn Future<Output = Result<Login, Error>> + Send + 'a>>;

/// Where a login comes from, asked at every connect: for passwords that are rotated.
///
/// A plain closure `Fn() -> Result<Login, Error>` will do.
pub trait Credentials: Send + Sync {
    /// Gives the login for the connection that is being made. The connect timeout covers it.
    fn login(&self) -> CredentialsFuture<'_>;
}

impl<F> Credentials for F
where
    F: Fn() -> Result<Login, Error> + Send + Sync,
{
    fn login(&self) -> CredentialsFuture<'_> {
        let login = self();
        Box::pin(async move { login })
    }
}
