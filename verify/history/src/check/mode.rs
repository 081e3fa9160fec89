//! What a hold lets beside it.

/// How a lock was asked for, as the word `mode=` says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    /// By one owner alone. No word means this.
    #[default]
    Exclusive,
    /// `shared`: by any number of readers.
    Shared,
    /// `permits:COUNT/OF`: so many of so many.
    Permits { count: u64, of: u64 },
}

impl Mode {
    /// Reads the word; what it does not know is a lock for one.
    pub fn read(word: Option<&str>) -> Mode {
        let Some(word) = word else { return Mode::Exclusive };
        let permits = |word: &str| {
            let (count, of) = word.strip_prefix("permits:")?.split_once('/')?;
            Some(Mode::Permits { count: count.parse().ok()?, of: of.parse().ok()? })
        };
        match word {
            "shared" => Mode::Shared,
            word => permits(word).unwrap_or_default(),
        }
    }

    /// How many permits it takes.
    pub fn count(self) -> u64 {
        match self {
            Mode::Permits { count, .. } => count,
            _ => 0,
        }
    }

    /// Whether nobody else may be in.
    pub fn is_alone(self) -> bool {
        self == Mode::Exclusive
    }

    /// Whether two may be in together; of permits, as long as there are enough.
    pub fn fits(self, other: Mode) -> bool {
        matches!(
            (self, other),
            (Mode::Shared, Mode::Shared) | (Mode::Permits { .. }, Mode::Permits { .. })
        )
    }
}
