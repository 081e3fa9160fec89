//! Requests into commands, replies into outcomes.

use crate::error::{Error, ErrorKind};
use crate::id::ClientId;
use crate::name::Name;
use crate::redis::Value;
use crate::redis::key::{decode_name, encode_name};
use crate::redis::script::{SCRIPTS, SHARDED, Script};
use crate::redis::wide::Wide;
use crate::redis::words::Words;
use crate::reply::{Failure, Push, Reply};
use crate::request::Op;
use crate::secret::Secrets;
use crate::store::clock_ahead;
use crate::token::MAX_STORE_TIME;

/// The longest prefix, in bytes.
const MAX_PREFIX: usize = 64;

/// How many keys a lock has.
pub(super) const KEYS: usize = 5;

/// How many are named in a cluster: the last one never exists. A slot that moves takes its keys along one by
/// one, and on the way a script could find that a key which it emptied must not be written again. With that one
/// among the keys, servers say TRYAGAIN before anything is done; what needs the record alone goes on.
pub(super) const CLUSTER_KEYS: usize = 6;

/// How many of them an exclusive lock needs that nobody shares.
pub(super) const NARROW: usize = 3;

/// What to send for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `EVALSHA sha numkeys keys… args…`
    Script {
        /// Which script.
        script: &'static Script,
        /// Every key that it touches.
        keys: Words,
        /// Its arguments.
        args: Words,
    },
    /// An ordinary command and its arguments.
    Plain(Vec<Vec<u8>>),
}

/// How the client hears pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inbox {
    /// It subscribes to its channel.
    Subscribed,
    /// It cannot: it polls.
    Polling,
    /// Each lock has a channel of its own at this server, in the lock's slot; whether the client
    /// subscribes to those of what is asked about, or else polls.
    Sharded(bool),
}

/// The dialect of one client.
#[derive(Debug)]
pub struct Codec {
    pub(super) prefix: String,
    /// Id and label, as the scripts store them.
    pub(super) client: String,
    pub(super) channel: Vec<u8>,
    pub(super) inbox: Inbox,
    pub(super) secrets: Secrets,
    pub(super) wide: Wide,
    pub(super) cluster: bool,
}

impl Codec {
    /// A codec for `client`, with `prefix` before every key and channel (default `fl:`).
    ///
    /// # Errors
    /// As [`Codec::check_prefix`].
    pub fn new(client: ClientId, prefix: &str) -> Result<Codec, Error> {
        Codec::check_prefix(prefix)?;
        Ok(Codec {
            prefix: prefix.to_owned(),
            channel: format!("{prefix}inbox:{}", client.id()).into_bytes(),
            client: format!("{} {}", client.id(), client.label()),
            inbox: Inbox::Subscribed,
            secrets: Secrets::default(),
            wide: Wide::default(),
            cluster: false,
        })
    }

    /// For servers of a cluster.
    #[must_use]
    pub fn in_cluster(mut self) -> Codec {
        self.cluster = true;
        self
    }

    /// Checks a prefix of keys and channels.
    ///
    /// # Errors
    /// When it has braces, NUL, or more than 64 bytes.
    pub fn check_prefix(prefix: &str) -> Result<(), Error> {
        if prefix.len() > MAX_PREFIX || prefix.contains(['{', '}', '\0']) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("a key prefix may have {MAX_PREFIX} bytes, and no braces and no NUL"),
            ));
        }
        Ok(())
    }

    /// Checks the server's time, in microseconds, as the scripts do: a connection to a server whose
    /// clock is absurd is of no use.
    ///
    /// # Errors
    /// When it leaves no room for tokens.
    pub fn check_time(now: u64) -> Result<(), Error> {
        if now < MAX_STORE_TIME {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Misconfigured, clock_ahead().message))
    }

    /// Whether the client has a subscription now; encodes later requests accordingly.
    pub fn set_inbox(&mut self, inbox: Inbox) {
        self.inbox = inbox;
    }

    /// Which locks are shared, as another codec of the same server and prefix learns it, too.
    pub fn set_wide(&mut self, wide: Wide) {
        self.wide = wide;
    }

    /// Which locks are shared, as far as replies said so.
    pub fn wide(&self) -> Wide {
        self.wide.clone()
    }

    /// What no error may show, whatever the server says.
    pub fn set_secrets(&mut self, secrets: Secrets) {
        self.secrets = secrets;
    }

    /// What the server said, as it may be shown.
    pub fn shown<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        self.secrets.hide(text)
    }

    /// The channel to subscribe to.
    pub fn channel(&self) -> &[u8] {
        &self.channel
    }

    /// What to send. [`Op::List`] takes several rounds: send this, then what
    /// [`Codec::list_step`] gives.
    pub fn encode(&self, op: &Op) -> Command {
        self.command(op)
    }

    /// What the reply to `op` means. `NOSCRIPT` is refused as `Again`: the transport loads the
    /// script before it says so. For [`Op::List`] use [`Codec::list_step`].
    ///
    /// # Errors
    /// When the store did not execute it.
    pub fn decode(&self, op: &Op, value: Value) -> Result<Reply, Failure> {
        self.outcome(op, value).map_err(Failure::Refused)
    }

    /// What a message on the inbox means; `None` for one that is not ours.
    pub fn decode_push(&self, payload: &[u8]) -> Option<Push> {
        super::push::decode(payload)
    }

    /// All scripts, to be loaded at connect.
    pub fn scripts() -> &'static [Script] {
        &SCRIPTS[..]
    }

    /// The same for [`Inbox::Sharded`].
    pub fn sharded_scripts() -> &'static [Script] {
        &SHARDED[..]
    }

    /// The channel of one lock, in its slot, for [`Inbox::Sharded`].
    pub fn channel_of(&self, name: &Name) -> Vec<u8> {
        let name = encode_name(name.as_str());
        [&self.channel, &b":{"[..], name.as_bytes(), b"}"].concat()
    }

    /// Whose channel it is.
    pub fn lock_of(&self, channel: &[u8]) -> Option<Name> {
        let name =
            channel.strip_prefix(&self.channel[..])?.strip_prefix(b":{")?.strip_suffix(b"}")?;
        decode_name(core::str::from_utf8(name).ok()?)
    }

    /// The keys of a lock: its record; its queue's entries, and their order; and, of one that is
    /// shared, the holds and their order.
    pub fn keys(&self, name: &Name) -> [Vec<u8>; KEYS] {
        let mut keys = Words::default();
        self.add_keys(&mut keys, name, KEYS);
        [0, 1, 2, 3, 4].map(|at| keys.get(at).unwrap_or_default().to_vec())
    }

    /// The first `count` of a lock's keys.
    pub(super) fn add_keys(&self, keys: &mut Words, name: &Name, count: usize) {
        let (prefix, name) = (self.prefix.as_bytes(), encode_name(name.as_str()));
        for end in ["}", "}:q", "}:z", "}:h", "}:d", "}:-"].iter().take(count) {
            keys.push([prefix, b"{", name.as_bytes(), end.as_bytes()]);
        }
    }
}
