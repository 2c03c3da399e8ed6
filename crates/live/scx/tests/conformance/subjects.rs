//! Machines and rules that are compared.

use ampsched_model::{ClassId, CoreId, Draw, MAX_CLASSES};
use ampsched_policy::{
    Allocator, Balance, BalanceWhen, Charge, ClusterInfo, LoadFilter, Order, Prefer, QueueScope,
    Rules, SPEED_ONE, Slice, Steal, StealFrom, Topology, WakePreempt,
};

fn topology(clusters: &[(u8, usize)]) -> Topology {
    let mut next = 0;
    let clusters = clusters.iter().map(|&(class, count)| {
        let cores = (next..next + count).map(CoreId::from).collect();
        next += count;
        ClusterInfo {
            class: ClassId(class),
            cores,
            freqs_mhz: vec![1000],
            design: None,
            energy_model: Vec::new(),
        }
    });
    Topology::from_clusters(clusters.collect())
}

/// Big first and little first, one kind, three kinds, several clusters of a kind, one core.
pub fn topologies() -> Vec<Topology> {
    let all: [&[(u8, usize)]; 7] = [
        &[(1, 2), (0, 2)],
        &[(0, 3), (1, 1)],
        &[(0, 4)],
        &[(0, 2), (1, 2), (2, 1)],
        &[(0, 2), (0, 2), (1, 4)],
        &[(0, 1)],
        &[(1, 4), (0, 6)],
    ];
    all.map(topology).to_vec()
}

fn one_of<T: Clone>(draw: &mut Draw, choices: &[T]) -> T {
    choices[(draw.bits() % choices.len() as u64) as usize].clone()
}

fn random_step(draw: &mut Draw) -> Steal {
    Steal {
        from: one_of(
            draw,
            &[StealFrom::OwnCluster, StealFrom::OtherClusters, StealFrom::RunningOnSlower],
        ),
        who: one_of(draw, &[Prefer::Any, Prefer::Any, Prefer::Big, Prefer::Little]),
        min_idle_ns: one_of(draw, &[0, 0, 5_000_000]),
        except: one_of(draw, &[None, None, Some(Prefer::Big), Some(Prefer::Little)]),
        min_gain: one_of(draw, &[0, 1024, 2048]),
        min_resident_ns: one_of(draw, &[0, 4_000_000]),
        load: LoadFilter::Any,
    }
}

/// Rules drawn from the whole vocabulary but for what needs tracked load.
pub fn random_rules(draw: &mut Draw) -> Rules {
    let orders = [
        Order::Fifo,
        Order::Vruntime,
        Order::Deadline,
        Order::HighestRank { fair_window_ns: 6_000_000 },
        Order::HighestRank { fair_window_ns: u64::MAX },
        Order::Rounds { length_ns: 10_000_000 },
    ];
    let slices = [
        Slice::Fixed(3_000_000),
        Slice::LatencyShare { latency_ns: 18_000_000, min_granularity_ns: 2_250_000 },
        Slice::Request(2_100_000),
    ];
    let preempts = [
        WakePreempt::Never,
        WakePreempt::VruntimeGap { granularity_ns: 1_000_000, divide_by_speed: false },
        WakePreempt::VruntimeGap { granularity_ns: 1_000_000, divide_by_speed: true },
        WakePreempt::EarlierDeadline { run_to_parity: false },
        WakePreempt::EarlierDeadline { run_to_parity: true },
    ];
    let balance = Balance {
        period_ns: 4_000_000,
        rotate_period_ns: one_of(draw, &[4_000_000, 64_000_000]),
        tolerance_percent: one_of(draw, &[0, 25]),
        within_kind: one_of(draw, &[false, true]),
        min_resident_ns: one_of(draw, &[0, 10_000_000]),
        by_preference: one_of(draw, &[false, true]),
    };
    let steps = draw.bits() % 5;
    Rules {
        queues: one_of(
            draw,
            &[QueueScope::PerCore, QueueScope::PerCore, QueueScope::PerCluster, QueueScope::Global],
        ),
        rating: one_of(draw, &[[SPEED_ONE; MAX_CLASSES], [1024, 2048, 3072, 4096]]),
        order: one_of(draw, &orders),
        allocator: one_of(
            draw,
            &[
                Allocator::WakeAffine,
                Allocator::RoundRobinInClass,
                Allocator::LeastLoadedInClass,
                Allocator::LeastLoadedWith,
            ],
        ),
        steal: (0..steps).map(|_| random_step(draw)).collect(),
        kick_idle: one_of(draw, &[false, true]),
        slice: one_of(draw, &slices),
        slice_by_speed: one_of(draw, &[false, true]),
        charge: one_of(draw, &[Charge::Time, Charge::Progress, Charge::Rated]),
        preempt: one_of(draw, &preempts),
        sleeper_credit_ns: one_of(draw, &[0, 9_000_000]),
        fork_debit: one_of(draw, &[false, true]),
        tick_ns: one_of(draw, &[None, Some(4_000_000)]),
        balance: one_of(draw, &[None, Some(balance), Some(balance)]),
        balance_when: BalanceWhen::Always,
    }
}
