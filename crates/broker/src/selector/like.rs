//! `LIKE`: `%` stands for any text, `_` for any one character.

use super::Fuel;

/// A pattern, cut at its `%`. What stands between two of them is looked for from left to right
/// and never twice, so nothing is tried again: the first place is as good as any.
#[derive(Debug)]
pub(crate) enum Pattern {
    /// No `%`.
    Whole(Segment),
    /// The text begins, goes on and ends with these.
    Parts { first: Segment, middle: Vec<Segment>, last: Segment },
}

/// Characters in a row.
#[derive(Debug)]
pub(crate) enum Segment {
    Literal(String),
    /// At least one `_` (`None`) is among them.
    Wild(Vec<Option<char>>),
}

impl Pattern {
    /// Reads a pattern; `None` if nothing stands behind the last `escape`.
    pub(crate) fn new(pattern: &str, escape: Option<char>) -> Option<Self> {
        let mut segments = vec![Vec::new()];
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            let item = match c {
                c if Some(c) == escape => Some(chars.next()?),
                '%' => {
                    segments.push(Vec::new());
                    continue;
                }
                '_' => None,
                c => Some(c),
            };
            segments.last_mut()?.push(item);
        }
        let mut segments = segments.into_iter().map(Segment::new);
        let first = segments.next()?;
        let Some(last) = segments.next_back() else { return Some(Self::Whole(first)) };
        let middle = segments.filter(|segment| !segment.is_empty()).collect();
        Some(Self::Parts { first, middle, last })
    }

    /// Whether all of `text` matches; `None` if the fuel is spent before that is known.
    pub(crate) fn matches(&self, text: &str, fuel: &mut Fuel) -> Option<bool> {
        fuel.burn(text.len())?;
        let (first, middle, last) = match self {
            Self::Whole(segment) => return Some(segment.strip_front(text) == Some("")),
            Self::Parts { first, middle, last } => (first, middle, last),
        };
        let stripped = first.strip_front(text).and_then(|rest| last.strip_back(rest));
        let Some(mut rest) = stripped else { return Some(false) };
        for segment in middle {
            match segment.find(rest, fuel)? {
                Some(behind) => rest = behind,
                None => return Some(false),
            }
        }
        Some(true)
    }
}

impl Segment {
    fn new(items: Vec<Option<char>>) -> Self {
        match items.iter().copied().collect() {
            Some(text) => Self::Literal(text),
            None => Self::Wild(items),
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::Literal(text) if text.is_empty())
    }

    /// What is behind the segment, if the text begins with it.
    fn strip_front<'a>(&self, text: &'a str) -> Option<&'a str> {
        match self {
            Self::Literal(literal) => text.strip_prefix(literal.as_str()),
            Self::Wild(items) => {
                let mut chars = text.chars();
                let fits = items.iter().all(|item| fits(*item, chars.next()));
                fits.then_some(chars.as_str())
            }
        }
    }

    /// What is before the segment, if the text ends with it.
    fn strip_back<'a>(&self, text: &'a str) -> Option<&'a str> {
        match self {
            Self::Literal(literal) => text.strip_suffix(literal.as_str()),
            Self::Wild(items) => {
                let mut chars = text.chars();
                let fits = items.iter().rev().all(|item| fits(*item, chars.next_back()));
                fits.then_some(chars.as_str())
            }
        }
    }

    /// What is behind the first place where the segment is. A literal is found in one pass; one
    /// with `_` in it takes at most its own length at each place, which burns.
    fn find<'a>(&self, text: &'a str, fuel: &mut Fuel) -> Option<Option<&'a str>> {
        let items = match self {
            Self::Literal(literal) => {
                let found = text.split_once(literal.as_str());
                return Some(found.map(|(_, behind)| behind));
            }
            Self::Wild(items) => items,
        };
        let mut chars = text.chars();
        loop {
            let mut ahead = chars.clone();
            let tried = items.iter().take_while(|item| fits(**item, ahead.next())).count();
            fuel.burn(tried)?;
            if tried == items.len() {
                return Some(Some(ahead.as_str()));
            }
            if chars.next().is_none() {
                return Some(None);
            }
        }
    }
}

fn fits(item: Option<char>, c: Option<char>) -> bool {
    c.is_some() && (item.is_none() || item == c)
}

#[cfg(test)]
mod tests {
    use super::super::FUEL;
    use super::*;
    use proptest::prelude::*;

    fn like(text: &str, pattern: &str, escape: Option<char>) -> bool {
        let pattern = Pattern::new(pattern, escape).expect("a good pattern");
        pattern.matches(text, &mut Fuel(FUEL)).expect("enough fuel")
    }

    /// By the definition, at the price of trying everything.
    fn naive(text: &[char], pattern: &[char]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, _) => text.is_empty(),
            (Some(('%', behind)), rest) => {
                naive(text, behind) || rest.is_some_and(|(_, rest)| naive(rest, pattern))
            }
            (Some((p, behind)), Some((c, rest))) => (*p == '_' || p == c) && naive(rest, behind),
            (Some(_), None) => false,
        }
    }

    #[test]
    fn patterns() {
        let cases = [
            ("12993", "12%3", true),
            ("1234", "12%3", false),
            ("lose", "l_se", true),
            ("loose", "l_se", false),
            ("", "%", true),
            ("", "", true),
            ("", "_", false),
            ("a", "", false),
            ("aa", "a%a", true),
            ("a", "a%a", false),
            ("\u{1f600}é", "__", true),
            ("é", "__", false),
            ("xéy\u{1f600}z", "%é_\u{1f600}%", true),
            ("aab", "%a_", true),
            ("line\nbreak", "line%break", true),
        ];
        for (text, pattern, expected) in cases {
            assert_eq!(like(text, pattern, None), expected, "{text:?} LIKE {pattern:?}");
        }
        assert!(like("_foo", r"\_%", Some('\\')));
        assert!(!like("bar", r"\_%", Some('\\')));
        assert!(like("100%", "%!%", Some('!')));
        assert!(like("!", "!!", Some('!')));
        assert!(Pattern::new("a!", Some('!')).is_none(), "nothing is escaped");
    }

    #[test]
    fn bounded() {
        let text = "a".repeat(200_000);
        assert!(!like(&text, &("%a".repeat(2_000) + "%b%"), None));
        assert!(like(&text, &("%a".repeat(2_000) + "%"), None));
        assert!(!like(&text, &format!("%{}b%", "a".repeat(4_000)), None));
        let wild = Pattern::new(&format!("%{}_b%", "a".repeat(4_000)), None).unwrap();
        assert_eq!(wild.matches(&text, &mut Fuel(FUEL)), None, "the fuel stops it");
    }

    proptest! {
        #[test]
        fn equals_the_naive_matcher(text in "[abé]{0,10}", pattern in "[abé_%]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(
                like(&text, &pattern, None),
                naive(&chars(&text), &chars(&pattern))
            );
        }
    }
}
