use std::collections::BTreeSet;

use super::*;
use crate::reply::Abandoned;
use crate::zookeeper::check_name;
use crate::zookeeper::name::{Kind, Participant, name_of, order, path_of, queue};
use crate::zookeeper::note::{Badge, Note};
use crate::zookeeper::verdict::View;
use crate::zookeeper::verdict::verdict;

#[test]
fn names_are_paths_and_come_back() {
    for (name, path) in [
        ("distributed/myLock", "/distributed/myLock"),
        ("a b", "/a b"),
        ("50%", "/50%"),
        ("a%7Bb", "/a%257Bb"),
        ("a%7bb", "/a%7bb"),
        ("%0A", "/%250A"),
        ("a\nb", "/a%0Ab"),
        ("%\n", "/%%0A"),
        ("ä", "/ä"),
        ("🔒", "/%F0%9F%94%92"),
        ("x/🔒/y", "/x/%F0%9F%94%92/y"),
        ("...", "/..."),
    ] {
        let name = Name::new(name).unwrap();
        assert_eq!(path_of("", &name).unwrap(), path, "{name}");
        assert_eq!(path_of("/c", &name).unwrap(), format!("/c{path}"));
        assert_eq!(name_of(&path[1..]), Some(name));
    }
}

#[test]
fn every_character_comes_back() {
    let codes = (1..0x3000u32).step_by(if cfg!(miri) { 97 } else { 1 });
    for code in codes.chain([0xd7ff, 0xe000, 0xf8ff, 0xf900, 0xfff0, 0xffff, 0x10ffff]) {
        let Some(c) = char::from_u32(code) else { continue };
        for text in [format!("x{c}"), format!("%{c}4"), format!("%4{c}")] {
            let Ok(name) = Name::new(&text) else { continue };
            let Ok(path) = path_of("", &name) else { continue };
            assert!(!path.chars().any(crate::zookeeper::name::is_refused), "{code:x}");
            assert_eq!(name_of(&path[1..]), Some(name), "{code:x}");
        }
    }
}

#[test]
fn names_that_are_no_paths_are_refused_with_the_reason() {
    for (name, word) in [
        ("/a", "empty part"),
        ("a/", "empty part"),
        ("a//b", "empty part"),
        (".", "'.'"),
        ("a/../b", "'..'"),
        ("a/_c_0-lock-0000000001", "participant"),
        ("a/lock-0000000001", "participant"),
    ] {
        let error = check_name(&Name::new(name).unwrap()).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::InvalidArgument);
        assert!(error.message().contains(word), "{name}: {error}");
    }
    let own = path_of("", &Name::new("zookeeper/x").unwrap()).unwrap_err();
    assert!(own.message.contains("ZooKeeper's own"), "{own:?}");
    assert!(path_of("/c", &Name::new("zookeeper/x").unwrap()).is_ok());
}

#[test]
fn participants_of_ours_and_of_curator_are_read() {
    let own = Participant::parse(&node(3, 12)).unwrap();
    assert_eq!((own.hold, own.sequence), (Some(hold(3)), 12));
    let curator =
        Participant::parse("_c_6ef91d2f-1b1a-4a0c-9f10-0a7a5d1f7c11-lock-0000000013").unwrap();
    assert_eq!(curator.sequence, 13);
    assert_eq!(Participant::parse("lock-0000000002").unwrap().hold, None);
    assert_eq!(Participant::parse("lock--2147483648").unwrap().sequence, i32::MIN);
    for (name, kind) in [("__READ__", Kind::Read), ("__WRIT__", Kind::Write), ("lock-", Kind::Lock)]
    {
        let name = format!("_c_6ef91d2f-1b1a-4a0c-9f10-0a7a5d1f7c11-{name}0000000014");
        let one = Participant::parse(&name).unwrap();
        assert_eq!((one.sequence, one.kind, one.hold.is_some()), (14, kind, true));
    }
    for other in ["x", "lock-", "lock-12", "_c_x-lock-000000000x", "0a__lock__0000000001"] {
        assert_eq!(Participant::parse(other), None, "{other}");
    }
}

/// Counter-example 32: past 2^31 the numbers are negative, and as text they sort wrongly.
#[test]
fn the_wrap_keeps_the_order() {
    assert!(order(i32::MAX, i32::MIN).is_lt());
    assert!(order(-3, 4).is_lt());
    let names: Vec<String> = [i32::MIN + 1, i32::MAX - 1, i32::MIN, i32::MAX]
        .iter()
        .map(|sequence| format!("lock-{sequence:010}"))
        .collect();
    let (queue, stranger) = queue(&names);
    let order: Vec<i32> = queue.iter().map(|one| one.sequence).collect();
    assert_eq!(order, [i32::MAX - 1, i32::MAX, i32::MIN, i32::MIN + 1]);
    assert_eq!(stranger, None);
    assert!(queue.iter().all(Participant::is_worn));
}

#[test]
fn notes_and_badges_come_back() {
    for abandoned in [Abandoned::No, Abandoned::Yes, Abandoned::Unknown] {
        for released in [false, true] {
            let note = Note { released, sequence: -5, abandoned };
            assert_eq!(Note::parse(&note.encode()), Some(note));
        }
    }
    for other in ["", "10.0.0.1", "fencelock 2 held 1 0", "fencelock 1 held x 0"] {
        assert_eq!(Note::parse(other.as_bytes()), None, "{other}");
    }
    let client = ClientId::new(9, "shop 1 ä").unwrap();
    let badge = Badge::parse(&Badge::encode(&client, TIMEOUT)).unwrap();
    assert_eq!((badge.client.as_str(), badge.label.as_str()), (client.id(), "shop 1 ä"));
    assert_eq!(badge.timeout, TIMEOUT);
}

/// Promise 12: what can be proven is told, and nothing else.
#[test]
fn p12_verdicts() {
    use Abandoned::{No, Unknown, Yes};
    let released = |sequence, abandoned| Some(Note { released: true, sequence, abandoned });
    let held = |sequence| Some(Note { released: false, sequence, abandoned: Yes });
    let verdict = |note, own, view: Option<&View>| verdict(note, own, false, view);
    let view = |first, ours, between: &[i32]| View {
        readers: BTreeSet::new(),
        first_reads: false,
        first,
        first_is_ours: ours,
        between: between.to_vec(),
    };
    // Straight to the front.
    assert_eq!(verdict(None, 0, None), Unknown, "nothing is known of a new node");
    assert_eq!(verdict(released(4, No), 5, None), No);
    assert_eq!(verdict(released(4, Yes), 5, None), Yes);
    assert_eq!(verdict(released(4, No), 7, None), Unknown, "5 or 6 may have held");
    assert_eq!(verdict(released(4, Yes), 7, None), Yes);
    assert_eq!(verdict(held(4), 5, None), Yes);
    assert_eq!(verdict(held(4), 9, None), Yes);
    assert_eq!(verdict(released(9, No), 2, None), Unknown, "the node was made anew");
    assert_eq!(verdict(released(i32::MAX, No), i32::MIN, None), No, "over the wrap");
    // After a wait.
    assert_eq!(verdict(released(4, No), 6, Some(&view(4, Some(true), &[]))), No, "5 never held");
    assert_eq!(verdict(released(4, No), 6, Some(&view(4, Some(true), &[5]))), Unknown);
    assert_eq!(verdict(released(5, No), 6, Some(&view(4, Some(true), &[5]))), No);
    assert_eq!(
        verdict(released(3, No), 6, Some(&view(4, Some(true), &[5]))),
        Yes,
        "4 said nothing"
    );
    assert_eq!(verdict(released(3, No), 6, Some(&view(4, Some(false), &[]))), Unknown, "Curator's");
    assert_eq!(verdict(None, 6, Some(&view(4, Some(true), &[]))), Yes);
    assert_eq!(verdict(None, 6, Some(&view(4, None, &[]))), Unknown);
}

/// Readers are told what the writer before them left, and tell it on; whether they released or died
/// makes no difference.
#[test]
fn p12_verdicts_beside_readers() {
    use Abandoned::{No, Unknown, Yes};
    let released = |sequence, abandoned| Some(Note { released: true, sequence, abandoned });
    let held = Some(Note { released: false, sequence: 4, abandoned: Yes });
    let view = |first, reads, between: &[i32], readers: &[i32]| View {
        first,
        first_reads: reads,
        first_is_ours: Some(true),
        between: between.to_vec(),
        readers: readers.iter().copied().collect(),
    };
    // 4 wrote; 5 and 6 read; 7 waited for them.
    let seen = view(5, true, &[], &[5, 6]);
    for verdict in
        [No, Yes, Unknown].map(|told| (told, verdict(released(4, told), 7, false, Some(&seen))))
    {
        assert_eq!(verdict.0, verdict.1, "M126: both readers died");
    }
    assert_eq!(verdict(held, 7, false, Some(&seen)), Yes, "nobody has mended it");
    assert_eq!(verdict(None, 7, false, Some(&seen)), Unknown);
    assert_eq!(verdict(released(5, No), 7, false, Some(&seen)), No, "6 went first");
    assert_eq!(verdict(released(6, No), 7, false, Some(&seen)), No);
    // 5 was not seen: it may have written.
    assert_eq!(verdict(released(4, No), 8, false, Some(&view(6, true, &[], &[6, 7]))), Unknown);
    // A writer among them may have held for a moment.
    assert_eq!(verdict(released(4, No), 8, false, Some(&view(5, true, &[6], &[5]))), Unknown);
    assert_eq!(verdict(released(6, No), 8, false, Some(&view(5, true, &[6], &[5]))), No);
    // Straight in beside readers; one that came later may have gone before.
    assert_eq!(verdict(released(4, No), 6, true, Some(&view(5, true, &[], &[5]))), No);
    assert_eq!(verdict(released(7, Yes), 6, true, Some(&view(5, true, &[], &[5]))), Yes);
    assert_eq!(verdict(released(9, No), 2, false, None), Unknown, "the node was made anew");
    // Over the wrap.
    let wrap = view(i32::MAX, true, &[], &[i32::MAX, i32::MIN]);
    assert_eq!(verdict(released(i32::MAX - 1, No), i32::MIN + 1, false, Some(&wrap)), No);
}

#[test]
fn a_chroot_is_a_path_that_zookeeper_accepts_and_not_its_own() {
    let check = |chroot: &str| Options { chroot: chroot.to_owned(), ..Options::default() }.check();
    for chroot in ["", "/a", "/apps/my shop", "/zookeepers", "/a/zookeeper", "/.a", "/..."] {
        assert_eq!(check(chroot), Ok(()), "{chroot:?}");
    }
    for (chroot, why) in [
        ("a", "does not begin"),
        ("/", "empty part"),
        ("/a/", "empty part"),
        ("/a//b", "empty part"),
        ("/./a", "empty part"),
        ("/a/..", "empty part"),
        ("/a\n", "character"),
        ("/zookeeper", "ZooKeeper's own"),
        ("/zookeeper/a", "ZooKeeper's own"),
    ] {
        let error = check(chroot).unwrap_err();
        assert!(error.message().contains(why), "{chroot:?}: {error}");
    }
}
