//! Loops, tasks, panics, cancellation, nesting, recordings.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use ampsched_task::{Draft, Graph};
use ampsched_taskrt::{Config, Cores, Datum, Error, Runtime};

/// Workers of a list of cores, not pinned: there may be fewer cores.
fn team(cores: &str, policy: &str) -> Runtime {
    let cores = Cores::parse(cores).unwrap();
    Runtime::new(&Config { policy: policy.to_owned(), pin: false, ..Config::new(cores) }).unwrap()
}

fn three() -> Runtime {
    team("big:3=0;little=1-2", "fifo")
}

fn message_of(payload: Box<dyn std::any::Any + Send>) -> String {
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload.downcast_ref::<&str>().unwrap().to_string(),
    }
}

fn panic_of(body: impl FnOnce()) -> String {
    message_of(catch_unwind(AssertUnwindSafe(body)).expect_err("a panic"))
}

#[test]
fn every_iteration_is_executed_once() {
    let runtime = three();
    for length in [0, 1, 2, 3, 100, 4096, 100_003] {
        let counts: Vec<AtomicUsize> = (0..length).map(|_| AtomicUsize::new(0)).collect();
        // Twice: the second time shares follow what was measured.
        for round in 1..=2 {
            runtime.for_each(0..length, |range| {
                for iteration in range {
                    counts[iteration].fetch_add(1, Ordering::Relaxed);
                }
            });
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == round), "{length}");
        }
    }
}

#[test]
fn loops_may_have_more_iterations_than_32_bits_count() {
    let runtime = three();
    let length = 5_usize << 33;
    let start = 7;
    let sum =
        runtime.map_reduce(start..start + length, || 0_usize, |part| part.len(), |a, b| a + b);
    assert_eq!(sum, length);
}

#[test]
fn elements_of_a_slice_are_changed_in_parts() {
    let runtime = three();
    let mut squares = vec![0_u64; 10_000];
    runtime.for_each_mut(&mut squares, |first, part| {
        for (offset, square) in part.iter_mut().enumerate() {
            *square += ((first + offset) as u64).pow(2);
        }
    });
    assert!(squares.iter().enumerate().all(|(place, &square)| square == (place as u64).pow(2)));
}

#[test]
fn results_are_combined() {
    let sum = three().map_reduce(1..1001, || 0, |part| part.sum::<usize>(), |a, b| a + b);
    assert_eq!(sum, 500_500);
    assert_eq!(three().map_reduce(5..5, || 42, |_| 0, |a, b| a + b), 42);
}

#[test]
fn a_panic_in_a_loop_reaches_its_caller_and_the_workers_go_on() {
    let runtime = three();
    let text = panic_of(|| {
        runtime.for_each(0..1000, |range| {
            if range.contains(&500) {
                panic!("iteration 500");
            }
        });
    });
    assert_eq!(text, "iteration 500");
    every_worker_works(&runtime);
}

/// One task per worker, none of which ends before all have begun.
fn every_worker_works(runtime: &Runtime) {
    let begun = AtomicUsize::new(0);
    let workers = runtime.workers().len();
    runtime
        .scope(|scope| {
            for _ in 0..workers {
                scope.task("meet").run(|| {
                    begun.fetch_add(1, Ordering::Relaxed);
                    while begun.load(Ordering::Relaxed) < workers {
                        std::thread::yield_now();
                    }
                });
            }
        })
        .unwrap();
}

#[test]
fn a_loop_can_be_ended_early() {
    let runtime = three();
    let result = runtime.try_for_each(0..1_000_000_000, |range| {
        if range.contains(&10) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let Err(Error::Cancelled { done, all: 1_000_000_000, unit: "iterations" }) = result else {
        panic!("{result:?}")
    };
    assert!(done >= 1);
    assert!(runtime.try_for_each(0..10, |_| ControlFlow::Continue(())).is_ok());
}

#[test]
fn a_panic_in_a_task_ends_the_scope_and_drops_what_was_not_executed() {
    let runtime = three();
    let dropped = AtomicUsize::new(0);
    struct Counted<'a>(&'a AtomicUsize);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let text = panic_of(|| {
        let _ = runtime.graph(|scope| {
            let first = scope.task("fail").run(|| panic!("task failed"));
            for _ in 0..100 {
                let counted = Counted(&dropped);
                scope.task("after").after(first).run(move || {
                    let _counted = &counted;
                    unreachable!("its predecessor has failed");
                });
            }
        });
    });
    assert_eq!(text, "task failed");
    assert_eq!(dropped.load(Ordering::Relaxed), 100, "all are dropped before the call returns");
    every_worker_works(&runtime);
}

#[test]
fn a_panic_while_tasks_are_created_waits_for_those_that_run() {
    let runtime = three();
    let (has_begun, has_ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let text = panic_of(|| {
        let _ = runtime.scope(|scope| {
            scope.task("long").run(|| {
                has_begun.store(true, Ordering::Relaxed);
                while !scope.is_cancelled() {
                    std::thread::yield_now();
                }
                has_ended.store(true, Ordering::Relaxed);
            });
            while !has_begun.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            panic!("in between");
        });
    });
    assert_eq!(text, "in between");
    assert!(has_ended.load(Ordering::Relaxed));
}

#[test]
fn a_scope_can_be_cancelled_from_a_task() {
    let runtime = team("core=0", "fifo");
    let executed = AtomicUsize::new(0);
    let result = runtime.graph(|scope| {
        for number in 0..10 {
            let executed = &executed;
            scope.task("work").run(move || {
                executed.fetch_add(1, Ordering::Relaxed);
                if number == 3 {
                    scope.cancel();
                }
            });
        }
    });
    assert_eq!(result.unwrap_err().to_string(), "cancelled after 3 of 10 tasks");
    assert_eq!(executed.load(Ordering::Relaxed), 4);
}

#[test]
fn tasks_may_create_tasks_and_return_results() {
    let runtime = three();
    let sum = AtomicUsize::new(0);
    let made = runtime.scope(|scope| {
        for _ in 0..10 {
            scope.task("outer").run(|| {
                for _ in 0..10 {
                    scope.task("inner").run(|| {
                        sum.fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
        }
        "made"
    });
    assert_eq!((made.unwrap(), sum.into_inner()), ("made", 100));
}

#[test]
fn loops_and_scopes_may_be_nested_under_policies_that_choose_the_worker() {
    for policy in ["fifo", "cats", "heft", "static", "loop-dynamic", "work-stealing"] {
        let runtime = team("big:2=0;little=1-3", policy);
        let sum = AtomicUsize::new(0);
        runtime
            .graph(|outer| {
                for _ in 0..8 {
                    outer.task("outer").run(|| {
                        runtime.for_each(0..5, |range| {
                            for _ in range {
                                let inner = runtime.graph(|scope| {
                                    let first = scope.task("inner").run(|| ());
                                    scope.task("inner").after(first).run(|| {
                                        sum.fetch_add(1, Ordering::Relaxed);
                                    });
                                });
                                inner.unwrap();
                            }
                        });
                    });
                }
            })
            .unwrap();
        assert_eq!(sum.into_inner(), 40, "{policy}");
    }
}

#[test]
fn threads_that_are_no_workers_share_a_runtime() {
    let runtime = three();
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                for _ in 0..20 {
                    let sum = runtime.map_reduce(0..1000, || 0, |part| part.len(), |a, b| a + b);
                    assert_eq!(sum, 1000);
                }
            });
        }
    });
}

#[test]
fn a_missing_dependence_is_reported_with_the_task() {
    let runtime = team("core=0-1", "fifo");
    let datum = Datum::new(0);
    let (holds, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let text = panic_of(|| {
        let _ = runtime.scope(|scope| {
            scope.task("holder").writes(&datum).run(|| {
                let _guard = datum.write();
                holds.store(true, Ordering::Relaxed);
                while !done.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            });
            scope.task("thief").run(|| {
                while !holds.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                let found = catch_unwind(AssertUnwindSafe(|| *datum.read()));
                done.store(true, Ordering::Relaxed);
                std::panic::resume_unwind(found.unwrap_err());
            });
        });
    });
    assert_eq!(
        text,
        "task 1 reads a datum that another task is using: a dependence is missing (state it with `reads`)"
    );
}

#[test]
fn errors_say_what_to_do() {
    let error_of = |config: &Config| Runtime::new(config).err().expect("an error").to_string();
    let one = Config::new(Cores::parse("core=0").unwrap());
    let unknown = Config { policy: "hefft".into(), ..one.clone() };
    assert_eq!(error_of(&unknown), "unknown task policy \"hefft\" (did you mean \"heft\"?)");
    let absent = Config::new(Cores::parse("core=1023").unwrap());
    let text = error_of(&absent);
    assert!(text.starts_with("pinning a worker to CPU 1023: "), "{text}");
    assert!(
        text.ends_with(
            "(there is no such CPU, or this process may not use it; see `taskset -cp $$`)"
        )
    );
    let off_line = team("core=0", "heft");
    assert_eq!(
        off_line.scope(|_| ()).unwrap_err().to_string(),
        "task policy heft needs the whole graph (create the tasks in `graph`, not in `scope`)"
    );
    let mut draft = Draft::new("costs.dot");
    let task = draft.task("a", "", 1.0, 0).unwrap();
    draft.costs(task, vec![1.0, 2.0]).unwrap();
    let error = off_line.run_graph(&draft.finish().unwrap(), |_| ()).unwrap_err().to_string();
    assert!(
        error.starts_with("costs: states costs for 2 classes of workers, 1 are given"),
        "{error}"
    );
}

#[test]
fn a_negative_cost_and_an_unknown_predecessor_are_refused() {
    let runtime = team("core=0", "fifo");
    let text = panic_of(|| {
        let _ = runtime.scope(|scope| scope.task("gemm").cost_s(-1.0).run(|| ()));
    });
    assert_eq!(text, "cost -1 s of a \"gemm\" task is not a time");
    let text = panic_of(|| {
        let other = runtime.scope(|scope| scope.task("a").run(|| ())).unwrap();
        let _ = runtime.scope(|scope| scope.task("b").after(other).run(|| ()));
    });
    assert_eq!(text, "a \"b\" task waits for task 0, but its scope has 0 tasks so far");
}

#[test]
fn measured_speeds_become_those_of_the_classes() {
    let runtime = team("big:100=0;little=1", "fifo");
    let speeds = runtime.measure_speeds(std::time::Duration::from_millis(5)).unwrap();
    let workers = runtime.workers();
    assert_eq!(speeds.len(), 2);
    assert_eq!(speeds.iter().copied().fold(f64::INFINITY, f64::min), 1.0);
    for (class, speed) in workers.classes().iter().zip(speeds) {
        assert_eq!(class.speed, speed);
    }
}

#[test]
fn executions_are_recorded_with_their_dependences() {
    let cores = Cores::parse("big:2=0;little=1").unwrap();
    let config = Config { pin: false, record: true, ..Config::new(cores) };
    let runtime = Runtime::new(&config).unwrap();
    assert!(runtime.take_recording().unwrap().is_none());
    let datum = Datum::new(0);
    runtime
        .scope(|scope| {
            for _ in 0..3 {
                scope.task("add").name("sum").writes(&datum).run(|| *datum.write() += 1);
            }
        })
        .unwrap();
    runtime.for_each(0..10, |_| ());
    let graph = Graph::from_work("two", &[(1.0, &[]), (1.0, &[0])]).unwrap();
    runtime.run_graph(&graph, |_| ()).unwrap();
    let recording = runtime.take_recording().unwrap().unwrap();
    let graph = &recording.graph;
    let tasks: Vec<(&str, &str)> =
        graph.tasks().map(|task| (graph.task_name(task), graph.kind(task))).collect();
    assert_eq!(tasks[..3], [("sum", "add"), ("sum (2)", "add"), ("sum (3)", "add")]);
    assert!(tasks[3].1.starts_with("loop crates/taskrt/tests/runtime.rs:"), "{tasks:?}");
    let [.., (first, _), (second, _)] = tasks[..] else { panic!("{tasks:?}") };
    assert_eq!((first, second), ("0", "1"));
    assert_eq!(graph.link_count(), 3);
    let slots = recording.schedule.slots();
    assert_eq!(slots.len(), graph.len());
    assert_eq!(slots[0].start_s, 0.0);
    for slot in slots {
        assert!(slot.end_s >= slot.start_s);
        for from in graph.predecessors(slot.task) {
            let before = slots.iter().find(|other| other.task == *from).unwrap();
            assert!(before.end_s <= slot.start_s, "{:?} after {:?}", slot, before);
        }
    }
    let text = recording.write();
    let again = ampsched_task::Recording::read("recording", &text).unwrap();
    assert_eq!((again.write(), again.schedule), (text, recording.schedule));
    assert!(runtime.take_recording().unwrap().is_none(), "it has been taken");
}

#[test]
fn low_recorded_names_differ_whatever_programs_call_their_tasks() {
    let cores = Cores::parse("core=0").unwrap();
    let runtime = Runtime::new(&Config { pin: false, record: true, ..Config::new(cores) }).unwrap();
    let names = ["a", "a", "a (2)", "a", "", " \n", "a;b", "a,b"];
    runtime
        .graph(|scope| {
            for name in &names {
                scope.task("any").name(name).run(|| {});
            }
        })
        .unwrap();
    let recording = runtime.take_recording().unwrap().unwrap();
    let graph = &recording.graph;
    let recorded: Vec<&str> = graph.tasks().map(|task| graph.task_name(task)).collect();
    assert_eq!(recorded, ["a", "a (2)", "a (2) (2)", "a (3)", "4", "5", "a,b", "a,b (2)"]);
    let again = ampsched_task::Recording::read("recording", &recording.write()).unwrap();
    assert!(graph.tasks().all(|task| again.graph.task_name(task) == graph.task_name(task)));
}

#[test]
fn tasks_without_work_to_do_leave_no_worker_awake() {
    // 10,000 scopes that are empty or tiny: none hangs, whatever the order in which threads sleep and wake.
    let runtime = three();
    for round in 0..10_000 {
        let count = AtomicUsize::new(0);
        runtime
            .scope(|scope| {
                for _ in 0..round % 4 {
                    scope.task("tiny").run(|| {
                        count.fetch_add(1, Ordering::Relaxed);
                    });
                }
            })
            .unwrap();
        assert_eq!(count.into_inner(), round % 4);
    }
}

/// A payload that panics when it is dropped.
struct Bomb(Arc<AtomicUsize>);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        if !std::thread::panicking() {
            panic!("the payload's drop panics");
        }
    }
}

/// Takes a panic's payload without dropping it.
fn disarm(result: std::thread::Result<()>) {
    std::mem::forget(result.expect_err("a panic"));
}

#[test]
fn low_payloads_that_panic_when_dropped_hang_nobody() {
    let runtime = three();
    let dropped = Arc::new(AtomicUsize::new(0));
    for _ in 0..20 {
        // All workers panic in the same loop, then in the same scope: one payload goes on in the caller.
        let barrier = Barrier::new(3);
        disarm(catch_unwind(AssertUnwindSafe(|| {
            let (arrived, all) = (AtomicUsize::new(0), &barrier);
            runtime.for_each(0..3_000, |_| {
                if arrived.fetch_add(1, Ordering::Relaxed) < 3 {
                    all.wait();
                }
                std::panic::panic_any(Bomb(Arc::clone(&dropped)));
            });
        })));
        let barrier = Barrier::new(4);
        disarm(catch_unwind(AssertUnwindSafe(|| {
            let _ = runtime.scope(|scope| {
                for _ in 0..3 {
                    let (barrier, dropped) = (&barrier, Arc::clone(&dropped));
                    scope.task("fail").run(move || {
                        barrier.wait();
                        std::panic::panic_any(Bomb(dropped));
                    });
                }
                barrier.wait();
                std::panic::panic_any(Bomb(Arc::clone(&dropped)));
            });
        })));
        // The runtime is as good as new.
        let count = AtomicUsize::new(0);
        runtime.for_each(0..100, |range| {
            count.fetch_add(range.len(), Ordering::Relaxed);
        });
        assert_eq!(count.into_inner(), 100);
    }
    assert_eq!(dropped.load(Ordering::Relaxed), 0);
}

#[test]
fn low_ranges_up_to_the_greatest_number_are_whole() {
    let runtime = three();
    for start in [0, 1, 5, 1_000_003] {
        let seen = Mutex::new(Vec::new());
        runtime.for_each(start..usize::MAX, |range| seen.lock().unwrap().push(range));
        let all: usize = seen.lock().unwrap().iter().map(|range| range.len()).sum();
        assert_eq!(all, usize::MAX - start);
        for range in seen.into_inner().unwrap() {
            assert!(range.start < range.end && range.start >= start, "{range:?} of {start}..");
        }
    }
}
