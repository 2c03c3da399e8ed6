//! The most that an input may hold, in one place: whatever takes memory or time in proportion.
//!
//! They are far above what anybody has needed, and low enough that an input within them fits into the memory of an
//! ordinary computer (8 GB). A reader refuses more, with the limit, before it makes room for it.

/// Most bytes of a description that people write: a machine, a program, a workload, a policy.
pub const DESCRIPTION_BYTES_MAX: usize = 16 << 20;
/// Most bytes of a file that a program has written: counters, a task graph, a recording, a model.
pub const DATA_BYTES_MAX: usize = 256 << 20;
/// Most bytes of memory that reading any one file may take, and most bytes of any file that is read: a recording of as
/// many events as the recorder keeps fits.
pub const MEMORY_BYTES_MAX: usize = (1_usize << 30).saturating_mul(4);
/// What any file may take, however short it is: see [`crate::memory_for`].
pub const MEMORY_BYTES_MIN: usize = 256 << 20;
/// So many times as long as its file something may be in memory: several times what our recordings need.
pub const UNPACKED_MAX: usize = 250;
/// Deepest nesting of a text: braces, brackets, subgraphs, parentheses.
pub const DEPTH_MAX: usize = 32;
/// Most bytes of an expression.
pub const EXPRESSION_BYTES_MAX: usize = 2000;
/// Most CPUs that Linux can be built for (`CONFIG_NR_CPUS` on x86-64 with `MAXSMP`): one more than the highest number.
pub const CPUS_MAX: usize = 8192;

/// Most applications of a workload.
pub const APPS_MAX: usize = 1000;
/// Most threads of a program, and most repetitions of a step that starts threads.
pub const THREADS_MAX: i64 = 1_000_000;
/// Most synchronisation objects of a program.
pub const OBJECTS_MAX: usize = 1_000_000;
/// Most steps of a program, instances counted one by one.
pub const CODE_MAX: usize = 4_000_000;
/// Deepest nesting of `loop`, `each` and `dynamic` in a program.
pub const BODIES_DEPTH_MAX: usize = 8;
/// Most quantiles of a distribution.
pub const QUANTILES_MAX: usize = 10_001;

/// Most clusters of a machine.
pub const CLUSTERS_MAX: usize = 128;
/// Most cores of a machine, and most workers of a task graph.
pub const CORES_MAX: i64 = 4096;
/// Most nodes of a machine's thermal network.
pub const THERMAL_NODES_MAX: usize = 256;

/// Most tasks of a task graph, read or generated.
pub const TASKS_MAX: usize = 10_000_000;
/// Most links of a task graph, read or generated.
pub const LINKS_MAX: usize = 50_000_000;
/// Most classes of workers of a task graph, and so most costs of one task.
pub const WORKER_CLASSES_MAX: usize = 256;
/// Most costs of all tasks together.
pub const COSTS_MAX: usize = 20_000_000;

/// Most readings of counters in a file of gem5 or perf.
pub const READINGS_MAX: usize = 2_000_000;
/// Most features of a model that predicts speed-ups.
pub const FEATURES_MAX: usize = 32;
/// Most nodes of such a model's trees together.
pub const NODES_MAX: usize = 10_000;
