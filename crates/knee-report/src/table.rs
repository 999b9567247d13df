//! Tables: one model, shown in a terminal and in a report.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, TableStyle};

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Caption.
    pub caption: String,
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows, each with a cell per column.
    pub rows: Vec<Vec<Cell>>,
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Quantity and unit, `goodput (Mbit/s)`.
    pub head: String,
    /// True if it holds numbers: aligned to the right.
    pub numeric: bool,
}

/// A cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// The text: complete, also without colour.
    pub text: String,
    /// Meaning of the cell, if any.
    pub tone: Option<Tone>,
}

/// The meaning of a cell: its colour in a report, besides its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// A favourable result: a claim that holds.
    Good,
    /// An unfavourable result: a claim that does not hold.
    Bad,
    /// Undecided, or to be read with care.
    Caution,
}

impl Cell {
    /// Text with a tone.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone: Some(tone) }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), tone: None }
    }
}

/// A rule under the head, nothing else.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

impl Table {
    /// A table without rows. `text` columns come first, then `numeric` ones.
    pub fn new(caption: impl Into<String>, text: &[&str], numeric: &[&str]) -> Self {
        let column = |numeric| move |head: &&str| Column { head: (*head).to_owned(), numeric };
        let columns = text.iter().map(column(false)).chain(numeric.iter().map(column(true)));
        Self { caption: caption.into(), columns: columns.collect(), rows: Vec::new() }
    }

    /// Appends a row. Cells that are missing at its end are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        let mut row: Vec<Cell> = cells.into_iter().map(Into::into).collect();
        debug_assert!(row.len() <= self.columns.len(), "{}: {row:?}", self.caption);
        row.resize_with(self.columns.len(), Cell::default);
        self.rows.push(row);
    }

    /// Formats it as plain text for a terminal `width` characters wide: cells wrap to fit. `None`: as wide
    /// as it needs to be.
    pub fn to_text(&self, width: Option<u16>) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(STYLE);
        table.set_header(self.columns.iter().map(|c| &c.head));
        if let Some(width) = width {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        for row in &self.rows {
            table.add_row(row.iter().map(|c| &c.text));
        }
        for (shown, column) in table.column_iter_mut().zip(&self.columns) {
            if column.numeric {
                shown.set_cell_alignment(CellAlignment::Right);
            }
        }
        format!("{}\n{}\n", self.caption, table.trim_fmt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new("Flows", &["flow"], &["goodput (Mbit/s)", "drops"]);
        table.row(["a", "9.41", "12"]);
        table.row([Cell::from("bulk"), Cell::toned("0.52", Tone::Bad)]);
        table
    }

    #[test]
    fn text_is_aligned() {
        let text = table().to_text(None);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(lines[0], "Flows");
        assert_eq!(lines[1], " flow   goodput (Mbit/s)   drops");
        assert_eq!(lines[3], " a                  9.41      12");
        assert!(lines.contains(&" bulk               0.52"));
    }

    #[test]
    fn text_fits_the_terminal() {
        let text = table().to_text(Some(24));
        assert!(text.lines().all(|l| l.chars().count() <= 24), "{text}");
        assert!(text.contains("9.41"));
    }
}
