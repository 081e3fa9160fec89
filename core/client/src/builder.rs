//! Options of a client, and connecting.

#[cfg(feature = "redis")]
use std::sync::Arc;
use std::time::Duration;

use fencelock_engine::Options;

use crate::Result;
use crate::open::StoreOptions;
use crate::url::{ClientOptions, StoreUrl};

/// Options of a [`Client`](crate::Client); from [`Client::builder`](crate::Client::builder).
///
/// The same options may stand in the URL's query: `lease`, `claim`, `request_timeout`,
/// `connect_timeout`, `retention`, `clock_slack` with a unit (`10s`, `500ms`, `2m`), `label`. What is
/// set here wins.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
/// use std::time::Duration;
///
/// let client = fencelock::Client::builder("memory:?lease=20s")
///     .claim(Duration::from_secs(1))
///     .request_timeout(Duration::from_secs(2))
///     .local_run(16, Duration::from_millis(5))
///     .label("worker-3")
///     .connect()
///     .await?;
/// # drop(client); Ok(()) }
/// ```
#[derive(Clone)]
pub struct Builder {
    pub(crate) url: String,
    pub(crate) set: ClientOptions,
    pub(crate) local_run: Option<(u32, Duration)>,
    pub(crate) max_waiters: Option<usize>,
    pub(crate) store: StoreOptions,
}

/// How long connecting may take unless said otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How far apart the clocks of servers may be that take over from each other, unless said otherwise.
const CLOCK_SLACK: Duration = Duration::from_millis(100);

impl Builder {
    pub(crate) fn new(url: &str) -> Builder {
        Builder {
            url: url.to_owned(),
            set: ClientOptions::default(),
            local_run: None,
            max_waiters: None,
            store: StoreOptions::default(),
        }
    }

    /// The lease of holds without an explicit one; renewed at a third of it. 100 ms to 7 days,
    /// default 30 s. Shorter: a crashed holder's lock is free earlier. Longer: a holder survives a
    /// longer outage of the store.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Builder {
        self.set.lease = Some(lease);
        self
    }

    /// The lease of a hold that was handed over to a waiter, until the waiter is heard from; a
    /// waiter shows itself each third of it. 100 ms to 60 s, default 3 s. It bounds how long a
    /// waiter that died delays the ones behind it.
    #[must_use]
    pub fn claim(mut self, claim: Duration) -> Builder {
        self.set.claim = Some(claim);
        self
    }

    /// How long the store may owe an answer before its connection is doubted, and another one is
    /// tried; also the bound of a try, a release and every other call that has no bound of its own.
    /// At least 10 ms, default 3 s.
    #[must_use]
    pub fn request_timeout(mut self, limit: Duration) -> Builder {
        self.set.request_timeout = Some(limit);
        self
    }

    /// How long [`Builder::connect`] may take, and later each attempt to connect again. Above
    /// zero; default 5 s.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Builder {
        self.set.connect_timeout = Some(limit);
        self
    }

    /// How long the store keeps a lock's record after a release that leaves nothing to tell: nobody
    /// holds or waits, and the holder released in time. So names that are used once do not fill the
    /// store. Later the next holder's `previous_abandoned` is unknown. At least twice the claim, at
    /// most 24 h, default 60 s or twice the claim; and more than the store's clock may ever be set
    /// back, or the clocks of the servers that take over from each other differ, since fencing tokens
    /// stay in order by it.
    #[must_use]
    pub fn retention(mut self, retention: Duration) -> Builder {
        self.set.retention = Some(retention);
        self
    }

    /// How far apart the clocks of servers may be that take over from each other: so much earlier a
    /// holder stops trusting its hold, and leases are at least ten times as long. Default 100 ms where
    /// the URL names servers that do (`redis+sentinel://`, `redis+cluster://`), otherwise 0; set it where
    /// a single address leads to another server after a failover. At most 60 s.
    #[must_use]
    pub fn clock_slack(mut self, slack: Duration) -> Builder {
        self.set.clock_slack = Some(slack);
        self
    }

    /// How many times in a row, and for how long, a released lock may pass to waiters of this
    /// client without asking the store while another client waits; to callers that came after that
    /// client's only while the latest holds were so short that the run can be expected to end in
    /// time. Default 64 and 10 ms; 0 grants turn local hand-off off.
    #[must_use]
    pub fn local_run(mut self, grants: u32, time: Duration) -> Builder {
        self.local_run = Some((grants, time));
        self
    }

    /// How many acquires may wait at a time in this client; more are refused. Default 1,000,000.
    #[must_use]
    pub fn max_waiters(mut self, count: usize) -> Builder {
        self.max_waiters = Some(count);
        self
    }

    /// A label for people, shown beside the client's id wherever holders are listed: up to 128
    /// bytes, no control characters. Default: empty.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Builder {
        self.set.label = Some(label.into());
        self
    }

    /// Redis: what every key begins with, instead of `fl:`. Clients must agree on it to share
    /// locks.
    #[must_use]
    pub fn key_prefix(mut self, prefix: impl Into<String>) -> Builder {
        self.store.key_prefix = Some(prefix.into());
        self
    }

    /// Redis: asked for the login at every connect, instead of that in the URL; for passwords that
    /// rotate. A closure that gives `Result<Login>` will do; it runs on the client's runtime, so
    /// it must not block.
    #[cfg(feature = "redis")]
    #[must_use]
    pub fn credentials(mut self, credentials: impl crate::redis::Credentials + 'static) -> Builder {
        self.store.credentials = Some(Arc::new(credentials));
        self
    }

    /// Redis: options that are given as such instead of in a URL; see [`crate::redis::Options`].
    /// The builder's URL is not used then.
    #[cfg(feature = "redis")]
    #[must_use]
    pub fn redis_options(mut self, options: crate::redis::Options) -> Builder {
        self.store.redis = Some(options);
        self
    }

    /// The parsed URL, the engine's options, and what else connecting needs.
    pub(crate) fn resolve(self) -> Result<Resolved> {
        let (url, from_url) = self.store.url(&self.url)?;
        let set = self.set.or(from_url);
        let mut options = Options::default();
        if let Some(lease) = set.lease {
            options.lease = lease;
        }
        if let Some(claim) = set.claim {
            options.claim = claim;
        }
        if let Some(limit) = set.request_timeout {
            options.request_timeout = limit;
        }
        options.retention = set.retention.unwrap_or(options.retention.max(options.claim * 2));
        if let Some((grants, time)) = self.local_run {
            options.local_run_grants = grants;
            options.local_run_time = time;
        }
        if let Some(count) = self.max_waiters {
            options.max_waiters = count;
        }
        let slack = url.takes_over().then_some(CLOCK_SLACK);
        options.clock_slack = set.clock_slack.or(slack).unwrap_or_default();
        options.check()?;
        Ok(Resolved {
            url,
            options,
            label: set.label.unwrap_or_default(),
            connect_timeout: set.connect_timeout,
            store: self.store,
        })
    }
}

impl std::fmt::Debug for Builder {
    /// Says nothing of the URL, which may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").field("options", &self.set).finish_non_exhaustive()
    }
}

/// A builder whose values have been read and checked.
pub(crate) struct Resolved {
    pub(crate) url: StoreUrl,
    pub(crate) options: Options,
    pub(crate) label: String,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) store: StoreOptions,
}

impl Resolved {
    /// How long connecting may take.
    pub(crate) fn patience(&self) -> Duration {
        self.connect_timeout.unwrap_or(CONNECT_TIMEOUT)
    }
}
