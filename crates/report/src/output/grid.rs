//! Columns of text: the first to the left, numbers to the right.

use std::fmt;

/// A table whose columns are as wide as their contents.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    labels: Vec<String>,
    columns: Vec<Vec<String>>,
}

impl Grid {
    /// A grid whose first column has this head.
    pub(crate) fn new(head: &str) -> Self {
        Self { labels: vec![head.to_owned()], columns: Vec::new() }
    }

    /// Adds a line, which begins with `label`.
    pub(crate) fn label(&mut self, label: String) {
        self.labels.push(label);
    }

    /// Adds a column: its head, then a cell for each line.
    pub(crate) fn column(&mut self, head: &str, cells: Vec<Option<String>>) {
        let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
        self.columns.push(std::iter::once(head.to_owned()).chain(cells).collect());
    }

    /// Adds a column unless all of its cells are empty.
    pub(crate) fn column_if_any(&mut self, head: &str, cells: Vec<Option<String>>) {
        if cells.iter().any(Option::is_some) {
            self.column(head, cells);
        }
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label_width = width(&self.labels);
        let widths: Vec<usize> = self.columns.iter().map(|column| width(column)).collect();
        for (line, label) in self.labels.iter().enumerate() {
            write!(f, "{label:label_width$}")?;
            for (column, width) in self.columns.iter().zip(&widths) {
                let cell = column.get(line).map_or("", String::as_str);
                write!(f, "  {cell:>width$}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn width(cells: &[String]) -> usize {
    cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_needed_and_empty_ones_can_be_left_out() {
        let mut grid = Grid::new("");
        grid.label("hop".into());
        grid.label("a longer one".into());
        grid.column("count", vec![Some("1".into()), None]);
        grid.column_if_any("negative", vec![None, None]);
        grid.column_if_any("missing", vec![None, Some("1234567890".into())]);
        let lines = [
            "              count     missing",
            "hop               1           -",
            "a longer one      -  1234567890",
        ];
        assert_eq!(grid.to_string(), lines.map(|line| format!("{line}\n")).concat());
    }
}
