//! Rules and topology as the interpreter in C reads them; what it cannot honour is refused by name.

use ampsched_live_driver::kernel_lacks;
use ampsched_model::CoreId;
use ampsched_policy::{Change, Choice, Needs, Order, QueueScope, Rules, STEPS_MAX, Topology, Wire};

use crate::ScxError;
use crate::layout::{self, CHANGE, CORES_MAX, NONE, Operation};

/// What a kernel cannot do for a policy, as a sentence for each; none if it can run the policy by itself.
pub fn unsupported(needs: &Needs, rules: &Rules, topology: &Topology) -> Vec<String> {
    let mut refused: Vec<String> =
        kernel_lacks(needs, rules, topology).into_iter().map(|what| format!("it {what}")).collect();
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
    rules: &Rules,
    topology: &Topology,
) -> Result<layout::Rules, ScxError> {
    let why = unsupported(needs, rules, topology);
    if !why.is_empty() {
        return Err(ScxError::Refused { policy: name.to_owned(), why: why.join("; ") });
    }
    let mut words = Vec::with_capacity(<ampsched_policy::Rules as Wire>::LEN);
    rules.write_fields(&mut words);
    Ok(words.try_into().expect("as many words as the wire has"))
}

/// The core of each CPU by its number, of cores with these CPUs; core 0 for CPUs that are none.
///
/// # Errors
///
/// [`ScxError::Cpu`] if a number is higher than the programs in the kernel have room for.
pub fn core_of_cpu(cpus: &[u32]) -> Result<[u32; CORES_MAX], ScxError> {
    let mut cores = [0; CORES_MAX];
    for (core, &cpu) in cpus.iter().enumerate() {
        *cores.get_mut(cpu as usize).ok_or(ScxError::Cpu { cpu })? = core as u32;
    }
    Ok(cores)
}

/// An empty system with these rules, as [`ampsched_policy::Sched::new`] makes one.
pub fn state(
    lowered: layout::Rules,
    rules: &Rules,
    topology: &Topology,
    threads_max: u32,
) -> layout::Sched {
    let core_of = |core: CoreId| {
        let place = topology.core(core);
        let alike =
            || topology.cores().filter(|&other| topology.core(other).cluster == place.cluster);
        layout::Core {
            running: NONE,
            last: NONE,
            since_ns: 0,
            busy_ns: 0,
            recheck_ns: layout::NEVER,
            turn_ns: 0,
            turn_virtual_ns: 0,
            queue: match rules.queues {
                QueueScope::PerCore => core.0.into(),
                QueueScope::PerCluster => place.cluster.0.into(),
                QueueScope::Global => 0,
            },
            cluster: place.cluster.0.into(),
            cluster_first: alike().min().unwrap_or(core).0.into(),
            cluster_last: alike().max().unwrap_or(core).0.into(),
            class: place.class.0.into(),
            kind: topology.kind(core).number(),
            looks: 0,
            interrupted: 0,
            unused: 0,
            others_due_ns: layout::NEVER,
        }
    };
    // Virtual time that is a queue's own begins far enough from 0 that a thread can be placed behind the others.
    let min_vruntime = if matches!(rules.order, Order::Rounds { .. }) { 0 } else { 1 << 40 };
    let empty = layout::Queue {
        load: 0,
        min_vruntime,
        base: 0,
        weighted: 0,
        rotated: 0,
        serial: 0,
        first: NONE,
        last: NONE,
        len: 0,
        running: 0,
        cores: 0,
        capacity: 0,
        newcomer: NONE,
        coming: 0,
        index: 0,
        unused: 0,
    };
    let unused = layout::Core { queue: 0, ..core_of(CoreId(0)) };
    let (mut cores, mut all_queues) = ([unused; CORES_MAX], [empty; CORES_MAX]);
    let mut idle = [0; CORES_MAX];
    let mut queue_count = 0;
    for core in topology.cores() {
        let entry = core_of(core);
        let queue = &mut all_queues[entry.queue as usize];
        queue.cores += 1;
        queue.index = entry.queue;
        idle[core.index()] = 1;
        queue.capacity += u32::from(rules.rating[entry.class as usize]);
        queue_count = queue_count.max(entry.queue + 1);
        cores[core.index()] = entry;
    }
    layout::Sched {
        rotation_due_ns: rules.balance.map_or(0, |balance| balance.rotate_period_ns),
        rules: lowered,
        core_count: topology.core_count() as u32,
        queue_count,
        thread_count: 0,
        threads_max,
        cursors: [0; 3],
        free_slot: NONE,
        top_class: topology.top_class().0.into(),
        pulls_running: rules.pulls_running().into(),
        zero: 0,
        one: 1,
        stuck: 0,
        unused: 0,
        rotations: 0,
        online: topology.cores().fold(0, |word, core| word | 1 << core.index()),
        operations_at: 0,
        alive_ns: 0,
        idle,
        waiting: [0; CORES_MAX],
        rounds: layout::Rounds {
            latest: 0,
            waiting: 0,
            unused: 0,
            waiting_earlier: 0,
            waiting_latest: 0,
            run_ns_before: [0; CORES_MAX],
        },
        cores,
        queues: all_queues,
        calls: [layout::Call::default(); CORES_MAX + 2],
        group: layout::Group::default(),
        targets: [0; CORES_MAX],
        sources: [0; CORES_MAX],
    }
}

/// A change of a thread's plan as operations; their answers say whether the thread must be moved.
pub fn change(thread: u32, change: &Change) -> Vec<Operation> {
    let kind = CHANGE + change.kind() as u32;
    let operation = |(core, a)| Operation { kind, thread, core, a, ..Operation::default() };
    change.payload().into_iter().map(operation).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_cpus_beyond_the_programs_room_are_refused() {
        let cores = core_of_cpu(&[63, 2]).unwrap();
        assert_eq!((cores[63], cores[2], cores[0]), (0, 1, 0));
        let error = core_of_cpu(&[0, 64]).unwrap_err();
        assert_eq!(error.to_string(), "CPU 64: schedulers in the kernel serve CPUs 0 to 63");
        assert!(core_of_cpu(&[u32::MAX]).is_err());
    }
}
