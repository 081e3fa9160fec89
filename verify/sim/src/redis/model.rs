//! The server: scripts, faults and subscribers over the keyspace.

use std::cell::RefCell;
use std::collections::BTreeMap;

use fencelock_engine::redis::{Codec, Command, Script, Value, Words};
use mlua::{Function, Lua, MultiValue, Table, Value as LuaValue};

use crate::redis::keyspace::{Keyspace, Stored, traits};
use crate::redis::lua::{environment, from_lua, to_lua, words};

/// Messages that somebody listens to: channel and payload.
pub type Published = Vec<(Vec<u8>, Vec<u8>)>;

/// One modelled Redis server.
///
/// Time comes with each command; nothing runs by itself. Every script of this version is loaded
/// at the start, as a transport does when it connects.
pub struct ModelRedis {
    lua: Lua,
    host: Table,
    compiled: BTreeMap<&'static str, Function>,
    /// The scripts in which a bug is planted, as they run.
    patched: BTreeMap<&'static str, String>,
    loaded: BTreeMap<&'static str, bool>,
    keyspace: Keyspace,
    oom: bool,
    readonly: bool,
    publish_denied: bool,
    work: u64,
}

impl std::fmt::Debug for ModelRedis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelRedis").field("keyspace", &self.keyspace).finish_non_exhaustive()
    }
}

impl Default for ModelRedis {
    fn default() -> ModelRedis {
        ModelRedis::new()
    }
}

/// One run of a command or script: what it may do, and what it published.
struct Run<'a> {
    now: u64,
    keyspace: &'a mut Keyspace,
    oom: bool,
    readonly: bool,
    publish_denied: bool,
    /// A script that has written is not refused any more.
    written: bool,
    subscribers: &'a dyn Fn(&[u8]) -> bool,
    published: Published,
    /// The keys that a script declared; `None` outside of scripts.
    declared: Option<&'a Words>,
    /// How much was read and written.
    work: &'a mut u64,
}

impl Run<'_> {
    fn execute(&mut self, command: &[Vec<u8>]) -> Value {
        let name = command.first().map_or(&[][..], Vec::as_slice);
        if name.eq_ignore_ascii_case(b"PUBLISH") {
            return self.publish(command);
        }
        let traits = traits(name);
        if traits.write && !self.written && self.readonly {
            return Value::Error(
                "READONLY You can't write against a read only replica.".to_owned(),
            );
        }
        if traits.denied_when_full && !self.written && self.oom {
            return Value::Error(
                "OOM command not allowed when used memory > 'maxmemory'.".to_owned(),
            );
        }
        if let (Some(declared), Some(key)) = (self.declared, command.get(1))
            && !declared.iter().any(|it| it == key)
        {
            return Value::Error(format!(
                "ERR Script attempted to access a non declared key {:?}",
                String::from_utf8_lossy(key)
            ));
        }
        self.written |= traits.write;
        let reply = self.keyspace.execute(self.now, command);
        *self.work += command.len() as u64;
        if let Value::Array(items) = &reply {
            *self.work += items.len() as u64;
        }
        reply
    }

    fn publish(&mut self, command: &[Vec<u8>]) -> Value {
        let [_, channel, payload] = command else {
            return Value::Error("ERR wrong number of arguments for 'publish' command".to_owned());
        };
        if self.publish_denied {
            return Value::Error("NOPERM No permissions to access a channel".to_owned());
        }
        if !(self.subscribers)(channel) {
            return Value::Int(0);
        }
        *self.work += 1;
        self.published.push((channel.clone(), payload.clone()));
        Value::Int(1)
    }
}

impl ModelRedis {
    /// An empty server with all scripts loaded.
    ///
    /// # Panics
    /// When Lua cannot be set up or a shipped script does not compile.
    #[must_use]
    pub fn new() -> ModelRedis {
        let (lua, host) = environment().expect("Lua starts");
        let mut server = ModelRedis {
            lua,
            host,
            compiled: BTreeMap::new(),
            patched: BTreeMap::new(),
            loaded: BTreeMap::new(),
            keyspace: Keyspace::default(),
            oom: false,
            readonly: false,
            publish_denied: false,
            work: 0,
        };
        for script in Codec::scripts() {
            server.load(script);
        }
        server
    }

    /// `SCRIPT LOAD`.
    ///
    /// # Panics
    /// When the script does not compile.
    pub fn load(&mut self, script: &Script) {
        let lua = &self.lua;
        self.compiled.entry(script.sha).or_insert_with(|| {
            let chunk = lua.load(script.text).set_name("@user_script");
            chunk.into_function().expect("the script compiles")
        });
        self.loaded.insert(script.sha, true);
    }

    /// Puts `to` for `from` in every script that has it, beside what was put before: a planted bug.
    ///
    /// # Panics
    /// When no script has it, or what comes out does not compile.
    pub fn patch(&mut self, from: &str, to: &str) {
        let mut patched = 0;
        for script in Codec::scripts() {
            let text = self.patched.get(script.sha).map_or(script.text, String::as_str);
            if !text.contains(from) {
                continue;
            }
            let text = text.replace(from, to);
            let chunk = self.lua.load(&text).set_name("@user_script");
            let function = chunk.into_function().expect("the patched script compiles");
            self.compiled.insert(script.sha, function);
            self.patched.insert(script.sha, text);
            patched += 1;
        }
        assert!(patched > 0, "no script has {from:?}: mend the planted bug");
    }

    /// A server with the mutant of the scripts that `LUA_MUTANT` names, if it does: a file as it is
    /// shipped, a colon, and the file whose text takes its place.
    ///
    /// # Panics
    /// When there are no such files, no script has the first, or the second does not compile.
    pub fn mutated() -> ModelRedis {
        let mut server = ModelRedis::default();
        if let Ok(files) = std::env::var("LUA_MUTANT") {
            let read = |file| std::fs::read_to_string(file).expect("LUA_MUTANT names two files");
            let (from, to) = files.split_once(':').expect("LUA_MUTANT names two files");
            server.patch(&read(from), &read(to));
        }
        server
    }

    /// Executes `command` at the time `now`, in microseconds. `subscribers` says whether somebody
    /// listens on a channel. Gives the reply, and the messages that somebody listens to.
    pub fn run(
        &mut self,
        now: u64,
        command: &Command,
        subscribers: &dyn Fn(&[u8]) -> bool,
    ) -> (Value, Published) {
        let mut run = Run {
            now,
            keyspace: &mut self.keyspace,
            oom: self.oom,
            readonly: self.readonly,
            publish_denied: self.publish_denied,
            written: false,
            subscribers,
            published: Vec::new(),
            declared: None,
            work: &mut self.work,
        };
        match command {
            Command::Plain(words) => {
                let value = run.execute(words);
                (value, run.published)
            }
            Command::Script { script, keys, args } => {
                let function = match self.compiled.get(script.sha) {
                    Some(function) if self.loaded.contains_key(script.sha) => function,
                    _ => {
                        let text = "NOSCRIPT No matching script. Please use EVAL.";
                        return (Value::Error(text.to_owned()), Vec::new());
                    }
                };
                run.declared = Some(keys);
                let run = RefCell::new(run);
                let value = evaluate(&self.lua, &self.host, function, keys, args, &run)
                    .unwrap_or_else(|error| error_reply(&error));
                (value, run.into_inner().published)
            }
        }
    }

    /// How much commands have read and written since this was asked last: each word of a command, and
    /// each item of its answer.
    pub fn work(&mut self) -> u64 {
        std::mem::take(&mut self.work)
    }

    /// Forgets all data, as a restart without memory or `FLUSHALL` does.
    pub fn flush(&mut self) {
        self.keyspace.flush();
    }

    /// Removes one key, as eviction does; false when there was none.
    pub fn evict(&mut self, key: &[u8]) -> bool {
        self.keyspace.remove(key)
    }

    /// Puts a string at a key, as another library might.
    pub fn set_string(&mut self, key: &[u8], text: &[u8]) {
        self.keyspace.put(key, Stored::String(text.to_vec()));
    }

    /// Forgets all scripts.
    pub fn script_flush(&mut self) {
        self.loaded.clear();
    }

    /// Memory is full: commands that need some are refused until a script has written.
    pub fn set_oom(&mut self, on: bool) {
        self.oom = on;
    }

    /// The server is a replica: writes are refused.
    pub fn set_readonly(&mut self, on: bool) {
        self.readonly = on;
    }

    /// The user may not publish.
    pub fn set_publish_denied(&mut self, on: bool) {
        self.publish_denied = on;
    }

    /// The data, as a replica would copy it.
    #[must_use]
    pub fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    /// Changes its data for others: one model serves as several servers, one after the other.
    pub fn exchange(&mut self, keyspace: &mut Keyspace) {
        std::mem::swap(&mut self.keyspace, keyspace);
    }

    /// Takes other data in place of its own: a promoted replica's, or an earlier state.
    pub fn restore(&mut self, keyspace: Keyspace) {
        self.keyspace = keyspace;
    }
}

fn evaluate(
    lua: &Lua,
    host: &Table,
    function: &Function,
    keys: &Words,
    args: &Words,
    run: &RefCell<Run<'_>>,
) -> mlua::Result<Value> {
    let globals = lua.globals();
    for (name, texts) in [("KEYS", keys), ("ARGV", args)] {
        let table = lua.create_table_with_capacity(texts.len(), 0)?;
        for text in texts.iter() {
            table.raw_push(lua.create_string(text)?)?;
        }
        globals.raw_set(name, table)?;
    }
    lua.scope(|scope| {
        let execute = scope.create_function(|lua, command: MultiValue| {
            let reply = match words(lua, command) {
                Ok(command) => run.borrow_mut().execute(&command),
                Err(refused) => refused,
            };
            to_lua(lua, reply)
        })?;
        host.raw_set("execute", execute)?;
        // An error that is a table keeps its text only inside Lua.
        let guarded: Function = lua.named_registry_value("guarded").or_else(|_| {
            let guarded: Function = lua
                .load(
                    "local f = ...
                     local ok, result = pcall(f)
                     if ok then return result end
                     if type(result) == 'table' and result.err then return result end
                     return { err = 'ERR ' .. tostring(result) }",
                )
                .set_name("=guard")
                .into_function()?;
            lua.set_named_registry_value("guarded", &guarded)?;
            Ok::<_, mlua::Error>(guarded)
        })?;
        let result: LuaValue = guarded.call(function)?;
        Ok(from_lua(result))
    })
}

fn error_reply(error: &mlua::Error) -> Value {
    Value::Error(format!("ERR Error running script: {error}"))
}
