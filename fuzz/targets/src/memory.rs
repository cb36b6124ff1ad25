use allocation_counter::measure;

/// Asserts that `work` on so many octets has never more than `fixed` and `per_octet` times them of
/// memory at once.
pub(crate) fn in_proportion<T>(
    octets: usize,
    per_octet: usize,
    fixed: usize,
    work: impl FnOnce() -> T,
) -> T {
    let mut result = None;
    let used = measure(|| result = Some(work())).bytes_max;
    let allowed = (fixed + per_octet * octets) as u64;
    assert!(used <= allowed, "{octets} octets took {used} of memory, more than {allowed}");
    result.expect("the work was done")
}
