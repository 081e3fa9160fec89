//! The shop of the sellers in all languages: a folder with two text files, which knows nothing of
//! locks. `stock` says `LEFT NEWEST`: how many are left, and the highest token that has written. It
//! is replaced as a whole. `sales` has a line for each sale, `NAME TOKEN FROM TO`: who sold, under
//! which token, and from when to when, in microseconds of the machine's clock.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::demo::clock::micros;
use crate::failure::Failure;

/// How long one sale takes, between read and write.
const MOMENT: Duration = Duration::from_millis(1);

/// A till in such a shop.
#[derive(Debug)]
pub struct Till {
    folder: PathBuf,
}

/// What the stock says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stock {
    /// How many are left.
    pub left: u32,
    /// The highest token that has written.
    pub newest: u64,
}

/// A line of the sales.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sold {
    /// Who sold.
    pub seller: String,
    /// Under which token.
    pub token: u64,
    /// When the seller came to the stock.
    pub from: u64,
    /// When it wrote.
    pub to: u64,
}

impl Till {
    /// A till in the shop in this folder.
    pub fn open(folder: &Path) -> Till {
        Till { folder: folder.to_owned() }
    }

    /// A new shop with so many in stock.
    pub fn create(folder: &Path, left: u32) -> Result<Till, Failure> {
        fs::create_dir_all(folder)?;
        let till = Till::open(folder);
        till.write(Stock { left, newest: 0 })?;
        fs::write(till.sales_file(), "")?;
        Ok(till)
    }

    /// Sells one: reads, thinks, writes. False when nothing is left; an error when a later token
    /// has written.
    pub fn sell(&self, seller: &str, token: u64) -> Result<bool, Failure> {
        let from = micros();
        let seen = self.stock()?;
        if seen.left == 0 {
            return Ok(false);
        }
        std::thread::sleep(MOMENT);
        let newest = self.stock()?.newest;
        if token < newest {
            return Err(Failure::own(format!("token {token} is refused: {newest} has written")));
        }
        let line = format!("{seller} {token} {from} {}\n", micros());
        OpenOptions::new().append(true).open(self.sales_file())?.write_all(line.as_bytes())?;
        self.write(Stock { left: seen.left - 1, newest: token })?;
        Ok(true)
    }

    /// What the stock says.
    pub fn stock(&self) -> Result<Stock, Failure> {
        let text = fs::read_to_string(self.folder.join("stock"))?;
        stock(&text).ok_or_else(|| Failure::own(format!("the stock says {text:?}")))
    }

    /// Every sale, in the order in which they were written.
    pub fn sales(&self) -> Result<Vec<Sold>, Failure> {
        let text = fs::read_to_string(self.sales_file())?;
        let wrong = |line: &str| Failure::own(format!("the sales say {line:?}"));
        // A line that a seller is about to end is left for the next look.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| sold(line).ok_or_else(|| wrong(line))).collect()
    }

    fn sales_file(&self) -> PathBuf {
        self.folder.join("sales")
    }

    /// In one step, so that nobody reads half of it.
    fn write(&self, stock: Stock) -> Result<(), Failure> {
        let next = self.folder.join(format!("stock.{}", std::process::id()));
        fs::write(&next, format!("{} {}\n", stock.left, stock.newest))?;
        Ok(fs::rename(next, self.folder.join("stock"))?)
    }
}

fn stock(text: &str) -> Option<Stock> {
    let (left, newest) = text.trim_end().split_once(' ')?;
    Some(Stock { left: left.parse().ok()?, newest: newest.parse().ok()? })
}

fn sold(line: &str) -> Option<Sold> {
    let words: Vec<&str> = line.split(' ').collect();
    let [seller, token, from, to] = words[..] else { return None };
    Some(Sold {
        seller: seller.to_owned(),
        token: token.parse().ok()?,
        from: from.parse().ok()?,
        to: to.parse().ok()?,
    })
}

#[cfg(test)]
mod tests;
