//! A lock's keys, read back.

use crate::id::{ClientId, HoldId, OwnerId};
use crate::redis::decode::abandoned;
use crate::redis::value::Value;
use crate::reply::Abandoned;
use crate::request::{MAX_LOCAL_WAITERS, Mode};
use crate::store::{Queue, Record, StoredHold, StoredWaiter};

/// Fields of the queue that begin so name the entries of an explicit owner.
const OWNED: char = '=';
const POLLING: u64 = 1;
const CLAIM: u64 = 2;
const SILENT: u64 = 2;

/// A lock's record out of its hashes, each as `HGETALL` gives it: the record itself, the queue, and the
/// holds where the lock is shared. The order of who waits follows from the entries.
///
/// The lease that a holder asked for last is not kept by this store: `asked` is the stored lease.
/// Of the hold that was released last it keeps the first half of the id.
///
/// # Errors
/// The error that a script would give: `LAYOUT <version>`, `FOREIGN` or `DAMAGED`.
pub fn decode_record(record: &[Value], queue: &[Value], holds: &[Value]) -> Result<Record, String> {
    if !record.is_empty() {
        match field(record, "v").and_then(Value::number) {
            Some(1) => {}
            Some(2) => {
                let shared = read(record, queue).and_then(|read| read_shared(read, record, holds));
                return shared.ok_or_else(|| "DAMAGED".to_owned());
            }
            Some(version) if version > 1 => return Err(format!("LAYOUT {version}")),
            _ => return Err("FOREIGN".to_owned()),
        }
    }
    read(record, queue).ok_or_else(|| "DAMAGED".to_owned())
}

fn field<'a>(record: &'a [Value], name: &str) -> Option<&'a Value> {
    let mut pairs = record.chunks_exact(2);
    pairs.find(|pair| pair[0].text() == Some(name)).map(|pair| &pair[1])
}

fn read(record: &[Value], queue: &[Value]) -> Option<Record> {
    let text = |name| field(record, name).map_or(Some(""), Value::text);
    let number = |name| field(record, name).map_or(Some(0), Value::number);
    let mut holds = Vec::new();
    if let Some(hold) = Some(text("i")?).filter(|id| !id.is_empty()) {
        let more = text("x")?.lines();
        let flags = number("f")?;
        let first = format!("{hold} {} {} {flags} {}", text("d")?, text("l")?, text("c")?);
        holds.push(read_hold(&first)?);
        for line in more {
            holds.push(read_hold(line)?);
        }
    }
    let mut waiters = Queue::default();
    for pair in queue.chunks_exact(2) {
        let hold = pair[0].text()?;
        if !hold.starts_with(OWNED) {
            waiters.insert(read_waiter(hold, pair[1].text()?)?);
        }
    }
    let owner = if holds.is_empty() { None } else { read_owner(text("o")?)? };
    let token = if field(record, "t").is_some() { number("t")? } else { number("e")? };
    for hold in &mut holds {
        hold.token = token;
        hold.owner.clone_from(&owner);
    }
    let released = text("r")?;
    let (abandoned, losses) = abandoned(number("b")?)?;
    Some(Record {
        owner,
        holds,
        token,
        last: number("e")?,
        used: number("u")?,
        abandoned,
        losses,
        released: if released.is_empty() { None } else { Some(read_released(released)?) },
        ticket: number("k")?,
        waiters,
    })
}

/// The same with holds of their own, in the order of their grants. Where they are lost, exclusive ones
/// may have left something half done.
fn read_shared(mut read: Record, record: &[Value], holds: &[Value]) -> Option<Record> {
    let one = field(record, "a").map_or(Some(""), Value::text)?;
    if !one.is_empty() {
        let (hold, line) = one.split_once(' ')?;
        read.holds = vec![read_shared_hold(hold, line)?.1];
        return Some(read);
    }
    let mut numbers = field(record, "h")?.text()?.split(' ').map(str::parse::<u64>);
    let (_, exclusive) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let mut placed = Vec::new();
    for pair in holds.chunks_exact(2) {
        let hold = pair[0].text()?;
        if !hold.starts_with(OWNED) {
            placed.push(read_shared_hold(hold, pair[1].text()?)?);
        }
    }
    placed.sort_by_key(|(place, _)| *place);
    read.holds = placed.into_iter().map(|(_, hold)| hold).collect();
    if exclusive > 0 && read.holds.is_empty() {
        if read.abandoned != Abandoned::Yes {
            read.abandoned = Abandoned::Unknown;
        }
        read.losses = 0;
    } else if exclusive > 0 {
        let owner = field(record, "o").map_or(Some(""), Value::text)?;
        read.owner = read_owner(owner)?;
    }
    Some(read)
}

/// `deadline lease flags token place` and the mode, the client and the owner, a line each.
fn read_shared_hold(hold: &str, text: &str) -> Option<(u64, StoredHold)> {
    let mut lines = text.splitn(3, '\n');
    let mut words = lines.next()?.split(' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (deadline, lease, flags) = (number()?, number()?, number()?);
    let (token, place) = (number()?, number()?);
    let mode = read_mode(words)?;
    let hold = exclusive_hold(hold, deadline, lease, flags, lines.next()?)?;
    let owner = read_owner(lines.next()?)?;
    Some((place, StoredHold { mode, token, owner, ..hold }))
}

/// Nothing, or `s`, or `p` and two numbers.
fn read_mode<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Mode> {
    match words.next() {
        None => Some(Mode::Exclusive),
        Some("s") => Some(Mode::Shared),
        Some("p") => {
            let mut number = || words.next()?.parse().ok();
            Some(Mode::Permits { count: number()?, of: number()? })
        }
        Some(_) => None,
    }
}

fn read_released(digits: &str) -> Option<HoldId> {
    let half = u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 16)?;
    Some(HoldId(u128::from(half) << 64))
}

/// Nothing, or an owner's id; the outer `None` says that it is damaged.
#[allow(clippy::option_option)]
fn read_owner(text: &str) -> Option<Option<OwnerId>> {
    if text.is_empty() { Some(None) } else { OwnerId::new(text).ok().map(Some) }
}

fn read_client(text: &str) -> Option<ClientId> {
    let (id, label) = text.split_once(' ')?;
    ClientId::new(u64::from_str_radix(id, 16).ok()?, label).ok()
}

/// A client, and how many wait within it: after the label, behind a tab, where there are any.
fn read_place(text: &str) -> Option<(ClientId, u32)> {
    let (client, count) = text.split_once('\t').unwrap_or((text, "0"));
    let count: u32 = count.parse().ok()?;
    Some((read_client(client)?, count.min(MAX_LOCAL_WAITERS)))
}

/// `hold deadline lease flags client label`
fn read_hold(line: &str) -> Option<StoredHold> {
    let mut words = line.splitn(5, ' ');
    let hold = words.next()?;
    let mut number = || words.next()?.parse::<u64>().ok();
    let (deadline, lease, flags) = (number()?, number()?, number()?);
    exclusive_hold(hold, deadline, lease, flags, words.next()?)
}

/// A hold whose owner and token are the record's.
fn exclusive_hold(
    hold: &str,
    deadline: u64,
    lease: u64,
    flags: u64,
    place: &str,
) -> Option<StoredHold> {
    let (client, local_waiters) = read_place(place)?;
    Some(StoredHold {
        hold: HoldId::parse(hold)?,
        client,
        polling: flags & POLLING != 0,
        deadline,
        lease,
        asked: lease,
        claim: flags & CLAIM != 0,
        local_waiters,
        mode: Mode::Exclusive,
        token: 0,
        owner: None,
    })
}

/// `ticket heard flags lease claim silence` and the mode, the client and the owner, a line each.
fn read_waiter(hold: &str, text: &str) -> Option<StoredWaiter> {
    let mut lines = text.splitn(3, '\n');
    let mut words = lines.next()?.split(' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (ticket, heard, flags) = (number()?, number()?, number()?);
    let (lease, claim, silence) = (number()?, number()?, number()?);
    let mode = read_mode(words)?;
    let (client, local_waiters) = read_place(lines.next()?)?;
    Some(StoredWaiter {
        hold: HoldId::parse(hold)?,
        client,
        polling: flags & POLLING != 0,
        owner: read_owner(lines.next()?)?,
        ticket,
        heard,
        silent: flags & SILENT != 0,
        lease,
        claim,
        silence,
        local_waiters,
        mode,
    })
}
