//! Node names, each stored once.

use std::collections::HashMap;

use hopline_timeline::MAX_NAME_OCTETS;

/// How many node names are told apart; further ones share the name [`OTHERS`].
pub const NAME_LIMIT: usize = 1_024;

/// The name under which the nodes beyond [`NAME_LIMIT`] appear.
pub const OTHERS: &str = "(other nodes)";

/// A node's name; valid for the [`Names`] that gave it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NameId(u16);

#[derive(Debug, Default)]
pub(crate) struct Names {
    ids: HashMap<String, NameId>,
    texts: Vec<String>,
    shared: bool,
}

impl Names {
    /// The id of a name, of which no more counts than a timeline can hold.
    pub(crate) fn id(&mut self, text: &str) -> NameId {
        let (text, _) = text.split_at(text.floor_char_boundary(MAX_NAME_OCTETS));
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        match u16::try_from(self.texts.len()) {
            Ok(next) if self.texts.len() < NAME_LIMIT => {
                self.texts.push(text.to_owned());
                self.ids.insert(text.to_owned(), NameId(next));
                NameId(next)
            }
            _ => {
                self.shared = true;
                NameId(u16::MAX)
            }
        }
    }

    pub(crate) fn text(&self, id: NameId) -> &str {
        self.texts.get(usize::from(id.0)).map_or(OTHERS, String::as_str)
    }

    /// Whether there were more names than [`NAME_LIMIT`].
    pub(crate) fn is_exceeded(&self) -> bool {
        self.shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_limit_share_one() {
        let mut names = Names::default();
        let first = names.id("node-0");
        for n in 1..NAME_LIMIT {
            names.id(&format!("node-{n}"));
        }
        assert_eq!(names.id("node-0"), first);
        assert!(!names.is_exceeded());
        let (one, other) = (names.id("late"), names.id("later"));
        assert_eq!(one, other);
        assert!(names.is_exceeded());
        assert_eq!(names.text(one), OTHERS);
        assert_eq!(names.text(first), "node-0");
    }
}
