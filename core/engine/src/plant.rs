//! Bugs planted on purpose, one at a time, so that the simulator can show that it finds them.
//! Compiled only with the feature `plant`, which nothing but the simulator asks for.

use core::cell::Cell;

/// A bug that other locks have had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Bug {
    ReleaseWithoutOwner,
    RenewWithoutOwner,
    WriteWithoutToken,
    RetryCountedTwice,
    HoldIdReused,
    ImmortalAfterCancel,
    WatchdogStopsAtFailure,
    ValidityFromReply,
    LeaseNotLookedAtAgain,
    LossNotTold,
    ShorterLeaseCutsOuter,
    CancelLeavesWaiter,
    SleeperNeverPolls,
    DeadWaiterBlocks,
    TryPassesWaiters,
    TokenOnlyCounts,
    FailoverNotExcused,
    CounterStartsAgain,
    BlocksOutrunClock,
    BlockNotReserved,
    ClientReenters,
    OwnerQueuesBehindStranger,
    NotAfterIgnored,
    TransportRetries,
    PushFromReceipt,
    ClaimShorterThanPoll,
    RetriedReleaseIsLost,
    RenewalRevives,
    CancelClearsAbandoned,
    OthersIgnored,
    DeadlineNotClamped,
    TimerSleepsToo,
    ClockGoesBack,
    EarlyPushTrusted,
    ReentryAfterEnd,
    AnybodyReenters,
    OwnerByPrefix,
    FullMemoryStopsRenewals,
    ShorterLeaseStored,
    ClaimNotRenewed,
    LatePushCounted,
    BlockEndLowered,
    SettleBeforeHear,
    PollersNeverServed,
    ZkOrphanForgotten,
    ZkTrustsConnection,
    ZkReleaseForgotten,
    ZkWatchSetLate,
    ZkWatchesParent,
    ZkSequenceAsText,
    ZkPingProves,
    ZkTokensCollide,
    ZkOwnerReenters,
    ZkListWithoutSync,
    ZkOwnNodeUnwatched,
    ZkDeletionIsGrant,
    ZkLastButOneProves,
    ZkSentIsHeard,
    ZkOldSessionsNode,
    ZkPartingJoined,
    ZkCoHoldLossForgotten,
    ZkAnyDeletionBreaks,
    ZkHeirSwept,
    ZkStrayForgotten,
    ZkSharersStrayKept,
    ZkRevokeIgnored,
    ZkHeirReleased,
    ZkSharerNotAsked,
    ZkFailedListKept,
    ZkNextNodeDeleted,
    ZkUnnamedIsOurs,
    ZkEarlierHoldKept,
    ZkNumberBelieved,
    ZkLastReleaseBelieved,
    ZkFoundOnce,
    OwnerLosesCoHolds,
    OwnerRenewsCoHolds,
    BatchFailsWhole,
    OwnerPassedOver,
    LongerLeaseCounted,
    ShortClaimNotPolled,
    QueuedAskedAgain,
    StrayReleaseTells,
    PatienceFromReply,
    RefusedReleaseForgotten,
    CoHoldReleaseTells,
    StrayJoinTells,
    TiesByChance,
    EndedIsBroken,
    EchoReleases,
    PauseOutlastsHold,
}

thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Plants a bug in this thread, or none.
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

/// Whether this bug is planted.
pub fn on(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}
