//! The run's history, in the format that all of them share, when somebody wants it.

use std::fmt::Display;
use std::sync::Arc;

use fencelock_history::{NEMESIS, Record};

use crate::client::{Tag, Who};
use crate::clock::{Instant, MS};
use crate::world::World;

/// What happened to whom, by true time. Empty unless it is kept.
#[derive(Debug, Default)]
pub struct Chronicle {
    kept: bool,
    alone: bool,
    records: Vec<Record>,
}

impl Chronicle {
    /// One that is kept.
    pub fn kept() -> Chronicle {
        Chronicle { kept: true, ..Chronicle::default() }
    }

    /// One that is kept while the simulator's own checkers are silent: it alone is to tell.
    pub fn unchecked() -> Chronicle {
        Chronicle { kept: true, alone: true, ..Chronicle::default() }
    }

    pub(crate) fn alone(&self) -> bool {
        self.alone
    }

    /// The records, in the order of time.
    #[must_use]
    pub fn into_records(mut self) -> Vec<Record> {
        self.records.sort_by_key(|record| record.at);
        self.records
    }
}

impl World {
    /// Whether somebody wants the history.
    pub(crate) fn tells(&self) -> bool {
        self.chronicle.kept
    }

    /// Notes what happened to an acquisition of the client at a place.
    pub(crate) fn tell(
        &mut self,
        slot: usize,
        event: &str,
        tag: Tag,
        fields: &[(&str, &dyn Display)],
    ) {
        if self.chronicle.kept {
            let who = process(self.clients[slot].incarnation);
            self.note(self.now, who, event, format!("{tag:x}"), fields);
        }
    }

    /// Notes what is done to a process, or to the store.
    pub(crate) fn tell_fault(&mut self, at: Instant, event: &str, to: impl Display) {
        if self.chronicle.kept {
            self.note(at, NEMESIS.into(), event, to.to_string(), &[]);
        }
    }

    /// The store loses what it acknowledged, now.
    pub(crate) fn tell_forgot(&mut self) {
        self.tell_fault(self.now, "forgetting", "store");
        self.tell_fault(self.now, "forgot", "store");
    }

    /// An operator breaks a lock, now: the store forgets who holds it, and is meant to.
    pub(crate) fn tell_broke(&mut self, lock: impl Display) {
        self.tell_forgot();
        self.tell_fault(self.now, "broke", lock);
    }

    /// The store's clock steps, now.
    pub(crate) fn tell_step(&mut self, micros: i64) {
        if micros > 0 {
            self.tell_fault(self.now, "leaping", "store");
            self.tell_fault(self.now, "leapt", "store");
        } else if micros < 0 {
            self.tell_fault(self.now, "setting-back", "store");
        }
    }

    /// A process stands still until `until`; its timers may be a moment late.
    pub(crate) fn tell_pause(&mut self, slot: usize, until: Instant) {
        let who = process(self.clients[slot].incarnation);
        self.tell_fault(self.now, "stopping", &who);
        self.tell_fault(self.now, "stopped", &who);
        self.tell_fault(until + 2 * MS, "continued", &who);
    }

    /// How far the holder of `tag` may trust its hold, in true time; 0 when not at all.
    pub(crate) fn trust(&self, slot: usize, tag: Tag) -> Instant {
        let (now, client) = (self.local(slot), &self.clients[slot]);
        let held = client.actors.iter().flat_map(|actor| &actor.held).find(|held| held.tag == tag);
        let left = held.and_then(|held| client.engine.remaining(now, held.key));
        left.filter(|left| !left.is_zero()).map_or(0, |left| client.clock.when(now + left))
    }

    /// Notes how far the holders of a client may trust their holds, where that has changed.
    pub(crate) fn tell_trust(&mut self, slot: usize) {
        if !self.chronicle.kept {
            return;
        }
        let held: Vec<(Tag, Instant)> = self.clients[slot]
            .actors
            .iter()
            .flat_map(|actor| &actor.held)
            .filter(|held| held.lost.is_none())
            .map(|held| (held.tag, held.trusted))
            .collect();
        for (tag, before) in held {
            let trusted = self.trust(slot, tag).max(self.now.min(before));
            if trusted == before {
                continue;
            }
            let event = if trusted > before { "trusted" } else { "shortened" };
            self.tell(slot, event, tag, &[("until", &trusted)]);
            for held in self.clients[slot].actors.iter_mut().flat_map(|it| &mut it.held) {
                if held.tag == tag {
                    held.trusted = trusted;
                }
            }
        }
    }

    /// The explicit owner for whom a caller acts, as a field.
    pub(crate) fn owner_name(who: Who) -> Option<String> {
        match who {
            Who::Local { .. } => None,
            Who::Explicit(number) => Some(format!("owner-{number}")),
        }
    }

    fn note(
        &mut self,
        at: Instant,
        who: Arc<str>,
        event: &str,
        tag: String,
        fields: &[(&str, &dyn Display)],
    ) {
        let fields = fields.iter().map(|(key, it)| ((*key).to_owned(), it.to_string())).collect();
        self.chronicle.records.push(Record {
            at,
            wall: 0,
            who,
            event: event.to_owned(),
            tag,
            fields,
        });
    }
}

/// What a client of the run is called.
fn process(incarnation: usize) -> Arc<str> {
    format!("c{incarnation}").into()
}
