//! Rules and topology as the interpreter in C reads them; what it cannot honour is refused by name.

use ampsched_live_driver::kernel_lacks;
use ampsched_model::{CoreId, Ns};
use ampsched_policy::{
    Allocator, Change, Choice, ClusterInfo, LoadTracker, LoadTracking, Needs, Order, PELT_UNIT_NS,
    QueueScope, Rules, STEPS_MAX, Topology, Wire, cost_points,
};

use crate::ScxError;
use crate::layout::{
    self, CHANGE, CORES_MAX, CPUS_MAX, DOMAINS_MAX, NONE, Op, Operation, POINTS_MAX, Set,
};
use crate::table;

/// What a kernel cannot do for a policy, as a sentence for each; none if it can run the policy by itself.
pub fn unsupported(needs: &Needs, rules: &Rules, topology: &Topology) -> Vec<String> {
    let mut refused: Vec<String> =
        kernel_lacks(needs, rules, topology).into_iter().map(|what| format!("it {what}")).collect();
    if topology.core_count() > CORES_MAX {
        refused.push(format!("the machine has more than {CORES_MAX} cores"));
    }
    let clusters = topology.clusters();
    let is_large = |cluster: &ClusterInfo| cluster.energy_model.len() > POINTS_MAX;
    if matches!(rules.allocator, Allocator::ByEnergy { .. })
        && (clusters.len() > DOMAINS_MAX || clusters.iter().any(is_large))
    {
        refused.push(format!(
            "it places threads by energy, and the machine has more than {DOMAINS_MAX} clusters or {POINTS_MAX} \
             frequencies of one"
        ));
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
pub fn core_of_cpu(cpus: &[u32]) -> Result<[u16; CPUS_MAX], ScxError> {
    let mut cores = [0; CPUS_MAX];
    for (core, &cpu) in cpus.iter().enumerate() {
        *cores.get_mut(cpu as usize).ok_or(ScxError::Cpu { cpu })? = core as u16;
    }
    Ok(cores)
}

/// An empty system with these rules, as [`ampsched_policy::Sched::new`] makes one.
pub fn state(
    lowered: layout::Rules,
    rules: &Rules,
    topology: &Topology,
    threads_max: u32,
) -> Box<layout::Sched> {
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
            need_resched: 0,
            interrupted: 0,
            others_run: 0,
            last_generation: 0,
            sibling: topology.sibling(core).map_or(NONE, |other| other.0.into()),
            unanswered: 0,
            others_due_ns: layout::NEVER,
            tracked: layout::TrackedCore::default(),
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
        arriving: 0,
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
    let domains = energies(rules, topology);
    Box::new(layout::Sched {
        rotation_due_ns: rules.balance.map_or(0, |balance| balance.rotate_period_ns),
        rules: lowered,
        core_count: topology.core_count() as u32,
        queue_count,
        thread_count: 0,
        threads_max,
        cursors: [0; 3],
        free_slot: NONE,
        top_class: topology.top_class().0.into(),
        pulls_running: rules.pulls_running_on(topology).into(),
        zero: 0,
        one: 1,
        stuck: 0,
        domain_count: topology.clusters().len() as u32,
        rotations: 0,
        online: topology.cores().collect(),
        operations_at: 0,
        alive_ns: 0,
        records_at: 0,
        records_max: 0,
        records_read: 0,
        records_lost: 0,
        unit_ns: PELT_UNIT_NS,
        marks_at: table::marks_at(threads_max) as u64,
        words: topology.core_count().div_ceil(64) as u32,
        slots: threads_max,
        stranded: NONE,
        has_smt: topology.has_smt().into(),
        tracking: 0,
        knows_energy: domains.is_some().into(),
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
        domains: domains.unwrap_or_default(),
        targets: [0; CORES_MAX],
        sources: [0; CORES_MAX],
    })
}

/// Has cores of an empty system be offline, as `change_core` in `bpf/hotplug.h`.
pub fn take_offline(state: &mut layout::Sched, rules: &Rules, online: Set) {
    let count = state.core_count as usize;
    for index in (0..count).filter(|&core| !online.contains(core)) {
        let core = &state.cores[index];
        let queue = &mut state.queues[core.queue as usize];
        queue.cores -= 1;
        queue.capacity -= u32::from(rules.rating[core.class as usize]);
        state.idle[index] = 0;
    }
    state.online = online;
}

/// The clusters as energy is estimated; none if threads are placed otherwise, or the power of a cluster is not known.
fn energies(rules: &Rules, topology: &Topology) -> Option<[layout::Domain; DOMAINS_MAX]> {
    let mut domains = [layout::Domain::default(); DOMAINS_MAX];
    if !matches!(rules.allocator, Allocator::ByEnergy { .. }) || topology.has_smt() {
        return None;
    }
    for (domain, cluster) in domains.iter_mut().zip(topology.clusters()) {
        let points = cost_points(cluster);
        (domain.capacity, domain.count) = (cluster.capacity(), points.len() as u32);
        for (slot, point) in domain.points.iter_mut().zip(&points) {
            *slot = layout::Point { cost: point.cost, capacity: point.capacity, unused: 0 };
        }
        if points.is_empty() {
            return None;
        }
    }
    Some(domains)
}

/// Has an empty system track load; `unit_ns` is the unit of time in which it does, [`PELT_UNIT_NS`] or as many times
/// longer as the policy's time is dilated.
pub fn track_load(state: &mut layout::Sched, how: LoadTracking, topology: &Topology, unit_ns: Ns) {
    let tracker = LoadTracker::new(how, topology.cores().map(|core| topology.core(core).capacity));
    state.unit_ns = unit_ns;
    state.tracking = match how {
        LoadTracking::ByWork => 1,
        LoadTracking::ByTime => 2,
    };
    for core in topology.cores() {
        let capacity = tracker.capacity(core);
        state.cores[core.index()].tracked = layout::TrackedCore {
            capacity,
            present: capacity,
            requested: capacity,
            ..layout::TrackedCore::default()
        };
    }
}

/// That a core runs at a frequency from now on, as an operation: load tracking by work counts that.
pub fn pace(core: CoreId, mhz: u32, max_mhz: u32) -> Operation {
    let (kind, core) = (Op::Pace as u32, core.0.into());
    Operation { kind, core, a: mhz.into(), b: max_mhz.into(), ..Operation::default() }
}

/// A change of a thread's plan as operations; their answers say whether the thread must be moved.
pub fn change(thread: u32, change: &Change) -> Vec<Operation> {
    let kind = CHANGE + change.kind() as u32;
    if let Change::Affinity(cores) = change {
        let cores: Set = cores.iter().collect();
        return vec![Operation { kind, thread, cores, ..Operation::default() }];
    }
    let operation = |(core, a)| Operation { kind, thread, core, a, ..Operation::default() };
    change.payload().into_iter().map(operation).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_cpus_beyond_the_programs_room_are_refused() {
        let cores = core_of_cpu(&[8191, 2]).unwrap();
        assert_eq!((cores[8191], cores[2], cores[0]), (0, 1, 0));
        let error = core_of_cpu(&[0, 8192]).unwrap_err();
        assert_eq!(error.to_string(), "CPU 8192: schedulers in the kernel serve CPUs 0 to 8191");
        assert!(core_of_cpu(&[u32::MAX]).is_err());
    }
}
