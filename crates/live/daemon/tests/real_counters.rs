//! A session that counts: the kernel's clocks of threads, which every computer has, stand for instructions and cycles,
//! through everything that real counters pass through.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use ampsched_computer::{ByHand, Root, detect_cores};
use ampsched_live_daemon::Daemon;
use ampsched_live_factors::{Instruments, Perf, Source, Speedups};
use ampsched_live_session::{
    Backend, CoreSettings, JournalFile, Means, Observed, RecordSettings, ScopeSettings, Session,
    Settings, Setup, put_back,
};
use ampsched_policy::build_policy;
use ampsched_predict::Models;

/// A PMU whose number is that of software events, whose instructions are ns on a CPU (`task-clock`) and whose
/// cycles are those of the CPU's clock (`cpu-clock`; include/uapi/linux/perf_event.h).
const FILES: [(&str, &str); 4] = [
    ("type", "1"),
    ("format/event", "config:0-63"),
    ("events/instructions", "event=0x1"),
    ("events/cpu-cycles", "event=0x0"),
];

/// A speed-up of 1 + 0.5 x instructions per cycle.
const MODEL: &str = r#"{"format": "ampsched-speedup-1", "name": "clocks", "models": [{"predicts": "speedup",
    "features": [{"count": "instructions", "per": "cycles"}],
    "regression": {"kind": "linear", "intercept": 1, "coefficients": [0.5]}, "capacity_ratio": 3}]}"#;

#[test]
fn a_session_counts_and_predicts() {
    let folder = tempfile::TempDir::new().unwrap();
    let device = folder.path().join("sys/bus/event_source/devices/cpu");
    for (name, text) in FILES {
        let path = device.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let (root, pmu_root) = (Root::default(), Root::new(folder.path()));
    let (cores, _) = detect_cores(&root, &ByHand::default()).unwrap();
    let policy = build_policy("wash-orig", &[]).unwrap();
    let models = Models::parse("clocks.json", MODEL).unwrap();
    let model = Speedups::new(&models, &pmu_root, &cores).unwrap();
    if let Err(error) = Perf.open(
        0,
        &[ampsched_live_factors::Encoding { counter: "instructions", kind: 1, config: [1, 0, 0] }],
    ) {
        eprintln!("SKIPPED: perf_event_open: {error}");
        return;
    }
    let instruments =
        Instruments::start(Perf, &pmu_root, &cores, &policy.needs(), Some(model)).unwrap();
    assert_eq!(instruments.reasons(), Vec::<String>::new());
    let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let settings = Settings {
        policy: "wash-orig".to_owned(),
        param: Vec::new(),
        cores: CoreSettings::default(),
        backend: Means::Daemon,
        degrade: false,
        allow_dvfs: false,
        facts: None,
        model: None,
        dilation: 1.0,
        scope: ScopeSettings { pid: vec![child.id() as i32], ..ScopeSettings::default() },
        record: RecordSettings::default(),
    };
    let setup = Setup { instruments, ..Setup::new(settings).unwrap() };
    let mut session = Session::new(setup).unwrap();
    let place = JournalFile::at(&folder.path().join("journal")).unwrap().unwrap();
    let (held, journal) = place.create().unwrap();
    let mut daemon = Daemon::start(&mut session, journal).unwrap();
    let (started, mut speedup) = (Instant::now(), None);
    let ran = |session: &Session, daemon: &Daemon| {
        let thread = daemon.scheduled().next().expect("it is scheduled").thread;
        let stats = session.driver.sched().stats(thread);
        let instructions = session.driver.sched().instructions(thread);
        (stats.run_ns.iter().sum::<u64>() as f64, instructions.iter().sum::<u64>() as f64)
    };
    // Both clocks are read one after the other: where the computer pauses in between, an interval is off, by up to some
    // 30 ms. So it runs for so long that this is little of the whole.
    let is_near = |speedup: f64| (1.45..1.55).contains(&speedup);
    while !speedup.is_some_and(is_near) || ran(&session, &daemon).0 < 1e9 {
        assert!(started.elapsed() < Duration::from_secs(300), "{:?}", session.status(&daemon));
        std::thread::sleep(Duration::from_millis(20));
        session.step(&mut daemon, started.elapsed().as_nanos() as u64).unwrap();
        speedup = session.status(&daemon).threads[0].speedup;
    }
    let (ran_ns, instructions) = ran(&session, &daemon);
    let status = session.status(&daemon);
    child.kill().unwrap();
    child.wait().unwrap();
    daemon.finish(&mut session);
    assert_eq!(put_back::<Daemon>(&held).failures, Vec::<String>::new());
    assert!((0.8..1.2).contains(&(instructions / ran_ns)), "{instructions} in {ran_ns} ns");
    let missing = &status.missing_factors;
    assert!(!missing.iter().any(|line| line.contains("instructions")), "{missing:?}");
    let thread = &status.threads[0];
    assert_eq!(thread.speedup_kind, "predicted");
    assert!(thread.speedup_age_s.unwrap() < 30.0, "{thread:?}");
    assert_eq!(status.measured[0], "cpu: instructions cycles");
    assert_eq!(status.failures, Vec::<String>::new());
}
