//! Requests into commands.

use crate::name::Name;
use crate::redis::codec::{Codec, Command, Inbox};
use crate::redis::script::{ACQUIRE_AT, BEAT_AT, BREAK_AT, INSPECT_AT, RELEASE_AT, SCRIPTS};
use crate::request::{Acquire, Beat, Mode, Op, Release};
use crate::time::micros_up;

fn digits(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}

fn plain(words: &[&str]) -> Command {
    Command::Plain(words.iter().map(|word| word.as_bytes().to_vec()).collect())
}

impl Codec {
    pub(super) fn command(&self, op: &Op) -> Command {
        match op {
            Op::Acquire(ask) if ask.mode == Mode::Exclusive => {
                self.script(ACQUIRE_AT, &ask.lock, self.acquire(ask))
            }
            // The codec refuses the other modes when it decodes; any harmless command will do.
            Op::Acquire(_) | Op::Revoke(_) | Op::Time => plain(&["TIME"]),
            Op::Beat(beats) => self.beats(beats),
            Op::Release(release) => {
                let (hold, used, flags) = released(release);
                self.script(RELEASE_AT, &release.lock, vec![hold, used, flags])
            }
            Op::Inspect(name) => self.script(INSPECT_AT, name, Vec::new()),
            Op::Break(name) => self.script(BREAK_AT, name, Vec::new()),
            Op::List { prefix, .. } => self.scan(prefix, "0"),
        }
    }

    fn script(&self, at: usize, name: &Name, args: Vec<Vec<u8>>) -> Command {
        Command::Script { script: &SCRIPTS[at], keys: self.keys(name).to_vec(), args }
    }

    fn polling(&self) -> u64 {
        u64::from(self.inbox == Inbox::Polling)
    }

    fn acquire(&self, ask: &Acquire) -> Vec<Vec<u8>> {
        let mut args = vec![
            ask.hold.to_string().into_bytes(),
            self.client.clone().into_bytes(),
            digits(micros_up(ask.lease)),
            digits(ask.not_after),
            digits(ask.floor),
            digits(self.polling()),
        ];
        match ask.wait {
            Some(wait) => args.extend([
                digits(wait.ticket),
                digits(micros_up(wait.claim)),
                digits(micros_up(wait.silence)),
            ]),
            None => args.extend([Vec::new(), Vec::new(), Vec::new()]),
        }
        args.push(ask.owner.as_ref().map_or(Vec::new(), |owner| owner.as_str().into()));
        args.push(ask.attach.map_or(Vec::new(), digits));
        if let Some(after) = &ask.after {
            let (hold, used, flags) = released(after);
            args.extend([hold, used, flags]);
        }
        // The absent tail is left out: short arguments are cheaper, and the script's quick part
        // looks at the length.
        while args.last().is_some_and(Vec::is_empty) {
            args.pop();
        }
        args
    }

    fn beats(&self, beats: &[Beat]) -> Command {
        let mut keys = Vec::with_capacity(beats.len() * 2);
        let mut args = Vec::with_capacity(beats.len() * 3 + 2);
        args.extend([self.client.clone().into_bytes(), digits(self.polling())]);
        for beat in beats {
            keys.extend(self.keys(&beat.lock));
            args.extend([
                beat.hold.to_string().into_bytes(),
                digits(micros_up(beat.lease)),
                digits(beat.used),
            ]);
        }
        Command::Script { script: &SCRIPTS[BEAT_AT], keys, args }
    }
}

fn released(release: &Release) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let losses = 4 * u64::from(release.losses);
    let flags = u64::from(release.told) + 2 * u64::from(release.lost) + losses;
    (release.hold.to_string().into_bytes(), digits(release.used), digits(flags))
}
