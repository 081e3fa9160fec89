//! Scenes of a read-write lock.

use fencelock_nemesis::Record;
use fencelock_nemesis::run::Kind;

use crate::scenes::{contended, expected, in_order, knows, lacking};
use crate::stage::{Player, Stage};
use crate::verdict::Verdict;

type Played = Result<Verdict, String>;

const READS: &str = "mode=shared";

/// Readers of three processes are in together, two of them in one; a writer is alone.
pub(crate) fn together(stage: &mut Stage<'_>) -> Played {
    if let Some(why) = lacking(stage, |it| it.shared) {
        return Ok(Verdict::Empty(why));
    }
    let lock = stage.lock();
    let mut readers = Vec::new();
    for player in [0, 1, 2, 0] {
        let (tag, granted) = seat(stage, player).acquires(&lock, "mode=shared wait=try");
        readers.push((player, tag, granted));
    }
    for player in 0..3 {
        contended(seat(stage, player), &lock, "while others read")?;
    }
    for (player, tag, _) in &readers {
        let (trusted, seen) = seat(stage, *player).trusts(tag);
        expected!(trusted, "a reader lost a lock that only readers have: {seen}");
        seat(stage, *player).releases(tag);
    }
    let (writes, writer) = stage.one.acquires(&lock, "");
    for (_, _, reader) in &readers {
        in_order(reader, &writer, "a writer after a reader")?;
    }
    for player in 0..3 {
        let kind = reads_in_vain(seat(stage, player), &lock);
        expected!(kind == "contended", "beside a writer, a reader was answered '{kind}'");
    }
    stage.one.releases(&writes);
    let (reads, reader) = stage.rust.acquires(&lock, READS);
    in_order(&writer, &reader, "a reader after a writer")?;
    stage.rust.releases(&reads);
    Ok(Verdict::Kept)
}

/// A reader that comes behind a waiting writer does not pass it.
pub(crate) fn turns(stage: &mut Stage<'_>) -> Played {
    if let Some(why) = lacking(stage, |it| it.shared) {
        return Ok(Verdict::Empty(why));
    }
    let lock = stage.lock();
    for (writer, reader) in [(2, 1), (1, 2)] {
        let (first, held) = stage.one.acquires(&lock, READS);
        let writes = seat(stage, writer).asks(&lock, "");
        stage.waiting(1);
        let kind = reads_in_vain(seat(stage, reader), &lock);
        expected!(kind == "contended", "a reader's try behind a writer was answered '{kind}'");
        let reads = seat(stage, reader).asks(&lock, READS);
        stage.waiting(2);
        stage.one.releases(&first);
        let of_writer = seat(stage, writer).granted(&writes);
        in_order(&held, &of_writer, "a writer behind a reader")?;
        seat(stage, writer).releases(&writes);
        let of_reader = seat(stage, reader).granted(&reads);
        in_order(&of_writer, &of_reader, "a reader behind a writer")?;
        seat(stage, reader).releases(&reads);
    }
    Ok(Verdict::Kept)
}

/// A reader is killed: the others lose nothing by it, and a writer waits for its lease, not for
/// that of one who lives and read for longer; nobody hears that anything was left half done.
pub(crate) fn dead_reader(stage: &mut Stage<'_>) -> Played {
    if let Some(why) = lacking(stage, |it| it.shared) {
        return Ok(Verdict::Empty(why));
    }
    let lock = stage.lock();
    let mut victim = stage.house.cast(stage.role).map_err(|error| error.to_string())?;
    let (lives, _) = stage.one.acquires(&lock, "mode=shared lease=300000ms");
    victim.acquires(&lock, READS);
    let writes = stage.rust.asks(&lock, "");
    stage.waiting(1);
    victim.actor.kill();
    let (trusted, seen) = stage.one.trusts(&lives);
    expected!(trusted, "a reader lost its hold by the death of another: {seen}");
    stage.one.releases(&lives);
    let writer = stage.rust.granted(&writes);
    let said = writer.get("abandoned").unwrap_or_default().to_ascii_lowercase();
    expected!(said != "yes", "after a lost reader a writer heard {writer}");
    stage.rust.releases(&writes);
    Ok(Verdict::Kept)
}

/// Who reads and asks to write would wait for itself, and is told so at once.
pub(crate) fn would_deadlock(stage: &mut Stage<'_>) -> Played {
    if let Some(why) = lacking(stage, |it| it.shared) {
        return Ok(Verdict::Empty(why));
    }
    let lock = stage.lock();
    let (reads, reader) = stage.one.acquires(&lock, "mode=shared owner=request");
    // On ZooKeeper an owner's holds go together within one client only.
    let places: &[usize] = if stage.house.kind == Kind::ZooKeeper { &[0] } else { &[0, 1, 2] };
    for place in places {
        let writes = seat(stage, *place).asks(&lock, "owner=request");
        let kind = seat(stage, *place).refused(&writes);
        expected!(kind == "would_deadlock", "a writer that reads was answered '{kind}'");
    }
    stage.waiting(0);
    // To read again it does not wait, although a writer does.
    let waits = stage.rust.asks(&lock, "");
    stage.waiting(1);
    let (again, within) = stage.one.acquires(&lock, "mode=shared owner=request");
    let tokens = (reader.number("token"), within.number("token"));
    expected!(tokens.0 == tokens.1, "a re-entry has another token: {tokens:?}");
    stage.one.releases(&again);
    stage.one.releases(&reads);
    stage.rust.granted(&waits);
    stage.rust.releases(&waits);
    Ok(Verdict::Kept)
}

/// A writer goes on as a reader: other readers come in, and no writer between. It writes again only when
/// nobody else reads, past who waits.
pub(crate) fn conversions(stage: &mut Stage<'_>) -> Played {
    if let Some(why) = lacking(stage, |it| it.shared) {
        return Ok(Verdict::Empty(why));
    }
    if !knows(stage, "conversions") {
        return Ok(Verdict::Empty("the driver does not convert holds yet"));
    }
    if stage.house.kind == Kind::ZooKeeper {
        return Ok(Verdict::Empty(
            "on ZooKeeper nobody is upgraded, and a plain lock, by which drivers write, is not downgraded",
        ));
    }
    let lock = stage.lock();
    let (held, writer) = stage.one.acquires(&lock, "");
    let reads = stage.rust.asks(&lock, READS);
    stage.waiting(1);
    let writes = stage.two.asks(&lock, "");
    stage.waiting(2);
    let reader = converted(stage.one.converts("downgrade", &held), "shared")?;
    in_order(&writer, &reader, "a writer's token as a reader")?;
    let beside = stage.rust.granted(&reads);
    in_order(&writer, &beside, "a reader beside one that wrote")?;
    stage.waiting(1);
    let refused = stage.one.converts("upgrade", &held);
    let kind = refused.get("kind").unwrap_or_default();
    expected!(kind == "contended", "beside a reader, an upgrade was answered {refused}");
    let (trusted, seen) = stage.one.trusts(&held);
    expected!(trusted, "an upgrade in vain cost the hold: {seen}");
    stage.rust.releases(&reads);
    let again = converted(stage.one.converts("upgrade", &held), "exclusive")?;
    in_order(&beside, &again, "a reader that became a writer")?;
    expected!(stage.two.actor.said("granted", &writes).is_none(), "another writer came between");
    stage.one.releases(&held);
    let last = stage.two.granted(&writes);
    in_order(&again, &last, "the writer that waited")?;
    stage.two.releases(&writes);
    Ok(Verdict::Kept)
}

fn converted(said: Record, mode: &str) -> Result<Record, String> {
    expected!(said.get("mode") == Some(mode), "instead of '{mode}' it said {said}");
    Ok(said)
}

fn reads_in_vain(player: &mut Player, lock: &str) -> String {
    let tag = player.asks(lock, "mode=shared wait=try");
    player.refused(&tag)
}

fn seat<'a>(stage: &'a mut Stage<'_>, place: usize) -> &'a mut Player {
    match place {
        0 => &mut stage.one,
        1 => &mut stage.two,
        _ => &mut stage.rust,
    }
}
