//! Numbers and names of JavaScript as the client wants them.

use std::time::Duration;

use fencelock_support::{ConnectOptions, Error, ErrorKind, OptionValue, Patience, Result};
use napi_derive::napi;

/// An option of `connect`: a number of milliseconds, a count or a text.
#[napi(object, object_to_js = false)]
pub struct Setting {
    /// Its name, as it stands in a URL.
    pub name: String,
    /// Milliseconds.
    pub milliseconds: Option<f64>,
    /// A count.
    pub count: Option<f64>,
    /// A text.
    pub text: Option<String>,
}

pub(crate) fn options(settings: Vec<Setting>) -> Result<ConnectOptions> {
    let mut options = ConnectOptions::default();
    for setting in settings {
        let value = match (setting.milliseconds, setting.count, setting.text) {
            (Some(span), _, _) => OptionValue::Duration(duration(span)?),
            (_, Some(count), _) => OptionValue::Number(whole(count)?),
            (_, _, Some(text)) => OptionValue::Text(text),
            (None, None, None) => continue,
        };
        options.set(&setting.name, value)?;
    }
    Ok(options)
}

/// A span of so many milliseconds; too long a one is the longest there is.
pub(crate) fn duration(milliseconds: f64) -> Result<Duration> {
    if milliseconds.is_nan() || milliseconds < 0.0 {
        return Err(invalid(format!("a time must not be negative: {milliseconds} ms")));
    }
    Ok(Duration::try_from_secs_f64(milliseconds / 1e3).unwrap_or(Duration::MAX))
}

/// How long to wait: 0 not at all, none for ever.
pub(crate) fn patience(wait: Option<f64>) -> Result<Patience> {
    match wait {
        None => Ok(Patience::Forever),
        Some(0.0) => Ok(Patience::Try),
        Some(span) => Ok(Patience::For(duration(span)?)),
    }
}

fn whole(count: f64) -> Result<u64> {
    if count.fract() != 0.0 || !(0.0..=9e15).contains(&count) {
        return Err(invalid(format!("a count must be a whole number from 0 on: {count}")));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    Ok(count as u64)
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, message)
}
