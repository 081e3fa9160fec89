//! One thing that happened, and how it is written.

use std::fmt;
use std::io::{self, BufRead, Write};
use std::sync::Arc;

use serde_json::{Map, Value};

/// Who writes what is done to the processes and to the store.
pub const NEMESIS: &str = "nemesis";

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When, by the boot clock of the one to whom it happened.
    pub at: u64,
    /// When, by its wall clock.
    pub wall: u64,
    /// Whose record this is: an actor's name, or `nemesis`.
    pub who: Arc<str>,
    /// What happened.
    pub event: String,
    /// What it concerns: an acquisition, a client, a fault.
    pub tag: String,
    /// More about it.
    pub fields: Vec<(String, String)>,
}

impl Record {
    /// Whether it says what was done to the actors or to the store.
    pub fn is_fault(&self) -> bool {
        &*self.who == NEMESIS
    }

    /// Reads what `who` says in words: `at wall event tag key=value…`.
    pub fn from_words(who: &Arc<str>, line: &str) -> Option<Record> {
        let mut words = line.split(' ');
        let at = words.next()?.parse().ok()?;
        let wall = words.next()?.parse().ok()?;
        let event = words.next()?.to_owned();
        let tag = words.next().unwrap_or_default().to_owned();
        let fields = words
            .filter_map(|word| word.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        Some(Record { at, wall, who: who.clone(), event, tag, fields })
    }

    /// Reads a line of a file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_json(line: &str) -> Result<Record, String> {
        let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let Value::Object(mut fields) = value else {
            return Err("a record is a JSON object".to_owned());
        };
        let mut number = |key: &str| match fields.remove(key) {
            Some(Value::Number(it)) => it.as_u64().ok_or(format!("'{key}' is not a time")),
            _ => Err(format!("a record needs the number '{key}'")),
        };
        let (at, wall) = (number("at")?, number("wall")?);
        let mut word = |key: &str| match fields.remove(key) {
            Some(Value::String(it)) => Ok(it),
            _ => Err(format!("a record needs the text '{key}'")),
        };
        let (who, event, tag) = (word("who")?.into(), word("event")?, word("tag")?);
        let text = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let fields = fields.into_iter().map(|(key, value)| (key, text(value))).collect();
        Ok(Record { at, wall, who, event, tag, fields })
    }

    /// The record as a line of a file, without its end.
    pub fn to_json(&self) -> String {
        let mut line = Map::new();
        for (key, value) in &self.fields {
            line.insert(key.clone(), value.as_str().into());
        }
        line.insert("at".to_owned(), self.at.into());
        line.insert("wall".to_owned(), self.wall.into());
        for (key, value) in [("who", &*self.who), ("event", &self.event), ("tag", &self.tag)] {
            line.insert(key.to_owned(), value.into());
        }
        Value::Object(line).to_string()
    }

    /// The value of a field.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// The number in a field; 0 when there is none.
    pub fn number(&self, key: &str) -> u64 {
        self.get(key).and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    /// Whether it is this event.
    pub fn is(&self, event: &str) -> bool {
        self.event == event
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {} {}", self.at, self.wall, self.who, self.event, self.tag)?;
        self.fields.iter().try_for_each(|(key, value)| write!(f, " {key}={value}"))
    }
}

/// Writes a history, in the order of time, as JSON lines.
///
/// # Errors
/// When it cannot be written.
pub fn write(records: &[Record], mut to: impl Write) -> io::Result<()> {
    let mut sorted: Vec<&Record> = records.iter().collect();
    sorted.sort_by_key(|record| record.at);
    sorted.into_iter().try_for_each(|record| writeln!(to, "{}", record.to_json()))
}

/// Reads a history of JSON lines.
///
/// # Errors
/// When it cannot be read, or a line is not a record.
pub fn read(from: impl BufRead) -> io::Result<Vec<Record>> {
    let mut records = Vec::new();
    for (index, line) in from.lines().enumerate() {
        let line = line?;
        if !line.trim().is_empty() {
            let record = Record::from_json(&line).map_err(|wrong| {
                io::Error::new(io::ErrorKind::InvalidData, format!("line {}: {wrong}", index + 1))
            })?;
            records.push(record);
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_read_back() {
        let words = "20 7 granted t lock=a token=9007199254740993 until=120 why=\"x\"";
        let granted = Record::from_words(&"p1".into(), words).unwrap();
        let asked = Record::from_words(&"p1".into(), "10 3 asked t lock=a").unwrap();
        let mut file = Vec::new();
        write(&[granted.clone(), asked.clone()], &mut file).unwrap();
        let back = read(&*file).unwrap();
        assert_eq!(back, [asked, granted]);
        assert_eq!(back[1].number("token"), 9_007_199_254_740_993);
    }

    #[test]
    fn what_is_no_record_is_said() {
        for wrong in ["{", "[]", "{\"at\":1}", "{\"at\":-1,\"wall\":0}"] {
            assert!(Record::from_json(wrong).is_err(), "{wrong}");
        }
        let error = read(&b"\n{}\n"[..]).unwrap_err().to_string();
        assert!(error.starts_with("line 2: a record needs"), "{error}");
        // A number is as good as its text.
        let line = "{\"at\":1,\"wall\":0,\"who\":\"a\",\"event\":\"e\",\"tag\":\"t\",\"token\":5}";
        assert_eq!(Record::from_json(line).unwrap().number("token"), 5);
    }
}
