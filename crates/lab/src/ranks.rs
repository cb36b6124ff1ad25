//! The rank test of Mann and Whitney: whether one setting's rounds lie above the other's.

use statrs::distribution::{ContinuousCDF, Normal};

/// Rounds in all up to which the chance is counted out rather than approximated.
const EXACT_MAX: usize = 100;

/// The chance, both sides, that two samples of one distribution show ranks at least as far apart:
/// exact without ties and up to [`EXACT_MAX`] figures, else by the normal approximation with
/// corrections for ties and continuity. 1 if either is empty.
pub(crate) fn rank_test(a: &[f64], b: &[f64]) -> f64 {
    let (n, m) = (a.len(), b.len());
    if n == 0 || m == 0 {
        return 1.0;
    }
    let beats = |x: &f64| b.iter().map(|y| score(*x, *y)).sum::<f64>();
    let u: f64 = a.iter().map(beats).sum();
    let least = u.min((n * m) as f64 - u);
    let ties = ties(a, b);
    let p = match ties.is_empty() && n + m <= EXACT_MAX {
        true => 2.0 * at_most(n, m, least as usize),
        false => approximate(n, m, least, &ties),
    };
    p.clamp(0.0, 1.0)
}

/// 1 where `x` is above `y`, half where they tie.
fn score(x: f64, y: f64) -> f64 {
    match x.total_cmp(&y) {
        std::cmp::Ordering::Greater => 1.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Less => 0.0,
    }
}

/// The sizes of all groups of equal figures, above 1.
fn ties(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> = a.iter().chain(b).copied().collect();
    all.sort_by(f64::total_cmp);
    let groups = all.chunk_by(|x, y| x.total_cmp(y).is_eq());
    groups.filter(|group| group.len() > 1).map(|group| group.len() as f64).collect()
}

/// The share of the orders of `n` and `m` figures in which U is at most `u`. U counts the pairs in
/// which the first is above; adding figures of the first sample one after the other, each may be
/// above 0 to `m` of the others, no more than the one before.
fn at_most(n: usize, m: usize, u: usize) -> f64 {
    // ways[j][v]: orders of the figures so far and `j` others with U of `v`, as shares so that
    // nothing overflows: the last of i + j figures is of the first sample with chance i / (i + j).
    let most = u + 1;
    let start: Vec<f64> = std::iter::once(1.0).chain(std::iter::repeat_n(0.0, most - 1)).collect();
    let mut ways = vec![start; m + 1];
    for i in 1..=n {
        for j in 0..=m {
            let of_first = i as f64 / (i + j) as f64;
            let before = j.checked_sub(1).and_then(|j| ways.get(j)).cloned();
            let Some(here) = ways.get_mut(j) else { continue };
            // The greatest of all is of the first sample: it is above all j others.
            here.rotate_right(j.min(most));
            here.iter_mut().take(j).for_each(|share| *share = 0.0);
            here.iter_mut().for_each(|share| *share *= of_first);
            for (share, other) in here.iter_mut().zip(before.into_iter().flatten()) {
                *share += other * (1.0 - of_first);
            }
        }
    }
    ways.pop().map_or(1.0, |shares| shares.iter().sum())
}

fn approximate(n: usize, m: usize, least: f64, ties: &[f64]) -> f64 {
    let (n, m) = (n as f64, m as f64);
    let all = n + m;
    let tied: f64 = ties.iter().map(|size| size.powi(3) - size).sum();
    let variance = n * m / 12.0 * (all + 1.0 - tied / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let z = (least - n * m / 2.0 + 0.5).min(0.0) / variance.sqrt();
    2.0 * Normal::standard().cdf(z)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, want: f64) {
        assert!((got - want).abs() <= 1e-9 + want * 0.01, "{got} instead of {want}");
    }

    fn numbers(range: std::ops::Range<i32>, shift: f64) -> Vec<f64> {
        range.map(|number| f64::from(number) + shift).collect()
    }

    #[test]
    fn samples_wholly_apart_are_two_of_all_orders() {
        for (n, orders) in [(1, 2.0), (2, 6.0), (3, 20.0), (4, 70.0), (10, 184_756.0)] {
            near(rank_test(&numbers(0..n, 0.0), &numbers(0..n, 100.5)), 2.0 / orders);
            near(rank_test(&numbers(0..n, 100.5), &numbers(0..n, 0.0)), 2.0 / orders);
        }
        near(rank_test(&numbers(0..3, 0.0), &numbers(0..7, 100.5)), 2.0 / 120.0);
    }

    #[test]
    fn known_values() {
        // Ages of diabetics of both sexes, U = 3: scipy's example, exact p = 0.1111...
        let (male, female) = ([19.0, 22.0, 16.0, 29.0, 24.0], [20.0, 11.0, 17.0, 12.0]);
        near(rank_test(&male, &female), 1.0 / 9.0);
        // Critical values of tables for 5 % both sides, n = m = 10: U = 23 is, 24 isn't.
        assert!(2.0 * at_most(10, 10, 23) < 0.05);
        assert!(2.0 * at_most(10, 10, 24) > 0.05);
        // n = 5, m = 8: U = 6 is, 7 isn't.
        assert!(2.0 * at_most(5, 8, 6) < 0.05);
        assert!(2.0 * at_most(5, 8, 7) > 0.05);
    }

    #[test]
    fn the_approximation_agrees_with_the_count() {
        for u in [600.0, 900.0, 1_100.0] {
            let exact = 2.0 * at_most(50, 50, u as usize);
            let near = approximate(50, 50, u, &[]);
            assert!((exact - near).abs() < 0.002, "{exact} and {near}");
        }
    }

    #[test]
    fn equal_and_empty_samples_show_nothing() {
        near(rank_test(&[5.0; 10], &[5.0; 10]), 1.0);
        near(rank_test(&[], &[1.0]), 1.0);
    }
}
