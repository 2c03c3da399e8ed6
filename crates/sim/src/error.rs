//! What can go wrong while a workload runs.

use ampsched_model::Ns;

/// A workload that cannot go on, with what a user needs to find the cause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// Every live thread waits for something that no other thread will do.
    #[error("deadlock after {} ms: {report}", *at_ns / 1_000_000)]
    Deadlock {
        /// When.
        at_ns: Ns,
        /// The cycle of threads and objects, or who waits for what.
        report: String,
    },
    /// A thread released a mutex that it does not hold.
    #[error("thread {thread} unlocks mutex \"{object}\", which it does not hold")]
    NotHeld {
        /// Thread.
        thread: String,
        /// Mutex.
        object: String,
    },
    /// A thread locked a mutex that it holds already.
    #[error("thread {thread} locks mutex \"{object}\", which it already holds")]
    HeldAlready {
        /// Thread.
        thread: String,
        /// Mutex.
        object: String,
    },
    /// A thread ended with a mutex.
    #[error("thread {thread} ends while it holds mutex \"{object}\"")]
    ExitHolding {
        /// Thread.
        thread: String,
        /// Mutex.
        object: String,
    },
    /// Nothing is known of a cluster's power, but energy was asked for.
    #[error(
        "machine {machine}: nothing is known of the power of cluster {cluster} (add power = {{ ... }} to its file, or leave out --energy)"
    )]
    NoPower {
        /// Machine.
        machine: String,
        /// Cluster.
        cluster: String,
    },
    /// A machine's description contradicts itself.
    #[error("machine {machine}: {what}")]
    BadMachine {
        /// Machine.
        machine: String,
        /// The contradiction.
        what: String,
    },
    /// Leakage heats and heat leaks, without end.
    #[error("machine {machine}: thermal runaway after {} ms: leakage heats faster than heat flows off (add thermal.trips, lower the load, or check static_mw, static_kelvin and k_per_w)", *at_ns / 1_000_000)]
    ThermalRunaway {
        /// Machine.
        machine: String,
        /// When.
        at_ns: Ns,
    },
    /// A governor cannot be used.
    #[error("{what}")]
    BadGovernor {
        /// Why.
        what: String,
    },
    /// A thread loops without using time.
    #[error("thread {thread} executes {steps} steps without using time, at {} ms (an endless loop without compute or sleep?)", *at_ns / 1_000_000)]
    NoProgress {
        /// Thread.
        thread: String,
        /// Steps.
        steps: u64,
        /// When.
        at_ns: Ns,
    },
    /// An application that needs no time cannot be repeated.
    #[error("application {app} ends without using time, so it cannot be repeated")]
    NothingToRepeat {
        /// Application.
        app: String,
    },
    /// The simulated time limit was reached.
    #[error("the workload has not ended after {} s of simulated time (limit; an endless program needs a duration)", *limit_ns / 1_000_000_000)]
    TimeLimit {
        /// Limit.
        limit_ns: Ns,
    },
    /// A program forked too many threads, or was repeated too often.
    #[error("application {app} has started more than {limit} threads")]
    TooManyThreads {
        /// Application.
        app: String,
        /// Limit.
        limit: usize,
    },
    /// The program allows only cores that the machine does not have.
    #[error(
        "thread {thread} may only use cores that the machine does not have (cores 0 to {last})"
    )]
    NoSuchCore {
        /// Thread.
        thread: String,
        /// Last core of the machine.
        last: usize,
    },
    /// A parallel region cannot be executed.
    #[error("{place}: {what}")]
    Region {
        /// Where it is declared.
        place: String,
        /// Why.
        what: String,
    },
    /// A policy broke a rule of the interface.
    #[error("policy {policy} {what}")]
    BadPolicy {
        /// Policy.
        policy: String,
        /// What it did.
        what: String,
    },
    /// An invariant of the engine does not hold: a bug in ampsched.
    #[error(
        "internal error at {at_ns} ns: {what}; please report it with the workload and the seed"
    )]
    Invariant {
        /// When.
        at_ns: Ns,
        /// Which.
        what: String,
    },
}
