//! Policies inside a Linux kernel: an interpreter of Rules and Plan in C, as a sched_ext scheduler.
//!
//! The interpreter (`bpf/*.h`) is the one of `ampsched-policy` once more, in C that is compiled twice: for the kernel's
//! BPF machine, and for this computer, so that the tests can replay random events through both and compare each
//! decision.

#[cfg(feature = "bpf")]
pub mod class;
#[cfg(feature = "bpf")]
pub mod kernel;
#[cfg(feature = "bpf")]
pub mod latencies;
#[allow(missing_docs)] // The C headers say what each field means.
pub mod layout;
pub mod loads;
pub mod lower;
#[cfg(feature = "bpf")]
mod members;
pub mod native;
pub mod record;
#[cfg(feature = "bpf")]
pub mod recording;
pub mod replay;
#[cfg(feature = "bpf")]
mod scx;
pub mod table;

#[cfg(feature = "bpf")]
pub use scx::{KernelPlane, Scx, ScxOutcome};

/// Why a policy does not run inside the kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScxError {
    /// The kernel's interpreter cannot honour its rules.
    #[error("policy {policy} cannot run inside the kernel: {why}")]
    Refused {
        /// The policy.
        policy: String,
        /// The reasons.
        why: String,
    },
    /// A CPU has a number that the programs in the kernel have no room for.
    #[error("CPU {cpu}: schedulers in the kernel serve CPUs 0 to {}", layout::CPUS_MAX - 1)]
    Cpu {
        /// Its number.
        cpu: u32,
    },
    /// The kernel lacks the interface.
    #[error(
        "this kernel has no sched_ext; needed is Linux 6.15 or newer with CONFIG_SCHED_CLASS_EXT (ampsched vm has one)"
    )]
    NoSchedExt,
    /// The kernel does not do what it is asked to.
    #[error("{what}: {why}")]
    Kernel {
        /// What it does not do.
        what: String,
        /// Its reason.
        why: String,
    },
}
