//! Which cache a component is, by its name.

/// A level of the cache hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// L1 instruction cache.
    L1i,
    /// L1 data cache.
    L1d,
    /// L2 cache.
    L2,
    /// L3 cache.
    L3,
}

/// The level of a component such as `dcache`, `l1d-cache-0`, `l1dcaches1`, `l2`, `l2c`, `l2cache`, `l3_cache`.
///
/// Others (walker caches, an intermediate `l2_5_cache`) have none.
pub fn level(component: &str) -> Option<Level> {
    let name =
        component.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['-', '_']);
    let name = name.strip_suffix('s').unwrap_or(name);
    let stem = name.strip_suffix("cache").unwrap_or(name).trim_end_matches(['-', '_']);
    // `l2` lost its digit to the number of the instance.
    match if matches!(component, "l2" | "l3") { component } else { stem } {
        "i" | "l1i" if stem != name => Some(Level::L1i),
        "d" | "l1d" if stem != name => Some(Level::L1d),
        "l2" | "l2c" => Some(Level::L2),
        "l3" | "l3c" => Some(Level::L3),
        _ => None,
    }
}

/// The number at the end of a component, such as 1 of `l1dcaches1`.
pub fn instance(component: &str) -> Option<&str> {
    let digits = component.len() - component.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    (digits > 0).then(|| &component[component.len() - digits..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_versions_are_told_apart() {
        for (name, expected) in [
            ("icache", Some(Level::L1i)),
            ("l1icaches", Some(Level::L1i)),
            ("l1i-cache-0", Some(Level::L1i)),
            ("dcache", Some(Level::L1d)),
            ("l1dcaches12", Some(Level::L1d)),
            ("l2", Some(Level::L2)),
            ("l2c", Some(Level::L2)),
            ("l2cache", Some(Level::L2)),
            ("l2-cache-1", Some(Level::L2)),
            ("l3_cache", Some(Level::L3)),
            ("l2_5_cache", None),
            ("itb_walker_cache", None),
            ("iocache", None),
            ("d", None),
        ] {
            assert_eq!(level(name), expected, "{name}");
        }
        assert_eq!(instance("l1dcaches12"), Some("12"));
        assert_eq!(instance("dcache"), None);
    }
}
