//! Columns of text.

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use crate::view::{BOLD, DIM, View};

/// One cell.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell in a style.
    pub fn new(style: Style, text: impl Into<String>) -> Cell {
        Cell { text: text.into(), style }
    }
}

impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell { text: text.to_string(), style: Style::new() }
    }
}

/// On which side of its column a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// A table: a heading, and rows of as many cells.
#[derive(Debug)]
pub struct Table {
    columns: Vec<(&'static str, Side)>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with these columns.
    pub fn new(columns: impl Into<Vec<(&'static str, Side)>>) -> Table {
        Table { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row. Cells beyond the last column are a mistake of the caller's.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let row: Vec<Cell> = cells.into_iter().collect();
        assert_eq!(row.len(), self.columns.len(), "a row has one cell for each column");
        self.rows.push(row);
    }

    /// The whole table, each line ended.
    pub fn render(&self, view: View) -> String {
        let widths: Vec<usize> = (self.columns.iter().enumerate())
            .map(|(i, (title, _))| {
                let cells = self.rows.iter().map(|row| row[i].text.width());
                cells.max().unwrap_or(0).max(title.width())
            })
            .collect();
        let mut out = String::new();
        let heads = self.columns.iter().map(|(title, _)| Cell::new(BOLD, *title));
        self.line(&mut out, view, &widths, &heads.collect::<Vec<_>>());
        if view.colour {
            let rule: Vec<Cell> =
                widths.iter().map(|&width| Cell::new(DIM, "─".repeat(width))).collect();
            self.line(&mut out, view, &widths, &rule);
        }
        for row in &self.rows {
            self.line(&mut out, view, &widths, row);
        }
        out
    }

    fn line(&self, out: &mut String, view: View, widths: &[usize], cells: &[Cell]) {
        let start = out.len();
        for (i, cell) in cells.iter().enumerate() {
            if i > 0 {
                out.push_str("  ");
            }
            let pad = " ".repeat(widths[i] - cell.text.width());
            let text = view.paint(cell.style, &cell.text);
            match self.columns[i].1 {
                Side::Left => out.extend([text.as_str(), &pad]),
                Side::Right => out.extend([pad.as_str(), &text]),
            }
        }
        out.truncate(start + out[start..].trim_end_matches(' ').len());
        out.push('\n');
    }
}

#[cfg(test)]
mod tests;
