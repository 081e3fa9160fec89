//! Where a scene is played: one store, its players, and what they say.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fencelock::blocking::Client;
use fencelock_nemesis::run::{Kind, Store};
use fencelock_nemesis::{Actor, History, Record, Role};
use fencelock_testkit::{Fault, Proxy, eventually};

/// A store that several languages play on at once, each with locks of its own.
pub(crate) struct House {
    pub kind: Kind,
    pub store: Store,
    pub history: History,
    born: AtomicU64,
}

impl House {
    pub fn open(kind: Kind, folder: &Path) -> io::Result<House> {
        let history = History::watched();
        let store = Store::start(kind, folder, &history)?;
        Ok(House { kind, store, history, born: AtomicU64::new(0) })
    }

    /// A client that looks at the store by its own way.
    pub fn observer(&self) -> Result<Client, fencelock::Error> {
        Client::connect(self.store.url())
    }

    /// Starts a player and waits until it is connected.
    pub fn cast(&self, role: &Role) -> io::Result<Player> {
        let number = self.born.fetch_add(1, Ordering::Relaxed);
        let (ways, url) = self.store.way()?;
        let nothing: [(&str, &str); 0] = [];
        let name = format!("{}-{number}", role.name);
        let mut actor = Actor::start_as(&self.history, &name, role, nothing);
        let opened = actor.ask(&format!("open c {url}"), "opened", "c");
        let word = |key: &str| opened.get(key).unwrap_or_default().to_owned();
        let (lacks, knows) = (word("lacks"), word("knows"));
        Ok(Player { actor, ways, url, lacks, knows, tags: 0 })
    }
}

/// One actor and its way to the store.
pub(crate) struct Player {
    pub actor: Actor,
    /// A proxy before each server.
    pub ways: Vec<Proxy>,
    pub url: String,
    /// What its language cannot do.
    pub lacks: String,
    /// What its driver knows besides.
    pub knows: String,
    tags: u64,
}

impl Player {
    /// Asks for a lock and does not wait for what comes of it. Gives the acquisition's tag.
    pub fn asks(&mut self, lock: &str, options: &str) -> String {
        self.asks_of("c", lock, options)
    }

    /// The same through another client of its own.
    pub fn asks_of(&mut self, client: &str, lock: &str, options: &str) -> String {
        self.tags += 1;
        let tag = format!("t{}", self.tags);
        self.actor.tell(format!("acquire {tag} {client} {lock} {options}").trim_end());
        tag
    }

    /// Goes on with a hold of `owner` by its ticket, which the driver does not look into.
    pub fn attaches(&mut self, ticket: &str, owner: &str) -> String {
        self.tags += 1;
        let tag = format!("t{}", self.tags);
        self.actor.tell(&format!("attach {tag} c {ticket} owner={owner}"));
        tag
    }

    /// Waits until it has the lock.
    pub fn granted(&self, tag: &str) -> Record {
        self.says(tag, "granted", "failed")
    }

    /// Waits until it has heard that it does not get the lock; gives the kind of error.
    pub fn refused(&self, tag: &str) -> String {
        self.says(tag, "failed", "granted").get("kind").unwrap_or_default().to_owned()
    }

    /// Waits for one word about a tag, and fails the scene when it says the other.
    fn says(&self, tag: &str, wanted: &str, other: &str) -> Record {
        let said = eventually(&format!("{} says {wanted} {tag}", self.actor.name()), || {
            self.actor.said(wanted, tag).or_else(|| self.actor.said(other, tag))
        });
        assert!(said.is(wanted), "instead of '{wanted}' it said: {said}");
        said
    }

    /// Acquires, and waits for that.
    pub fn acquires(&mut self, lock: &str, options: &str) -> (String, Record) {
        let tag = self.asks(lock, options);
        let granted = self.granted(&tag);
        (tag, granted)
    }

    /// Tries, and gives the kind of error with which it failed.
    pub fn tries(&mut self, lock: &str) -> String {
        let tag = self.asks(lock, "wait=try");
        self.refused(&tag)
    }

    /// Gives a semaphore another number of permits, and waits for what came of it.
    pub fn resizes(&mut self, lock: &str, of: u32) -> Record {
        self.tags += 1;
        let tag = format!("t{}", self.tags);
        self.actor.tell(&format!("resize {tag} c {lock} {of}"));
        self.says(&tag, "resized", "failed")
    }

    /// Releases, and waits for that.
    pub fn releases(&mut self, tag: &str) -> Record {
        self.actor.tell(&format!("release {tag}"));
        self.says(tag, "released", "unreleased")
    }

    /// Releases what is lost; gives the kind of error.
    pub fn releases_badly(&mut self, tag: &str) -> String {
        self.actor.tell(&format!("release {tag}"));
        let said = self.says(tag, "unreleased", "released");
        said.get("kind").unwrap_or_default().to_owned()
    }

    /// Converts a hold, and gives what it says of that.
    pub fn converts(&mut self, verb: &str, tag: &str) -> Record {
        let from = self.actor.history().len();
        self.actor.tell(&format!("{verb} {tag}"));
        eventually(&format!("{} answers '{verb} {tag}'", self.actor.name()), || {
            let said = |event| self.actor.said_since(from, event, tag);
            said("converted").or_else(|| said("unconverted"))
        })
    }

    /// Whether it trusts a hold, by its own word of this moment.
    pub fn trusts(&mut self, tag: &str) -> (bool, Record) {
        let seen = self.actor.ask(&format!("look {tag}"), "seen", tag);
        (seen.get("valid") == Some("true"), seen)
    }

    /// Sets what its ways do to what passes.
    pub fn way(&self, fault: Fault) {
        self.ways.iter().for_each(|it| it.set(fault));
    }

    /// Lets everything pass again, on a new connection.
    pub fn mended(&self) {
        for proxy in &self.ways {
            proxy.set(Fault::Pass);
            proxy.cut();
        }
    }
}

/// What a scene has: two players of one language, one in Rust, and who looks on.
pub(crate) struct Stage<'a> {
    pub house: &'a House,
    pub role: &'a Role,
    pub one: Player,
    pub two: Player,
    pub rust: Player,
    pub observer: Client,
    lock: Arc<str>,
}

impl<'a> Stage<'a> {
    pub fn set(house: &'a House, role: &'a Role) -> Result<Stage<'a>, String> {
        let text = |error: io::Error| error.to_string();
        Ok(Stage {
            one: house.cast(role).map_err(text)?,
            two: house.cast(role).map_err(text)?,
            rust: house.cast(&Role::own()).map_err(text)?,
            observer: house.observer().map_err(|error| error.to_string())?,
            house,
            role,
            lock: "".into(),
        })
    }

    /// Names the lock of the next scene.
    pub fn begin(&mut self, scene: &str) {
        self.lock = format!("{}-{scene}", self.role.name).into();
    }

    /// The lock of this scene.
    pub fn lock(&self) -> Arc<str> {
        self.lock.clone()
    }

    /// Waits until so many wait for this scene's lock.
    pub fn waiting(&self, count: usize) {
        let lock = self.lock();
        eventually("the waiters are in the queue", || {
            let info = self.observer.inspect(&*lock).ok()??;
            (info.waiters.len() == count).then_some(())
        });
    }
}
