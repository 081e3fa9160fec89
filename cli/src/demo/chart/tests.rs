use super::{Head, draw};
use crate::demo::outcome::{Incident, Outcome, Scene};
use crate::demo::shop::Books;
use crate::demo::wire::{Abandoned, Deed, Parked, Visit, Woke, Written};

fn outcome(scene: Scene) -> Outcome {
    let visit = |token: u64, got: u64, deed: Deed| Visit {
        worker: 0,
        token: Some(token),
        abandoned: if token == 12 { Abandoned::Yes } else { Abandoned::No },
        asked: got - 500,
        got,
        left: got + 4_000,
        deed,
    };
    Outcome {
        failed_over: None,
        scene,
        coupons: 2,
        books: Books { sold: 2, twice: 0, shares: vec![1, 1], out_of_order: 0, remaining: 0 },
        sellers: Vec::new(),
        visits: vec![
            (0, visit(10, 10_000, Deed::Sold)),
            (1, visit(11, 20_000, Deed::Refused)),
            (0, visit(12, 1_200_000, Deed::Sold)),
        ],
        incident: Some(Incident {
            process: 1,
            parked: Parked { worker: 0, token: 11, stock: 1, got: 20_000 },
            stopped: 21_000,
            resumed: Some(1_300_000),
            woke: Some(Woke {
                token: 11,
                lost: true,
                at: 1_310_000,
                written: Written::Refused { highest: 12 },
            }),
        }),
        opened: 9_000,
        ended: 1_400_000,
        closed: 9_000_000,
    }
}

#[test]
fn the_chart_is_well_formed_and_shows_the_mishap() {
    let head = Head { coupons: 2, processes: 2, workers: 1, store: "sqlite:/a&b<c>" };
    let svg = draw(&head, &[outcome(Scene::Paused)]);
    assert!(svg.contains("old token refused") && svg.contains("class=\"flag\""));
    assert!(svg.contains("sqlite:/a&amp;b&lt;c&gt;"));
    // Every element that is opened is closed, in the right order.
    let mut open: Vec<&str> = Vec::new();
    for tag in svg.split('<').skip(1) {
        let inside = tag.split('>').next().unwrap();
        let name = inside.split([' ', '/']).find(|word| !word.is_empty()).unwrap();
        if inside.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !inside.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

#[test]
fn a_scene_keeps_what_it_promised_or_says_so() {
    let good = outcome(Scene::Paused);
    assert!(good.checks().iter().all(|check| check.ok), "{:?}", good.checks());
    let mut bad = outcome(Scene::Paused);
    bad.books.sold = 3;
    bad.books.twice = 1;
    let wrong = bad.checks().iter().filter(|check| !check.ok).count();
    assert_eq!(wrong, 2);
}
