//! Simulations that could never end, or in which nobody could get anything done, are refused.

mod common;

use ampsched_model::{CoreId, Ns, ThreadId};
use ampsched_policy::{Change, Hooks, Needs, Plan, Policy, Rules, Topology, View, build_policy};
use ampsched_sim::{Overhead, SimError, simulate};
use common::{Host, ns, workload};

const HOGS: &str = "[[threads]]\nname='hog'\ncount=3\nbody=[{run_us=5000,profile='unit'}]";

/// One core that takes 2 us to switch.
fn host() -> Host {
    let mut host = Host::symmetric(1);
    host.machine.costs.context_switch_ns = 2_000;
    host
}

fn error_of(host: &Host, text: &str, policy: &str) -> String {
    host.try_run(text, policy).map(|outcome| outcome.makespan_ns).unwrap_err().to_string()
}

#[test]
fn m13_what_never_ends_is_refused_at_once() {
    let forever = |body: &str| format!("body=[{{loop='forever',body=[{body}]}}]");
    let work = "{run_us=100,profile='unit'}";
    let endless = [
        format!("[[threads]]\nname='t'\n{}", forever(work)),
        // Behind work that ends, and inside a loop that does.
        format!(
            "[[threads]]\nname='t'\nbody=[{work},{{loop=3,body=[{{loop='forever',body=[{work}]}}]}}]"
        ),
        format!(
            "[[threads]]\nname='ends'\nbody=[{work}]\n[[threads]]\nname='t'\ncount=2\n{}",
            forever(work)
        ),
    ];
    for text in &endless {
        let error = host().try_run(text, "cfs").unwrap_err();
        assert_eq!(error, SimError::Endless { thread: "p/t".into() }, "{text}");
        // Something ends it.
        let mut until = host();
        until.options.until_ns = Some(ns(5.0));
        assert_eq!(until.run(text, "cfs").makespan_ns, ns(5.0));
        let duration = format!("duration_ms=3\n{text}");
        assert_eq!(host().run(&duration, "cfs").makespan_ns, ns(3.0));
    }
    let said = error_of(&host(), &endless[0], "cfs");
    assert!(said.contains("duration_ms") && said.contains("until_ms"), "{said}");
}

#[test]
fn m14_slices_shorter_than_a_switch_are_refused() {
    let short = [
        "rr:slice_ms=0.002",
        "cfs:latency_ms=0.004:min_granularity_ms=0.001",
        "eevdf:base_slice_ms=0.001:hz=0",
    ];
    for policy in short {
        let error = host().try_run(HOGS, policy).unwrap_err();
        assert!(
            matches!(error, SimError::SliceTooShort { cost_ns: 2_000, .. }),
            "{policy}: {error}"
        );
    }
    let said = error_of(&host(), HOGS, "rr:slice_ms=0.002");
    assert_eq!(
        said,
        "policy rr gives slices of 2000 ns, but to switch to a thread takes 2000 ns: nobody would get any work done \
         (give longer slices, or lower costs.context_switch_ns of the machine or the overhead)"
    );
    // What is longer does, if only just.
    assert!(host().run(HOGS, "rr:slice_ms=0.003").makespan_ns > ns(15.0));
    // The policy's own work counts, too.
    let mut slow = host();
    slow.options.overhead = Overhead { decision_ns: 1_000_000, epoch_ns: 0 };
    assert!(matches!(slow.try_run(HOGS, "rr:slice_ms=1"), Err(SimError::SliceTooShort { .. })));
}

#[test]
fn m14_rounds_shorter_than_a_move_on_fast_cores_are_refused() {
    let mut host = Host::unequal(1, 2, 2.0);
    host.machine.costs.context_switch_ns = 2_000;
    host.machine.costs.migrate_same_cluster_ns = 1_000;
    host.machine.costs.migrate_cross_cluster_ns = 3_000;
    let said = error_of(&host, HOGS, "a-dwrr:round_ms=0.05:rating=10");
    assert_eq!(
        said,
        "policy a-dwrr gives threads of weight 1024 turns of 5000 ns in each round on the fastest cores, but to bring a \
         thread there and to switch to it takes 5000 ns: they would get no work done there (give longer rounds, a lower \
         rating, or lower the costs of the machine or the overhead)"
    );
    let refused = |host: &Host, policy: &str| {
        matches!(host.try_run(HOGS, policy), Err(SimError::RoundTooShort { .. }))
    };
    // Fast cores are rated higher, so longer rounds are as short there.
    assert!(refused(&host, "a-dwrr:round_ms=0.01:rating=55"));
    assert!(refused(&host, "a-dwrr:round_ms=0.27:rating=55"));
    assert!(!refused(&host, "a-dwrr:round_ms=0.28:rating=55"));
    // Where all cores are alike ratings count for nothing, and migrations are cheaper; a single core has none.
    let alike = |cores: usize, migrate_ns: Ns| {
        let mut alike = Host::symmetric(cores);
        alike.machine.costs = host.machine.costs;
        alike.machine.costs.migrate_same_cluster_ns = migrate_ns;
        refused(&alike, "a-dwrr:round_ms=0.01:rating=55")
    };
    assert_eq!([alike(2, 7_999), alike(2, 8_000), alike(1, 8_000)], [false, true, false]);
}

#[test]
fn m14_rounds_count_as_long_as_a_thread_s_share_of_them_is() {
    let runs = |threads: &str, step: &str, round_ms: f64| {
        let text = format!(
            "[[threads]]\nname='t'\ncount=2\n{threads}\nbody=[{step}{{run_us=50,profile='unit'}}]"
        );
        host().try_run(&text, &format!("a-dwrr:round_ms={round_ms}")).map(|_| ())
    };
    // A thread of nice 9 has 137 / 1024 of a round.
    let error = runs("nice=9", "", 0.0149).unwrap_err();
    let policy = "a-dwrr".to_owned();
    let (turn_ns, cost_ns) = (1_994, 2_000);
    assert_eq!(error, SimError::RoundTooShort { policy, turn_ns, weight: 137, cost_ns });
    assert_eq!(runs("", "{set_nice=9},", 0.0149).unwrap_err(), error);
    assert_eq!(runs("nice=9", "", 0.016), Ok(()));
    assert_eq!(runs("", "", 0.01), Ok(()));
}

#[test]
fn m14_slices_of_shared_queues_shorter_than_a_move_are_refused() {
    let mut host = Host::unequal(2, 1, 2.0);
    host.machine.costs.context_switch_ns = 2_000;
    host.machine.costs.migrate_same_cluster_ns = 13_000;
    host.machine.costs.migrate_cross_cluster_ns = 20_000;
    let said = error_of(&host, HOGS, "rr:slice_ms=0.022");
    assert_eq!(
        said,
        "policy rr gives slices of 22000 ns, but to bring a thread to another core and to switch to it takes 22000 ns: \
         nobody would get any work done (give longer slices, or lower the costs of the machine or the overhead)"
    );
    assert!(host.try_run(HOGS, "rr:slice_ms=0.023").is_ok());
    // With a queue for each core a turn is where the last one was.
    assert!(host.try_run(HOGS, "eevdf:base_slice_ms=0.022:hz=0").is_ok());
    // Where there is one cluster threads go no further.
    let mut alike = Host::symmetric(2);
    alike.machine.costs = host.machine.costs;
    let refused = |slice_ms: f64| alike.try_run(HOGS, &format!("rr:slice_ms={slice_ms}")).is_err();
    assert_eq!([refused(0.015), refused(0.016)], [true, false]);
}

#[test]
fn m14_epochs_shorter_than_their_own_work_are_refused() {
    let mut host = host();
    host.options.overhead = Overhead { decision_ns: 0, epoch_ns: 10_000_000 };
    let policy = "colab:epoch_ms=10";
    let said = host.try_run(HOGS, policy).unwrap_err().to_string();
    assert_eq!(
        said,
        "policy colab looks every 10000000 ns, but a look takes 10000000 ns of the first core: nobody would get any work \
         done there (give longer epochs, or lower the overhead's epoch_us)"
    );
    // Whoever never looks is charged for no look, and what takes less leaves some time.
    assert!(host.try_run(HOGS, "cfs").is_ok());
    host.options.overhead.epoch_ns = 9_000_000;
    assert!(host.try_run(HOGS, policy).is_ok());
}

/// Another policy, with a plan or code of its own.
struct Slices {
    base: Box<dyn Policy>,
    planned: Option<Change>,
    own_ns: Option<Ns>,
}

impl Policy for Slices {
    fn needs(&self) -> Needs {
        Needs {
            epoch_ns: Some(1_000_000),
            hooks: Hooks { slice: self.own_ns.is_some(), ..Hooks::default() },
            ..self.base.needs()
        }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.base.rules(topology)
    }

    fn epoch(&mut self, _view: &View, plan: &mut Plan) {
        if let Some(change) = &self.planned {
            plan.set(ThreadId(1), change.clone());
        }
    }

    fn slice(&mut self, _view: &View, _thread: ThreadId, _core: CoreId) -> Ns {
        self.own_ns.expect("asked only if it decides")
    }
}

fn run_slices(host: &Host, planned_ns: Option<Ns>, own_ns: Option<Ns>) -> Result<u64, SimError> {
    let planned = planned_ns.map(Change::Slice);
    run_policy(host, Slices { base: build_policy("cfs", &[]).unwrap(), planned, own_ns })
}

fn run_policy(host: &Host, policy: Slices) -> Result<u64, SimError> {
    simulate(&host.machine, &workload(&[HOGS]), "mine", Box::new(policy), &host.options)
        .map(|outcome| outcome.makespan_ns)
}

#[test]
fn m14_short_slices_of_plans_are_refused() {
    let error = run_slices(&host(), Some(1_500), None).unwrap_err();
    let expected = SimError::SliceTooShort {
        policy: "mine".into(),
        slice_ns: 1_500,
        cost_ns: 2_000,
        moves: false,
    };
    assert_eq!(error, expected);
    assert!(run_slices(&host(), Some(0), None).is_ok(), "0: as the rules say");
    assert!(run_slices(&host(), Some(50_000), None).is_ok());
}

#[test]
fn m14_weights_of_plans_whose_rounds_are_too_short_are_refused() {
    let run = |weight: u32| {
        let base = build_policy("a-dwrr", &[("round_ms".to_owned(), 0.0149)]).unwrap();
        let planned = Some(Change::Weight(weight));
        run_policy(&host(), Slices { base, planned, own_ns: None })
    };
    let (policy, turn_ns, cost_ns) = ("mine".to_owned(), 1_994, 2_000);
    assert_eq!(run(137), Err(SimError::RoundTooShort { policy, turn_ns, weight: 137, cost_ns }));
    assert!(run(138).is_ok());
}

#[test]
fn m14_code_that_never_lets_anybody_work_is_noticed() {
    let error = run_slices(&host(), None, Some(1_000)).unwrap_err();
    assert!(matches!(error, SimError::OnlySwitching { .. }), "{error}");
    assert!(run_slices(&host(), None, Some(10_000)).is_ok());
}

#[test]
fn m14_threads_that_only_yield_make_progress() {
    // 200,000 switches without any work: that is what the program is about.
    let text = "[[threads]]\nname='t'\ncount=2\nbody=[{loop=100000,body=[{yield=true}]}]";
    let outcome = host().run(text, "rr");
    assert!(outcome.makespan_ns >= 100_000 * 2_000);
}
