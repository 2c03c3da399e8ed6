//! What kinds of cores the CPUs are, by the names that `ampsched calibrate` gives them and models know them by.

use std::collections::{BTreeMap, BTreeSet};

use ampsched_computer::Root;
use ampsched_model::InputError;

use crate::counters::Pmu;

/// Part numbers of Arm cores (their TRMs, MIDR_EL1) that have a core type here.
const ARM_PARTS: [(u64, &str); 7] = [
    (0xC07, "cortex-a7"),
    (0xC0F, "cortex-a15"),
    (0xD03, "cortex-a53"),
    (0xD05, "cortex-a55"),
    (0xD07, "cortex-a57"),
    (0xD0B, "cortex-a76"),
    (0xD44, "cortex-x1"),
];
/// Implementer Arm in MIDR_EL1.
const ARM: u64 = 0x41;

/// What a core is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreKind {
    /// Core type and place among the kinds, such as `cortex-a53-0`.
    pub name: String,
    /// Core type, `generic` if it is not known.
    pub core_type: &'static str,
}

/// The kind of each CPU: core type, PMU, capacity and highest frequency tell kinds apart; the first CPU's comes first.
/// Errors: a PMU's files cannot be understood.
pub fn core_kinds(
    root: &Root,
    cpus: &BTreeSet<usize>,
) -> Result<BTreeMap<usize, CoreKind>, InputError> {
    let mut pmus = Pmu::find(root)?;
    pmus.retain(|pmu| pmu.cpus.is_some());
    let mut known = Vec::new();
    let mut kinds = BTreeMap::new();
    for &cpu in cpus {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
        let number = |file: &str| root.number(&format!("{folder}/{file}")).ok().flatten();
        let pmu = pmus.iter().find(|pmu| pmu.covers(cpu));
        let core_type = match pmu.map(|pmu| pmu.name.as_str()) {
            // Which generation of core it is Linux does not say; these stand for all.
            Some("cpu_core") => "golden-cove",
            Some("cpu_atom") => "gracemont",
            _ => arm_type(root, &folder).unwrap_or("generic"),
        };
        let capacity = number("cpu_capacity").unwrap_or(0);
        let khz = number("cpufreq/cpuinfo_max_freq");
        let kind = (core_type, pmu.map(|pmu| pmu.kind), capacity, khz);
        let place = known.iter().position(|other| *other == kind).unwrap_or_else(|| {
            known.push(kind);
            known.len() - 1
        });
        kinds.insert(cpu, CoreKind { name: format!("{core_type}-{place}"), core_type });
    }
    Ok(kinds)
}

fn arm_type(root: &Root, folder: &str) -> Option<&'static str> {
    let text = root.text(&format!("{folder}/regs/identification/midr_el1"))?;
    let midr = u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()?;
    let part = ARM_PARTS.iter().find(|(part, _)| *part == midr >> 4 & 0xfff);
    part.filter(|_| midr >> 24 & 0xff == ARM).map(|&(_, core_type)| core_type)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn arm_cores_are_known_by_their_part_numbers() {
        let folder = TempDir::new().unwrap();
        let cpus = [
            (0, "0x00000000410fd034\n", "1400000"),
            (1, "0x00000000410fd034\n", "1400000"),
            (2, "0x00000000410fd072\n", "2000000"),
            // Not one of Arm's own, and no number at all.
            (3, "0x00000000510fd072\n", "2000000"),
            (4, "much\n", "2100000"),
        ];
        for (cpu, midr, khz) in cpus {
            let cpu = folder.path().join(format!("sys/devices/system/cpu/cpu{cpu}"));
            fs::create_dir_all(cpu.join("regs/identification")).unwrap();
            fs::create_dir_all(cpu.join("cpufreq")).unwrap();
            fs::write(cpu.join("regs/identification/midr_el1"), midr).unwrap();
            fs::write(cpu.join("cpufreq/cpuinfo_max_freq"), khz).unwrap();
        }
        let kinds = core_kinds(&Root::new(folder.path()), &(0..5).collect()).unwrap();
        let names: Vec<&str> = kinds.values().map(|kind| kind.name.as_str()).collect();
        let places = ["cortex-a53-0", "cortex-a53-0", "cortex-a57-1", "generic-2", "generic-3"];
        assert_eq!(names, places);
        assert_eq!(kinds[&2].core_type, "cortex-a57");
    }
}
