//! Which CPUs are fast and which are slow: said by hand, or found from what the kernel shows.
//!
//! Sources, all of Linux: `cpu_capacity` (Documentation/ABI/testing/sysfs-devices-system-cpu), the CPUs of
//! the PMUs `cpu_core`, `cpu_atom` and `cpu_lowpower` (arch/x86/events/intel/core.c), `cpuinfo_max_freq`
//! (Documentation/admin-guide/pm/cpufreq.rst). What they say must agree; what does not is reported.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ampsched_model::{InputError, MAX_CLASSES};

use crate::cpu_list::{format_cpus, parse_cpus};
use crate::{CoreMap, Domain, Root};

const CPU: &str = "/sys/devices/system/cpu";

/// CPUs whose capacities or frequencies differ by less are of one class: favoured cores of one kind turbo
/// some percent higher than others (Intel Turbo Boost Max 3.0), different kinds of core differ by more (the
/// smallest ratio of classes among the machines described here is 1.2).
const ALIKE: f64 = 1.1;

/// Intel's kinds of core from the slowest to the fastest, by the names of their PMUs.
const HYBRID_PMUS: [&str; 3] = ["cpu_lowpower", "cpu_atom", "cpu_core"];

/// Classes of cores as the user states them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByHand {
    /// CPUs of each class, the slowest class first, such as `["2-3", "0-1"]`.
    pub classes: Vec<String>,
    /// Speed of the fastest class over that of each slower one, from the next to the slowest; empty: not known.
    pub ratios: Vec<f64>,
}

/// From what the classes are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The user has said so.
    Hand,
    /// `cpu_capacity`.
    Capacity,
    /// The CPUs of Intel's PMUs.
    HybridPmus,
    /// The highest frequencies.
    MaxFrequency,
    /// Nothing tells CPUs apart.
    AllAlike,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hand => "stated by hand",
            Self::Capacity => "cpu_capacity",
            Self::HybridPmus => "the CPUs of the PMUs cpu_core and cpu_atom",
            Self::MaxFrequency => "the highest frequencies",
            Self::AllAlike => "nothing tells the CPUs apart",
        })
    }
}

/// A class for each CPU, 0 is the slowest.
type Classes = BTreeMap<usize, usize>;

/// The machine's cores and from what their classes are known.
///
/// Errors: lists that cannot be, sources that contradict each other, values between which no line can be
/// drawn; each names the values and how to state the classes by hand.
pub fn detect_cores(root: &Root, by_hand: &ByHand) -> Result<(CoreMap, Evidence), InputError> {
    let online = online_cpus(root)?;
    if !by_hand.classes.is_empty() {
        let classes = classes_by_hand(&by_hand.classes, &online)?;
        let speeds = speeds_by_hand(&by_hand.ratios, by_hand.classes.len())?;
        return Ok((core_map(root, &classes, &speeds)?, Evidence::Hand));
    }
    let (classes, evidence) = found_classes(root, &online)?;
    let count = class_count(&classes);
    let speeds = match by_hand.ratios.is_empty() {
        true => measured_speeds(root, &classes, evidence)?,
        false => speeds_by_hand(&by_hand.ratios, count)?,
    };
    Ok((core_map(root, &classes, &speeds)?, evidence))
}

fn online_cpus(root: &Root) -> Result<BTreeSet<usize>, InputError> {
    let name = format!("{CPU}/online");
    let file = root.path(&name).display().to_string();
    let Some(text) = root.text_if_there(&name)? else {
        return Err(InputError::new(file, "", "there is no such file")
            .with_hint("is /sys mounted? It says which CPUs there are"));
    };
    let cpus = parse_cpus(&file, "", &text)?;
    if cpus.is_empty() {
        return Err(InputError::new(file, "", "it names no CPU"));
    }
    Ok(cpus)
}

fn classes_by_hand(lists: &[String], online: &BTreeSet<usize>) -> Result<Classes, InputError> {
    let mut classes = Classes::new();
    if lists.len() > MAX_CLASSES {
        let message = format!("{} classes, at most {MAX_CLASSES} are possible", lists.len());
        return Err(InputError::new("classes of cores", "", message));
    }
    for (class, list) in lists.iter().enumerate() {
        let cpus = parse_cpus("classes of cores", "", list)?;
        if cpus.is_empty() {
            let message = "a class has no CPU";
            return Err(InputError::new("classes of cores", "", message)
                .with_hint("state both --big and --little, such as --big 0-1 --little 2-3"));
        }
        for cpu in cpus {
            if !online.contains(&cpu) {
                let online = format_cpus(online.iter().copied());
                let message = format!("CPU {cpu} of \"{list}\" is not online (online: {online})");
                return Err(InputError::new("classes of cores", "", message));
            }
            if classes.insert(cpu, class).is_some() {
                let message = format!("CPU {cpu} is in two classes");
                return Err(InputError::new("classes of cores", "", message));
            }
        }
    }
    Ok(classes)
}

/// Relative speed of each class, the slowest first; none if nothing is stated.
fn speeds_by_hand(ratios: &[f64], classes: usize) -> Result<Vec<Option<f64>>, InputError> {
    if ratios.is_empty() {
        return Ok(vec![None; classes]);
    }
    let wrong = |message: String| InputError::new("--ratio", "", message);
    if ratios.len() + 1 != classes {
        return Err(wrong(format!("{} ratios for {classes} classes of cores", ratios.len()))
            .with_hint(
                "one for each class but the fastest: fastest / next, ..., fastest / slowest",
            ));
    }
    let mut before = 1.0;
    for &ratio in ratios {
        if !(ratio.is_finite() && ratio > before && ratio <= RATIO_MAX) {
            return Err(wrong(format!("{ratio} is not above {before} and at most {RATIO_MAX}")));
        }
        before = ratio;
    }
    let mut speeds: Vec<Option<f64>> = ratios.iter().rev().map(|ratio| Some(1.0 / ratio)).collect();
    speeds.push(Some(1.0));
    Ok(speeds)
}

/// Greatest ratio of speeds that is believed: what fixed-point speeds can hold (`Change::Speed`).
const RATIO_MAX: f64 = 63.0;

fn found_classes(root: &Root, online: &BTreeSet<usize>) -> Result<(Classes, Evidence), InputError> {
    let sources = [
        (by_values(root, online, "cpu_capacity")?, Evidence::Capacity),
        (by_pmus(root, online)?, Evidence::HybridPmus),
        (by_values(root, online, "cpufreq/cpuinfo_max_freq")?, Evidence::MaxFrequency),
    ];
    let mut found: Option<(Classes, Evidence)> = None;
    for (classes, evidence) in sources {
        let Some(classes) = classes else { continue };
        match &found {
            None => found = Some((classes, evidence)),
            // Frequencies of different kinds of core do not compare: they only stand in for the others.
            Some(_) if evidence == Evidence::MaxFrequency => {}
            Some((first, _)) if *first == classes => {}
            Some((first, by)) => {
                let message = format!(
                    "{by} says {}, but {evidence} says {}",
                    describe(first),
                    describe(&classes)
                );
                return Err(InputError::new("classes of cores", "", message).with_hint(BY_HAND));
            }
        }
    }
    Ok(found.unwrap_or_else(|| (online.iter().map(|&cpu| (cpu, 0)).collect(), Evidence::AllAlike)))
}

const BY_HAND: &str = "state them by hand, such as --big 0-1 --little 2-3";

/// Classes by a number of each CPU; none if some CPU has none or all are alike.
fn by_values(
    root: &Root,
    online: &BTreeSet<usize>,
    file: &str,
) -> Result<Option<Classes>, InputError> {
    let mut values = Vec::new();
    for &cpu in online {
        let Some(value) = root.number(&format!("{CPU}/cpu{cpu}/{file}"))? else { return Ok(None) };
        values.push((value as f64, cpu));
    }
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut classes = Classes::new();
    let (mut class, mut least) = (0, values[0].0);
    for (index, &(value, cpu)) in values.iter().enumerate() {
        if index > 0 && value > values[index - 1].0 * ALIKE {
            (class, least) = (class + 1, value);
        }
        if value > least * ALIKE {
            let all: BTreeSet<u64> = values.iter().map(|&(value, _)| value as u64).collect();
            let message = format!(
                "{file} of the CPUs is {all:?}: neighbouring values differ by less than {:.0} %, the outer ones by more",
                100.0 * (ALIKE - 1.0)
            );
            return Err(InputError::new("classes of cores", "", message).with_hint(BY_HAND));
        }
        classes.insert(cpu, class);
    }
    if class >= MAX_CLASSES {
        let message =
            format!("{file} tells {} classes apart, at most {MAX_CLASSES} are possible", class + 1);
        return Err(InputError::new("classes of cores", "", message).with_hint(BY_HAND));
    }
    Ok((class > 0).then_some(classes))
}

/// Classes by the PMUs of hybrid processors; none if there are no two of them.
fn by_pmus(root: &Root, online: &BTreeSet<usize>) -> Result<Option<Classes>, InputError> {
    let mut kinds: Vec<BTreeSet<usize>> = Vec::new();
    for pmu in HYBRID_PMUS {
        let name = format!("/sys/devices/{pmu}/cpus");
        let Some(text) = root.text_if_there(&name)? else { continue };
        let cpus = parse_cpus(&root.path(&name).display().to_string(), "", &text)?;
        let cpus: BTreeSet<usize> = cpus.intersection(online).copied().collect();
        if !cpus.is_empty() {
            kinds.push(cpus);
        }
    }
    if kinds.len() < 2 {
        return Ok(None);
    }
    let mut classes = Classes::new();
    for (class, cpus) in kinds.iter().enumerate() {
        for &cpu in cpus {
            if classes.insert(cpu, class).is_some() {
                let message = format!("CPU {cpu} belongs to two PMUs of cores");
                return Err(InputError::new("classes of cores", "", message).with_hint(BY_HAND));
            }
        }
    }
    if let Some(cpu) = online.iter().find(|cpu| !classes.contains_key(cpu)) {
        let message = format!("CPU {cpu} belongs to no PMU of cores, others do");
        return Err(InputError::new("classes of cores", "", message).with_hint(BY_HAND));
    }
    Ok(Some(classes))
}

fn class_count(classes: &Classes) -> usize {
    classes.values().max().map_or(1, |&class| class + 1)
}

/// The CPUs of each class, the slowest first.
fn by_class(classes: &Classes) -> Vec<Vec<usize>> {
    let mut lists = vec![Vec::new(); class_count(classes)];
    for (&cpu, &class) in classes {
        lists[class].push(cpu);
    }
    lists
}

fn describe(classes: &Classes) -> String {
    let lists: Vec<String> = by_class(classes).into_iter().map(format_cpus).collect();
    format!("{} (slowest first)", lists.join(" < "))
}

/// Relative speed of each class: capacities; frequencies only if the classes were told apart by them,
/// because cycles of different kinds of core do not compare.
fn measured_speeds(
    root: &Root,
    classes: &Classes,
    evidence: Evidence,
) -> Result<Vec<Option<f64>>, InputError> {
    let count = class_count(classes);
    let file = match evidence {
        Evidence::MaxFrequency => "cpufreq/cpuinfo_max_freq",
        _ => "cpu_capacity",
    };
    let mut greatest = vec![0.0_f64; count];
    for (&cpu, &class) in classes {
        let value = root.number(&format!("{CPU}/cpu{cpu}/{file}"))?.unwrap_or(0);
        greatest[class] = greatest[class].max(value as f64);
    }
    let top = greatest[count - 1];
    let ascending = greatest.windows(2).all(|pair| pair[0] < pair[1]) && greatest[0] > 0.0;
    Ok(greatest.iter().map(|&value| ascending.then_some(value / top)).collect())
}

/// The domains of clocks, each of one class, in the order of their first CPU.
fn core_map(root: &Root, classes: &Classes, speeds: &[Option<f64>]) -> Result<CoreMap, InputError> {
    let mut domains: BTreeMap<(usize, Option<String>), Vec<usize>> = BTreeMap::new();
    let policies = cpufreq_policies(root)?;
    for (&cpu, &class) in classes {
        domains.entry((class, policies.get(&cpu).cloned())).or_default().push(cpu);
    }
    let mut domains: Vec<Domain> = domains
        .into_iter()
        .map(|((class, cpufreq), cpus)| Domain {
            class: class as u8,
            freqs_mhz: cpufreq.as_deref().map_or_else(Vec::new, |name| frequencies(root, name)),
            cpus,
            cpufreq: cpufreq.into_iter().collect(),
            relative_speed: speeds[class],
        })
        .collect();
    domains.sort_by_key(|domain| domain.cpus[0]);
    Ok(CoreMap::new(one_cluster_per_class_if_clocks_are_single(domains)))
}

/// A processor with a clock per CPU would have a cluster per CPU, of which no policy knows; what policies mean by
/// a cluster are then the CPUs of a class, whose clocks are set alike.
fn one_cluster_per_class_if_clocks_are_single(domains: Vec<Domain>) -> Vec<Domain> {
    if domains.iter().any(|domain| domain.cpus.len() > 1) {
        return domains;
    }
    let mut merged: Vec<Domain> = Vec::new();
    for domain in domains {
        match merged.iter_mut().find(|known| known.class == domain.class) {
            Some(known) => {
                known.cpus.extend(domain.cpus);
                known.cpufreq.extend(domain.cpufreq);
                let all = known.freqs_mhz.iter().chain(&domain.freqs_mhz);
                known.freqs_mhz = all.copied().collect::<BTreeSet<u32>>().into_iter().collect();
            }
            None => merged.push(domain),
        }
    }
    merged
}

/// The name of each CPU's cpufreq policy.
fn cpufreq_policies(root: &Root) -> Result<BTreeMap<usize, String>, InputError> {
    let mut policies = BTreeMap::new();
    let folder = format!("{CPU}/cpufreq");
    for name in root.names(&folder).into_iter().filter(|name| name.starts_with("policy")) {
        let file = format!("{folder}/{name}/affected_cpus");
        let text = root.text_if_there(&file)?.unwrap_or_default().replace(' ', ",");
        for cpu in parse_cpus(&root.path(&file).display().to_string(), "", &text)? {
            policies.insert(cpu, name.clone());
        }
    }
    Ok(policies)
}

/// Step of the frequencies of drivers that do not list them: Intel's ratios count 100 MHz
/// (drivers/cpufreq/intel_pstate.c).
const STEP_MHZ: u64 = 100;

/// Frequencies of a cpufreq policy in MHz, ascending; none if they cannot be read.
fn frequencies(root: &Root, policy: &str) -> Vec<u32> {
    let folder = format!("{CPU}/cpufreq/{policy}");
    let mhz = |khz: u64| (khz / 1000) as u32;
    if let Some(list) = root.text(&format!("{folder}/scaling_available_frequencies")) {
        let listed = list.split_whitespace().filter_map(|khz| khz.parse().ok().map(mhz));
        let listed: BTreeSet<u32> = listed.collect();
        return listed.into_iter().collect();
    }
    let limit = |name: &str| root.number(&format!("{folder}/{name}")).ok().flatten();
    let (Some(min), Some(max)) = (limit("cpuinfo_min_freq"), limit("cpuinfo_max_freq")) else {
        return Vec::new();
    };
    let steps = (min / 1000..max / 1000).step_by(STEP_MHZ as usize);
    steps.map(|mhz| mhz as u32).chain([mhz(max)]).collect()
}
