//! What kinds of cores the CPUs are, by the names that `ampsched calibrate` gives them and models know them by.
//!
//! A kind is narrower than a class ([`crate::CpuClasses`]): cores are of one only if nothing that Linux shows tells
//! them apart, so that a measurement of one of them holds for all. Kinds have no order.

use std::collections::BTreeSet;

use ampsched_model::InputError;

use crate::classes::{CAPACITY, CPU, MAX_FREQUENCY, value_of};
use crate::{CorePmu, Root};

/// Part numbers of Arm cores (their TRMs, MIDR_EL1) that have a core type here.
const ARM_PARTS: [(u64, &str); 8] = [
    (0xC07, "cortex-a7"),
    (0xC0F, "cortex-a15"),
    (0xD03, "cortex-a53"),
    (0xD05, "cortex-a55"),
    (0xD07, "cortex-a57"),
    (0xD09, "cortex-a73"),
    (0xD0B, "cortex-a76"),
    (0xD44, "cortex-x1"),
];
/// Implementer Arm in MIDR_EL1.
const ARM: u64 = 0x41;
/// The type of cores of which Linux does not say what they are.
const UNKNOWN: &str = "generic";

/// Cores that are alike.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CoreKind {
    /// Core type and place among the kinds, such as `cortex-a53-0`.
    pub name: String,
    /// The nearest shipped core type; `generic` if it is not known.
    pub core_type: String,
    /// Its CPUs, ascending.
    pub cpus: Vec<usize>,
    /// Highest frequency, or else the present one, if Linux tells it.
    pub mhz: Option<u32>,
    /// Number of their PMU ([`CorePmu::kind`]); none for the only one.
    pub pmu: Option<u32>,
}

impl CoreKind {
    /// Whether Linux says which core it is; otherwise the core type is a stand-in.
    pub fn is_known(&self) -> bool {
        self.core_type != UNKNOWN
    }
}

/// The kinds of some CPUs: core type, PMU, capacity and highest frequency tell them apart; the first CPU's comes first.
/// Errors: a file cannot be understood.
pub fn core_kinds(root: &Root, cpus: &BTreeSet<usize>) -> Result<Vec<CoreKind>, InputError> {
    let mut pmus = CorePmu::find(root)?;
    pmus.retain(|pmu| pmu.cpus.is_some());
    let mut marks = Vec::new();
    let mut kinds: Vec<CoreKind> = Vec::new();
    for &cpu in cpus {
        let pmu = pmus.iter().find(|pmu| pmu.covers(cpu));
        let core_type = core_type(root, cpu, pmu);
        let khz = value_of(root, cpu, MAX_FREQUENCY)?;
        let mark = (core_type, pmu.map(|pmu| pmu.kind), value_of(root, cpu, CAPACITY)?, khz);
        if let Some(place) = marks.iter().position(|known| *known == mark) {
            kinds[place].cpus.push(cpu);
            continue;
        }
        marks.push(mark);
        kinds.push(CoreKind {
            name: format!("{core_type}-{}", kinds.len()),
            core_type: core_type.to_owned(),
            cpus: vec![cpu],
            mhz: khz.map(|khz| (khz / 1000) as u32).or_else(|| present_mhz(root, cpu)),
            pmu: pmu.map(|pmu| pmu.kind),
        });
    }
    Ok(kinds)
}

fn core_type(root: &Root, cpu: usize, pmu: Option<&CorePmu>) -> &'static str {
    let hybrid = pmu.and_then(CorePmu::hybrid_kind).map(|kind| kind.core_type);
    hybrid.or_else(|| arm_type(root, cpu)).unwrap_or(UNKNOWN)
}

fn arm_type(root: &Root, cpu: usize) -> Option<&'static str> {
    let text = root.text(&format!("{CPU}/cpu{cpu}/regs/identification/midr_el1"))?;
    let midr = u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()?;
    let part = ARM_PARTS.iter().find(|(part, _)| *part == midr >> 4 & 0xfff);
    part.filter(|_| midr >> 24 & 0xff == ARM).map(|&(_, core_type)| core_type)
}

/// What cpuinfo of x86 says. It wavers, so it does not tell kinds apart.
fn present_mhz(root: &Root, cpu: usize) -> Option<u32> {
    let text = root.text("/proc/cpuinfo")?;
    let value = |block: &str, key: &str| {
        let mut pairs = block.lines().filter_map(|line| line.split_once(':'));
        pairs.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned())
    };
    let own = cpu.to_string();
    let block =
        text.split("\n\n").find(|block| value(block, "processor").as_ref() == Some(&own))?;
    Some(value(block, "cpu MHz")?.parse::<f64>().ok()?.round() as u32)
}
