//! The performance monitoring units of this computer's cores, and the kinds of core that they stand for
//! (Documentation/ABI/testing/sysfs-bus-event_source-devices-*).

use std::collections::BTreeSet;

use ampsched_model::InputError;

use crate::Root;

/// Where Linux shows PMUs.
const DEVICES: &str = "/sys/bus/event_source/devices";

/// A kind of core of a hybrid processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HybridKind {
    /// Name of its PMU.
    pub pmu: &'static str,
    /// The nearest core type that has a model here; which generation of core it is Linux does not say.
    pub core_type: &'static str,
}

/// Intel's kinds of core from the slowest to the fastest (Linux, arch/x86/events/intel/core.c: the hybrid PMUs).
pub(crate) const HYBRID_KINDS: [HybridKind; 3] = [
    HybridKind { pmu: "cpu_lowpower", core_type: "gracemont" },
    HybridKind { pmu: "cpu_atom", core_type: "gracemont" },
    HybridKind { pmu: "cpu_core", core_type: "golden-cove" },
];

/// A PMU of cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorePmu {
    /// Name, such as `cpu_core`.
    pub name: String,
    /// Its number: the type of its events for perf_event_open.
    pub kind: u32,
    /// Its CPUs; none if it counts on all.
    pub cpus: Option<BTreeSet<usize>>,
}

impl CorePmu {
    /// The PMUs of cores, in the order of their names; those without a number are none. Errors: a file of theirs
    /// cannot be understood.
    pub fn find(root: &Root) -> Result<Vec<Self>, InputError> {
        let pmus = core_pmu_names(root).into_iter();
        pmus.filter_map(|name| Self::read(root, name).transpose()).collect()
    }

    fn read(root: &Root, name: String) -> Result<Option<Self>, InputError> {
        let kind = format!("{DEVICES}/{name}/type");
        let Some(number) = root.number(&kind)? else { return Ok(None) };
        let too_big = |_| InputError::new(root.name(&kind), "", format!("{number} is too big"));
        let kind = u32::try_from(number).map_err(too_big)?;
        let cpus = root.cpus(&format!("{DEVICES}/{name}/cpus"))?;
        Ok(Some(Self { name, kind, cpus }))
    }

    /// The folder of its files.
    pub fn folder(&self) -> String {
        format!("{DEVICES}/{}", self.name)
    }

    /// Whether it counts on a CPU.
    pub fn covers(&self, cpu: usize) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu))
    }

    /// The kind of core that it stands for; none if its processor is not a hybrid one.
    pub(crate) fn hybrid_kind(&self) -> Option<HybridKind> {
        HYBRID_KINDS.into_iter().find(|kind| kind.pmu == self.name)
    }
}

/// Names of the PMUs of cores: Intel's and AMD's, Arm's and Apple's.
pub(crate) fn core_pmu_names(root: &Root) -> Vec<String> {
    let is_of_cores = |name: &String| {
        name == "cpu"
            || HYBRID_KINDS.iter().any(|kind| kind.pmu == name)
            || name.starts_with("armv")
            || name.starts_with("apple_")
    };
    root.names(DEVICES).into_iter().filter(is_of_cores).collect()
}
