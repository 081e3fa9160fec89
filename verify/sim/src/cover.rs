//! How often the hard cases were met. A run that never met them proves nothing.

/// A case worth meeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Cover {
    GrantByReply,
    GrantByPush,
    GrantByPoll,
    LocalHandOff,
    Reentry,
    SharedOwner,
    Attached,
    CancelWhileWaiting,
    CancelWhileGranted,
    TimedOut,
    Contended,
    PushBeforeReply,
    PushLost,
    PushDoubled,
    PushLate,
    RequestLost,
    ReplyLost,
    LateRequestRan,
    NotAfterRefused,
    ExpiredWhilePaused,
    PausedPastLease,
    CrashedWhileHolding,
    CrashedWhileWaiting,
    LostTold,
    StaleWriteRefused,
    AbandonedYes,
    AbandonedUnknown,
    FailoverWhileHeld,
    MemoryLostWhileHeld,
    ClockBack,
    ClockForward,
    ServerPaused,
    Refusing,
    Muted,
    StrayGrant,
    BatchedRenewal,
    SeveralCalls,
    Extended,
    Broken,
    ScriptsForgotten,
    Evicted,
    ForeignKey,
    AcquireRepeated,
    OwnerJoinedLate,
    Slowed,
    Overloaded,
    Doubted,
    GivenUp,
    Renewed,
    Cut,
    BlockedUp,
    BlockedDown,
    Delayed,
    Suspended,
    ClockJumped,
    ClockRate,
    Restarted,
    FailoverSkewed,
    /// A grant was not confirmed by a replica.
    Unconfirmed,
    TakenOver,
    RepliedLate,
    Forgotten,
    ReadTogether,
    ReaderJoined,
    ReadInsideWrite,
    StaleReadRefused,
    WouldDeadlock,
    PermitsTogether,
    OtherPermitsRefused,
    Resized,
    Doomed,
    ZkExpired,
    ZkReattached,
    ZkElection,
    ZkCutOff,
    ZkReaped,
    ZkLostWrite,
    ZkForeign,
    ZkRevoked,
    ZkDeleted,
    ZkHeeded,
    ZkOrphaned,
    ZkUnlisted,
    ZkLagged,
}

const NAMES: [(Cover, &str); Cover::COUNT] = [
    (Cover::GrantByReply, "grant by reply"),
    (Cover::GrantByPush, "grant by push"),
    (Cover::GrantByPoll, "grant by poll"),
    (Cover::LocalHandOff, "local hand-off"),
    (Cover::Reentry, "re-entry"),
    (Cover::SharedOwner, "owner in two clients"),
    (Cover::Attached, "attached by token"),
    (Cover::CancelWhileWaiting, "cancel while waiting"),
    (Cover::CancelWhileGranted, "cancel while granted"),
    (Cover::TimedOut, "wait timed out"),
    (Cover::Contended, "try contended"),
    (Cover::PushBeforeReply, "push before reply"),
    (Cover::PushLost, "push lost"),
    (Cover::PushDoubled, "push doubled"),
    (Cover::PushLate, "push late"),
    (Cover::RequestLost, "request lost"),
    (Cover::ReplyLost, "reply lost"),
    (Cover::LateRequestRan, "abandoned request ran late"),
    (Cover::NotAfterRefused, "refused as late"),
    (Cover::ExpiredWhilePaused, "expired while paused"),
    (Cover::PausedPastLease, "paused past the lease"),
    (Cover::CrashedWhileHolding, "crashed while holding"),
    (Cover::CrashedWhileWaiting, "crashed while waiting"),
    (Cover::LostTold, "loss told"),
    (Cover::StaleWriteRefused, "stale write refused"),
    (Cover::AbandonedYes, "abandoned: yes"),
    (Cover::AbandonedUnknown, "abandoned: unknown"),
    (Cover::FailoverWhileHeld, "failover while held"),
    (Cover::MemoryLostWhileHeld, "memory lost while held"),
    (Cover::ClockBack, "clock stepped back"),
    (Cover::ClockForward, "clock stepped forward"),
    (Cover::ServerPaused, "store paused"),
    (Cover::Refusing, "store refused"),
    (Cover::Muted, "publish denied"),
    (Cover::StrayGrant, "grant for a hold that was over"),
    (Cover::BatchedRenewal, "several holds in one renewal"),
    (Cover::SeveralCalls, "several calls of one caller at once"),
    (Cover::Extended, "lease extended"),
    (Cover::Broken, "lock broken"),
    (Cover::ScriptsForgotten, "scripts forgotten"),
    (Cover::Evicted, "lock evicted"),
    (Cover::ForeignKey, "foreign key in a lock's place"),
    (Cover::AcquireRepeated, "acquire repeated at the store"),
    (Cover::OwnerJoinedLate, "owner joined by a heartbeat"),
    (Cover::Slowed, "slow way back"),
    (Cover::Overloaded, "store with more to do than it can"),
    (Cover::Doubted, "connection doubted"),
    (Cover::GivenUp, "silent connection given up for another"),
    (Cover::Renewed, "renewed"),
    (Cover::Cut, "connection cut"),
    (Cover::BlockedUp, "nothing reached the store"),
    (Cover::BlockedDown, "nothing came from the store"),
    (Cover::Delayed, "message delayed"),
    (Cover::Suspended, "machine suspended"),
    (Cover::ClockJumped, "client's clock jumped"),
    (Cover::ClockRate, "client's clock more than 0.1 % wrong"),
    (Cover::Restarted, "restarted with memory"),
    (Cover::FailoverSkewed, "failover to another clock"),
    (Cover::Unconfirmed, "a grant that was not confirmed"),
    (Cover::TakenOver, "failover with everything, within the slack"),
    (Cover::RepliedLate, "reply late, past two claims"),
    (Cover::Forgotten, "idle lock forgotten after its retention"),
    (Cover::ReadTogether, "readers together"),
    (Cover::ReaderJoined, "reader beside others of its client"),
    (Cover::ReadInsideWrite, "read inside a write"),
    (Cover::StaleReadRefused, "stale read refused"),
    (Cover::WouldDeadlock, "write inside a read refused"),
    (Cover::PermitsTogether, "permits together"),
    (Cover::OtherPermitsRefused, "another number of permits refused"),
    (Cover::Resized, "permits resized while in use"),
    (Cover::Doomed, "a wait for more permits than are left ended"),
    (Cover::ZkExpired, "zookeeper: session expired"),
    (Cover::ZkReattached, "zookeeper: session taken up again"),
    (Cover::ZkElection, "zookeeper: another leader"),
    (Cover::ZkCutOff, "zookeeper: a holder's server cut off"),
    (Cover::ZkReaped, "zookeeper: container reaped"),
    (Cover::ZkLostWrite, "zookeeper: write of unknown outcome"),
    (Cover::ZkForeign, "zookeeper: granted to a foreign contender"),
    (Cover::ZkRevoked, "zookeeper: holder asked to let go"),
    (Cover::ZkDeleted, "zookeeper: holder's node deleted"),
    (Cover::ZkHeeded, "zookeeper: holder heard that it was asked to let go"),
    (Cover::ZkOrphaned, "zookeeper: same hold's node in two sessions"),
    (Cover::ZkUnlisted, "zookeeper: node made without a list"),
    (Cover::ZkLagged, "zookeeper: server lagged"),
];

impl Cover {
    /// How many cases there are.
    pub const COUNT: usize = Cover::ZkLagged as usize + 1;
}

/// The counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    counts: [u64; Cover::COUNT],
}

impl Default for Coverage {
    fn default() -> Coverage {
        Coverage { counts: [0; Cover::COUNT] }
    }
}

impl Coverage {
    /// Counts a case.
    pub fn add(&mut self, case: Cover) {
        self.counts[case as usize] += 1;
    }

    /// How often a case was met.
    pub fn count(&self, case: Cover) -> u64 {
        self.counts[case as usize]
    }

    /// Adds another run's counters.
    pub fn merge(&mut self, other: &Coverage) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine += theirs;
        }
    }

    /// Every case's name and count.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        NAMES.iter().map(|(case, name)| (*name, self.counts[*case as usize]))
    }

    /// The names of the cases met less often than `floor`.
    pub fn below(&self, floor: u64) -> Vec<&'static str> {
        self.rows().filter(|(_, count)| *count < floor).map(|(name, _)| name).collect()
    }
}
