//! Bugs that other locks have had, each planted, each to be found.

use fencelock_engine::plant::{self, Bug};

use crate::plan::StoreKind;
use crate::runner::Runner;
use crate::trace::Trace;

/// How many seeds a planted bug in the code may take to be found.
pub const SEEDS: u64 = 10_000;
/// The same for one in the scripts, which run more slowly.
pub const SCRIPT_SEEDS: u64 = 2_000;

/// Where a bug is planted.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// In the engine, the rules in Rust, or the simulator's own parts.
    Code(Bug),
    /// In the scripts: text and what is put for it.
    Scripts(&'static [(&'static str, &'static str)]),
}

/// A bug of the table.
#[derive(Clone, Copy, Debug)]
pub struct Planted {
    /// Its number in the list of counter-examples.
    pub row: u32,
    /// What it does.
    pub what: &'static str,
    /// Where it is planted.
    pub place: Place,
}

/// How a bug was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The seed, which is also how many seeds it took.
    pub seed: u64,
    /// The checker.
    pub promise: &'static str,
}

const fn code(row: u32, bug: Bug, what: &'static str) -> Planted {
    Planted { row, what, place: Place::Code(bug) }
}

const fn scripts(
    row: u32,
    what: &'static str,
    patches: &'static [(&'static str, &'static str)],
) -> Planted {
    Planted { row, what, place: Place::Scripts(patches) }
}

/// The table.
pub const TABLE: &[Planted] = &[
    code(1, Bug::ReleaseWithoutOwner, "a release ends whoever holds"),
    code(2, Bug::RenewWithoutOwner, "a renewal renews whoever holds"),
    code(3, Bug::WriteWithoutToken, "the ledger asks for no token"),
    code(4, Bug::RetryCountedTwice, "a repeated acquire counts again"),
    code(5, Bug::HoldIdReused, "every acquisition has the same id"),
    code(6, Bug::ImmortalAfterCancel, "a grant that nobody waits for is renewed for ever"),
    code(7, Bug::WatchdogStopsAtFailure, "one failed renewal ends the watchdog"),
    code(8, Bug::ValidityFromReply, "validity counts from the reply"),
    code(9, Bug::LeaseNotLookedAtAgain, "a grant is delivered however late it comes"),
    code(10, Bug::LossNotTold, "a holder that cannot renew is not told"),
    code(11, Bug::ShorterLeaseCutsOuter, "a shorter nested lease cuts the outer one"),
    code(12, Bug::CancelLeavesWaiter, "a cancelled wait stays queued"),
    code(15, Bug::SleeperNeverPolls, "a waiter relies on its push alone"),
    code(16, Bug::DeadWaiterBlocks, "a dead waiter at the head blocks all"),
    code(17, Bug::TryPassesWaiters, "a try takes what was handed to a waiter"),
    code(18, Bug::TokenOnlyCounts, "tokens only count, whatever the clock says"),
    code(19, Bug::FailoverNotExcused, "the checker is not told of a failover"),
    code(20, Bug::CounterStartsAgain, "a lost counter starts again from 1"),
    code(39, Bug::BlocksOutrunClock, "blocks are reserved faster than the clock runs"),
    code(40, Bug::BlockNotReserved, "a successor's tokens lie in its predecessor's block"),
    code(41, Bug::ClientReenters, "an explicit owner re-enters its client's ordinary hold"),
    code(42, Bug::OwnerQueuesBehindStranger, "an owner's second waiter queues behind a stranger"),
    code(43, Bug::NotAfterIgnored, "a delayed acquire runs after its cancel"),
    code(43, Bug::TransportRetries, "the transport repeats requests by itself"),
    code(44, Bug::PushFromReceipt, "a pushed grant counts from its receipt"),
    code(45, Bug::ClaimShorterThanPoll, "the claim is shorter than the poll"),
    code(46, Bug::RetriedReleaseIsLost, "a release whose reply was lost reports a loss"),
    code(47, Bug::RenewalRevives, "a late renewal revives a hold"),
    code(48, Bug::CancelClearsAbandoned, "a grant that was never delivered clears 'abandoned'"),
    code(49, Bug::OthersIgnored, "only the push tells that others wait"),
    code(50, Bug::DeadlineNotClamped, "a clock that goes back keeps dead holds"),
    code(51, Bug::TimerSleepsToo, "timers do not count suspension"),
    code(52, Bug::ClockGoesBack, "the engine's time goes back"),
    code(53, Bug::EarlyPushTrusted, "a push is taken before the reply that says 'queued'"),
    code(54, Bug::ReentryAfterEnd, "re-entry is answered from memory after the end"),
    code(55, Bug::AnybodyReenters, "any explicit owner re-enters any hold"),
    code(56, Bug::OwnerByPrefix, "owners are matched by prefix"),
    code(60, Bug::FullMemoryStopsRenewals, "a full memory refuses renewals"),
    code(75, Bug::ShorterLeaseStored, "a shorter lease is stored beside a later deadline"),
    code(76, Bug::ClaimNotRenewed, "a repeated acquire does not renew its claim"),
    code(77, Bug::LatePushCounted, "a late push counts from a newer 'queued'"),
    code(78, Bug::BlockEndLowered, "a renewal lowers the block's end"),
    code(80, Bug::SettleBeforeHear, "a caller is passed over before it is heard"),
    code(81, Bug::PollersNeverServed, "waiters without an inbox are never handed the lock"),
    scripts(
        79,
        "scripts: 'granted' is published before the first write",
        &[("local function publish(s, client, payload)\n  begin(s)", PUBLISH)],
    ),
    scripts(
        60,
        "scripts: a full memory refuses renewals",
        &[("try('PEXPIRE', key, digits(", "try('HSET', key, 'z', digits(")],
    ),
    scripts(
        61,
        "scripts: a token passes through tostring",
        &[("'t', digits('%.0f', first)", "'t', tostring(first)")],
    ),
    scripts(
        75,
        "scripts: a shorter lease is stored beside a later deadline",
        &[
            ("    lease = deadline - now\n", ""),
            ("hold.lease = hold.deadline - now", "hold.lease = lease"),
        ],
    ),
];

const PUBLISH: &str = "local function publish(s, client, payload)";

/// Plants one bug and runs seeds until it is found.
pub fn hunt(planted: &Planted, seeds: u64) -> Option<Found> {
    let (kind, mut runner) = match planted.place {
        Place::Code(bug) => {
            plant::plant(Some(bug));
            (StoreKind::Record, Runner::default())
        }
        Place::Scripts(patches) => (StoreKind::Redis, Runner::with_patches(patches)),
    };
    let found = (1..=seeds).find_map(|seed| {
        let violation = runner.run(seed, kind, Trace::silent()).violation?;
        Some(Found { seed, promise: violation.promise })
    });
    plant::plant(None);
    found
}
