//! The clocks of cores (Documentation/admin-guide/pm/cpufreq.rst): CPUs of one class that share one are a domain.

use std::collections::{BTreeMap, BTreeSet};

use ampsched_model::InputError;

use crate::by_hand::ByHand;
use crate::classes::{CPU, CpuClasses, Evidence, online_cpus};
use crate::{CoreMap, Domain, EnergyModels, Root};

const BY_HAND: &str = "state them by hand, such as --big 0-1 --little 2-3";

/// The machine's cores and from what their classes are known.
///
/// Errors: lists that cannot be, sources that contradict each other, values between which no line can be
/// drawn; each names the values and how to state the classes by hand.
pub fn detect_cores(root: &Root, by_hand: &ByHand) -> Result<(CoreMap, Evidence), InputError> {
    let online = online_cpus(root)?;
    let classes = if by_hand.classes.is_empty() {
        let found = CpuClasses::find(root, &online).map_err(|error| error.with_hint(BY_HAND))?;
        found.with_speeds_of(by_hand)?
    } else {
        CpuClasses::by_hand(by_hand, &online)?
    };
    Ok((core_map(root, &classes)?, classes.evidence()))
}

/// The domains of clocks, each of one class, in the order of their first CPU.
fn core_map(root: &Root, classes: &CpuClasses) -> Result<CoreMap, InputError> {
    let policies = cpufreq_policies(root)?;
    let energy = EnergyModels::read(root);
    let mut domains = Vec::new();
    for (class, of_class) in classes.classes().iter().enumerate() {
        let mut by_clock: BTreeMap<Option<&String>, Vec<usize>> = BTreeMap::new();
        for &cpu in &of_class.cpus {
            by_clock.entry(policies.get(&cpu)).or_default().push(cpu);
        }
        domains.extend(by_clock.into_iter().map(|(clock, cpus)| Domain {
            class: class as u8,
            freqs_mhz: clock.map_or_else(Vec::new, |name| frequencies(root, name)),
            cpus,
            cpufreq: clock.into_iter().cloned().collect(),
            relative_speed: of_class.relative_speed,
            power: Vec::new(),
        }));
    }
    domains.sort_by_key(|domain| domain.cpus[0]);
    let mut domains = one_cluster_per_class_if_clocks_are_single(domains);
    for domain in &mut domains {
        domain.power = energy.points(&domain.cpus);
    }
    let pairs = siblings(root, domains.iter().flat_map(|domain| &domain.cpus))?;
    Ok(CoreMap::new(domains).with_siblings(&pairs))
}

/// CPUs that are the two threads of one physical core (Documentation/admin-guide/cputopology.rst). Of cores with more
/// threads, none are told: no unequal cores have them.
fn siblings<'a>(
    root: &Root,
    cpus: impl Iterator<Item = &'a usize>,
) -> Result<Vec<(usize, usize)>, InputError> {
    let mut pairs = Vec::new();
    for &cpu in cpus {
        let threads = match root.cpus(&format!("{CPU}/cpu{cpu}/topology/core_cpus_list"))? {
            Some(threads) => Some(threads),
            // Its name before Linux 5.3.
            None => root.cpus(&format!("{CPU}/cpu{cpu}/topology/thread_siblings_list"))?,
        };
        let threads: Vec<usize> = threads.unwrap_or_default().into_iter().collect();
        if let [one, other] = threads[..] {
            if one == cpu {
                pairs.push((one, other));
            }
        }
    }
    Ok(pairs)
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
        for cpu in root.cpus(&file)?.unwrap_or_default() {
            policies.insert(cpu, name.clone());
        }
    }
    Ok(policies)
}

/// Step of the frequencies of drivers that do not list them: Intel's ratios count 100 MHz
/// (drivers/cpufreq/intel_pstate.c).
const STEP_MHZ: usize = 100;
/// No clock is faster (ours): ten times what any processor has reached.
const MHZ_MAX: u32 = 100_000;

/// Frequencies of a cpufreq policy in MHz, ascending; none if they cannot be read or cannot be.
fn frequencies(root: &Root, policy: &str) -> Vec<u32> {
    let folder = format!("{CPU}/cpufreq/{policy}");
    let mhz = |khz: u64| u32::try_from(khz / 1000).ok().filter(|mhz| *mhz <= MHZ_MAX);
    if let Some(list) = root.text(&format!("{folder}/scaling_available_frequencies")) {
        let listed = list.split_whitespace().filter_map(|khz| mhz(khz.parse().ok()?));
        let listed: BTreeSet<u32> = listed.collect();
        return listed.into_iter().collect();
    }
    let limit = |name: &str| root.number(&format!("{folder}/{name}")).ok().flatten().and_then(mhz);
    let (Some(min), Some(max)) = (limit("cpuinfo_min_freq"), limit("cpuinfo_max_freq")) else {
        return Vec::new();
    };
    (min..max).step_by(STEP_MHZ).chain([max]).collect()
}
