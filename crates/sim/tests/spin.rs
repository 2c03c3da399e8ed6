//! Threads that spin before they block.

mod common;

use ampsched_sim::{Outcome, ThreadOutcome};
use common::{Host, ns};
use proptest::prelude::*;

/// Two threads that meet at a barrier after so many ms of work.
fn meeting(spin_us: f64, one_ms: f64, other_ms: f64) -> String {
    let thread = |name: &str, ms: f64| {
        format!(
            "[[threads]]\nname='{name}'\nbody=[{{run_us={},profile='unit'}},{{barrier='b'}}]\n",
            ms * 1000.0
        )
    };
    format!(
        "[barriers.b]\nspin_us={spin_us}\n{}{}",
        thread("one", one_ms),
        thread("other", other_ms)
    )
}

fn thread<'a>(outcome: &'a Outcome, name: &str) -> &'a ThreadOutcome {
    outcome.threads.iter().find(|thread| thread.name == name).expect("there is such a thread")
}

#[test]
fn a_short_wait_never_blocks() {
    let outcome = Host::symmetric(2).run(&meeting(100.0, 10.0, 9.95), "cfs");
    let other = thread(&outcome, "other");
    assert_eq!(outcome.makespan_ns, ns(10.0));
    assert_eq!((other.spin_ns, other.blocked_ns, other.voluntary), (ns(0.05), 0, 0));
    assert_eq!(other.big_ns(), ns(10.0));
    assert_eq!((outcome.counts.wakeups, thread(&outcome, "one").spin_ns), (0, 0));
}

#[test]
fn a_long_wait_blocks_when_the_bound_is_reached() {
    let outcome = Host::symmetric(2).run(&meeting(100.0, 10.0, 5.0), "cfs");
    let other = thread(&outcome, "other");
    assert_eq!((other.spin_ns, other.blocked_ns), (ns(0.1), ns(4.9)));
    assert_eq!((other.big_ns(), other.voluntary, outcome.counts.wakeups), (ns(5.1), 1, 1));
    assert_eq!(outcome.makespan_ns, ns(10.0));
}

#[test]
fn who_comes_at_the_very_end_of_the_bound_is_not_missed() {
    let outcome = Host::symmetric(2).run(&meeting(100.0, 10.0, 9.9), "cfs");
    let other = thread(&outcome, "other");
    assert_eq!(other.spin_ns + other.blocked_ns, ns(0.1));
    assert_eq!(outcome.makespan_ns, ns(10.0));
}

#[test]
fn a_spinner_keeps_the_core_from_others() {
    // One core: the second thread can only come once the first has spun for a turn, or in vain.
    let outcome = Host::symmetric(1).run(&meeting(1000.0, 2.0, 2.0), "cfs");
    let spun: u64 = outcome.threads.iter().map(|thread| thread.spin_ns).sum();
    assert!(spun > 0 && spun <= ns(1.0));
    assert_eq!(outcome.makespan_ns, ns(4.0) + spun);
}

#[test]
fn a_spinner_uses_instructions_and_energy_as_any_thread() {
    let spinning = Host::symmetric(2).run(&meeting(20_000.0, 10.0, 5.0), "cfs");
    let blocking = Host::symmetric(2).run(&meeting(0.0, 10.0, 5.0), "cfs");
    let done = |outcome: &Outcome| thread(outcome, "other").instructions;
    assert!(done(&spinning) > done(&blocking));
    assert_eq!(spinning.cores.iter().map(|core| core.idle_ns).sum::<u64>(), 0);
    assert_eq!(blocking.cores.iter().map(|core| core.idle_ns).sum::<u64>(), ns(5.0));
    assert_eq!(thread(&blocking, "other").spin_ns, 0);
}

/// Threads that hold a mutex for 1 ms each, coming 0.1 ms after each other.
fn holders(spin_us: f64, threads: usize) -> String {
    let thread = |number: usize| {
        format!(
            "[[threads]]\nname='t{number}'\nstart_us={}\n\
             body=[{{lock='m'}},{{run_us=1000,profile='unit'}},{{unlock='m'}}]\n",
            number * 100
        )
    };
    let threads: String = (0..threads).map(thread).collect();
    format!("[mutexes.m]\nspin_us={spin_us}\n{threads}")
}

#[test]
fn a_mutex_goes_to_the_spinners_in_turn() {
    let outcome = Host::symmetric(3).run(&holders(5000.0, 3), "cfs");
    let ends: Vec<u64> = outcome.threads.iter().map(|thread| thread.end_ns).collect();
    assert_eq!(ends, [ns(1.0), ns(2.0), ns(3.0)]);
    let spun: Vec<u64> = outcome.threads.iter().map(|thread| thread.spin_ns).collect();
    assert_eq!(spun, [0, ns(0.9), ns(1.8)]);
    assert_eq!(outcome.counts.wakeups, 0);
}

#[test]
fn who_spins_comes_before_who_has_blocked() {
    // The second blocks after 0.2 ms, the third comes at 0.9 ms and still spins when the mutex is free.
    let text = holders(200.0, 2)
        + "[[threads]]\nname='t2'\nstart_us=900\n\
           body=[{lock='m'},{run_us=1000,profile='unit'},{unlock='m'}]\n";
    let outcome = Host::symmetric(3).run(&text, "cfs");
    let ends: Vec<u64> = outcome.threads.iter().map(|thread| thread.end_ns).collect();
    assert_eq!(ends, [ns(1.0), ns(3.0), ns(2.0)]);
}

#[test]
fn workers_of_a_region_spin_between_tasks() {
    let text = |spin_us: f64| {
        format!(
            "[regions.r]\ngraph='fluidanimate:frames=2'\nwork_us=1000\nspin_us={spin_us}\n\
             [[threads]]\nname='w'\ncount=2\nbody=[{{tasks='r',profile='unit'}}]\n"
        )
    };
    let spinning = Host::symmetric(2).run(&text(1000.0), "cfs");
    let blocking = Host::symmetric(2).run(&text(0.0), "cfs");
    assert_eq!(spinning.makespan_ns, blocking.makespan_ns);
    let busy = |outcome: &Outcome| outcome.cores.iter().map(|core| core.busy_ns).sum::<u64>();
    assert_eq!(busy(&spinning), 2 * spinning.makespan_ns);
    let spun: u64 = spinning.threads.iter().map(|thread| thread.spin_ns).sum();
    assert_eq!(busy(&spinning) - spun, busy(&blocking));
    assert!(spun > 0);
}

#[test]
fn a_condition_and_a_queue_let_threads_spin() {
    let text = "[mutexes.m]\n[conditions.c]\nspin_us=10000\n[queues.q]\ncapacity=4\nspin_us=10000\n\
        [[threads]]\nname='waiter'\nbody=[{lock='m'},{wait='c',mutex='m'},{unlock='m'},\
        {each='q',body=[{run_us=10,profile='unit'}]}]\n\
        [[threads]]\nname='giver'\nbody=[{run_us=1000,profile='unit'},{lock='m'},{signal='c'},{unlock='m'},\
        {run_us=1000,profile='unit'},{push='q'},{close='q'}]\n";
    let outcome = Host::symmetric(2).run(text, "cfs");
    let waiter = thread(&outcome, "waiter");
    assert_eq!((waiter.spin_ns, waiter.blocked_ns), (ns(2.0), 0));
    assert_eq!(outcome.makespan_ns, ns(2.0) + 10_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever happens to spinners, nothing is lost: `Host` checks the engine's invariants after every event.
    #[test]
    fn nothing_is_lost(
        spins_us in prop::collection::vec(prop_oneof![Just(0.0), 1.0..3000.0f64], 4),
        threads in 1usize..7, cores in 1usize..4, rounds in 1u32..12, work_us in 2.0..2000.0f64,
        policy in prop::sample::select(vec!["cfs", "eevdf", "rr", "colab", "linux"]),
        seed in 0u64..1000,
    ) {
        let [m, b, s, q] = spins_us.as_slice() else { unreachable!("four were asked for") };
        let text = format!(
            "[mutexes.m]\nspin_us={m}\n[barriers.b]\nspin_us={b}\n[semaphores.s]\ninitial=1\nspin_us={s}\n\
             [queues.q]\ncapacity=2\nspin_us={q}\n\
             [[threads]]\nname='t'\ncount={threads}\nbody=[{{loop={rounds},body=[\
             {{run_us={{low=1,high={work_us}}},profile='unit'}},\
             {{lock='m'}},{{run_us=5,profile='unit'}},{{unlock='m'}},{{sem_wait='s'}},{{sleep_us=3}},\
             {{sem_post='s'}},{{push='q'}},{{barrier='b'}}]}},{{close='q'}}]\n\
             [[threads]]\nname='sink'\ncount=2\nbody=[{{each='q',body=[{{run_us=20,profile='unit'}}]}}]\n"
        );
        let host = Host::unequal(1, cores, 2.0).with_seed(seed);
        let outcome = host.run(&text, policy);
        let all: u64 = outcome.cores.iter().map(|core| core.busy_ns).sum();
        let spun: u64 = outcome.threads.iter().map(|thread| thread.spin_ns).sum();
        prop_assert!(spun <= all);
        for thread in &outcome.threads {
            prop_assert!(thread.spin_ns <= thread.run_ns());
        }
    }
}
