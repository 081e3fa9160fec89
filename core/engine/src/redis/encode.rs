//! Requests into commands.

use crate::id::OwnerId;
use crate::name::Name;
use crate::redis::codec::{CLUSTER_KEYS, Codec, Command, Inbox, KEYS, NARROW};
use crate::redis::script::{
    ACQUIRE_AT, BEAT_AT, BREAK_AT, CONVERT_AT, INSPECT_AT, RELEASE_AT, RESIZE_AT, SCRIPTS, SHARDED,
    Script,
};
use crate::redis::words::Words;
use crate::request::{Acquire, Beat, Convert, Mode, Op, Release};
use crate::time::micros_up;

/// In milliseconds: a day.
const LONGEST_RETENTION: u64 = 24 * 3600 * 1_000;

/// In a beat's flags: it names all keys of each lock.
const WIDE: u64 = 2;

/// In a beat's flags: it names the record alone, which is renewed, and nothing else is done.
const LONE: u64 = 4;

/// In a beat's flags: it names six keys of each lock, as in a cluster.
const GUARDED: u64 = 8;

fn plain(words: &[&str]) -> Command {
    Command::Plain(words.iter().map(|word| word.as_bytes().to_vec()).collect())
}

impl Codec {
    pub(super) fn command(&self, op: &Op) -> Command {
        match op {
            Op::Acquire(ask) => {
                let keys = self.keys_for(&ask.lock, ask.mode);
                self.script_of(ACQUIRE_AT, &ask.lock, keys, self.acquire(ask))
            }
            // The codec refuses it when it decodes; any harmless command will do.
            Op::Revoke(_) | Op::Time => plain(&["TIME"]),
            Op::Beat(beats) => self.beats(beats),
            Op::Release(release) => {
                let mut args = Words::with_capacity(4, 24);
                add_release(&mut args, release);
                let retention = u64::try_from(release.retention.as_millis()).unwrap_or(u64::MAX);
                args.number(retention.clamp(1, LONGEST_RETENTION));
                if self.cluster {
                    args.number(1);
                }
                // What is not there is not named: see `redis/release_handed.lua`.
                let keys = match self.keys_for(&release.lock, release.mode) {
                    NARROW if release.alone => 1,
                    CLUSTER_KEYS if release.alone && release.mode == Mode::Exclusive => 1,
                    keys => keys,
                };
                self.script_of(RELEASE_AT, &release.lock, keys, args)
            }
            Op::Convert(ask) => self.script(CONVERT_AT, &ask.lock, self.conversion(ask)),
            Op::Resize(ask) => {
                let mut args = Words::with_capacity(1, 8);
                args.number(u64::from(ask.of));
                self.script(RESIZE_AT, &ask.lock, args)
            }
            Op::Inspect(name) => self.script(INSPECT_AT, name, Words::default()),
            Op::Break(what) => {
                let mut args = Words::with_capacity(2, 24);
                args.number(what.token);
                if let Some(hold) = what.hold {
                    args.hold(hold);
                }
                self.script(BREAK_AT, &what.lock, args)
            }
            Op::List { prefix, .. } => self.scan(prefix, "0"),
        }
    }

    /// How many of a lock's keys a request names.
    fn keys_for(&self, lock: &Name, mode: Mode) -> usize {
        if self.cluster {
            CLUSTER_KEYS
        } else if mode == Mode::Exclusive && !self.wide.has(lock) {
            NARROW
        } else {
            KEYS
        }
    }

    fn script(&self, at: usize, name: &Name, args: Words) -> Command {
        self.script_of(at, name, if self.cluster { CLUSTER_KEYS } else { KEYS }, args)
    }

    /// With the first few of the lock's keys.
    fn script_of(&self, at: usize, name: &Name, count: usize, args: Words) -> Command {
        let mut keys = Words::with_capacity(KEYS, 40);
        self.add_keys(&mut keys, name, count);
        Command::Script { script: self.script_at(at), keys, args }
    }

    fn script_at(&self, at: usize) -> &'static Script {
        match self.inbox {
            Inbox::Sharded(_) => &SHARDED[at],
            Inbox::Subscribed | Inbox::Polling => &SCRIPTS[at],
        }
    }

    fn polling(&self) -> u64 {
        u64::from(matches!(self.inbox, Inbox::Polling | Inbox::Sharded(false)))
    }

    fn acquire(&self, ask: &Acquire) -> Words {
        let mut args = Words::with_capacity(14, 20);
        args.hold(ask.hold);
        // Stored as it stands, with the client's name.
        match ask.local_waiters {
            0 => args.push([self.client.as_bytes()]),
            count => {
                let count = itoa::Buffer::new().format(count).to_owned();
                args.push([self.client.as_bytes(), b"\t", count.as_bytes()]);
            }
        }
        args.number(micros_up(ask.lease));
        args.number(ask.not_after);
        args.number(ask.floor);
        args.number(self.polling());
        match ask.wait {
            Some(wait) => {
                args.number(wait.ticket);
                args.number(micros_up(wait.claim));
                args.number(micros_up(wait.silence));
            }
            None => (0..3).for_each(|_| args.push([])),
        }
        // Permits have no owner.
        let owner = ask.owner.as_ref().filter(|_| !matches!(ask.mode, Mode::Permits { .. }));
        args.push([owner.map_or("", OwnerId::as_str).as_bytes()]);
        match ask.attach {
            Some(token) => args.number(token),
            None => args.push([]),
        }
        match &ask.after {
            Some(after) => add_release(&mut args, after),
            None => (0..3).for_each(|_| args.push([])),
        }
        add_mode(&mut args, ask.mode);
        // The absent tail is left out: short arguments are cheaper, and the script's quick part
        // looks at the length.
        args.trim();
        args
    }

    fn conversion(&self, ask: &Convert) -> Words {
        let mut args = Words::with_capacity(8, 20);
        args.hold(ask.hold);
        add_mode(&mut args, ask.to);
        args.number(micros_up(ask.lease));
        args.number(ask.not_after);
        args.number(ask.floor);
        args.number(self.polling());
        args.number(ask.used);
        args.number(u64::from(ask.told) + 4 * u64::from(ask.losses));
        args
    }

    fn beats(&self, beats: &[Beat]) -> Command {
        let each = beats.iter().map(|beat| self.keys_for(&beat.lock, beat.mode)).max();
        let each = match beats {
            [beat] if beat.apart => 1,
            _ => each.unwrap_or(NARROW),
        };
        let named = match each {
            1 => LONE,
            KEYS => WIDE,
            CLUSTER_KEYS => GUARDED,
            _ => 0,
        };
        let mut keys = Words::with_capacity(beats.len() * each, 40);
        let mut args = Words::with_capacity(beats.len() * 4 + 2, 20);
        args.push([self.client.as_bytes()]);
        args.number(self.polling() + named);
        for beat in beats {
            self.add_keys(&mut keys, &beat.lock, each);
            args.hold(beat.hold);
            args.number(micros_up(beat.lease));
            args.number(beat.used);
            args.number(micros_up(beat.silence));
        }
        // Mostly nobody waits: then there is nothing more to say.
        if beats.iter().any(|beat| beat.local_waiters > 0) {
            beats.iter().for_each(|beat| args.number(u64::from(beat.local_waiters)));
        }
        Command::Script { script: self.script_at(BEAT_AT), keys, args }
    }
}

/// Nothing where it is exclusive.
fn add_mode(args: &mut Words, mode: Mode) {
    let mut digits = [itoa::Buffer::new(), itoa::Buffer::new()];
    let [one, other] = &mut digits;
    match mode {
        Mode::Exclusive => args.push([]),
        Mode::Shared => args.push([b"s"]),
        Mode::Permits { count, of } => {
            let (count, of) = (one.format(count), other.format(of));
            args.push([b"p ", count.as_bytes(), b" ", of.as_bytes()]);
        }
    }
}

fn add_release(args: &mut Words, release: &Release) {
    let losses = 4 * u64::from(release.losses);
    args.hold(release.hold);
    args.number(release.used);
    args.number(u64::from(release.told) + 2 * u64::from(release.lost) + losses);
}
