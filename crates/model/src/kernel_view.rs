//! What an operating system's kernel knows of a machine's cores.

/// How a kernel tells a machine's cores apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sees {
    /// Not at all: all cores count alike, as on x86-64 without priorities.
    #[default]
    Nothing,
    /// By their capacities (arm64: `capacity-dmips-mhz` of the device tree, or ACPI's CPPC).
    Capacities,
    /// By priorities: the best cores are to be used first (x86-64 hybrids: ITMT, Intel Turbo Boost Max 3.0).
    Priorities,
}

impl Sees {
    /// All, with their words in a machine's file.
    pub const ALL: [(&'static str, Sees); 3] = [
        ("nothing", Sees::Nothing),
        ("capacities", Sees::Capacities),
        ("priorities", Sees::Priorities),
    ];
}

/// Which cores share the last-level cache that the kernel knows of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LastLevelCache {
    /// All cores.
    #[default]
    Machine,
    /// Those of a cluster.
    Cluster,
}

impl LastLevelCache {
    /// All, with their words in a machine's file.
    pub const ALL: [(&'static str, LastLevelCache); 2] =
        [("machine", LastLevelCache::Machine), ("cluster", LastLevelCache::Cluster)];
}

/// What a kernel knows of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelView {
    /// How it tells cores apart.
    pub sees: Sees,
    /// Which cores share a cache.
    pub last_level_cache: LastLevelCache,
}
