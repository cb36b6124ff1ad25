//! Routes: patterns of addresses, and where they lead instead.

/// Wildcards of one pattern.
const GROUPS_MAX: usize = 9;

/// Patterns in the order in which they are tried.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes(Vec<(String, String)>);

impl Routes {
    pub(crate) fn add(&mut self, pattern: String, address: String) {
        self.0.push((pattern, address));
    }

    /// Where `address` leads.
    pub(crate) fn resolve(&self, address: &str) -> String {
        self.find(address).unwrap_or_else(|| address.to_owned())
    }

    /// The `to` of a message instead of `to`, if it is to be another one: as the first rewrite that
    /// fits says, else without user and password.
    pub(crate) fn rewrite(&self, to: &str) -> Option<String> {
        self.find(to).or_else(|| without_user(to))
    }

    fn find(&self, address: &str) -> Option<String> {
        self.0.iter().find_map(|(pattern, to)| Some(substitute(to, &matches(pattern, address)?)))
    }
}

fn without_user(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?;
    let (user, _) = authority.rsplit_once('@')?;
    Some(format!("{scheme}://{}", rest.get(user.len() + 1..)?))
}

/// What the wildcards of `pattern` stand for in `text`, each as little as can be. The work is the
/// product of the two lengths, whatever the pattern.
fn matches(pattern: &str, text: &str) -> Option<Vec<String>> {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    if pattern.iter().filter(|c| matches!(c, '*' | '%')).count() > GROUPS_MAX {
        return None;
    }
    // Whether the pattern from p on fits the text from t on; from the end, each cell once.
    let (rows, columns) = (pattern.len() + 1, text.len() + 1);
    let mut fits = vec![false; rows * columns];
    let cell = |p: usize, t: usize| p * columns + t;
    for p in (0..rows).rev() {
        for t in (0..columns).rev() {
            let fit = match pattern.get(p) {
                None => t == text.len(),
                Some('*') => {
                    get(&fits, cell(p + 1, t)) || t < text.len() && get(&fits, cell(p, t + 1))
                }
                Some('%') => {
                    let grows = text.get(t).is_some_and(|c| *c != '/');
                    get(&fits, cell(p + 1, t)) || grows && get(&fits, cell(p, t + 1))
                }
                Some(c) => text.get(t) == Some(c) && get(&fits, cell(p + 1, t + 1)),
            };
            if let Some(slot) = fits.get_mut(cell(p, t)) {
                *slot = fit;
            }
        }
    }
    if !get(&fits, 0) {
        return None;
    }
    let (mut groups, mut t) = (Vec::new(), 0);
    for (p, c) in pattern.iter().enumerate() {
        if !matches!(c, '*' | '%') {
            t += 1;
            continue;
        }
        let start = t;
        while !get(&fits, cell(p + 1, t)) {
            t += 1;
        }
        groups.push(text.get(start..t).unwrap_or_default().iter().collect());
    }
    Some(groups)
}

fn get(fits: &[bool], at: usize) -> bool {
    fits.get(at).copied().unwrap_or(false)
}

fn substitute(to: &str, groups: &[String]) -> String {
    let mut out = String::new();
    let mut rest = to.chars().peekable();
    while let Some(c) = rest.next() {
        let group = (c == '$').then(|| rest.peek().and_then(|d| d.to_digit(10))).flatten();
        match group.filter(|n| *n > 0) {
            Some(n) => {
                rest.next();
                out.push_str(groups.get(n as usize - 1).map_or("", String::as_str));
            }
            None => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_route_that_fits_holds() {
        let mut routes = Routes::default();
        routes.add("orders/%/new".into(), "amqp://a/$1".into());
        routes.add("orders/*".into(), "amqp://b/$1".into());
        routes.add("*".into(), "amqp://c/$1-$2-$$".into());
        for (address, want) in [
            ("orders/7/new", "amqp://a/7"),
            ("orders/7/8/new", "amqp://b/7/8/new"),
            ("orders/", "amqp://b/"),
            ("other", "amqp://c/other--$$"),
        ] {
            assert_eq!(routes.resolve(address), want);
        }
        assert_eq!(Routes::default().resolve("x"), "x");
    }

    #[test]
    fn a_rewrite_or_else_no_password() {
        let mut rewrites = Routes::default();
        rewrites.add("amqp://%/orders".into(), "orders@$1".into());
        for (to, want) in [
            ("amqp://me:secret@host/orders", Some("orders@me:secret@host")),
            ("amqp://me:secret@host/q@1", Some("amqp://host/q@1")),
            ("amqp://host/q@1", None),
            ("plain@name", None),
        ] {
            assert_eq!(rewrites.rewrite(to).as_deref(), want);
        }
    }

    #[test]
    fn a_pathological_pattern_costs_no_more_than_its_size() {
        let mut routes = Routes::default();
        routes.add("*a*a*a*a*a*a*a*b".into(), "no".into());
        let address = "a".repeat(10_000);
        assert_eq!(routes.resolve(&address), address);
        routes.add("*".repeat(65), "no".into());
        assert_eq!(routes.resolve("x"), "x");
    }
}
