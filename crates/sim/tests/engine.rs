//! The engine on small workloads whose outcome can be computed by hand.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ampsched_sim::{AloneFacts, Interrupt, SimError, offline_facts};
use common::{Host, ns, workload};

#[test]
fn two_hogs_on_two_cores_take_as_long_as_alone() {
    let outcome = Host::symmetric(2)
        .run("[[threads]]\nname='hog'\ncount=2\nbody=[{run_us=10e3,profile='unit'}]", "cfs");
    assert_eq!(outcome.makespan_ns, ns(10.0));
    assert_eq!(outcome.counts.dispatches, 2);
}

#[test]
fn equal_hogs_share_a_core_in_slices_of_the_latency() {
    let text = "[[threads]]\nname='hog'\ncount=2\nbody=[{run_us=30e3,profile='unit'}]";
    let outcome = Host::symmetric(1).run(text, "cfs");
    // One core: latency 6 ms, two threads, 3 ms each; the second ends with the last slice.
    assert_eq!(outcome.makespan_ns, ns(60.0));
    assert_eq!(outcome.counts.switches, 20);
}

#[test]
fn weights_share_time() {
    let text = "[[threads]]\nname='a'\nbody=[{run_us=500e3,profile='unit'}]\n\
                [[threads]]\nname='b'\nnice=5\nbody=[{run_us=500e3,profile='unit'}]";
    let outcome = Host::symmetric(1).run(text, "cfs");
    // a runs at 1024 / (1024 + 335) until it has had 500 ms.
    let expected = 500.0 * (1024.0 + 335.0) / 1024.0;
    assert!(
        (outcome.threads[0].end_ns as f64 / 1e6 - expected).abs() < 8.0,
        "{}",
        outcome.threads[0].end_ns
    );
    assert_eq!(outcome.makespan_ns, ns(1000.0));
}

#[test]
fn three_hogs_take_turns_at_having_a_core_alone() {
    let text = "[[threads]]\nname='hog'\ncount=3\nbody=[{run_us=2e6,profile='unit'}]";
    let outcome = Host::symmetric(2).run(text, "cfs");
    // Two cores, three times 2 s: all get 2/3 of a core until the first ends, and nobody long before.
    for thread in &outcome.threads {
        assert!(thread.end_ns > ns(2700.0), "{} ended at {} ns", thread.name, thread.end_ns);
    }
}

#[test]
fn what_does_not_divide_evenly_goes_round_all_cores() {
    for (cores, hogs) in [(4, 5), (8, 9), (4, 7)] {
        let text =
            format!("[[threads]]\nname='hog'\ncount={hogs}\nbody=[{{run_us=60e6,profile='unit'}}]");
        let mut host = Host::symmetric(cores);
        host.options.until_ns = Some(ns(30_000.0));
        let outcome = host.run(&text, "cfs");
        let mean = 30e9 * cores as f64 / f64::from(hogs);
        for thread in &outcome.threads {
            let share = thread.big_ns() as f64 / mean;
            assert!(
                (share - 1.0).abs() < 0.12,
                "{hogs} on {cores}: {} has {share:.2}",
                thread.name
            );
        }
    }
}

#[test]
fn a_little_core_takes_longer_by_the_ratio_of_speeds() {
    let text = "[[threads]]\nname='hog'\ncount=2\nbody=[{compute=8e6,profile='unit'}]";
    let outcome = Host::unequal(1, 1, 2.0).run(text, "static");
    let ends: Vec<u64> = outcome.threads.iter().map(|thread| thread.end_ns).collect();
    assert!((ends[1] as f64 / ends[0] as f64 - 2.0).abs() < 1e-6, "{ends:?}");
}

#[test]
fn work_is_the_same_on_a_machine_without_big_cores() {
    let text = "[profiles.mine]\nlike='unit'\nratio=3\n[[threads]]\nname='hog'\nbody=[{run_us=10e3,profile='mine'}]";
    let mut host = Host::unequal(1, 1, 2.0);
    let whole = host.run(text, "static");
    assert_eq!(whole.makespan_ns, ns(10.0));
    host.machine = host.machine.only_little();
    let slow = host.run(text, "static");
    assert_eq!(slow.makespan_ns, ns(30.0));
    assert_eq!(slow.threads[0].instructions, whole.threads[0].instructions);
}

#[test]
fn speedups_measured_beforehand_honour_a_stated_ratio() {
    let text = "[profiles.mine]\nlike='unit'\nratio=3\n[[threads]]\nname='hog'\nbody=[{run_us=10e3,profile='mine'}]";
    let host = Host::unequal(2, 2, 2.0);
    let facts = offline_facts(&host.machine, &workload(&[text]), &host.options).unwrap();
    assert!((facts[0].speedup - 3.0).abs() < 1e-6, "{facts:?}");
    assert_eq!(facts[0].work_ns, 10e6);
}

#[test]
fn a_stated_energy_ratio_takes_the_place_of_the_models() {
    let text = "energy_ratio=1.8\n[[threads]]\nname='hog'\nbody=[{run_us=10e3,profile='unit'}]";
    let host = Host::unequal(2, 2, 2.0);
    let facts = offline_facts(&host.machine, &workload(&[text]), &host.options).unwrap();
    assert_eq!(facts[0].energy_ratio, Some(1.8));
}

#[test]
fn simulations_that_share_facts_run_applications_alone_once() {
    let text = "[[threads]]\nname='hog'\ncount=3\nbody=[{run_us=500,profile='unit'}]";
    let mut host = Host::unequal(2, 2, 2.0);
    let expected = host.run(text, "hfee");
    let begun = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&begun);
    host.options.interrupt = Interrupt::new(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        false
    });
    let run = |host: &Host, policy| {
        begun.store(0, Ordering::Relaxed);
        let outcome = host.run(text, policy);
        (outcome, begun.load(Ordering::Relaxed))
    };
    assert_eq!(run(&host, "hfee").1, 3, "it, and alone on both kinds of core");
    host.options.alone = AloneFacts::shared();
    let (first, second, other) =
        (run(&host, "hfee"), run(&host, "hfee"), run(&host, "abreast:lengths=1"));
    assert_eq!((first.1, second.1, other.1), (3, 1, 1));
    assert_eq!((&first.0, &second.0), (&expected, &expected));
}

#[test]
fn a_convoy_blames_the_holder() {
    let text = "[mutexes.m]\n[[threads]]\nname='holder'\nbody=[{lock='m'},{run_us=5e3,profile='unit'},{unlock='m'}]\n\
                [[threads]]\nname='waiter'\nbody=[{run_us=1e3,profile='unit'},{lock='m'},{run_us=1e3,profile='unit'},{unlock='m'}]";
    let outcome = Host::symmetric(2).run(text, "cfs");
    assert_eq!(outcome.makespan_ns, ns(6.0));
    assert_eq!(outcome.threads[0].blame_ns, ns(4.0));
    assert_eq!(outcome.threads[1].blocked_ns, ns(4.0));
    assert_eq!(outcome.threads[1].blame_ns, 0);
}

#[test]
fn the_last_at_a_barrier_is_blamed_for_every_wait() {
    let text = "[barriers.b]\n[[threads]]\nname='fast'\ncount=2\nbody=[{run_us=1e3,profile='unit'},{barrier='b'}]\n\
                [[threads]]\nname='slow'\nbody=[{run_us=4e3,profile='unit'},{barrier='b'}]";
    let outcome = Host::symmetric(3).run(text, "cfs");
    assert_eq!(outcome.threads[2].blame_ns, 2 * ns(3.0));
    assert_eq!(outcome.makespan_ns, ns(4.0));
}

#[test]
fn a_pipeline_is_bounded_by_its_slowest_stage() {
    let text = "[queues.q]\ncapacity=2\n[[threads]]\nname='make'\nbody=[{loop=10,body=[{run_us=1e3,profile='unit'},{push='q'}]},{close='q'}]\n\
                [[threads]]\nname='use'\nbody=[{each='q',body=[{run_us=3e3,profile='unit'}]}]";
    let outcome = Host::symmetric(2).run(text, "cfs");
    assert_eq!(outcome.makespan_ns, ns(31.0));
}

#[test]
fn a_slow_core_takes_fewer_iterations_of_a_pool() {
    let text = "[pools.p]\ntotal=90\n[[threads]]\nname='w'\ncount=2\nbody=[{dynamic='p',body=[{compute=1e6,profile='unit'}]}]";
    let outcome = Host::unequal(1, 1, 2.0).run(text, "static");
    let instructions: Vec<u64> = outcome.threads.iter().map(|thread| thread.instructions).collect();
    assert_eq!(instructions, [60_000_000, 30_000_000]);
}

#[test]
fn work_belongs_to_items_not_threads() {
    let text = "[pools.p]\ntotal=200\n[[threads]]\nname='w'\ncount=4\nbody=[{loop=3,body=[{dynamic='p',body=[{compute={mean=1e6,cv=0.9},profile='unit'}]}]}]";
    let total = |policy| -> u64 {
        let outcome = Host::unequal(2, 2, 3.0).run(text, policy);
        outcome.threads.iter().map(|thread| thread.instructions).sum()
    };
    assert_eq!(total("cfs"), total("static"));
    assert_eq!(total("cfs"), total("rr"));
}

#[test]
fn conditions_semaphores_sleep_io_fork_join() {
    let text = "[mutexes.m]\n[conditions.c]\n[semaphores.s]\n[devices.d]\n\
        [[threads]]\nname='main'\nbody=[{fork='child',times=2},{sleep_us=1000},{lock='m'},{broadcast='c'},{unlock='m'},{sem_wait='s'},{sem_wait='s'},{join=true}]\n\
        [[threads]]\nname='child'\ncount=0\nbody=[{lock='m'},{wait='c',mutex='m'},{unlock='m'},{io_us=2000,device='d'},{sem_post='s'}]";
    let outcome = Host::symmetric(2).run(text, "cfs");
    // Woken at 1 ms, the device serves one after the other.
    assert_eq!(outcome.makespan_ns, ns(5.0));
    assert_eq!(outcome.apps[0].threads, 3);
}

#[test]
fn deadlock_names_the_cycle() {
    let text = "[mutexes.m]\n[mutexes.n]\n\
        [[threads]]\nname='a'\nbody=[{lock='m'},{sleep_us=10},{lock='n'},{unlock='n'},{unlock='m'}]\n\
        [[threads]]\nname='b'\nbody=[{lock='n'},{sleep_us=10},{lock='m'},{unlock='m'},{unlock='n'}]";
    let error = Host::symmetric(2).try_run(text, "cfs").unwrap_err();
    let SimError::Deadlock { report, .. } = &error else { panic!("{error}") };
    assert_eq!(
        report,
        "cycle: p/a waits for mutex \"p/n\" held by p/b; p/b waits for mutex \"p/m\" held by p/a"
    );
}

#[test]
fn lost_signal_is_a_deadlock_that_names_the_condition() {
    let text = "[mutexes.m]\n[conditions.c]\n[[threads]]\nname='a'\nbody=[{sleep_us=9},{lock='m'},{wait='c',mutex='m'},{unlock='m'}]\n[[threads]]\nname='b'\nbody=[{sleep_us=5},{signal='c'}]";
    let error = Host::symmetric(1).try_run(text, "cfs").unwrap_err();
    assert_eq!(
        error.to_string(),
        "deadlock after 0 ms: no thread can run: p/a waits for condition \"p/c\""
    );
}

#[test]
fn endless_loop_without_time_is_reported() {
    let text = "duration_ms=1\n[params]\nz=0\n[[threads]]\nname='x'\nbody=[{loop='forever',body=[{compute='z',profile='unit'}]}]";
    let error = Host::symmetric(1).try_run(text, "rr").unwrap_err();
    assert!(matches!(error, SimError::NoProgress { .. }), "{error}");
}

#[test]
fn threads_that_only_yield_are_reported() {
    let text = "duration_ms=1\n[params]\nz=0\n[[threads]]\nname='x'\ncount=2\nbody=[{loop='forever',body=[{compute='z',profile='unit'},{yield=true}]}]";
    let error = Host::symmetric(1).try_run(text, "rr").unwrap_err();
    assert!(matches!(error, SimError::NoProgress { .. }), "{error}");
}

#[test]
fn same_seed_same_bytes_other_seed_other_run() {
    let text = "[[threads]]\nname='w'\ncount=5\nbody=[{loop=50,body=[{compute={mean=1e6,cv=0.5},profile='unit'},{sleep_us={mean=300,dist='exponential'}}]}]";
    let run = |seed| Host::unequal(2, 2, 2.5).with_seed(seed).run(text, "cfs");
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn who_waits_for_ever_is_ended_by_its_program_s_duration() {
    let text = "duration_ms=50\n[semaphores.s]\n[semaphores.t]\n\
                [[threads]]\nname='a'\nbody=[{sem_wait='s'},{sem_post='t'}]\n\
                [[threads]]\nname='b'\nbody=[{sem_wait='t'},{sem_post='s'}]";
    assert_eq!(Host::symmetric(1).run(text, "cfs").makespan_ns, ns(50.0));
}

#[test]
fn a_duration_that_is_longer_than_the_program_changes_nothing() {
    let text = "duration_ms=50\n[[threads]]\nname='short'\nbody=[{run_us=5e3,profile='unit'}]";
    let outcome = Host::symmetric(1).run(text, "cfs");
    assert_eq!((outcome.makespan_ns, outcome.apps[0].turnaround_ns), (ns(5.0), ns(5.0)));
}

#[test]
fn overhead_is_charged_per_decision_and_per_epoch() {
    use ampsched_sim::Overhead;
    let text = "[[threads]]\nname='a'\ncount=2\nbody=[{run_us=95e3,profile='unit'}]";
    let charged = |overhead| {
        let mut host = Host::unequal(1, 1, 2.0);
        host.options.overhead = overhead;
        let outcome = host.run(text, "hsp");
        let overhead_ns: Vec<u64> = outcome.cores.iter().map(|core| core.overhead_ns).collect();
        (overhead_ns, outcome.counts.dispatches)
    };
    let (none, _) = charged(Overhead::default());
    assert_eq!(none, [0, 0]);
    let (decisions, dispatches) = charged(Overhead { decision_ns: 1000, epoch_ns: 0 });
    assert_eq!(decisions.iter().sum::<u64>(), 1000 * dispatches);
    // The first thread takes 95 ms on the big core, the second moves there then and takes as long as
    // half of its work does; an epoch every 10 ms, on the first core alone.
    let (epochs, _) = charged(Overhead { decision_ns: 0, epoch_ns: 1000 });
    assert_eq!(epochs, [14_000, 0]);
}

/// CFS; its first thread is held back from 10 to 25 ms.
struct HoldsFirst(Box<dyn ampsched_policy::Policy>);

impl ampsched_policy::Policy for HoldsFirst {
    fn needs(&self) -> ampsched_policy::Needs {
        ampsched_policy::Needs { epoch_ns: Some(5_000_000), holds: true, ..self.0.needs() }
    }

    fn rules(&self, topology: &ampsched_policy::Topology) -> ampsched_policy::Rules {
        self.0.rules(topology)
    }

    fn epoch(&mut self, view: &ampsched_policy::View, plan: &mut ampsched_policy::Plan) {
        let held = (10_000_000..25_000_000).contains(&view.now_ns());
        plan.set(ampsched_model::ThreadId(0), ampsched_policy::Change::Hold(held));
    }
}

fn held(host: &Host, text: &str) -> ampsched_sim::Outcome {
    let policy = HoldsFirst(ampsched_policy::build_policy("cfs", &[]).unwrap());
    let workload = common::workload(&[text]);
    ampsched_sim::simulate(&host.machine, &workload, "holds", Box::new(policy), &host.options)
        .unwrap()
}

#[test]
fn a_held_thread_does_not_run_and_its_time_counts_as_waiting() {
    let text = "[[threads]]\nname='a'\ncount=2\nbody=[{run_us=20e3,profile='unit'}]";
    let outcome = held(&Host::symmetric(2), text);
    let ends: Vec<u64> = outcome.threads.iter().map(|thread| thread.end_ns).collect();
    assert_eq!(ends, [ns(35.0), ns(20.0)]);
    assert_eq!(outcome.threads[0].ready_ns, ns(15.0));
    // Alone and held, it is no deadlock.
    let alone = "[[threads]]\nname='a'\nbody=[{run_us=12e3,profile='unit'}]";
    assert_eq!(held(&Host::symmetric(1), alone).makespan_ns, ns(27.0));
}

#[test]
fn a_thread_that_wakes_while_it_is_held_waits_on() {
    let text = "[[threads]]\nname='a'\nbody=[{run_us=8e3,profile='unit'},{sleep_us=6e3},{run_us=1e3,profile='unit'}]";
    let outcome = held(&Host::symmetric(1), text);
    assert_eq!(outcome.makespan_ns, ns(26.0));
    assert_eq!((outcome.threads[0].blocked_ns, outcome.threads[0].ready_ns), (ns(6.0), ns(11.0)));
}
