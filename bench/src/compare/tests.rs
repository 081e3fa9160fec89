//! Who is compared with whom, and how it is shown.

use std::io::BufRead;

use crate::compare::chart;
use crate::compare::growth::{Curves, Line};
use crate::compare::peers::{Entrant, peers};
use crate::compare::server::{Counters, Nested};
use crate::compare::table::{Better, Row, Table};

fn entrants() -> Vec<Entrant> {
    peers(&["go=driver-go".to_owned(), "Rust=program driver".to_owned()]).unwrap()
}

fn row(of: &str, rounds: &[f64]) -> Row {
    let entrants = entrants();
    let entrant = entrants.iter().find(|it| it.library == of).unwrap();
    Row::new(entrant, rounds.to_vec())
}

fn table(better: Better) -> Table {
    let mut never = row("redislock", &[f64::INFINITY]);
    never.more("longest wait, ms", 1234.5);
    let rows = vec![row("redsync", &[10.0, 20.0]), never, row("fencelock", &[40.0, 40.0])];
    Table::new("a < b", "pairs a second", better, rows)
}

#[test]
fn a_language_without_ours_is_compared_with_rust() {
    let ratio = |better| table(better).rows[0].ratio.map(|it| it.median);
    assert_eq!(ratio(Better::More), Some(3.0));
    assert_eq!(ratio(Better::Less), Some(0.375));
}

#[test]
fn ours_is_compared_with_nobody_and_never_with_its_variant() {
    let ours = &table(Better::More).rows[2];
    assert_eq!(ours.ratio, None);
    let rivals = |library: &str| {
        let entrants = entrants();
        let entrant = entrants.iter().find(|it| it.library == library).unwrap().clone();
        entrants.into_iter().filter(|it| entrant.is_beside(it)).map(|it| it.library).collect()
    };
    let of_rslock: Vec<&str> = rivals("rslock");
    assert_eq!(of_rslock, ["fencelock"]);
}

#[test]
fn who_never_comes_to_an_end_is_shown_so_and_kept_in_the_file() {
    let table = table(Better::Less);
    assert!(table.markdown().contains("| Go | redislock | never |"), "{}", table.markdown());
    let text = serde_json::to_string(&table).unwrap();
    let read: Table = serde_json::from_str(&text).unwrap();
    assert!(read.rows[1].figure.median.is_infinite());
    assert_eq!(read.markdown(), table.markdown());
}

#[test]
fn pictures_have_a_mark_for_each_that_has_a_figure() {
    let bars = chart::bars(&table(Better::More));
    assert_eq!(bars.matches("<rect").count(), 2);
    assert!(bars.contains("a &lt; b"), "{bars}");
    let line = Line {
        language: "Rust".to_owned(),
        library: "fencelock".to_owned(),
        ours: true,
        figures: vec![1.0, 10.0],
    };
    let curves = Curves {
        name: "growth".to_owned(),
        unit: "ns".to_owned(),
        over: "callers".to_owned(),
        steps: vec![1, 100],
        lines: vec![line],
    };
    assert_eq!(chart::lines(&curves).matches("<polyline").count(), 1);
    assert!(curves.markdown().contains("| Rust | **fencelock** | 1 | 10 |"));
}

#[test]
fn a_driver_of_an_unknown_language_is_refused() {
    assert!(peers(&["cobol=x".to_owned()]).unwrap_err().to_string().contains("cobol"));
    assert!(peers(&["x".to_owned()]).is_err());
}

#[test]
fn time_of_what_scripts_call_is_counted_once() {
    let heard = "1.5 [0 lua] \"GET\" \"k]\"\n\
                 1.6 [0 127.0.0.1:80] \"get\" \"k\"\n\
                 1.7 [0 127.0.0.1:80] \"EVALSHA\" \"x\\\" y\"\n\
                 1.8 [0 127.0.0.1:81] \"ECHO\" \"seen-until-here\"\n\
                 1.9 [0 lua] \"evalsha\" \"never\"\n";
    let nested = Nested::of(std::io::Cursor::new(heard).split(b'\n')).unwrap();
    let info = |get: u64, script: u64| {
        let info = format!(
            "# Commandstats\r\ncmdstat_get:calls={get},usec={},usec_per_call=2.00\r\n\
             cmdstat_evalsha:calls={script},usec={},usec_per_call=9.00\r\n\
             cmdstat_info:calls=7,usec=700,usec_per_call=100.00\r\n\
             total_net_input_bytes:{get}\r\nused_cpu_user:{get}.5\r\n",
            get * 2,
            script * 9
        );
        Counters::read(&info).unwrap()
    };
    let load = info(30, 10).since(&info(10, 0), &nested);
    assert_eq!(load.commands, 30.0);
    // Half of 20 gets of 2 µs, and 10 scripts of 9 µs.
    assert_eq!(load.in_commands, 110.0);
    assert_eq!((load.micros, load.bytes), (20e6, 20.0));
}
