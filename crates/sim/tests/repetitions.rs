//! Applications that start anew when they have ended, with outcomes computed by hand.

mod common;

use std::sync::{Arc, Mutex};

use ampsched_model::ThreadId;
use ampsched_policy::{
    Event, Events, Needs, Plan, Policy, REGISTRY, Rules, Topology, View, build_policy,
};
use ampsched_sim::{Outcome, SimError, simulate};
use common::{Host, ns, workload};

/// A thread that computes for so many ms on the fastest core, bound to a core.
fn hog(ms: f64, core: usize) -> String {
    let us = ms * 1e3;
    format!("[[threads]]\nname='hog'\ncores=[{core}]\nbody=[{{run_us={us},profile='unit'}}]")
}

fn completions(outcome: &Outcome) -> Vec<&[u64]> {
    outcome.apps.iter().map(|app| app.completions_ns.as_slice()).collect()
}

/// Instructions of an application's threads of that name, by repetition.
fn instructions(outcome: &Outcome, app: u16, name: &str) -> Vec<u64> {
    let threads = outcome.threads.iter().filter(|thread| thread.app == app && thread.name == name);
    threads.map(|thread| thread.instructions).collect()
}

#[test]
fn the_short_one_is_repeated_until_the_long_one_has_ended_three_times() {
    let host = Host::symmetric(2).with_repetitions(3);
    let outcome = host.run_mix(&[&hog(10.0, 0), &hog(25.0, 1)], "cfs");
    assert_eq!(outcome.makespan_ns, ns(75.0));
    assert_eq!(completions(&outcome), [[ns(10.0); 7].as_slice(), &[ns(25.0); 3]]);
    // The eighth run of the short one is half over when everything stops.
    let last = &outcome.threads[outcome.threads.len() - 1];
    assert_eq!((last.repetition, last.start_ns, last.end_ns), (7, ns(70.0), ns(75.0)));
    assert_eq!(last.big_ns(), ns(5.0));
    assert_eq!((outcome.apps[0].threads, outcome.apps[1].threads), (8, 3));
    assert_eq!(
        outcome.apps.iter().map(|app| app.turnaround_ns).collect::<Vec<_>>(),
        [ns(10.0), ns(25.0)]
    );
}

#[test]
fn a_little_core_decides_who_is_the_longest() {
    let host = Host::unequal(1, 1, 2.0).with_repetitions(2);
    let outcome = host.run_mix(&[&hog(15.0, 0), &hog(10.0, 1)], "cfs");
    assert_eq!(completions(&outcome), [[ns(15.0); 2], [ns(20.0); 2]]);
    assert_eq!(outcome.makespan_ns, ns(40.0));
}

#[test]
fn static_threading_begins_at_the_same_core_again() {
    let text = "[[threads]]\nname='t'\ncount=2\nbody=[{run_us=1e3,profile='unit'}]";
    let outcome = Host::unequal(1, 2, 2.0).with_repetitions(3).run(text, "static");
    assert_eq!(outcome.apps[0].completions_ns, [ns(2.0); 3]);
    let big: Vec<u64> = outcome.threads.iter().map(|thread| thread.big_ns()).collect();
    assert_eq!(big, [ns(1.0), 0].repeat(3));
}

#[test]
fn the_turnaround_is_the_geometric_mean() {
    let text = "[[threads]]\nname='t'\nbody=[{sleep_us={low=4e3,high=9e3}}]";
    let outcome = Host::symmetric(1).with_repetitions(2).run(text, "cfs");
    let times: Vec<f64> = outcome.apps[0].completions_ns.iter().map(|&ns| ns as f64).collect();
    assert_eq!(times.len(), 2);
    assert_eq!(outcome.apps[0].turnaround_ns, (times[0] * times[1]).sqrt().round() as u64);
    assert_ne!(times[0], times[1]);
}

#[test]
fn one_repetition_keeps_the_company_until_the_slowest_ends() {
    let mix = [&*hog(10.0, 0), &*hog(25.0, 1)];
    let once = Host::symmetric(2).run_mix(&mix, "cfs");
    assert_eq!(completions(&once), [[ns(10.0)], [ns(25.0)]]);
    assert_eq!(once.threads.len(), 2);
    let kept = Host::symmetric(2).with_repetitions(1).run_mix(&mix, "cfs");
    assert_eq!(completions(&kept), [[ns(10.0); 2].as_slice(), &[ns(25.0)]]);
    assert_eq!(kept.threads.len(), 4);
}

#[test]
fn every_repetition_draws_its_own_amounts_and_the_first_those_of_a_single_run() {
    let text = "[pools.p]\ntotal=20\n[[threads]]\nname='w'\ncount=2\nbody=[{compute={mean=1e6,cv=0.5},profile='unit'},\
                {dynamic='p',body=[{compute={mean=1e5,cv=0.5},profile='unit'}]}]";
    let work = |outcome: &Outcome| {
        let mut sums = vec![0; outcome.apps[0].completions_ns.len()];
        for thread in &outcome.threads {
            sums[thread.repetition as usize] += thread.instructions;
        }
        sums
    };
    let once = work(&Host::symmetric(2).run(text, "cfs"));
    let again = work(&Host::symmetric(2).with_repetitions(4).run(text, "cfs"));
    assert_eq!(again[0], once[0]);
    let mut distinct = again.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 4, "{again:?}");
    assert_eq!(again, work(&Host::unequal(1, 2, 3.0).with_repetitions(4).run(text, "rr")));
    assert_ne!(again, work(&Host::symmetric(2).with_seed(2).with_repetitions(4).run(text, "cfs")));
}

#[test]
fn objects_are_as_at_first() {
    // A closed queue, a semaphore that was posted, a used pool, a broken-off barrier would all change it.
    let text = "[queues.q]\ncapacity=2\n[semaphores.s]\n[pools.p]\ntotal=8\n[barriers.b]\n\
        [[threads]]\nname='make'\ncores=[0]\nbody=[{loop=4,body=[{run_us=100,profile='unit'},{push='q'}]},{close='q'},{sem_post='s'},{sem_post='s'},{dynamic='p',body=[{run_us=50,profile='unit'}]},{barrier='b'}]\n\
        [[threads]]\nname='use'\ncores=[1]\nbody=[{each='q',body=[{run_us=300,profile='unit'}]},{sem_wait='s'},{dynamic='p',body=[{run_us=50,profile='unit'}]},{barrier='b'},{fork='child',times=2},{join=true}]\n\
        [[threads]]\nname='child'\ncount=0\ncores=[1]\nbody=[{run_us=100,profile='unit'}]";
    let once = Host::symmetric(2).run(text, "cfs").apps[0].turnaround_ns;
    let outcome = Host::symmetric(2).with_repetitions(3).run(text, "cfs");
    assert_eq!(outcome.apps[0].completions_ns, [once; 3]);
    let names: Vec<&str> = outcome.threads.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(names, ["make", "use", "child.0", "child.1"].repeat(3));
}

#[test]
fn a_request_of_a_stopped_repetition_does_not_free_the_device() {
    // The second request is served from 3 to 6 ms; everything begins anew at 5 ms.
    let text = "duration_ms=5\n[devices.d]\n[[threads]]\nname='t'\ncount=2\nbody=[{loop='forever',body=[{io_us=3e3,device='d'},{run_us=100,profile='unit'}]}]";
    let outcome = Host::symmetric(2).with_repetitions(3).run(text, "cfs");
    assert_eq!(outcome.apps[0].completions_ns, [ns(5.0); 3]);
    assert_eq!(instructions(&outcome, 0, "t.0"), [200_000; 3]);
    assert_eq!(instructions(&outcome, 0, "t.1"), [0; 3]);
}

#[test]
fn what_an_ended_repetition_had_planned_does_not_happen() {
    // Threads that were to start later, and the stop of an application that has ended by itself.
    let late = "duration_ms=2\n[[threads]]\nname='now'\nbody=[{loop='forever',body=[{run_us=100,profile='unit'}]}]\n\
                [[threads]]\nname='late'\nstart_us=3000\nbody=[{run_us=100,profile='unit'}]";
    let early = "duration_ms=2.5\n[[threads]]\nname='t'\nbody=[{run_us=1e3,profile='unit'}]";
    let outcome = Host::symmetric(2).with_repetitions(6).run_mix(&[late, early], "cfs");
    assert_eq!(completions(&outcome), [[ns(2.0); 6].as_slice(), &[ns(1.0); 11]]);
    assert_eq!(outcome.apps[0].threads, 6);
    // Without repetitions, neither.
    let outcome = Host::symmetric(2).run_mix(&[late, early, &hog(5.0, 0)], "cfs");
    assert_eq!(completions(&outcome), [[ns(2.0)], [ns(1.0)], [ns(5.0)]]);
    assert_eq!(outcome.threads.len(), 3);
}

/// Counts the threads that it is told of.
struct Census {
    rules: Box<dyn Policy>,
    seen: Arc<Mutex<Vec<(ThreadId, bool)>>>,
}

impl Policy for Census {
    fn needs(&self) -> Needs {
        Needs { events: Events { lifecycle: true, ..Events::default() }, ..Needs::default() }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.rules.rules(topology)
    }

    fn on_event(&mut self, _view: &View, event: Event, _plan: &mut Plan) {
        match event {
            Event::Added(thread) => self.seen.lock().unwrap().push((thread, true)),
            Event::Exited(thread) => self.seen.lock().unwrap().push((thread, false)),
            _ => {}
        }
    }
}

#[test]
fn policies_hear_of_every_thread_that_ends() {
    let text = "duration_ms=5\n[semaphores.s]\ninitial=2\n[[threads]]\nname='t'\ncount=3\nbody=[{sem_wait='s'},{loop='forever',body=[{run_us=900,profile='unit'}]}]";
    let host = Host::symmetric(1).with_repetitions(2);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let rules = build_policy("cfs", &[]).unwrap();
    let policy = Box::new(Census { rules, seen: seen.clone() });
    let outcome =
        simulate(&host.machine, &workload(&[text]), "census", policy, &host.options).unwrap();
    let told = |added| {
        let seen = seen.lock().unwrap();
        let threads = seen.iter().filter(|&&(_, what)| what == added);
        threads.map(|&(thread, _)| thread.0).collect::<Vec<_>>()
    };
    assert_eq!(outcome.threads.len(), 6);
    assert_eq!((told(true), told(false)), ((0..6).collect(), (0..6).collect()));
}

#[test]
fn time_may_run_out_before_anything_ends() {
    let mut host = Host::symmetric(2).with_repetitions(2);
    host.options.until_ns = Some(ns(25.0));
    let outcome = host.run_mix(&[&hog(10.0, 0), &hog(30.0, 1)], "cfs");
    assert_eq!(completions(&outcome), [[ns(10.0); 2].as_slice(), &[]]);
    assert_eq!(outcome.apps[1].turnaround_ns, ns(25.0));
}

#[test]
fn a_deadlock_is_reported_although_others_go_on() {
    let stuck = "[mutexes.m]\n[mutexes.n]\n\
        [[threads]]\nname='a'\nbody=[{lock='m'},{sleep_us=10},{lock='n'},{unlock='n'},{unlock='m'}]\n\
        [[threads]]\nname='b'\nbody=[{lock='n'},{sleep_us=10},{lock='m'},{unlock='m'},{unlock='n'}]";
    let host = Host::symmetric(2).with_repetitions(2);
    let error = host.try_run_mix(&[&hog(1.0, 0), stuck], "cfs").unwrap_err();
    assert_eq!(
        error.to_string(),
        "deadlock after 1 ms: cycle: p2/a waits for mutex \"p2/n\" held by p2/b; p2/b waits for mutex \"p2/m\" held by p2/a"
    );
    let lost = "[mutexes.m]\n[conditions.c]\n[[threads]]\nname='a'\nbody=[{sleep_us=9},{lock='m'},{wait='c',mutex='m'},{unlock='m'}]\n[[threads]]\nname='b'\nbody=[{sleep_us=5},{signal='c'}]";
    let error = host.try_run_mix(&[lost, &hog(1.0, 0)], "cfs").unwrap_err();
    assert_eq!(
        error.to_string(),
        "deadlock after 1 ms: no thread of p can run: p/a waits for condition \"p/c\""
    );
}

#[test]
fn who_waits_for_time_or_a_device_is_not_stuck() {
    let sleeps = "[[threads]]\nname='t'\nbody=[{sleep_us=5e3}]";
    let reads = "[devices.d]\n[[threads]]\nname='t'\ncount=2\nbody=[{io_us=3e3,device='d'}]";
    let joins = "[barriers.b]\n[[threads]]\nname='early'\nbody=[{barrier='b'}]\n\
                 [[threads]]\nname='late'\nstart_us=8000\nbody=[{barrier='b'}]";
    let helped = "[semaphores.s]\n[[threads]]\nname='waits'\nbody=[{sem_wait='s'}]\n\
                  [[threads]]\nname='helps'\nbody=[{sleep_us=4e3},{sem_post='s'}]";
    for (text, ms) in [(sleeps, 5.0), (reads, 6.0), (joins, 8.0), (helped, 4.0)] {
        let outcome = Host::symmetric(2).with_repetitions(2).run_mix(&[&hog(1.0, 0), text], "cfs");
        assert_eq!(outcome.apps[1].completions_ns, [ns(ms); 2], "{text}");
    }
}

#[test]
fn nothing_cannot_be_repeated() {
    let nothing = "[params]\nz=0\n[[threads]]\nname='t'\nbody=[{compute='z',profile='unit'}]";
    let host = Host::symmetric(2).with_repetitions(2);
    let error = host.try_run_mix(&[&hog(1.0, 0), nothing], "cfs").unwrap_err();
    assert_eq!(error, SimError::NothingToRepeat { app: "p2".into() });
    assert_eq!(
        error.to_string(),
        "application p2 ends without using time, so it cannot be repeated"
    );
}

/// A program is stopped before all of its threads have had a turn, and begins again without end; another one has had
/// more of the cores than they.
#[test]
fn low_new_threads_do_not_starve_those_that_wait() {
    let short =
        "duration_ms=0.32\n[[threads]]\nname='a'\ncount=6\nbody=[{run_us=0.2e3,profile='unit'}]";
    let long = "[[threads]]\nname='b'\ncount=2\nbody=[{run_us=0.1e6,profile='unit'}]";
    let host = Host::symmetric(2).with_repetitions(2);
    let by_deadline = ["eevdf", "linux"];
    let others =
        REGISTRY.iter().map(|policy| policy.name).filter(|name| !by_deadline.contains(name));
    for policy in others {
        let outcome = host.run_mix(&[long, short], policy);
        assert_eq!(outcome.apps[0].completions_ns.len(), 2, "{policy}");
    }
}

/// In the kernel, too: a new thread starts at the mean of the others, with an earlier deadline than theirs.
#[test]
fn low_who_is_outlasted_for_ever_is_named() {
    let short =
        "duration_ms=0.32\n[[threads]]\nname='a'\ncount=5000\nbody=[{run_us=0.2e3,profile='unit'}]";
    let long = "[[threads]]\nname='b'\ncount=2\nbody=[{run_us=0.1e6,profile='unit'}]";
    let host = Host::symmetric(2).with_repetitions(1);
    let error = host.try_run_mix(&[long, short], "eevdf:base_slice_ms=1000").unwrap_err();
    let start = "under eevdf, p2 has ended 200 times within 64 ms, and p is not done: ";
    assert!(error.to_string().starts_with(start), "{error}");
}

#[test]
fn low_who_is_outlasted_until_the_limit_of_time_is_named() {
    let short =
        "duration_ms=0.32\n[[threads]]\nname='a'\ncount=6\nbody=[{run_us=0.2e3,profile='unit'}]";
    let long = "[[threads]]\nname='b'\ncount=2\nbody=[{run_us=0.1e6,profile='unit'}]";
    let host = Host::symmetric(2).with_repetitions(1).with_limit(ns(1000.0));
    let error = host.try_run_mix(&[long, short], "eevdf:base_slice_ms=100").unwrap_err();
    let start = "under eevdf, p2 has ended 3125 times within 1000 ms, and p is not done: ";
    assert!(error.to_string().starts_with(start), "{error}");
}
