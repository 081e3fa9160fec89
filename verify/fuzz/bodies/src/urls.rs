//! Stores' URLs, with the options in them.

use fencelock::StoreUrl;
use fencelock_redis::Options;

/// Reads a URL as the client does, and as the Redis store does.
pub fn urls(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match StoreUrl::parse(text) {
        Ok(url) => {
            assert!(text.starts_with(url.scheme()), "the scheme is the URL's beginning");
            assert!(!url.scheme().is_empty());
            // What is shown may have lost its secrets, but not its scheme.
            assert!(url.to_string().starts_with(url.scheme()));
            if let Some(secret) = secret(text) {
                assert!(!url.to_string().contains(secret), "shown: {url}");
                assert!(!format!("{url:?}").contains(secret));
            }
        }
        Err(error) => assert!(!error.message().is_empty()),
    }
    match Options::from_url(text) {
        Ok(options) => {
            options.check().expect("options from a URL have been checked");
            assert!(!options.address.to_string().is_empty());
            if let Some(secret) = secret(text) {
                assert!(!format!("{options:?}").contains(secret), "shown: {options:?}");
            }
        }
        Err(error) => {
            assert!(!error.message().is_empty());
            if let Some(secret) = secret(text) {
                assert!(!error.message().contains(secret), "told: {error}");
            }
        }
    }
}

/// A password that cannot be mistaken for another part of the URL.
fn secret(text: &str) -> Option<&'static str> {
    const SECRET: &str = "Zx9-secret-9xZ";
    let (scheme, rest) = text.split_once("://")?;
    if !matches!(scheme, "redis" | "rediss") {
        return None;
    }
    let (login, _) = rest.split_once('@')?;
    let plain = login.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == ':');
    let (_, password) = login.split_once(':')?;
    (plain && password == SECRET && text.matches(SECRET).count() == 1).then_some(SECRET)
}
