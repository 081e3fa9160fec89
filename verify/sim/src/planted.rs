//! Bugs that other locks have had, each planted, each to be found.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use fencelock_engine::plant::{self, Bug};

use crate::bias::Bias;
use crate::plan::StoreKind;
use crate::runner::Runner;
use crate::trace::Trace;
use crate::zookeeper::ZkBias;

/// How many seeds a planted bug in the code may take to be found.
pub const SEEDS: u64 = 10_000;
/// The same for one in the scripts, which run more slowly.
pub const SCRIPT_SEEDS: u64 = 2_000;

/// The same for one in ZooKeeper's lock machine: an ensemble is slower still.
pub const ZOOKEEPER_SEEDS: u64 = 10_000;

/// Where a bug is planted.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// In the engine, the rules in Rust, or the simulator's own parts.
    Code(Bug),
    /// In the scripts: text and what is put for it.
    Scripts(&'static [(&'static str, &'static str)]),
    /// In ZooKeeper's lock machine, or in the engine above it.
    ZooKeeper(Bug),
    /// In the engine or the rules in Rust, in plans whose seeds are their own: where several hold a name
    /// together, or servers take over from each other.
    Shared(Bias, Bug),
    /// In ZooKeeper's lock machine, where several hold a name together.
    ZooKeeperShared(Bias, Bug),
}

/// The number of a counter-example. Those of shared holds and of permits are counted apart, and so are
/// those of servers that take over from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    /// As `83`.
    Lock(u32),
    /// As `M83`.
    Shared(u32),
    /// As `D120`.
    Deployed(u32),
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Row::Lock(row) => f.pad(&format!("{row}")),
            Row::Shared(row) => f.pad(&format!("M{row}")),
            Row::Deployed(row) => f.pad(&format!("D{row}")),
        }
    }
}

impl FromStr for Row {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Row, ParseIntError> {
        if let Some(row) = text.strip_prefix('M') {
            return row.parse().map(Row::Shared);
        }
        match text.strip_prefix('D') {
            Some(row) => row.parse().map(Row::Deployed),
            None => text.parse().map(Row::Lock),
        }
    }
}

/// A bug of the table.
#[derive(Clone, Copy, Debug)]
pub struct Planted {
    /// Its number in the list of counter-examples.
    pub row: Row,
    /// What it does.
    pub what: &'static str,
    /// Where it is planted.
    pub place: Place,
}

/// How a bug was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The seed.
    pub seed: u64,
    /// How many seeds it took.
    pub tried: usize,
    /// The checker.
    pub promise: &'static str,
}

const fn code(row: u32, bug: Bug, what: &'static str) -> Planted {
    Planted { row: Row::Lock(row), what, place: Place::Code(bug) }
}

const fn zookeeper(row: u32, bug: Bug, what: &'static str) -> Planted {
    Planted { row: Row::Lock(row), what, place: Place::ZooKeeper(bug) }
}

const fn scripts(
    row: u32,
    what: &'static str,
    patches: &'static [(&'static str, &'static str)],
) -> Planted {
    Planted { row: Row::Lock(row), what, place: Place::Scripts(patches) }
}

const fn readers(row: u32, bug: Bug, what: &'static str) -> Planted {
    Planted { row: Row::Shared(row), what, place: Place::Shared(Bias::Readers, bug) }
}

const fn zk_readers(row: u32, bug: Bug, what: &'static str) -> Planted {
    Planted { row: Row::Shared(row), what, place: Place::ZooKeeperShared(Bias::Readers, bug) }
}

const fn permits(row: u32, bug: Bug, what: &'static str) -> Planted {
    Planted { row: Row::Shared(row), what, place: Place::Shared(Bias::Permits, bug) }
}

const fn zk_permits(row: u32, bug: Bug, what: &'static str) -> Planted {
    Planted { row: Row::Shared(row), what, place: Place::ZooKeeperShared(Bias::Permits, bug) }
}

const fn confirmed(row: u32, bug: Bug, what: &'static str) -> Planted {
    Planted { row: Row::Deployed(row), what, place: Place::Shared(Bias::Confirmed, bug) }
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
    confirmed(140, Bug::WaitShortIgnored, "too few replicas confirmed, and the grant counts"),
    confirmed(144, Bug::PushedGrantUnconfirmed, "a pushed grant counts before a replica has it"),
    confirmed(165, Bug::UpgradeUnconfirmed, "a reader writes before a replica knows"),
    Planted {
        row: Row::Deployed(172),
        what: "clocks of servers that take over from each other are taken to agree",
        place: Place::Shared(Bias::TakeOvers, Bug::SlackIgnored),
    },
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
    code(57, Bug::OwnerLosesCoHolds, "the end of one hold of an owner ends the others"),
    code(57, Bug::OwnerRenewsCoHolds, "an owner's renewal keeps the holds of its dead process"),
    code(58, Bug::BatchFailsWhole, "one foreign key fails the whole renewal batch"),
    code(60, Bug::FullMemoryStopsRenewals, "a full memory refuses renewals"),
    code(75, Bug::ShorterLeaseStored, "a shorter lease is stored beside a later deadline"),
    code(76, Bug::ClaimNotRenewed, "a repeated acquire does not renew its claim"),
    code(77, Bug::LatePushCounted, "a late push counts from a newer 'queued'"),
    code(78, Bug::BlockEndLowered, "a renewal lowers the block's end"),
    code(80, Bug::SettleBeforeHear, "a caller is passed over before it is heard"),
    code(81, Bug::PollersNeverServed, "waiters without an inbox are never handed the lock"),
    code(82, Bug::OwnerPassedOver, "an owner's entry, passed over once, stays queued"),
    code(83, Bug::PatienceFromReply, "a release's patience counts to its late reply"),
    code(84, Bug::LongerLeaseCounted, "a lease counts longer than the waiter queued with"),
    code(85, Bug::ShortClaimNotPolled, "a waiter with a short lease polls as if it were long"),
    code(86, Bug::QueuedAskedAgain, "a holder told 'queued' asks again, and trusts its hold"),
    code(98, Bug::RefusedReleaseForgotten, "a refused release forgets the stray acquire"),
    code(99, Bug::StrayJoinTells, "a stray acquire that joins tells of what was lost before it"),
    code(99, Bug::CoHoldReleaseTells, "an owner's release clears what another hold left"),
    code(106, Bug::TiesByChance, "two calls of one instant are served in the wrong order"),
    code(111, Bug::EndedIsBroken, "a hold whose time was over is told to be broken, or gone"),
    code(114, Bug::EchoReleases, "the echo of a grant releases what is being released already"),
    code(140, Bug::TimeoutReconnects, "a request's timeout gives the connection up"),
    code(141, Bug::NoBackoff, "the pause before a refused request is repeated does not grow"),
    code(143, Bug::DoubtedEachTime, "a slow connection is doubted at each request"),
    code(142, Bug::LatenessIgnored, "claims stay short, however late the store answers"),
    code(130, Bug::BreakEndsAnybody, "a break ends whoever has the lock by then"),
    code(
        133,
        Bug::HandOffInherits,
        "the store keeps a lock for what an earlier local holder asked",
    ),
    code(133, Bug::HandOffUntold, "the store is not told that a local holder asks for less"),
    code(134, Bug::LateLeaseKept, "a late copy lengthens the lease for an earlier local holder"),
    code(134, Bug::RenewalShortens, "every renewal sets the lease, and a shorter one shortens it"),
    code(135, Bug::ShortenedLeaseTrusted, "a holder's first word asks for less than it trusts"),
    code(136, Bug::ExtendOutlivesHold, "an extend goes on when its hold is released"),
    code(
        137,
        Bug::LatecomersRun,
        "a local run serves who came after a stranger, however long it holds",
    ),
    code(146, Bug::NestedLeaseKept, "the store keeps a lock for what a nested hold had asked"),
    code(147, Bug::ReturnUntold, "a holder is not told of a parked waiter that waits again"),
    scripts(
        147,
        "scripts: a holder is not told of a parked waiter that waits again",
        &[("  return w, parked and alone\n", "  return w\n")],
    ),
    code(144, Bug::JoinForgotten, "a re-entry that waits for a renewal goes with its outer hold"),
    code(145, Bug::BranchesWait, "two acquires of one owner wait for each other"),
    code(160, Bug::SilenceNotStretched, "who waits far back is passed over by the claim"),
    code(161, Bug::UnannouncedSilence, "a waiter rests for longer than it has announced"),
    code(162, Bug::TokensAheadForgotten, "a lock whose tokens lie ahead of the clock is forgotten"),
    code(163, Bug::RestNotExcused, "the checker is not told that a lock was forgotten"),
    code(165, Bug::LossForgotten, "a lock whose holder was lost is forgotten"),
    code(
        166,
        Bug::ShorteningCancelled,
        "the word to the store of a shorter local holder is taken for a renewal, and left out",
    ),
    scripts(
        79,
        "scripts: 'granted' is published before the first write",
        &[
            (
                "    call('PEXPIRE', key, digits('%d', ttl / 1000 + 86400000))\n    \
                 local prefix, name = string.match(key, '^([^{]*){(.*)}$')\n    local first, ended",
                "    local prefix, name = string.match(key, '^([^{]*){(.*)}$')\n    \
                 local first, ended",
            ),
            (
                "local function publish(s, client, payload)\n  begin(s)\n",
                "local function publish(s, client, payload)\n",
            ),
        ],
    ),
    scripts(
        160,
        "scripts: who waits far back is passed over by the claim",
        &[
            ("polling, silence or w.silence, false", "polling, w.silence, false"),
            ("lease, claim, arg[at + 3], client,", "lease, claim, claim, client,"),
        ],
    ),
    scripts(
        162,
        "scripts: a lock whose tokens lie ahead of the clock is forgotten",
        &[
            ("and s.last < now + BLOCK and s.held", "and s.held"),
            ("field[2] == '0') and arg[2] + 0 < now + 1024 then", "field[2] == '0') then"),
        ],
    ),
    scripts(
        165,
        "scripts: a lock whose holder was lost is forgotten",
        &[("and s.count == 0 and s.abandoned == NO", "and s.count == 0")],
    ),
    scripts(
        133,
        "scripts: the store keeps a lock for what an earlier local holder asked",
        &[
            ("if first or deadline < now + lease and", "if deadline < now + lease and"),
            ("hold.deadline, s.used = now + lease, used", "s.used = used"),
        ],
    ),
    scripts(
        57,
        "scripts: the end of one hold of an owner ends the others",
        &[(
            "end_hold(s, hold, at)\n    s.released = short(id)",
            "s.holds, s.held, s.excl = {}, 0, 0\n    s.released = short(id)",
        )],
    ),
    scripts(
        58,
        "scripts: one foreign key fails the whole renewal batch",
        &[
            ("= try('HMGET', KEYS[(i - 1)", "= call('HMGET', KEYS[(i - 1)"),
            ("ok, state = pcall(serve, i)", "ok, state = true, serve(i)"),
        ],
    ),
    scripts(
        59,
        "scripts: a release fails half-way, at its publish, and keeps its writes",
        &[(HALF_WAY, HALF_WAY_KEPT)],
    ),
    scripts(
        59,
        "scripts: a queue of the wrong type fails a request after its first write",
        &[(
            "local record, field = call('HGETALL', key), {}",
            "if grows then call('HSET', key, 'i', arg[1]) end\n  \
             local record, field = call('HGETALL', key), {}",
        )],
    ),
    scripts(
        82,
        "scripts: an owner's entry, passed over once, stays queued",
        &[(
            "  settle(s, waiter and id, 0)\n",
            "  if #s.holds == 0 then settle(s, waiter and id, 0) end\n",
        )],
    ),
    scripts(
        60,
        "scripts: a full memory refuses renewals",
        &[("try('PEXPIRE', record, digits(", "try('HSET', record, 'z', digits(")],
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
            ("  lease = deadline - now\n", ""),
            ("hold.lease = hold.deadline - now", "hold.lease = lease"),
        ],
    ),
    scripts(
        99,
        "scripts: an owner's release clears what another hold left",
        &[(" and losses == s.losses then", " then")],
    ),
    scripts(
        130,
        "scripts: a break ends whoever has the lock by then",
        &[("if token > arg[1] + 0 then", "if false then")],
    ),
    zookeeper(27, Bug::ZkOrphanForgotten, "zookeeper: a lost create's node is never looked for"),
    zookeeper(
        28,
        Bug::ZkOldSessionsNode,
        "zookeeper: a node of the client's session before is taken for its own",
    ),
    zookeeper(
        29,
        Bug::ZkTrustsConnection,
        "zookeeper: a session is good while nothing else is told",
    ),
    zookeeper(30, Bug::ZkReleaseForgotten, "zookeeper: a release that was lost is taken as done"),
    zookeeper(
        31,
        Bug::ZkWatchSetLate,
        "zookeeper: a predecessor gone before the watch is waited for",
    ),
    zookeeper(31, Bug::ZkWatchesParent, "zookeeper: every waiter watches the parent"),
    zookeeper(32, Bug::ZkSequenceAsText, "zookeeper: nodes are sorted by their whole names"),
    zookeeper(66, Bug::ZkPingProves, "zookeeper: any server's answer proves the session"),
    zookeeper(67, Bug::ZkTokensCollide, "zookeeper: local tokens collide with the next node's"),
    zookeeper(68, Bug::ZkOwnerReenters, "zookeeper: an explicit owner's second node is granted"),
    zookeeper(
        69,
        Bug::ZkListWithoutSync,
        "zookeeper: the lost create is looked for without a sync",
    ),
    zookeeper(70, Bug::ZkOwnNodeUnwatched, "zookeeper: nobody watches the own node"),
    zookeeper(71, Bug::ZkDeletionIsGrant, "zookeeper: the predecessor's end is taken as the grant"),
    zookeeper(
        88,
        Bug::ZkLastButOneProves,
        "zookeeper: the last but one round trip proves the session",
    ),
    zookeeper(
        89,
        Bug::ZkPartingJoined,
        "zookeeper: an owner's hold joins a node whose deletion may have been carried out",
    ),
    zookeeper(
        90,
        Bug::ZkCoHoldLossForgotten,
        "zookeeper: the loss of one of an owner's holds is not told to the next holder",
    ),
    zookeeper(
        91,
        Bug::ZkAnyDeletionBreaks,
        "zookeeper: simple recipe: the deletion of the hold before breaks the next one",
    ),
    zookeeper(
        92,
        Bug::ZkHeirSwept,
        "zookeeper: a node that an owner's other hold took over is swept as a lost create's",
    ),
    zookeeper(
        93,
        Bug::ZkStrayForgotten,
        "zookeeper: a lost create is forgotten while connections come and go",
    ),
    zookeeper(
        94,
        Bug::ZkSharersStrayKept,
        "zookeeper: a lost create of a hold that shares another's node by now is kept",
    ),
    zookeeper(95, Bug::ZkRevokeIgnored, "zookeeper: a holder that is asked to let go is not told"),
    zookeeper(
        96,
        Bug::ZkHeirReleased,
        "zookeeper: a repeated release deletes the node that an owner's other hold took over",
    ),
    zookeeper(
        97,
        Bug::ZkSharerNotAsked,
        "zookeeper: the renewal of a hold that shares a node is answered from memory",
    ),
    zookeeper(
        100,
        Bug::ZkFailedListKept,
        "zookeeper: a waiter whose lock's node is gone stays in the queue that was there",
    ),
    zookeeper(
        101,
        Bug::ZkNextNodeDeleted,
        "zookeeper: simple recipe: a release that found nothing deletes the next hold's node",
    ),
    zookeeper(
        103,
        Bug::ZkUnnamedIsOurs,
        "zookeeper: simple recipe: a node whose data was replaced is whose hold looks first",
    ),
    zookeeper(
        104,
        Bug::ZkEarlierHoldKept,
        "zookeeper: simple recipe: an earlier hold's release deletes the client's next node",
    ),
    zookeeper(
        107,
        Bug::ZkNumberBelieved,
        "zookeeper: a number that follows one's own counts in a container made anew",
    ),
    zookeeper(
        107,
        Bug::ZkLastReleaseBelieved,
        "zookeeper: a lock that was released here is taken as free",
    ),
    zookeeper(
        108,
        Bug::ZkFoundOnce,
        "zookeeper: a waiter makes the path above its lock so often and no more",
    ),
    zookeeper(
        113,
        Bug::ZkSentIsHeard,
        "zookeeper: a request that was long on its way proves the session as if heard at once",
    ),
    zookeeper(130, Bug::ZkBreakEndsAnybody, "zookeeper: a break ends whoever has the lock by then"),
    readers(83, Bug::WhoFitsPasses, "a reader passes a writer that waits"),
    readers(83, Bug::SharedTryPasses, "a try to read passes a writer that waits"),
    readers(84, Bug::OneReaderWakes, "of several readers at the head one is woken"),
    readers(85, Bug::DeadReaderStops, "a dead reader keeps those behind it waiting"),
    readers(87, Bug::ReaderCutsOthers, "a reader's renewal cuts the others' leases"),
    readers(88, Bug::ReaderRenewsOthers, "a reader's renewal renews those of others"),
    readers(89, Bug::FirstReaderRenewed, "only the first reader is renewed"),
    readers(90, Bug::ReadersEndTogether, "an expired reader stays until all have expired"),
    readers(91, Bug::ReaderEndsOwner, "the end of an owner's read ends its write"),
    readers(92, Bug::DowngradeLetsWriterIn, "a downgrade lets a queued writer in"),
    readers(93, Bug::DowngradeFreesTwice, "a repeated downgrade lets go of the hold"),
    readers(94, Bug::DowngradeKeepsToken, "who was downgraded keeps the writer's token"),
    readers(95, Bug::ReaderAsksToWrite, "a reader asks to write, and waits for itself"),
    readers(95, Bug::UpgradeQueues, "a reader asks its client to write, and waits for itself"),
    readers(96, Bug::ReaderQueuesAgain, "an owner's second read queues behind a writer"),
    readers(96, Bug::NestedReadQueues, "a nested read queues behind a writer"),
    readers(96, Bug::ReadBranchesWait, "a branch's read waits beside its owner's hold"),
    readers(97, Bug::WriterBesideReaders, "a writer does not see who reads"),
    readers(98, Bug::ReadersTakeBlocks, "readers' blocks of tokens outrun the clock"),
    readers(99, Bug::ReaderClearsAbandoned, "a reader's release clears 'abandoned'"),
    readers(99, Bug::LostReaderTold, "a lost reader sets 'abandoned'"),
    zk_readers(
        86,
        Bug::ZkDeletionIsGrant,
        "zookeeper: the nearest reader's end is taken as that of all",
    ),
    zk_readers(99, Bug::ZkReaderMends, "zookeeper: a reader's release clears 'abandoned'"),
    zk_readers(
        92,
        Bug::ZkTurnInTwoSteps,
        "zookeeper: a downgrade in two steps lets a queued writer in",
    ),
    zk_readers(94, Bug::ZkTurnKeepsToken, "zookeeper: a downgrade's token is the writer's"),
    zk_readers(126, Bug::ZkLostReaderTold, "zookeeper: a dead reader reads as 'abandoned'"),
    permits(103, Bug::WhoFitsPasses, "a small request passes a large one"),
    permits(103, Bug::PermitsOverdrawn, "who finds one permit left takes three"),
    permits(104, Bug::LeaverWakesNobody, "the large request at the head gives up: nobody wakes"),
    permits(105, Bug::ResizeWakesNobody, "more permits than before, and nobody is woken"),
    permits(105, Bug::DoomedWaits, "who wants more permits than are left waits for ever"),
    permits(106, Bug::ResizeAdds, "a resize adds to the permits that are out"),
    permits(107, Bug::AnyNumberOfPermits, "five permits here, ten there"),
    permits(108, Bug::ExpiredPermitFrees, "the release of an expired permit frees another"),
    zk_permits(103, Bug::ZkPermitsOverdrawn, "zookeeper: who finds one permit left takes three"),
    zk_permits(110, Bug::ZkTryPasses, "zookeeper: a try takes permits before its turn"),
    zk_permits(111, Bug::ZkLeasesForgotten, "zookeeper: permits of an unanswered request stay out"),
    zk_permits(150, Bug::ZkFirstLeaseReturned, "zookeeper: of several permits one is given back"),
    zk_permits(
        151,
        Bug::ZkPermitsAsWriter,
        "zookeeper: who wants permits queues as a read-write lock's writer",
    ),
    readers(101, Bug::JoinOnOldWord, "local readers overlap on the store's old word"),
    readers(101, Bug::ReaderPassesKnownWriter, "a local reader joins past a writer elsewhere"),
    readers(101, Bug::ReaderPassesOwnWriter, "a local reader joins past a local writer"),
    readers(112, Bug::FirstHoldClamped, "the clock goes back: only the first holder is drawn in"),
    readers(121, Bug::OwnHoldAwaited, "an owner's write waits for its own read"),
    readers(121, Bug::UpgradeWaitsOn, "a write that waits when its own read is granted waits on"),
    readers(122, Bug::ReaderStaysWriter, "an owner's write ends, and its read stays exclusive"),
    readers(
        125,
        Bug::FirstReaderEndsWait,
        "the first of local readers gives up: the others wait on",
    ),
    readers(128, Bug::OneTenantTold, "of those who read by one hold, one is told of its loss"),
    readers(129, Bug::TenantEndsSeat, "one local reader's lease ends the others' hold"),
    readers(130, Bug::ReaderSitsTwice, "an owner reads under two of its client's holds"),
    readers(131, Bug::JoinsUpgrade, "an owner reads on with the old token while it is upgraded"),
    readers(132, Bug::ForgottenStays, "a hold that the store forgot outlives its client's next"),
    readers(133, Bug::UpgradeNotUndone, "an upgrade that was given up is not undone"),
    permits(137, Bug::AnyCountHandedOn, "permits go to a local waiter who wants another number"),
    permits(138, Bug::LocalHeadPassed, "permits that are handed on pass the first local waiter"),
    permits(139, Bug::GivenUpSeatHandedOn, "permits of a seat that is given up are handed on"),
    readers(120, Bug::LateConversionForgotten, "a conversion that was not answered comes late"),
    readers(134, Bug::OuterWriteStays, "who reads within a write keeps it after the write"),
];

const HALF_WAY: &str = "local heard = try(PUBLISH, digits(INBOX, prefix, client, name),\n      \
                        digits('1 granted";

const HALF_WAY_KEPT: &str = "call('HDEL', key, 'i')\n    \
                             local heard = call(PUBLISH, digits(INBOX, prefix, client, name),\n      \
                             digits('1 granted";

impl Planted {
    /// Its seeds come after this one.
    fn before(&self) -> u64 {
        match self.place {
            Place::Shared(bias, _) | Place::ZooKeeperShared(bias, _) => bias.next(0),
            _ => 0,
        }
    }
}

/// Plants one bug and runs seeds until it is found: `known`, which found it before, ahead of the others.
pub fn hunt(planted: &Planted, seeds: u64, known: Option<u64>) -> Option<Found> {
    let (kind, bug, mut runner) = match planted.place {
        Place::Code(bug) => (StoreKind::Record, Some(bug), Runner::default()),
        Place::Scripts(patches) => (StoreKind::Redis, None, Runner::with_patches(patches)),
        Place::ZooKeeper(bug) | Place::ZooKeeperShared(_, bug) => {
            (StoreKind::ZooKeeper, Some(bug), Runner::default())
        }
        Place::Shared(_, bug) => (StoreKind::Record, Some(bug), Runner::default()),
    };
    let mut sound = Runner::default();
    let before = planted.before();
    let order = order(kind, seeds).map(|seed| before + seed);
    let order = known.into_iter().chain(order);
    let found = order.enumerate().find_map(|(before, seed)| {
        plant::plant(bug);
        let violation = runner.run(seed, kind, Trace::silent()).violation?;
        // What breaks without the bug, too, does not show that it is found.
        plant::plant(None);
        let as_well = sound.run(seed, kind, Trace::silent()).violation.is_some();
        (!as_well).then_some(Found { seed, tried: before + 1, promise: violation.promise })
    });
    plant::plant(None);
    found
}

/// The seeds in the order in which they are tried: on ZooKeeper those first that are bent towards
/// what seldom comes together, since a run takes long there.
fn order(kind: StoreKind, seeds: u64) -> impl Iterator<Item = u64> {
    let first = move |seed: &u64| kind == StoreKind::ZooKeeper && ZkBias::of(*seed).0.is_some();
    (1..=seeds).filter(first).chain((1..=seeds).filter(move |seed| !first(seed)))
}

/// The seeds that found the bugs last, as a text of lines `seed row what`: to be tried first, since most
/// still do. A bug that its seed no longer finds is searched for as if there were none.
#[derive(Debug, Default)]
pub struct Known(Vec<(u64, String)>);

impl Known {
    /// Reads them; a line that cannot be read is none.
    pub fn read(text: &str) -> Known {
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let seeds = lines.filter_map(|(seed, bug)| Some((seed.parse().ok()?, bug.to_owned())));
        Known(seeds.collect())
    }

    /// The seed that found this bug, if it is one of the first `seeds`.
    pub fn of(&self, planted: &Planted, seeds: u64) -> Option<u64> {
        let name = Known::name(planted);
        let known = self.0.iter().find(|(_, bug)| *bug == name).map(|(seed, _)| *seed);
        let before = planted.before();
        known.filter(|seed| (before..=before + seeds).contains(seed))
    }

    /// Notes a seed.
    pub fn note(&mut self, planted: &Planted, seed: u64) {
        self.0.push((seed, Known::name(planted)));
    }

    /// The text.
    pub fn text(&self) -> String {
        self.0.iter().map(|(seed, bug)| format!("{seed} {bug}\n")).collect()
    }

    fn name(planted: &Planted) -> String {
        format!("{} {}", planted.row, planted.what)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Row, TABLE};

    #[test]
    fn the_page_names_the_rows_that_are_planted() {
        let page = include_str!("../../../docs/bugs.md");
        let rows = page.lines().filter(|line| line.starts_with("| "));
        let told: BTreeSet<Row> = rows
            .filter(|line| line.rsplit('|').nth(1).is_some_and(|it| it.starts_with(" simulator")))
            .filter_map(|line| line.split('|').nth(1)?.trim().parse().ok())
            .collect();
        let planted: BTreeSet<Row> = TABLE.iter().map(|it| it.row).collect();
        assert_eq!(told, planted);
    }
}
