//! Bytes as replies: RESP2 and RESP3.
//!
//! The parser reads from the front of a buffer that grows, and copies nothing but what it returns,
//! straight into the engine's [`Value`].

use std::fmt;

use crate::redis::Value;

/// No command of ours answers with more than this in one string.
const MAX_BULK: usize = 64 << 20;
/// No command of ours answers with more elements in one array.
const MAX_ELEMENTS: usize = 4 << 20;
/// Nor with arrays nested deeper.
const MAX_DEPTH: usize = 32;

/// One thing that a server said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The answer to the oldest unanswered command.
    Reply(Value),
    /// Something unasked (RESP3).
    Push(Vec<Value>),
}

/// What the front of a buffer holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A whole frame, and how many bytes it took.
    Frame(Frame, usize),
    /// Only a part of one: at least so many bytes are needed in all.
    Partial(usize),
}

/// The other side does not speak RESP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Garbage(&'static str);

impl fmt::Display for Garbage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server's reply is not RESP ({}); is this a Redis server?", self.0)
    }
}

enum Stop {
    Need(usize),
    Bad(&'static str),
}

/// Parses the frame at the front of `buffer`.
///
/// # Errors
/// When the bytes cannot be the beginning of a frame.
pub fn parse(buffer: &[u8]) -> Result<Parsed, Garbage> {
    let mut cursor = Cursor { buffer, at: 0 };
    match cursor.frame() {
        Ok(frame) => Ok(Parsed::Frame(frame, cursor.at)),
        Err(Stop::Need(bytes)) => Ok(Parsed::Partial(bytes)),
        Err(Stop::Bad(what)) => Err(Garbage(what)),
    }
}

struct Cursor<'a> {
    buffer: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn frame(&mut self) -> Result<Frame, Stop> {
        loop {
            return match self.peek()? {
                b'>' => {
                    self.at += 1;
                    let count = self.count()?.ok_or(Stop::Bad("a push without a length"))?;
                    Ok(Frame::Push(self.elements(count, 1)?))
                }
                b'|' => {
                    self.attribute(1)?;
                    continue;
                }
                _ => Ok(Frame::Reply(self.value(0)?)),
            };
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, Stop> {
        if depth > MAX_DEPTH {
            return Err(Stop::Bad("nested too deep"));
        }
        let kind = self.peek()?;
        self.at += 1;
        match kind {
            b'+' => Ok(Value::Bytes(self.line()?.to_vec())),
            b'-' => Ok(Value::Error(text(self.line()?))),
            b':' => Ok(Value::Int(integer(self.line()?)?)),
            b'$' => Ok(self.bulk()?.map_or(Value::Nil, |bytes| Value::Bytes(bytes.to_vec()))),
            b'*' | b'~' => match self.count()? {
                Some(count) => Ok(Value::Array(self.elements(count, depth + 1)?)),
                None => Ok(Value::Nil),
            },
            b'%' => match self.count()? {
                Some(count) => Ok(Value::Array(self.elements(count * 2, depth + 1)?)),
                None => Ok(Value::Nil),
            },
            b'_' => self.line().map(|_| Value::Nil),
            b'#' => match self.line()? {
                b"t" => Ok(Value::Int(1)),
                b"f" => Ok(Value::Int(0)),
                _ => Err(Stop::Bad("a boolean that is neither t nor f")),
            },
            b',' | b'(' => Ok(Value::Bytes(self.line()?.to_vec())),
            b'!' => match self.bulk()? {
                Some(bytes) => Ok(Value::Error(text(bytes))),
                None => Err(Stop::Bad("an error without text")),
            },
            // `txt:` or `mkd:` stands before the text.
            b'=' => match self.bulk()? {
                Some(bytes) if bytes.len() >= 4 => Ok(Value::Bytes(bytes[4..].to_vec())),
                _ => Err(Stop::Bad("a verbatim string without a format")),
            },
            b'|' => {
                self.at -= 1;
                self.attribute(depth + 1)?;
                self.value(depth + 1)
            }
            _ => Err(Stop::Bad("an unknown type")),
        }
    }

    fn attribute(&mut self, depth: usize) -> Result<(), Stop> {
        self.at += 1;
        let count = self.count()?.ok_or(Stop::Bad("an attribute without a length"))?;
        self.elements(count * 2, depth).map(drop)
    }

    fn elements(&mut self, count: usize, depth: usize) -> Result<Vec<Value>, Stop> {
        // The length is the other side's word: reserve no more than what has come can hold.
        let mut values = Vec::with_capacity(count.min((self.buffer.len() - self.at) / 3 + 1));
        for _ in 0..count {
            values.push(self.value(depth)?);
        }
        Ok(values)
    }

    fn peek(&self) -> Result<u8, Stop> {
        self.buffer.get(self.at).copied().ok_or(Stop::Need(self.at + 1))
    }

    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let rest = &self.buffer[self.at..];
        let Some(length) = rest.iter().position(|&byte| byte == b'\r') else {
            if rest.len() > MAX_BULK {
                return Err(Stop::Bad("a line without an end"));
            }
            return Err(Stop::Need(self.buffer.len() + 1));
        };
        match rest.get(length + 1) {
            Some(b'\n') => {
                self.at += length + 2;
                Ok(&rest[..length])
            }
            Some(_) => Err(Stop::Bad("a carriage return inside a line")),
            None => Err(Stop::Need(self.buffer.len() + 1)),
        }
    }

    /// The length of an aggregate; `None` for RESP2's null array.
    fn count(&mut self) -> Result<Option<usize>, Stop> {
        match integer(self.line()?)? {
            -1 => Ok(None),
            count if (0..=MAX_ELEMENTS as i64).contains(&count) => Ok(Some(count as usize)),
            _ => Err(Stop::Bad("an array of impossible length")),
        }
    }

    fn bulk(&mut self) -> Result<Option<&'a [u8]>, Stop> {
        let length = match integer(self.line()?)? {
            -1 => return Ok(None),
            length if (0..=MAX_BULK as i64).contains(&length) => length as usize,
            _ => return Err(Stop::Bad("a string of impossible length")),
        };
        let end = self.at + length;
        match self.buffer.get(end..end + 2) {
            Some(b"\r\n") => {
                let bytes = &self.buffer[self.at..end];
                self.at = end + 2;
                Ok(Some(bytes))
            }
            Some(_) => Err(Stop::Bad("a string longer than it said")),
            None => Err(Stop::Need(end + 2)),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn integer(line: &[u8]) -> Result<i64, Stop> {
    let text = line.strip_prefix(b"+").unwrap_or(line);
    let (sign, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let mut number = (!digits.is_empty()).then_some(0_i64);
    for digit in digits {
        let value = digit.wrapping_sub(b'0');
        let value = (value < 10).then_some(sign * i64::from(value));
        number = number.and_then(|it| it.checked_mul(10)?.checked_add(value?));
    }
    number.ok_or(Stop::Bad("a number that is none"))
}
