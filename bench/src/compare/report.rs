//! All of a comparison: what is measured when, the file and the page.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use fencelock_history::page;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::compare::chart;
use crate::compare::growth::{self, Curves};
use crate::compare::measures::{self, Dose, RATES};
use crate::compare::peers::Entrant;
use crate::compare::server::Server;
use crate::compare::table::Table;
use crate::machine::{Machine, load};

/// Where the page has what is written here.
const MARKS: [&str; 2] = ["<!-- comparison: begin -->", "<!-- comparison: end -->"];

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// What has this in its name, or one of the texts between the bars of it.
    pub only: String,
    /// How much of it.
    pub dose: Dose,
    /// The measures of one caller alone: this process is on one processor.
    pub single: bool,
}

/// All of a comparison.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// Where, with the version of each library.
    pub machine: Machine,
    /// How many rounds each figure has.
    pub rounds: usize,
    /// The machine's load before.
    pub load_before: f64,
    /// The machine's load after.
    pub load_after: f64,
    /// On all processors.
    pub tables: Vec<Table>,
    /// The measures of one caller, servers and clients on one processor.
    pub pinned: Vec<Table>,
    /// How figures grow.
    pub growth: Vec<Curves>,
    /// Languages that took no part, and why.
    pub missing: Vec<String>,
}

/// The tables that are wanted.
///
/// # Errors
/// When a driver or the server does not answer.
pub fn tables(entrants: &[Entrant], server: &mut Server, wanted: &Wanted) -> Result<Vec<Table>> {
    let Wanted { dose, single, .. } = wanted;
    let mut tables = Vec::new();
    // At once, since all of it takes long, and a driver may die.
    let mut keep = |table: Table| {
        eprintln!("\n  {}\n\n{}", table.name, table.markdown());
        tables.push(table);
    };
    for rates in RATES {
        if wanted.names(rates.name) && (!single || rates.single) {
            keep(measures::rates(rates, entrants, server, *dose)?);
        }
    }
    let url = server.url().to_owned();
    let is_wanted = |name: &str| !single && wanted.names(name);
    if is_wanted("hand-off") {
        keep(measures::handoff(entrants, &url, *dose)?);
    }
    if is_wanted("flash sale") {
        keep(measures::sale(entrants, server, *dose)?);
    }
    if is_wanted("killed") {
        keep(measures::killed(entrants, &url, *dose)?);
    }
    if is_wanted("waiters") {
        keep(measures::waiters(entrants, &url, *dose)?);
    }
    Ok(tables)
}

/// Measures all that is wanted; `pinned` measures one caller's part on one processor.
///
/// # Errors
/// When a driver or the server does not answer.
pub fn compare(
    entrants: &[Entrant],
    wanted: &Wanted,
    missing: Vec<String>,
    pinned: impl FnOnce() -> Result<Vec<Table>>,
) -> Result<Comparison> {
    let mut server = Server::start()?;
    let mut versions = BTreeMap::from([("redis-server".to_owned(), server.version()?)]);
    for entrant in entrants {
        let version = entrant.start(server.url())?.wait_for("ready");
        let name = format!("{} {}", entrant.language, entrant.library);
        versions.insert(name, version.trim().to_owned());
    }
    let load_before = load();
    eprintln!("on all processors:");
    let tables = tables(entrants, &mut server, wanted)?;
    let growth = growth::measure(entrants, server.url(), &wanted.only, wanted.dose)?;
    eprintln!("on one processor:");
    let pinned = pinned()?;
    let machine = Machine::here(versions.iter().map(|(name, it)| (name.as_str(), it.clone())));
    let rounds = wanted.dose.rounds;
    Ok(Comparison {
        machine,
        rounds,
        load_before,
        load_after: load(),
        tables,
        pinned,
        growth,
        missing,
    })
}

impl Wanted {
    /// Whether a measure of this name is.
    fn names(&self, name: &str) -> bool {
        self.only.split('|').any(|it| name.contains(it))
    }
}

impl Comparison {
    /// In Markdown, with pictures from `pictures` where it is given.
    pub fn markdown(&self, pictures: Option<&str>) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{} × {}, {}; {} rounds; load {} before, {} after. Versions: {}.\n",
            self.machine.cpus,
            self.machine.cpu,
            self.machine.kernel,
            self.rounds,
            self.load_before,
            self.load_after,
            self.machine
                .versions
                .iter()
                .map(|it| format!("{} {}", it.0, it.1))
                .collect::<Vec<_>>()
                .join(", "),
        );
        for missing in &self.missing {
            let _ = writeln!(text, "Not compared: {missing}.\n");
        }
        let pinned = self.pinned.iter().map(|it| (it, ", on one processor"));
        for (table, place) in self.tables.iter().map(|it| (it, "")).chain(pinned) {
            let _ = writeln!(text, "### {}{place}\n", capital(&table.name));
            if let Some(folder) = pictures {
                let file = picture(&table.name, place);
                let _ = writeln!(text, "![{}]({folder}/{file})\n", table.name);
            }
            let _ = writeln!(text, "{}", table.markdown());
        }
        for curves in &self.growth {
            let _ = writeln!(text, "### Growth: {}\n", curves.name);
            if let Some(folder) = pictures {
                let file = picture(&curves.name, "");
                let _ = writeln!(text, "![{}]({folder}/{file})\n", curves.name);
            }
            let _ = writeln!(text, "{}", curves.markdown());
        }
        text
    }

    /// Writes the page's part, and the pictures into `pictures` beside the page.
    ///
    /// # Errors
    /// When a file cannot be written, or the page has no marks.
    pub fn write(&self, page: &Path, pictures: &str) -> Result<()> {
        let folder = page.parent().unwrap_or(Path::new(".")).join(pictures);
        std::fs::create_dir_all(&folder)?;
        for table in &self.tables {
            std::fs::write(folder.join(picture(&table.name, "")), chart::bars(table))?;
        }
        for table in &self.pinned {
            let file = picture(&table.name, ", on one processor");
            std::fs::write(folder.join(file), chart::bars(table))?;
        }
        for curves in &self.growth {
            std::fs::write(folder.join(picture(&curves.name, "")), chart::lines(curves))?;
        }
        let text = std::fs::read_to_string(page)?;
        std::fs::write(page, page::put(&text, MARKS, &self.markdown(Some(pictures)))?)?;
        Ok(())
    }
}

/// A file's name from a title.
fn picture(name: &str, place: &str) -> String {
    let words = format!("{name}{place}");
    let plain: String =
        words.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' }).collect();
    let parts: Vec<&str> = plain.split('-').filter(|it| !it.is_empty()).collect();
    format!("{}.svg", parts.join("-").to_lowercase())
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
