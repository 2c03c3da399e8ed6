//! Which CPUs are fast and which are slow: the one rule.
//!
//! A *class* is a set of CPUs of about the same speed; classes have an order. Evidence, the strongest first, all of it
//! of Linux:
//!
//! 1. *Stated by hand* ([`ByHand`]). The user knows better than the kernel; nothing else is looked at.
//! 2. *`cpu_capacity`* (Documentation/ABI/testing/sysfs-devices-system-cpu): what the kernel's own scheduler goes by.
//!    It is a speed, so it also says how much faster a class is.
//! 3. *The PMUs* `cpu_core`, `cpu_atom` and `cpu_lowpower` (arch/x86/events/intel/core.c): Intel's hybrid processors
//!    show no capacities; their PMUs tell kinds of core apart, whose order is known. They say nothing of speed.
//! 4. *`cpuinfo_max_freq`* (Documentation/admin-guide/pm/cpufreq.rst), if nothing better tells CPUs apart: cycles of
//!    different kinds of core do not compare, so a frequency neither contradicts 2 and 3 nor makes speeds for them.
//!
//! What tells no two CPUs apart, or is not there (or 0) for one of them, is no evidence. Capacities and PMUs that
//! contradict each other, and values between which no line can be drawn, are errors: nothing is guessed. Not asked
//! are Arm's part numbers (they name kinds of core, see [`crate::core_kinds`], but not which is faster) and CPPC's
//! `highest_perf` (on AMD it ranks equal cores, too: Documentation/admin-guide/pm/amd-pstate.rst).
//!
//! Classes are those of all CPUs that are online, whether this process may use them or not: one that is confined to
//! some has its share of them ([`CpuClasses::among`]), and calls a CPU slow even if it may use no faster one.

use std::collections::BTreeSet;
use std::fmt;

use ampsched_model::{InputError, MAX_CLASSES, class_name};

use crate::by_hand::ByHand;
use crate::pmus::HYBRID_KINDS;
use crate::{CorePmu, Root, format_cpus};

/// Where Linux describes CPUs.
pub(crate) const CPU: &str = "/sys/devices/system/cpu";
pub(crate) const CAPACITY: &str = "cpu_capacity";
pub(crate) const MAX_FREQUENCY: &str = "cpufreq/cpuinfo_max_freq";

/// CPUs whose capacities or frequencies differ by less are of one class: favoured cores of one kind turbo
/// some percent higher than others (Intel Turbo Boost Max 3.0), different kinds of core differ by more (the
/// smallest ratio of classes among the machines described here is 1.2).
const ALIKE: f64 = 1.1;

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

/// CPUs of about the same speed.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuClass {
    /// What it is called among the classes of the computer ([`class_name`]).
    pub name: String,
    /// Its CPUs; at least one.
    pub cpus: BTreeSet<usize>,
    /// Speed relative to the computer's fastest class, above 0 to 1, if it is known.
    pub relative_speed: Option<f64>,
}

/// The classes of some CPUs, and from what they are known.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuClasses {
    /// The slowest first.
    classes: Vec<CpuClass>,
    evidence: Evidence,
}

/// CPUs by class, the slowest class first.
pub(crate) type Lists = Vec<BTreeSet<usize>>;
/// The relative speed of each class, if it is known.
pub(crate) type Speeds = Vec<Option<f64>>;

impl CpuClasses {
    /// The classes of some CPUs, usually [`online_cpus`], as the kernel shows them.
    ///
    /// Errors: files that cannot be understood, sources that contradict each other, values between which no line
    /// can be drawn. The caller that knows how classes are stated by hand adds that as a hint.
    pub fn find(root: &Root, cpus: &BTreeSet<usize>) -> Result<Self, InputError> {
        let by_capacity = by_values(root, cpus, CAPACITY)?;
        let by_pmus = by_pmus(root, cpus)?;
        if let (Some((one, _)), Some(other)) = (&by_capacity, &by_pmus) {
            agree((one, Evidence::Capacity), (other, Evidence::HybridPmus))?;
        }
        if let Some((lists, speeds)) = by_capacity {
            return Ok(Self::new(lists, speeds, Evidence::Capacity));
        }
        if let Some(lists) = by_pmus {
            let unknown = vec![None; lists.len()];
            return Ok(Self::new(lists, unknown, Evidence::HybridPmus));
        }
        if let Some((lists, speeds)) = by_values(root, cpus, MAX_FREQUENCY)? {
            return Ok(Self::new(lists, speeds, Evidence::MaxFrequency));
        }
        Ok(Self::new(vec![cpus.clone()], vec![Some(1.0)], Evidence::AllAlike))
    }

    /// The classes as they are stated, of CPUs that are online; those not named are in none.
    ///
    /// Errors: lists that cannot be, CPUs that are not online or named twice, wrong ratios.
    pub fn by_hand(stated: &ByHand, online: &BTreeSet<usize>) -> Result<Self, InputError> {
        let lists = stated.lists(online)?;
        let speeds = stated.speeds(lists.len())?;
        Ok(Self::new(lists, speeds, Evidence::Hand))
    }

    fn new(lists: Lists, speeds: Speeds, evidence: Evidence) -> Self {
        let count = lists.len();
        let class = |(place, (cpus, relative_speed))| CpuClass {
            name: class_name(place, count),
            cpus,
            relative_speed,
        };
        Self { classes: lists.into_iter().zip(speeds).enumerate().map(class).collect(), evidence }
    }

    /// The same classes with the speeds that are stated, if any are. Errors: wrong ratios.
    pub(crate) fn with_speeds_of(mut self, stated: &ByHand) -> Result<Self, InputError> {
        if !stated.ratios.is_empty() {
            let speeds = stated.speeds(self.classes.len())?;
            for (class, speed) in self.classes.iter_mut().zip(speeds) {
                class.relative_speed = speed;
            }
        }
        Ok(self)
    }

    /// What some CPUs have of the classes; classes without any of them are left out.
    pub fn among(&self, cpus: &BTreeSet<usize>) -> Self {
        let mut share = self.clone();
        for class in &mut share.classes {
            class.cpus.retain(|cpu| cpus.contains(cpu));
        }
        share.classes.retain(|class| !class.cpus.is_empty());
        share
    }

    /// All classes, the slowest first.
    pub fn classes(&self) -> &[CpuClass] {
        &self.classes
    }

    /// From what they are known.
    pub fn evidence(&self) -> Evidence {
        self.evidence
    }
}

/// The CPUs that are online. Errors: the kernel does not say it, or names none.
pub fn online_cpus(root: &Root) -> Result<BTreeSet<usize>, InputError> {
    let name = format!("{CPU}/online");
    let wrong = |message: &str| InputError::new(root.name(&name), "", message);
    match root.cpus(&name)? {
        Some(cpus) if cpus.is_empty() => Err(wrong("it names no CPU")),
        Some(cpus) => Ok(cpus),
        None => {
            let hint = "is /sys mounted? It says which CPUs there are";
            Err(wrong("there is no such file").with_hint(hint))
        }
    }
}

/// Classes by a number of each CPU, a class's speed being the greatest of its CPUs; none if some CPU has no number or
/// all are alike.
fn by_values(
    root: &Root,
    cpus: &BTreeSet<usize>,
    file: &str,
) -> Result<Option<(Lists, Speeds)>, InputError> {
    let mut values = Vec::new();
    for &cpu in cpus {
        let Some(value) = value_of(root, cpu, file)? else { return Ok(None) };
        values.push((value, cpu));
    }
    values.sort_unstable();
    let classes: Vec<&[(u64, usize)]> =
        values.chunk_by(|&(less, _), &(more, _)| !differ(less, more)).collect();
    if classes.iter().any(|class| differ(class[0].0, greatest(class))) {
        return Err(no_line(file, &values));
    }
    let count = classes.len();
    if count > MAX_CLASSES {
        let message =
            format!("{file} tells {count} classes apart, at most {MAX_CLASSES} are possible");
        return Err(wrong(message));
    }
    let top = greatest(&values) as f64;
    let lists = classes.iter().map(|class| class.iter().map(|&(_, cpu)| cpu).collect());
    let speeds = classes.iter().map(|class| Some(greatest(class) as f64 / top));
    Ok((count > 1).then(|| (lists.collect(), speeds.collect())))
}

/// The greatest of ascending numbers.
fn greatest(ascending: &[(u64, usize)]) -> u64 {
    ascending.last().map_or(0, |&(value, _)| value)
}

/// A CPU's number; none if there is no such file, or it holds the 0 of drivers that do not know.
pub(crate) fn value_of(root: &Root, cpu: usize, file: &str) -> Result<Option<u64>, InputError> {
    Ok(root.number(&format!("{CPU}/cpu{cpu}/{file}"))?.filter(|&value| value > 0))
}

/// Whether a number is that of a faster class.
fn differ(less: u64, more: u64) -> bool {
    more as f64 > less as f64 * ALIKE
}

fn no_line(file: &str, values: &[(u64, usize)]) -> InputError {
    let all: BTreeSet<u64> = values.iter().map(|&(value, _)| value).collect();
    wrong(format!(
        "{file} of the CPUs is {all:?}: neighbouring values differ by less than {:.0} %, the outer ones by more",
        100.0 * (ALIKE - 1.0)
    ))
}

/// Classes by the PMUs of hybrid processors; none if there are no two of them.
fn by_pmus(root: &Root, cpus: &BTreeSet<usize>) -> Result<Option<Lists>, InputError> {
    let pmus = CorePmu::find(root)?;
    let of_kind = |kind: &str| {
        let pmu = pmus.iter().find(|pmu| pmu.name == kind)?;
        let own: BTreeSet<usize> = cpus.iter().copied().filter(|&cpu| pmu.covers(cpu)).collect();
        (!own.is_empty()).then_some(own)
    };
    let lists: Lists = HYBRID_KINDS.iter().filter_map(|kind| of_kind(kind.pmu)).collect();
    if lists.len() < 2 {
        return Ok(None);
    }
    for &cpu in cpus {
        match lists.iter().filter(|list| list.contains(&cpu)).count() {
            0 => return Err(wrong(format!("CPU {cpu} belongs to no PMU of cores, others do"))),
            1 => {}
            _ => return Err(wrong(format!("CPU {cpu} belongs to two PMUs of cores"))),
        }
    }
    Ok(Some(lists))
}

/// Errors: the two contradict each other.
fn agree(one: (&Lists, Evidence), other: (&Lists, Evidence)) -> Result<(), InputError> {
    if one.0 == other.0 {
        return Ok(());
    }
    let says = |(lists, evidence): (&Lists, Evidence)| {
        let lists: Vec<String> =
            lists.iter().map(|cpus| format_cpus(cpus.iter().copied())).collect();
        format!("{evidence} says {} (slowest first)", lists.join(" < "))
    };
    Err(wrong(format!("{}, but {}", says(one), says(other))))
}

fn wrong(message: String) -> InputError {
    InputError::new("classes of cores", "", message)
}
