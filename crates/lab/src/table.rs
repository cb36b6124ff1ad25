//! Tables of text: the first column to the left, figures to the right.

use std::fmt;

/// Rows of cells, as wide as their contents.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(head: [&str; N]) -> Self {
        Self { rows: vec![head.map(str::to_owned).to_vec()] }
    }

    /// A table whose head is put together.
    pub(crate) fn with_head(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|&cell| cell.to_owned()).collect()] }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            let cells = row.iter().enumerate().map(|(column, cell)| {
                let width = self.width(column);
                if column == 0 { format!("{cell:width$}") } else { format!("{cell:>width$}") }
            });
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// A figure with `digits` after the point; `-` where there is none.
pub(crate) fn figure(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

/// A share in per cent; `-` where there is nothing to divide by.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let share = (whole > 0).then(|| 100.0 * part as f64 / whole as f64);
    share.map_or_else(|| "-".to_owned(), |share| format!("{share:.1} %"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["round", "off", "on"]);
        table.row(["1".into(), figure(Some(21.456), 2), figure(None, 2)]);
        table.row(["mean".into(), "7".into(), percent(1, 3)]);
        assert_eq!(
            table.to_string(),
            "round    off      on\n1      21.46       -\nmean       7  33.3 %\n"
        );
        assert_eq!(percent(0, 0), "-");
    }
}
