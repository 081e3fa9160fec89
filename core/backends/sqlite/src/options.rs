//! What the URL gives.

use std::path::PathBuf;
use std::time::Duration;

use fencelock_engine::options::CLIENT_PARAMETERS;
use fencelock_engine::{Error, ErrorKind};

/// How surely a committed transaction is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// No sync at a commit. A killed process loses nothing; a power cut may lose the last
    /// transactions. That is safe here: a power cut ends every process and with it every hold, and
    /// tokens go on from the wall clock, so they go back only if that reads wrong as well.
    #[default]
    Normal,
    /// A sync at every commit, for machines whose clock is not to be trusted after a power cut.
    Full,
}

/// Which file, and how to treat it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The database. It is made when it is not there, with `file_mode`; its directory is not. The
    /// file may be one that has other tables: ours begin with `fencelock_`. It is switched to
    /// write-ahead logging, which needs a local file system. A process must not open it with a
    /// second copy of SQLite as well: closing that one would drop this one's file locks.
    pub path: PathBuf,
    /// How long a request waits for another process's transaction before it is refused. Default
    /// 2 s; keep it below the client's `request_timeout`.
    pub busy_timeout: Duration,
    /// Default [`Synchronous::Normal`].
    pub synchronous: Synchronous,
    /// The permissions of a file that is made, as `chmod` takes them, whatever the umask; SQLite
    /// gives its `-wal` and `-shm` the same. Default `0o600`: this user alone. For a group
    /// `0o660`, in a directory that gives its own group to what is made in it (`chmod g+ws`). The
    /// permissions of a file that is there are left alone. Not used on Windows.
    pub file_mode: u32,
}

impl Options {
    /// The defaults for a file.
    pub fn new(path: impl Into<PathBuf>) -> Options {
        Options {
            path: path.into(),
            busy_timeout: Duration::from_secs(2),
            synchronous: Synchronous::default(),
            file_mode: 0o600,
        }
    }

    /// Reads `sqlite:path`, `sqlite:///absolute/path` and the options `busy_timeout` (`500ms`,
    /// `2s`), `synchronous` (`normal`, `full`) and `file_mode` (`0660`). In the path `%3F`, `%23` and `%25` stand for
    /// `?`, `#` and `%`, as any other byte may be written.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] says which part is wrong.
    pub fn from_url(url: &str) -> Result<Options, Error> {
        let rest = url
            .strip_prefix("sqlite:")
            .ok_or_else(|| wrong("the SQLite store's URL is sqlite:path/to/file"))?;
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut options = Options::new(decode(path)?);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match key {
                "busy_timeout" => options.busy_timeout = duration(value)?,
                "synchronous" => {
                    options.synchronous = match value {
                        "normal" => Synchronous::Normal,
                        "full" => Synchronous::Full,
                        _ => return Err(wrong("synchronous is normal or full")),
                    }
                }
                "file_mode" => options.file_mode = octal(value)?,
                _ => {
                    return Err(wrong(format!(
                        "sqlite: has no option '{key}'; it has busy_timeout, synchronous and \
                         file_mode, and the client's {CLIENT_PARAMETERS}"
                    )));
                }
            }
        }
        options.check()?;
        Ok(options)
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] says which option is out of its range.
    pub fn check(&self) -> Result<(), Error> {
        let path = self.path.as_os_str();
        if path.is_empty() {
            return Err(wrong("sqlite: needs the path of a file, as in sqlite:/var/lib/app/locks"));
        }
        if path == ":memory:" {
            return Err(wrong("for locks within one process use the URL memory:"));
        }
        if self.busy_timeout > Duration::from_secs(60) {
            return Err(wrong("busy_timeout may be 60 s at the most"));
        }
        if self.file_mode & 0o600 != 0o600 || self.file_mode & !0o666 != 0 {
            return Err(wrong(
                "file_mode is 0600, or that and who else may read (4) and write (2), as in 0660",
            ));
        }
        Ok(())
    }
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidArgument, message.into())
}

fn duration(text: &str) -> Result<Duration, Error> {
    let bad = || wrong(format!("'{text}' is no duration; write it as 500ms or 2s"));
    let (digits, scale) = if let Some(digits) = text.strip_suffix("ms") {
        (digits, 1)
    } else {
        (text.strip_suffix('s').ok_or_else(bad)?, 1_000)
    };
    let count: u64 = digits.parse().map_err(|_| bad())?;
    Ok(Duration::from_millis(count.checked_mul(scale).ok_or_else(bad)?))
}

fn octal(text: &str) -> Result<u32, Error> {
    let digits = text.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
    let mode = if digits { u32::from_str_radix(text, 8).ok() } else { None };
    mode.ok_or_else(|| wrong(format!("'{text}' is no mode; write it in octal, as in 0660")))
}

fn decode(text: &str) -> Result<String, Error> {
    let bad =
        || wrong("the path has a % that is not followed by two hexadecimal digits; write %25");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok()).ok_or_else(bad)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(bad());
        }
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| bad())?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| wrong("the path is not UTF-8"))
}
