//! The Lua side of the model: the environment that Redis gives its scripts, and the conversions
//! between its values and Lua's.

use fencelock_engine::redis::Value;
use mlua::{Lua, LuaOptions, MultiValue, StdLib, Table, Value as LuaValue};

/// What Redis puts before every script: `call` raises an error reply, `pcall` returns it, and
/// globals can neither be made nor be missed in silence.
const ENVIRONMENT: &str = r"
local host = ...
redis = {
  pcall = function(...) return host.execute(...) end,
  call = function(...)
    local answer = host.execute(...)
    if type(answer) == 'table' and answer.err then error(answer) end
    return answer
  end,
  error_reply = function(text) return { err = text } end,
  status_reply = function(text) return { ok = text } end,
}
KEYS, ARGV = {}, {}
for _, name in ipairs({ 'print', 'dofile', 'loadfile', 'require', 'module', 'package', 'os' }) do
  rawset(_G, name, nil)
end
setmetatable(_G, {
  __newindex = function(_, name)
    error({ err = 'ERR Attempt to modify a readonly table: global ' .. tostring(name) })
  end,
  __index = function(_, name)
    error({ err = 'ERR Script attempted to access nonexistent global variable '
      .. tostring(name) })
  end,
})
";

/// A Lua state as Redis sets it up, and the table through which its commands are executed.
pub(crate) fn environment() -> mlua::Result<(Lua, Table)> {
    let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH;
    let lua = Lua::new_with(libraries, LuaOptions::default())?;
    let host = lua.create_table()?;
    lua.load(ENVIRONMENT).set_name("=environment").call::<()>(&host)?;
    Ok((lua, host))
}

/// A command's words out of the arguments of `redis.call`.
pub(crate) fn words(lua: &Lua, args: MultiValue) -> Result<Vec<Vec<u8>>, Value> {
    let wrong = || {
        Value::Error("ERR Lua redis lib command arguments must be strings or integers".to_owned())
    };
    let mut words = Vec::with_capacity(args.len());
    for arg in args {
        words.push(match arg {
            LuaValue::String(text) => text.as_bytes().to_vec(),
            LuaValue::Integer(n) => n.to_string().into_bytes(),
            LuaValue::Number(n) => number(lua, n).ok_or_else(wrong)?,
            _ => return Err(wrong()),
        });
    }
    Ok(words)
}

/// `%.17g`, as the server writes a number that is a command's argument.
fn number(lua: &Lua, n: f64) -> Option<Vec<u8>> {
    if n.fract() == 0.0 && n.abs() < 1e17 {
        return Some(format!("{n:.0}").into_bytes());
    }
    let format: mlua::Function = lua.globals().get::<Table>("string").ok()?.get("format").ok()?;
    let text: mlua::LuaString = format.call(("%.17g", n)).ok()?;
    Some(text.as_bytes().to_vec())
}

/// What a command's reply becomes inside a script: nil is false, an error a table with `err`.
pub(crate) fn to_lua(lua: &Lua, value: Value) -> mlua::Result<LuaValue> {
    Ok(match value {
        Value::Nil => LuaValue::Boolean(false),
        #[allow(clippy::cast_precision_loss)]
        Value::Int(n) => LuaValue::Number(n as f64),
        Value::Bytes(text) => LuaValue::String(lua.create_string(&text)?),
        Value::Array(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            for item in items {
                table.raw_push(to_lua(lua, item)?)?;
            }
            LuaValue::Table(table)
        }
        Value::Error(text) => {
            let table = lua.create_table()?;
            table.raw_set("err", text)?;
            LuaValue::Table(table)
        }
    })
}

/// What a script's result becomes as a reply: numbers lose their fraction, arrays stop at nil,
/// false is nil and true is 1.
pub(crate) fn from_lua(value: LuaValue) -> Value {
    match value {
        LuaValue::Boolean(true) => Value::Int(1),
        LuaValue::Integer(n) => Value::Int(n),
        #[allow(clippy::cast_possible_truncation)]
        LuaValue::Number(n) => Value::Int(n as i64),
        LuaValue::String(text) => Value::Bytes(text.as_bytes().to_vec()),
        LuaValue::Table(table) => {
            if let Ok(LuaValue::String(text)) = table.raw_get("err") {
                return Value::Error(text.to_string_lossy());
            }
            if let Ok(LuaValue::String(text)) = table.raw_get("ok") {
                return Value::Bytes(text.as_bytes().to_vec());
            }
            let mut items = Vec::new();
            for index in 1.. {
                match table.raw_get(index) {
                    Ok(LuaValue::Nil) | Err(_) => break,
                    Ok(item) => items.push(from_lua(item)),
                }
            }
            Value::Array(items)
        }
        _ => Value::Nil,
    }
}
