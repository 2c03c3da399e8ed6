//! Lists of CPUs as Linux writes them: `0-3,8`.

use std::collections::BTreeSet;

use ampsched_model::InputError;

/// Most CPUs that Linux can be built for (`CONFIG_NR_CPUS` on x86-64 with `MAXSMP`).
const CPUS_MAX: usize = 8192;

/// Reads a list such as `0-3,8`; empty text is the empty set. `source` and `key` say where it stands.
pub fn parse_cpus(source: &str, key: &str, text: &str) -> Result<BTreeSet<usize>, InputError> {
    let mut cpus = BTreeSet::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let range = parse_range(part.trim()).ok_or_else(|| {
            let message = format!("\"{part}\" of \"{text}\" is not a CPU or a range of CPUs");
            InputError::new(source, key, message)
                .with_hint(format!("such as 0-3,8; CPUs are below {CPUS_MAX}"))
        })?;
        cpus.extend(range);
    }
    Ok(cpus)
}

fn parse_range(part: &str) -> Option<std::ops::RangeInclusive<usize>> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last && last < CPUS_MAX).then_some(first..=last)
}

/// Writes ascending CPUs as Linux does.
pub fn format_cpus(cpus: impl IntoIterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let text = |(first, last)| match first == last {
        true => format!("{first}"),
        false => format!("{first}-{last}"),
    };
    ranges.into_iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_and_single_cpus() {
        let cpus = parse_cpus("--big", "", "0-2,7").unwrap();
        assert_eq!(cpus.into_iter().collect::<Vec<_>>(), [0, 1, 2, 7]);
        assert!(parse_cpus("--big", "", " \n").unwrap().is_empty());
    }

    #[test]
    fn errors_name_the_part() {
        for bad in ["2-1", "a", "1-", "-1", "0-8192", "0;1"] {
            let error = parse_cpus("--big", "", bad).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--big: \"{bad}\" of")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(cpus in prop::collection::btree_set(0..200usize, 0..40)) {
            let text = format_cpus(cpus.iter().copied());
            prop_assert_eq!(parse_cpus("", "", &text).unwrap(), cpus);
        }
    }
}
