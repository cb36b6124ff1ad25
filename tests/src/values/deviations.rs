use std::collections::BTreeMap;
use std::fs;

use crate::workspace_root;

/// Whether a library is asked to send or to receive.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Direction {
    /// It builds and encodes the message.
    Sends,
    /// It decodes what came.
    Receives,
}

/// What libraries can't do with which cases, from `tests/values/deviations.txt`.
#[derive(Debug)]
pub struct Deviations {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    library: String,
    verb: String,
    pattern: String,
}

impl Deviations {
    /// Reads the table.
    ///
    /// # Panics
    /// If a line is no row.
    pub fn read() -> Deviations {
        let path = workspace_root().join("tests/values/deviations.txt");
        let text = fs::read_to_string(path).expect("a readable table");
        let rows = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        Deviations { rows: rows.map(Row::read).collect() }
    }

    /// Whether the table says that the library can't do that.
    pub fn lists(&self, library: &str, direction: Direction, case: &str) -> bool {
        self.rows.iter().any(|row| row.is_of(library, direction) && row.fits(case))
    }

    /// Compares what failed, and with which cases it was tried, with the table.
    ///
    /// # Panics
    /// If anything failed that is not listed, or worked although it is listed.
    pub fn assert_exact(
        &self,
        library: &str,
        direction: Direction,
        tried: &[&str],
        failed: &BTreeMap<&str, String>,
    ) {
        let listed = |case: &str| self.lists(library, direction, case);
        let news: Vec<_> = failed.iter().filter(|(case, _)| !listed(case)).collect();
        let works = tried.iter().filter(|case| listed(case) && !failed.contains_key(*case));
        let works: Vec<_> = works.collect();
        let rows = self.rows.iter().filter(|row| row.is_of(library, direction));
        let idle = rows.filter(|row| !tried.iter().any(|case| row.fits(case)));
        let idle: Vec<_> = idle.map(|row| &row.pattern).collect();
        assert!(
            news.is_empty() && works.is_empty() && idle.is_empty(),
            "{library} {direction:?}\nfails, and is not in deviations.txt: {news:#?}\nworks, but \
             is in deviations.txt: {works:#?}\nfits no case: {idle:#?}",
        );
    }
}

impl Row {
    fn read(line: &str) -> Row {
        let words: Vec<_> = line.split_whitespace().collect();
        let [library, verb, pattern, reason @ ..] = &words[..] else { panic!("no row: {line}") };
        assert!(["sends", "receives"].contains(verb), "neither sends nor receives: {line}");
        assert!(!reason.is_empty(), "no reason: {line}");
        let [library, verb, pattern] = [library, verb, pattern].map(|it| (*it).to_owned());
        Row { library, verb, pattern }
    }

    fn is_of(&self, library: &str, direction: Direction) -> bool {
        let verb = if direction == Direction::Sends { "sends" } else { "receives" };
        self.library == library && self.verb == verb
    }

    fn fits(&self, case: &str) -> bool {
        match self.pattern.strip_suffix('*') {
            Some(start) => case.starts_with(start),
            None => self.pattern == case,
        }
    }
}
