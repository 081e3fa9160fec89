//! The scripts, put together from their parts.

use std::sync::LazyLock;

/// A script that this version ships.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Script {
    /// Its operation, as the file is named.
    pub name: &'static str,
    /// The whole text as it is loaded.
    pub text: &'static str,
    /// SHA-1 of the text, 40 hexadecimal digits.
    pub sha: &'static str,
}

impl Script {
    /// `channels` says how messages are published.
    fn new(name: &'static str, channels: &str, text: &str) -> Script {
        let text: &'static str = [channels, text].concat().leak();
        let sha = sha1_smol::Sha1::from(text).digest().to_string();
        Script { name, text, sha: sha.leak() }
    }
}

// What serves the frequent case comes first and returns before the next part builds its functions. `$first`
// comes before all of it.
macro_rules! acquire {
    ($($first:literal)?) => {
        concat!(
            include_str!("time.lua"),
            $(include_str!($first),)?
            include_str!("acquire_free.lua"),
            include_str!("together.lua"),
            include_str!("acquire_shared.lua"),
            include_str!("head.lua"),
            include_str!("acquire_taken.lua"),
            include_str!("prelude.lua"),
            include_str!("holds.lua"),
            include_str!("keeping.lua"),
            include_str!("rules.lua"),
            include_str!("acquire.lua")
        )
    };
}
macro_rules! beat {
    ($($first:literal)?) => {
        concat!(
            include_str!("time.lua"),
            $(include_str!($first),)?
            include_str!("head.lua"),
            include_str!("beat_quick.lua"),
            include_str!("together.lua"),
            include_str!("beat_shared.lua"),
            include_str!("beat_lone.lua"),
            include_str!("prelude.lua"),
            include_str!("holds.lua"),
            include_str!("keeping.lua"),
            include_str!("rules.lua"),
            include_str!("beat.lua")
        )
    };
}
const ACQUIRE: &str = acquire!();
const BEAT: &str = beat!();
const RELEASE: &str = concat!(
    include_str!("time.lua"),
    include_str!("release_last.lua"),
    include_str!("together.lua"),
    include_str!("release_shared.lua"),
    include_str!("head.lua"),
    include_str!("release_handed.lua"),
    include_str!("prelude.lua"),
    include_str!("holds.lua"),
    include_str!("keeping.lua"),
    include_str!("rules.lua"),
    include_str!("release.lua")
);
const CONVERT: &str = concat!(
    include_str!("time.lua"),
    include_str!("prelude.lua"),
    include_str!("holds.lua"),
    include_str!("keeping.lua"),
    include_str!("rules.lua"),
    include_str!("convert.lua")
);
const BREAK: &str = concat!(
    include_str!("time.lua"),
    include_str!("prelude.lua"),
    include_str!("holds.lua"),
    include_str!("keeping.lua"),
    include_str!("rules.lua"),
    include_str!("break.lua")
);
const RESIZE: &str = concat!(
    include_str!("time.lua"),
    include_str!("prelude.lua"),
    include_str!("holds.lua"),
    include_str!("keeping.lua"),
    include_str!("rules.lua"),
    include_str!("resize.lua")
);
const INSPECT: &str = concat!(include_str!("time.lua"), include_str!("inspect.lua"));

// Of a server of a quorum. The scripts of a single one stay as they are.
const VOTE: &str = acquire!("vote.lua");
const VOTES: &str = beat!("vote.lua");
const BIRTH: &str = include_str!("birth.lua");

pub(super) const ACQUIRE_AT: usize = 0;
pub(super) const BEAT_AT: usize = 1;
pub(super) const RELEASE_AT: usize = 2;
pub(super) const BREAK_AT: usize = 3;
pub(super) const INSPECT_AT: usize = 4;
pub(super) const CONVERT_AT: usize = 5;
pub(super) const RESIZE_AT: usize = 6;
pub(super) const BIRTH_AT: usize = 7;

fn scripts(channels: &str) -> [Script; 7] {
    [
        ("acquire", ACQUIRE),
        ("beat", BEAT),
        ("release", RELEASE),
        ("break", BREAK),
        ("inspect", INSPECT),
        ("convert", CONVERT),
        ("resize", RESIZE),
    ]
    .map(|(name, text)| Script::new(name, channels, text))
}

/// All scripts, each at its place.
pub(super) static SCRIPTS: LazyLock<[Script; 7]> =
    LazyLock::new(|| scripts(include_str!("plain.lua")));

/// The same, for servers of a cluster that have sharded channels.
pub(super) static SHARDED: LazyLock<[Script; 7]> =
    LazyLock::new(|| scripts(include_str!("sharded.lua")));

/// The same of a server of a quorum, and the script of its birth.
pub(super) static QUORUM_SCRIPTS: LazyLock<[Script; 8]> = LazyLock::new(|| {
    let [_, _, release, end, inspect, convert, resize] = *SCRIPTS;
    let plain = include_str!("plain.lua");
    [
        Script::new("acquire", plain, VOTE),
        Script::new("beat", plain, VOTES),
        release,
        end,
        inspect,
        convert,
        resize,
        Script::new("birth", "", BIRTH),
    ]
});
