//! What became of a break, flat: languages have no common way to say "one of".

/// What became of a break.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Broken {
    /// How many holds were ended; 0 when what was named holds nothing.
    pub ended: usize,
    /// The later token under which somebody else holds the lock; nothing was ended then.
    pub changed_hands: Option<u64>,
}

impl From<fencelock::Broken> for Broken {
    fn from(broken: fencelock::Broken) -> Broken {
        let (ended, changed_hands) = match broken {
            fencelock::Broken::Ended(ended) => (ended, None),
            fencelock::Broken::NotHeld => (0, None),
            fencelock::Broken::ChangedHands(token) => (0, Some(token)),
        };
        Broken { ended, changed_hands }
    }
}
