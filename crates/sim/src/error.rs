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
    /// A thread repeats something for ever, and nothing ends the simulation.
    #[error(
        "thread {thread} repeats for ever, and nothing ends it (give its program a duration, duration_ms, or the simulation an end, until_ms)"
    )]
    Endless {
        /// Thread.
        thread: String,
    },
    /// Nobody can get any work done, because a slice is over before a thread has been switched to.
    #[error(
        "policy {policy} gives slices of {slice_ns} ns, but {} takes {cost_ns} ns: nobody would get any work done (give longer slices, or lower {} of the machine or the overhead)",
        if *moves { "to bring a thread to another core and to switch to it" } else { "to switch to a thread" },
        if *moves { "the costs" } else { "costs.context_switch_ns" }
    )]
    SliceTooShort {
        /// Policy.
        policy: String,
        /// The slice that two equal threads on a core get, or that the plan gives one.
        slice_ns: Ns,
        /// Cost of a turn on that machine with that overhead.
        cost_ns: Ns,
        /// Whether that contains a migration, because each turn may be on another core.
        moves: bool,
    },
    /// Threads get no work done on the fastest cores, because a round is over there before they have been brought and
    /// switched to.
    #[error(
        "policy {policy} gives threads of weight {weight} turns of {turn_ns} ns in each round on the fastest cores, but to bring a thread there and to switch to it takes {cost_ns} ns: they would get no work done there (give longer rounds, a lower rating, or lower the costs of the machine or the overhead)"
    )]
    RoundTooShort {
        /// Policy.
        policy: String,
        /// Their turns there.
        turn_ns: Ns,
        /// The least weight that a program's threads may have.
        weight: u32,
        /// Cost of the dearest migration and a switch on that machine with that overhead.
        cost_ns: Ns,
    },
    /// Nobody gets any work done on the first core, because an epoch is over before its own work is.
    #[error(
        "policy {policy} looks every {epoch_ns} ns, but a look takes {cost_ns} ns of the first core: nobody would get any work done there (give longer epochs, or lower the overhead's epoch_us)"
    )]
    EpochTooShort {
        /// Policy.
        policy: String,
        /// Time between two looks.
        epoch_ns: Ns,
        /// Overhead of one.
        cost_ns: Ns,
    },
    /// The same as [`SimError::SliceTooShort`], when it turned out.
    #[error("policy {policy}: from {} to {} ms nobody got any work done, because turns end before threads have been switched to (give longer slices, or lower the costs of the machine or the overhead)", *from_ns / 1_000_000, *at_ns / 1_000_000)]
    OnlySwitching {
        /// Policy.
        policy: String,
        /// Since when.
        from_ns: Ns,
        /// Until when.
        at_ns: Ns,
    },
    /// An application that needs no time cannot be repeated.
    #[error("application {app} ends without using time, so it cannot be repeated")]
    NothingToRepeat {
        /// Application.
        app: String,
    },
    /// The simulated time limit was reached.
    #[error("the workload has not ended after {} s of simulated time (limit; an endless program needs a duration)", *limit_ns as f64 / 1e9)]
    TimeLimit {
        /// Limit.
        limit_ns: Ns,
    },
    /// Somebody outside wanted it to end ([`crate::Interrupt`]).
    #[error("interrupted")]
    Interrupted,
    /// A program was repeated very often, until a limit of threads or time, and another one did not end meanwhile.
    #[error(
        "under {policy}, {app} has ended {ends} times within {} ms, and {waiting} is not done: it takes too long for that, or new threads come before those that wait (try a longer duration of {app}, or another policy or parameter)", *at_ns / 1_000_000
    )]
    Outlasted {
        /// Policy.
        policy: String,
        /// The application that was repeated.
        app: String,
        /// How often it has ended.
        ends: usize,
        /// Until when.
        at_ns: Ns,
        /// One that has not ended.
        waiting: String,
    },
    /// A program forked too many threads.
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
    /// Work is calibrated with a core that the machine does not have.
    #[error(
        "program {app}: its work is calibrated with core {core}, which the machine does not have (cores 0 to {last}): change global.calibration"
    )]
    NoCalibration {
        /// Program.
        app: String,
        /// Core that it names.
        core: usize,
        /// Last core of the machine.
        last: usize,
    },
    /// Deadline threads would reserve more than the machine gives them.
    #[error(
        "thread {thread}: deadline threads would reserve {asked} cores of capacity 1024, at most {limit} can be (95 % of the machine, as in Linux): raise period_us or lower runtime_us"
    )]
    NoBandwidth {
        /// The thread that is refused.
        thread: String,
        /// What all would reserve, in cores of capacity 1024.
        asked: String,
        /// The most that can be reserved.
        limit: String,
    },
    /// A deadline thread may not use all cores.
    #[error(
        "thread {thread}: a deadline thread has to be allowed all cores of the machine, Linux refuses it otherwise: remove cores or set_cores"
    )]
    BoundDeadline {
        /// Thread.
        thread: String,
    },
    /// Two programs state different things of one task group.
    #[error("group {group}: two programs state different shares or clamps of it")]
    GroupStatedTwice {
        /// Path of the group.
        group: String,
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
