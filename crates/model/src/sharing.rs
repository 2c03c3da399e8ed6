//! What cores use together, so that threads on different cores slow each other down.

/// What the cores of a cluster use together, as far as it costs speed. Nothing, unless a machine's file says so.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sharing {
    /// How many cores, in the order of their numbers, are around one L2 and one port to the memory: those of the
    /// cluster as its file has it. 0: all.
    pub cores: usize,
    /// The threads that run there share the L2; else each has it to itself.
    pub l2: bool,
    /// What the port to the memory carries at most, in MB/s (1e6 bytes).
    pub port_mb_s: Option<f64>,
    /// Cores 2i and 2i+1 of the cluster are threads of one core (SMT): the speed of each while both are busy, relative
    /// to that alone, 0.5..=1.
    pub smt_speed: Option<f64>,
}

/// What the memory carries, for all clusters together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// Bandwidth in MB/s (1e6 bytes) that can be had.
    pub mb_s: f64,
    /// Channels over which lines are spread, without regard to which are busy; each has its part of the bandwidth.
    pub channels: u32,
}

impl Sharing {
    /// Nothing is shared.
    pub const NONE: Self = Self { cores: 0, l2: false, port_mb_s: None, smt_speed: None };

    /// Whether threads on different cores of the cluster slow each other down.
    pub fn is_any(&self) -> bool {
        self.l2 || self.port_mb_s.is_some() || self.smt_speed.is_some()
    }
}
