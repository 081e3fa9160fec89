//! Scenes with an explicit owner.

use fencelock_nemesis::run::Kind;

use crate::scenes::{contended, expected};
use crate::stage::Stage;
use crate::verdict::Verdict;

type Played = Result<Verdict, String>;

/// How far apart two readings of one lease may lie, in nanoseconds: a driver reads its clock, then what
/// remains, and may be kept waiting between the two.
const READING: u64 = 200_000_000;

const ONE_CLIENT: &str = "on ZooKeeper an owner's holds go together within one client only";

pub(crate) fn reentry(stage: &mut Stage<'_>) -> Played {
    let lock = stage.lock();
    let (outer, first) = stage.one.acquires(&lock, "owner=request");
    expected!(first.get("reentry") == Some("false"), "the first is a re-entry: {first}");
    let (inner, second) = stage.one.acquires(&lock, "owner=request");
    expected!(second.get("reentry") == Some("true"), "the second is no re-entry: {second}");
    let tokens = (first.number("token"), second.number("token"));
    expected!(tokens.0 == tokens.1, "a re-entry has another token: {tokens:?}");
    let shorter = first.number("until") > second.number("until") + READING;
    expected!(!shorter, "a re-entry made the lease shorter: {first}, {second}");
    stage.one.releases(&inner);
    contended(&mut stage.rust, &lock, "with one level left")?;
    stage.one.releases(&outer);
    let (held, _) = stage.rust.acquires(&lock, "");
    stage.rust.releases(&held);
    Ok(Verdict::Kept)
}

pub(crate) fn processes(stage: &mut Stage<'_>) -> Played {
    if stage.house.kind == Kind::ZooKeeper {
        return Ok(Verdict::Empty(ONE_CLIENT));
    }
    let lock = stage.lock();
    let (first, of_one) = stage.one.acquires(&lock, "owner=request");
    let (second, of_two) = stage.two.acquires(&lock, "owner=request");
    let (third, of_rust) = stage.rust.acquires(&lock, "owner=request");
    let tokens = [&of_one, &of_two, &of_rust].map(|it| it.number("token"));
    let same = tokens.iter().all(|token| *token == tokens[0]);
    expected!(same, "an owner's holds have several tokens: {tokens:?}");
    contended(&mut stage.rust, &lock, "while an owner had the lock")?;
    stage.one.releases(&first);
    stage.rust.releases(&third);
    contended(&mut stage.rust, &lock, "while the owner still had one hold")?;
    stage.two.releases(&second);
    let (held, _) = stage.rust.acquires(&lock, "wait=try");
    stage.rust.releases(&held);
    Ok(Verdict::Kept)
}

pub(crate) fn tickets(stage: &mut Stage<'_>) -> Played {
    if stage.house.kind == Kind::ZooKeeper {
        return Ok(Verdict::Empty(ONE_CLIENT));
    }
    let lock = stage.lock();
    let (first, of_one) = stage.one.acquires(&lock, "owner=request");
    let said = stage.one.actor.ask(&format!("ticket {first}"), "ticket", &first);
    let ticket = said.get("text").unwrap_or_default().to_owned();
    let second = stage.rust.attaches(&ticket, "request");
    let of_rust = stage.rust.granted(&second);
    let said = stage.rust.actor.ask(&format!("ticket {second}"), "ticket", &second);
    let ticket = said.get("text").unwrap_or_default().to_owned();
    let third = stage.two.attaches(&ticket, "request");
    let of_two = stage.two.granted(&third);
    let tokens = [&of_one, &of_rust, &of_two].map(|it| it.number("token"));
    let same = tokens.iter().all(|token| *token == tokens[0]);
    expected!(same, "a ticket gave another token: {tokens:?}");
    stage.two.releases(&third);
    stage.rust.releases(&second);
    stage.one.releases(&first);
    // What is over cannot be gone on with.
    let late = stage.two.attaches(&ticket, "request");
    let kind = stage.two.refused(&late);
    expected!(kind == "not_held", "a ticket for what is over was answered '{kind}'");
    Ok(Verdict::Kept)
}
