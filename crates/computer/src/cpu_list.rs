//! Lists of CPUs as Linux writes them: `0-3,8`.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use ampsched_model::InputError;
use ampsched_model::limits::CPUS_MAX;

/// Reads CPUs and ranges of CPUs, such as `0-3,8`. Like the kernel's own reader it takes white space for a comma and
/// passes over empty parts, so that empty text is the empty set.
///
/// Errors: a part that is no CPU below 8192 and no ascending range; `source` and `key` say where the text stands.
pub fn parse_cpus(source: &str, key: &str, text: &str) -> Result<BTreeSet<usize>, InputError> {
    let mut cpus = BTreeSet::new();
    for range in ranges(source, key, text) {
        cpus.extend(range?);
    }
    Ok(cpus)
}

/// The same, but a CPU that is listed twice is an error, too.
pub fn parse_cpus_once(source: &str, key: &str, text: &str) -> Result<BTreeSet<usize>, InputError> {
    let mut cpus = BTreeSet::new();
    for range in ranges(source, key, text) {
        for cpu in range? {
            if !cpus.insert(cpu) {
                return Err(InputError::new(source, key, format!("CPU {cpu} is listed twice")));
            }
        }
    }
    Ok(cpus)
}

fn ranges<'a>(
    source: &'a str,
    key: &'a str,
    text: &'a str,
) -> impl Iterator<Item = Result<RangeInclusive<usize>, InputError>> + 'a {
    let is_between = |letter: char| letter == ',' || letter.is_whitespace();
    text.split(is_between).filter(|part| !part.is_empty()).map(move |part| {
        parse_range(part).ok_or_else(|| {
            let message = format!("\"{part}\" of \"{text}\" is not a CPU or a range of CPUs");
            InputError::new(source, key, message)
                .with_hint(format!("such as 0-3,8; CPUs are below {CPUS_MAX}"))
        })
    })
}

fn parse_range(part: &str) -> Option<RangeInclusive<usize>> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let (first, last) = (parse_cpu(first)?, parse_cpu(last)?);
    (first <= last && last < CPUS_MAX).then_some(first..=last)
}

/// Digits only: numbers of Rust may have a sign.
fn parse_cpu(digits: &str) -> Option<usize> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Writes CPUs as Linux does: ascending, in ranges where it can.
pub fn format_cpus(cpus: impl IntoIterator<Item = usize>) -> String {
    let cpus: BTreeSet<usize> = cpus.into_iter().collect();
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

    fn read(text: &str) -> Vec<usize> {
        parse_cpus("--big", "", text).unwrap().into_iter().collect()
    }

    #[test]
    fn ranges_and_single_cpus() {
        assert_eq!(read("0-2,7"), [0, 1, 2, 7]);
        assert_eq!(read("7,0-2,1-2\n"), [0, 1, 2, 7]);
        assert_eq!(read("8191"), [8191]);
    }

    #[test]
    fn what_the_kernel_passes_over() {
        assert!(read(" \n").is_empty());
        assert_eq!(read("0, 2,,4"), [0, 2, 4]);
        // So cpufreq writes them (`affected_cpus`).
        assert_eq!(read("0 1 2\n"), [0, 1, 2]);
    }

    #[test]
    fn errors_name_the_part() {
        for bad in ["2-1", "a", "1-", "-1", "+1", "0-8192", "0;1", "1-2-3", "٣"] {
            let error = parse_cpus("--big", "", &format!("5,{bad}")).unwrap_err().to_string();
            let expected = format!(
                "--big: \"{bad}\" of \"5,{bad}\" is not a CPU or a range of CPUs \
                 (such as 0-3,8; CPUs are below 8192)"
            );
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn they_are_written_as_linux_does() {
        assert_eq!(format_cpus([8, 3, 2, 1, 0, 2]), "0-3,8");
        assert_eq!(format_cpus([]), "");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(cpus in prop::collection::btree_set(0..CPUS_MAX, 0..40)) {
            let text = format_cpus(cpus.iter().copied());
            prop_assert_eq!(parse_cpus("", "", &text).unwrap(), cpus);
        }

        #[test]
        fn ranges_may_overlap_and_come_in_any_order(
            ranges in prop::collection::vec((0..300_usize, 0..20_usize), 0..20)
        ) {
            let parts = ranges.iter().map(|&(first, more)| format!("{first}-{}", first + more));
            let text = parts.collect::<Vec<_>>().join(",");
            let all = ranges.iter().flat_map(|&(first, more)| first..=first + more);
            let cpus = parse_cpus("", "", &text).unwrap();
            prop_assert_eq!(&cpus, &all.collect());
            prop_assert_eq!(parse_cpus("", "", &format_cpus(cpus.iter().copied())).unwrap(), cpus);
        }

        #[test]
        fn no_text_is_too_strange(text in "[-0-9, +a]{0,12}|\\PC{0,12}") {
            match parse_cpus("here", "", &text) {
                Ok(cpus) => prop_assert!(cpus.iter().all(|&cpu| cpu < CPUS_MAX)),
                Err(error) => prop_assert!(error.to_string().starts_with("here: \"")),
            }
        }
    }
}
