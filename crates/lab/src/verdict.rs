//! One sentence that can't be misread: what is better, by how much, how sure.

use crate::Comparison;

/// How the two settings, and what is compared of them, are called. Less is better.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Words<'a> {
    pub(crate) a: &'a str,
    pub(crate) b: &'a str,
    /// Such as `mean delay`.
    pub(crate) what: &'a str,
    pub(crate) unit: &'a str,
    /// What less of it is, such as `faster` and `times as fast`.
    pub(crate) better: [&'a str; 2],
}

/// The verdict after so many rounds.
pub(crate) fn sentence(
    words: &Words<'_>,
    comparison: Option<&Comparison>,
    rounds: usize,
) -> String {
    let Words { a, b, what, unit, better: [adjective, factor] } = *words;
    let Some(comparison) = comparison else {
        return "none: there is no round of both settings".to_owned();
    };
    let Comparison { mean_a, mean_b, difference, interval, p } = *comparison;
    let Some((least, greatest)) = interval else {
        return format!(
            "none: one round shows a {what} of {} {unit} with {a} and {} {unit} with {b}, but not \
             whether that is chance",
            digits(mean_a),
            digits(mean_b)
        );
    };
    let interval = |least, greatest| {
        format!("95 % confidence: {} to {} {unit}", digits(least), digits(greatest))
    };
    if !comparison.is_sure() {
        return format!(
            "no difference that {rounds} rounds can show: {what} {} {unit} with {a}, {} {unit} \
             with {b}; difference {} {unit} ({}; rank test {})",
            digits(mean_a),
            digits(mean_b),
            digits(difference),
            interval(least, greatest),
            chance(p)
        );
    }
    // Of a difference that is told without its sign.
    let interval = match difference < 0.0 {
        true => interval(-greatest, -least),
        false => interval(least, greatest),
    };
    let (better, worse, low, high) = match difference < 0.0 {
        true => (b, a, mean_b, mean_a),
        false => (a, b, mean_a, mean_b),
    };
    format!(
        "{better} is {adjective}: {what} {} {unit} instead of {} {unit} with {worse}, {} {factor}; \
         difference {} {unit} ({interval}; rank test {})",
        digits(low),
        digits(high),
        digits(high / low),
        digits(high - low),
        chance(p)
    )
}

/// Three significant digits.
fn digits(value: f64) -> String {
    let magnitude = value.abs();
    match magnitude {
        _ if magnitude >= 100.0 => format!("{value:.0}"),
        _ if magnitude >= 10.0 => format!("{value:.1}"),
        _ if magnitude >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn chance(p: f64) -> String {
    if p < 0.0001 { "p < 0.0001".to_owned() } else { format!("p = {p:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sample;

    const WORDS: Words<'_> = Words {
        a: "off",
        b: "on",
        what: "mean delay",
        unit: "ms",
        better: ["faster", "times as fast"],
    };

    fn verdict(a: &[f64], b: &[f64]) -> String {
        let (a, b): (Sample, Sample) = (a.iter().copied().collect(), b.iter().copied().collect());
        sentence(&WORDS, Comparison::new(&a, &b).as_ref(), a.len().min(b.len()))
    }

    #[test]
    fn the_better_setting_is_named_whichever_it_is() {
        let (slow, fast) = ([20.0, 21.0, 22.0, 23.0, 24.0], [0.5, 0.6, 0.7, 0.8, 0.9]);
        let text = verdict(&slow, &fast);
        assert!(text.starts_with("on is faster: mean delay 0.700 ms instead of 22.0 ms with off"));
        assert!(text.contains("31.4 times as fast"), "{text}");
        let end = "difference 21.3 ms (95 % confidence: 19.3 to 23.3 ms; rank test p = 0.0079)";
        assert!(text.ends_with(end), "{text}");
        assert!(verdict(&fast, &slow).starts_with("off is faster: mean delay 0.700 ms instead of"));
    }

    #[test]
    fn what_may_be_chance_is_called_so() {
        let text = verdict(&[1.0, 2.0, 3.0, 4.0], &[1.5, 2.5, 3.5, 3.0]);
        assert!(text.starts_with("no difference that 4 rounds can show"), "{text}");
        assert!(verdict(&[1.0], &[9.0]).starts_with("none: one round shows"));
        assert!(verdict(&[], &[9.0]).starts_with("none: there is no round of both"));
        // Three rounds of each can't be told from chance by their ranks.
        assert!(verdict(&[1.0, 1.1, 1.2], &[9.0, 9.1, 9.2]).starts_with("no difference"));
    }
}
