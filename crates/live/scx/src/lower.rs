//! Rules and topology as the interpreter in C reads them; what it cannot honour is refused by name.

use ampsched_live_driver::kernel_lacks;
use ampsched_model::{CoreId, CoreSet};
use ampsched_policy::{
    Allocator, Change, Charge, Needs, Order, Prefer, QueueScope, RunState, SPEED_ONE, Slice, Steal,
    StealFrom, Topology, WakePreempt,
};

use crate::ScxError;
use crate::layout::{self, CORES_MAX, NONE, Op, Operation, STEPS_MAX};

/// What a kernel cannot do for a policy, as a sentence for each; none if it can run the policy by itself.
pub fn unsupported(
    needs: &Needs,
    rules: &ampsched_policy::Rules,
    topology: &Topology,
) -> Vec<String> {
    let mut refused: Vec<String> =
        kernel_lacks(needs, rules).into_iter().map(|what| format!("it {what}")).collect();
    if topology.core_count() > CORES_MAX {
        refused.push(format!("the machine has more than {CORES_MAX} cores"));
    }
    if rules.steal.len() > STEPS_MAX {
        refused.push(format!("it has more than {STEPS_MAX} steps of stealing"));
    }
    refused
}

/// The rules of a policy in the interpreter's layout.
///
/// # Errors
///
/// [`ScxError::Refused`] if the kernel cannot honour them.
pub fn rules(
    name: &str,
    needs: &Needs,
    rules: &ampsched_policy::Rules,
    topology: &Topology,
) -> Result<layout::Rules, ScxError> {
    let why = unsupported(needs, rules, topology);
    if !why.is_empty() {
        return Err(ScxError::Refused { policy: name.to_owned(), why: why.join("; ") });
    }
    let (order, window_ns) = match rules.order {
        Order::Fifo => (0, 0),
        Order::Vruntime => (1, 0),
        Order::Deadline => (2, 0),
        Order::HighestRank { fair_window_ns } => (3, fair_window_ns),
        Order::Rounds { length_ns } => (4, length_ns),
    };
    let (slice, slice_ns, min_granularity_ns) = match rules.slice {
        Slice::Fixed(slice_ns) => (0, slice_ns, 0),
        Slice::LatencyShare { latency_ns, min_granularity_ns } => {
            (1, latency_ns, min_granularity_ns)
        }
        Slice::Request(base_ns) => (2, base_ns, 0),
    };
    let (preempt, granularity_ns, divide_by_speed, run_to_parity) = match rules.preempt {
        WakePreempt::Never => (0, 0, false, false),
        WakePreempt::VruntimeGap { granularity_ns, divide_by_speed } => {
            (1, granularity_ns, divide_by_speed, false)
        }
        WakePreempt::EarlierDeadline { run_to_parity } => (2, 0, false, run_to_parity),
    };
    let mut steal = [layout::Steal::default(); STEPS_MAX];
    for (step, slot) in rules.steal.iter().zip(&mut steal) {
        *slot = lower_step(step);
    }
    Ok(layout::Rules {
        window_ns,
        slice_ns,
        min_granularity_ns,
        granularity_ns,
        sleeper_credit_ns: rules.sleeper_credit_ns,
        tick_ns: rules.tick_ns.unwrap_or(0),
        balance: rules.balance.map(lower_balance).unwrap_or_default(),
        steal,
        steps: rules.steal.len() as u32,
        order,
        allocator: match rules.allocator {
            Allocator::WakeAffine => 0,
            Allocator::RoundRobinInClass => 1,
            Allocator::LeastLoadedInClass => 2,
            Allocator::LeastLoadedWith => 3,
            Allocator::ByLoad(_) => unreachable!("refused above"),
        },
        slice,
        charge: match rules.charge {
            Charge::Time => 0,
            Charge::Progress => 1,
            Charge::Rated => 2,
        },
        preempt,
        rating: rules.rating.map(u32::from),
        slice_by_speed: rules.slice_by_speed.into(),
        divide_by_speed: divide_by_speed.into(),
        run_to_parity: run_to_parity.into(),
        fork_debit: rules.fork_debit.into(),
        kick_idle: rules.kick_idle.into(),
        unused: [0; 3],
    })
}

fn lower_step(step: &Steal) -> layout::Steal {
    layout::Steal {
        min_idle_ns: step.min_idle_ns,
        min_resident_ns: step.min_resident_ns,
        from: match step.from {
            StealFrom::OwnCluster => 0,
            StealFrom::OtherClusters => 1,
            StealFrom::RunningOnSlower => 2,
        },
        who: step.who as u32,
        except: step.except.map_or(NONE, |prefer| prefer as u32),
        min_gain: step.min_gain.into(),
    }
}

fn lower_balance(balance: ampsched_policy::Balance) -> layout::Balance {
    layout::Balance {
        period_ns: balance.period_ns,
        rotate_period_ns: balance.rotate_period_ns,
        min_resident_ns: balance.min_resident_ns,
        tolerance_percent: balance.tolerance_percent,
        within_kind: balance.within_kind.into(),
        by_preference: balance.by_preference.into(),
        unused: [0; 2],
    }
}

/// An empty system with these rules, as [`ampsched_policy::Sched::new`] makes one.
pub fn state(
    rules: layout::Rules,
    queues: QueueScope,
    topology: &Topology,
    threads_max: u32,
) -> layout::Sched {
    let core_of = |core: CoreId| {
        let place = topology.core(core);
        layout::Core {
            running: NONE,
            last: NONE,
            since_ns: 0,
            busy_ns: 0,
            recheck_ns: layout::NEVER,
            queue: match queues {
                QueueScope::PerCore => core.0.into(),
                QueueScope::PerCluster => place.cluster.0.into(),
                QueueScope::Global => 0,
            },
            cluster: place.cluster.0.into(),
            class: place.class.0.into(),
            kind: topology.kind(core) as u32,
            looks: 0,
            interrupted: 0,
        }
    };
    // Virtual time that is a queue's own begins far enough from 0 that a thread can be placed behind the others.
    let min_vruntime = if rules.order == 4 { 0 } else { 1 << 40 };
    let empty = layout::Queue {
        load: 0,
        min_vruntime,
        base: 0,
        weighted: 0,
        rotated: 0,
        first: NONE,
        last: NONE,
        len: 0,
        running: 0,
        cores: 0,
        capacity: 0,
        newcomer: NONE,
        unused: 0,
    };
    let unused = layout::Core { queue: 0, ..core_of(CoreId(0)) };
    let (mut cores, mut all_queues) = ([unused; CORES_MAX], [empty; CORES_MAX]);
    let mut queue_count = 0;
    for core in topology.cores() {
        let entry = core_of(core);
        let queue = &mut all_queues[entry.queue as usize];
        queue.cores += 1;
        queue.capacity += rules.rating[entry.class as usize];
        queue_count = queue_count.max(entry.queue + 1);
        cores[core.index()] = entry;
    }
    layout::Sched {
        rotation_due_ns: rules.balance.rotate_period_ns,
        rules,
        core_count: topology.core_count() as u32,
        queue_count,
        thread_count: 0,
        threads_max,
        waiting: 0,
        idle_cores: topology.core_count() as u32,
        cursors: [0; 3],
        free_slot: NONE,
        top_class: topology.top_class().0.into(),
        pulls_running: rules.steal[..rules.steps as usize].iter().any(|step| step.from == 2).into(),
        zero: 0,
        unused: 0,
        serial: 0,
        online: topology.cores().fold(0, |word, core| word | 1 << core.index()),
        operations_at: 0,
        alive_ns: 0,
        to_wake: 0,
        to_interrupt: 0,
        rounds: layout::Rounds {
            latest: 0,
            waiting_earlier: 0,
            waiting_latest: 0,
            run_ns_before: [0; CORES_MAX],
        },
        cores,
        queues: all_queues,
        pick: layout::Pick {
            now_ns: 0,
            recheck_ns: layout::NEVER,
            core: 0,
            instead_of: NONE,
            kind: 0,
            thread: NONE,
        },
        group: layout::Group::default(),
        targets: [0; CORES_MAX],
        sources: [0; CORES_MAX],
    }
}

/// A set of cores as a word.
pub fn cores(set: &CoreSet) -> u64 {
    set.iter().fold(0, |word, core| word | 1 << core.index())
}

/// A change of a thread's plan as operations; their answers say whether the thread must be moved.
pub fn change(thread: u32, change: &Change) -> Vec<Operation> {
    let one =
        |kind: Op, a: u64| vec![Operation { kind: kind as u32, thread, a, ..Operation::default() }];
    match change {
        Change::Affinity(set) => one(Op::Affinity, cores(set)),
        Change::Prefer(prefer) => one(Op::Prefer, *prefer as u64),
        Change::Move(prefer) => one(Op::Move, *prefer as u64),
        Change::Rank(rank) => one(Op::Rank, *rank),
        Change::Weight(weight) => one(Op::Weight, (*weight).into()),
        Change::Slice(slice_ns) => one(Op::Slice, *slice_ns),
        Change::Hold(held) => one(Op::Hold, u64::from(*held)),
        Change::Speed(speeds) => {
            // The plan's fixed point, as the interpreter in Rust rounds it.
            let fixed = |speed: f64| (speed * f64::from(SPEED_ONE)).round().clamp(1.0, 64_512.0);
            let class = |(class, &speed): (usize, &f64)| Operation {
                kind: Op::Speed as u32,
                thread,
                core: class as u32,
                a: fixed(speed) as u64,
                ..Operation::default()
            };
            speeds.iter().enumerate().map(class).collect()
        }
    }
}

/// The number of a state in the interpreter.
pub fn run_state(state: RunState) -> u32 {
    match state {
        RunState::New => 0,
        RunState::Ready => 1,
        RunState::Running => 2,
        RunState::Blocked => 3,
        RunState::Held => 4,
        RunState::Exited => 5,
    }
}

// `as u32` above relies on this order.
const _: () =
    assert!(Prefer::Any as u32 == 0 && Prefer::Big as u32 == 1 && Prefer::Little as u32 == 2);
