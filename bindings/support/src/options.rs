//! A client's options by name, so that every language has the same ones.

use std::time::Duration;

use fencelock::Builder;

use crate::{Error, ErrorKind, Result};

/// An option's value, as hosts have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// A time.
    Duration(Duration),
    /// A text.
    Text(String),
    /// A count.
    Number(u64),
}

/// Options of a client. Times and counts are checked when it connects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectOptions {
    /// Lease of holds without an explicit one.
    pub lease: Option<Duration>,
    /// Lease of a hold that was handed over, until its holder is heard from.
    pub claim: Option<Duration>,
    /// How long a request may go unanswered.
    pub request_timeout: Option<Duration>,
    /// How long connecting may take.
    pub connect_timeout: Option<Duration>,
    /// Shown beside the client's id wherever holders are listed.
    pub label: Option<String>,
    /// Redis: what every key begins with.
    pub key_prefix: Option<String>,
    /// How many times in a row a lock may pass within the client while others wait.
    pub local_run_grants: Option<u32>,
    /// For how long a lock may pass within the client while others wait.
    pub local_run_time: Option<Duration>,
    /// How many acquires may wait at a time.
    pub max_waiters: Option<usize>,
}

/// The local run's bounds unless said otherwise, for when only one of them is given.
const LOCAL_RUN: (u32, Duration) = (64, Duration::from_millis(10));

impl ConnectOptions {
    /// Every option's name.
    pub const NAMES: [&'static str; 9] = [
        "lease",
        "claim",
        "request_timeout",
        "connect_timeout",
        "label",
        "key_prefix",
        "local_run_grants",
        "local_run_time",
        "max_waiters",
    ];

    /// Sets an option by its name.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown name, or a value of another type.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fencelock_support::{ConnectOptions, OptionValue};
    ///
    /// let mut options = ConnectOptions::default();
    /// options.set("lease", OptionValue::Duration(Duration::from_secs(10)))?;
    /// let error = options.set("leese", OptionValue::Number(1)).unwrap_err();
    /// assert!(error.message().contains("request_timeout"));
    /// # Ok::<(), fencelock_support::Error>(())
    /// ```
    pub fn set(&mut self, name: &str, value: OptionValue) -> Result<()> {
        match name {
            "lease" => self.lease = Some(value.duration(name)?),
            "claim" => self.claim = Some(value.duration(name)?),
            "request_timeout" => self.request_timeout = Some(value.duration(name)?),
            "connect_timeout" => self.connect_timeout = Some(value.duration(name)?),
            "label" => self.label = Some(value.text(name)?),
            "key_prefix" => self.key_prefix = Some(value.text(name)?),
            "local_run_grants" => self.local_run_grants = Some(value.number(name)?),
            "local_run_time" => self.local_run_time = Some(value.duration(name)?),
            "max_waiters" => self.max_waiters = Some(value.number(name)?),
            _ => {
                let known = ConnectOptions::NAMES.join(", ");
                return Err(invalid(format!("there is no option {name:?}; there are {known}")));
            }
        }
        Ok(())
    }

    pub(crate) fn builder(self, url: &str) -> Builder {
        let mut builder = fencelock::Client::builder(url);
        if let Some(lease) = self.lease {
            builder = builder.lease(lease);
        }
        if let Some(claim) = self.claim {
            builder = builder.claim(claim);
        }
        if let Some(limit) = self.request_timeout {
            builder = builder.request_timeout(limit);
        }
        if let Some(limit) = self.connect_timeout {
            builder = builder.connect_timeout(limit);
        }
        if let Some(label) = self.label {
            builder = builder.label(label);
        }
        if let Some(prefix) = self.key_prefix {
            builder = builder.key_prefix(prefix);
        }
        if self.local_run_grants.is_some() || self.local_run_time.is_some() {
            builder = builder.local_run(
                self.local_run_grants.unwrap_or(LOCAL_RUN.0),
                self.local_run_time.unwrap_or(LOCAL_RUN.1),
            );
        }
        if let Some(count) = self.max_waiters {
            builder = builder.max_waiters(count);
        }
        builder
    }
}

impl OptionValue {
    fn duration(self, name: &str) -> Result<Duration> {
        match self {
            OptionValue::Duration(value) => Ok(value),
            _ => Err(invalid(format!("the option {name} is a time"))),
        }
    }

    fn text(self, name: &str) -> Result<String> {
        match self {
            OptionValue::Text(value) => Ok(value),
            _ => Err(invalid(format!("the option {name} is a text"))),
        }
    }

    fn number<N: TryFrom<u64>>(self, name: &str) -> Result<N> {
        match self {
            OptionValue::Number(value) => N::try_from(value)
                .map_err(|_| invalid(format!("the option {name} is too large: {value}"))),
            _ => Err(invalid(format!("the option {name} is a number"))),
        }
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, message)
}
