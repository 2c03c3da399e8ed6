//! Reads back what was written, as a viewer would: names, times, slices, arrows, counters.

mod reader;

use std::io::{self, Write};

use ampsched_model::{
    ClassId, Cluster, ClusterId, CoreId, CoreParams, Costs, Machine, NoiseKind, Ns, Opp, Pipeline,
    ThreadId,
};
use ampsched_policy::{DecidedBy, Reason, ReasonValue, RunState};

use super::proto::Ftrace;
use super::{PerfettoTrace, SpanTrace};
use crate::{Decision, Trace, TraceThread, TurnEnd};
use reader::Reader;

const CORE_PARAMS: CoreParams = CoreParams {
    pipeline: Pipeline::OutOfOrder,
    width: 3.0,
    window: 128.0,
    mispredict_cycles: 15.0,
    load_cycles: 4.0,
    fp_single_cycles: 1.0,
    fp_double_cycles: 1.0,
    fp_single_latency_cycles: 4.0,
    fp_double_latency_cycles: 4.0,
    simd_cycles: 0.5,
    simd_latency_cycles: 3.0,
    l1i_kib: 48.0,
    l1d_kib: 32.0,
    l2_kib: 2048.0,
    l2_cycles: 20.0,
    memory_ns: 80.0,
    mlp_max: 6.0,
    prefetch_share: 0.5,
    cycles_factor: 1.0,
};

fn machine() -> Machine {
    let cluster = |name: &str, class, mhz, cores: [u16; 2]| Cluster {
        shares_l2: false,
        sharing: ampsched_model::Sharing::NONE,
        turbo_mhz: Vec::new(),
        bounds: None,
        name: name.to_owned(),
        class: ClassId(class),
        cores: cores.map(CoreId).to_vec(),
        core_type: format!("{name}-type"),
        params: CORE_PARAMS,
        opps: vec![Opp { mhz, volt: 1.0 }],
        power: Default::default(),
        costs: None,
    };
    Machine {
        name: "2B2S".to_owned(),
        description: String::new(),
        clusters: vec![cluster("big", 1, 2000, [0, 1]), cluster("little", 0, 1200, [2, 3])],
        costs: Costs::default(),
        thermal: None,
        board: ampsched_model::BoardPower::default(),
        kernel_view: ampsched_model::KernelView::default(),
        reference: None,
        memory: None,
    }
}

const READY: i64 = 0x800;

fn ended(state: RunState) -> TurnEnd<'static> {
    TurnEnd { instructions: None, state, why: None }
}

fn introduce<W: Write>(
    trace: &mut PerfettoTrace<W>,
    id: u32,
    app: usize,
    app_name: &str,
    name: &str,
) {
    trace.thread(TraceThread { id: ThreadId(id), app, app_name, name, ids: None });
}

/// A trace of 2B2S on which `a/main`, `b/work` and `a/other` are.
fn traced(tell: impl FnOnce(&mut PerfettoTrace<&mut Vec<u8>>)) -> Reader {
    let mut bytes = Vec::new();
    let mut trace = PerfettoTrace::new(&mut bytes, &(&machine()).into()).unwrap();
    introduce(&mut trace, 0, 0, "a", "main");
    introduce(&mut trace, 1, 1, "b", "work");
    introduce(&mut trace, 2, 0, "a", "other");
    tell(&mut trace);
    trace.finish().unwrap();
    Reader::read(&bytes)
}

const MAIN: ThreadId = ThreadId(0);
const WORK: ThreadId = ThreadId(1);
const OTHER: ThreadId = ThreadId(2);
/// Their numbers in the trace.
const MAIN_TID: i32 = 1000;
const WORK_TID: i32 = 1001;
const OTHER_TID: i32 = 1002;

#[test]
fn a_switch_names_who_leaves_and_who_comes() {
    let reader = traced(|trace| {
        trace.run(CoreId(0), MAIN, None, 5);
        trace.stop(CoreId(0), MAIN, ended(RunState::Ready), 20);
        trace.run(CoreId(0), WORK, None, 20);
        trace.stop(CoreId(0), WORK, ended(RunState::Blocked), 30);
        trace.run(CoreId(0), MAIN, None, 40);
        trace.stop(CoreId(0), MAIN, ended(RunState::Held), 45);
        trace.run(CoreId(2), WORK, None, 50);
        trace.stop(CoreId(2), WORK, ended(RunState::Exited), 60);
        trace.run(CoreId(1), OTHER, None, 60);
        trace.stop(CoreId(1), OTHER, ended(RunState::Exited), 65);
        trace.run(CoreId(3), MAIN, None, 70);
    });
    let turns = [(MAIN_TID, 5, 20, READY), (WORK_TID, 20, 30, 1), (MAIN_TID, 40, 45, 4)];
    assert_eq!(reader.turns(0), turns);
    assert_eq!(reader.turns(1), [(OTHER_TID, 60, 65, 0x10)]);
    assert_eq!(reader.turns(2), [(WORK_TID, 50, 60, 0x10)]);
    assert_eq!(reader.turns(3), [(MAIN_TID, 70, 70, READY)], "what runs at the end is ended");
    let freed = |(_, _, event): &(_, _, &Ftrace)| matches!(event, Ftrace::SchedProcessFree(_));
    let freed = [1, 2].map(|cpu| reader.events(cpu).filter(freed).count());
    assert_eq!(freed, [1, 0], "a process may have other threads than its first");
}

#[test]
fn a_thread_that_stays_is_not_switched() {
    let reader = traced(|trace| {
        trace.run(CoreId(0), MAIN, None, 5);
        trace.stop(CoreId(0), MAIN, ended(RunState::Ready), 20);
        trace.run(CoreId(0), MAIN, None, 20);
        trace.stop(CoreId(0), MAIN, ended(RunState::Blocked), 30);
    });
    assert_eq!(reader.turns(0), [(MAIN_TID, 5, 30, 1)]);
}

#[test]
fn idleness_is_told() {
    let reader = traced(|trace| {
        trace.run(CoreId(1), MAIN, None, 5);
        trace.stop(CoreId(1), MAIN, ended(RunState::Blocked), 9);
    });
    let idle = |(at_ns, _, event): (Ns, u32, &Ftrace)| match event {
        Ftrace::CpuIdle(idle) => Some((at_ns, idle.state.unwrap(), idle.cpu_id.unwrap())),
        _ => None,
    };
    let told: Vec<_> = reader.events(1).filter_map(idle).collect();
    assert_eq!(told, [(0, 0, 1), (5, u32::MAX, 1), (9, 0, 1)]);
}

#[test]
fn a_wake_up_is_kept_where_the_woken_goes_and_names_its_waker() {
    let reader = traced(|trace| {
        trace.wake(None, MAIN, Some(CoreId(0)), 0);
        trace.run(CoreId(0), MAIN, None, 0);
        trace.wake(Some(MAIN), WORK, Some(CoreId(2)), 7);
        trace.run(CoreId(2), WORK, None, 7);
    });
    assert_eq!(reader.wakings(0), [(0, 0, MAIN_TID, 0)]);
    assert_eq!(reader.wakings(2), [(7, MAIN_TID as u32, WORK_TID, 2)]);
    let kinds = |cpu| {
        reader.events(cpu).filter(|(at_ns, ..)| *at_ns == 7).map(|(_, _, event)| event.clone())
    };
    let kinds: Vec<_> = kinds(2).collect();
    assert!(matches!(kinds[0], Ftrace::SchedWaking(_)), "before the turn: {kinds:?}");
}

#[test]
fn a_thread_woken_as_it_goes_to_sleep_sleeps_first() {
    let reader = traced(|trace| {
        trace.run(CoreId(0), MAIN, None, 0);
        trace.stop(CoreId(0), MAIN, ended(RunState::Blocked), 9);
        trace.wake(None, MAIN, Some(CoreId(3)), 9);
        trace.run(CoreId(0), WORK, None, 9);
    });
    assert_eq!(reader.turns(0), [(MAIN_TID, 0, 9, 1), (WORK_TID, 9, 9, READY)]);
    assert_eq!(reader.wakings(0), [(9, 0, MAIN_TID, 3)]);
    let switch = reader
        .events(0)
        .position(|(at_ns, _, event)| at_ns == 9 && matches!(event, Ftrace::SchedSwitch(_)));
    let waking = reader.events(0).position(|(.., event)| matches!(event, Ftrace::SchedWaking(_)));
    assert!(switch < waking);
}

/// Perfetto takes events of one time in any order of the CPUs, unless one of them told something just before.
#[test]
fn a_thread_pulled_from_a_cpu_is_announced_there() {
    let reader = traced(|trace| {
        trace.run(CoreId(3), MAIN, None, 0);
        trace.stop(CoreId(3), MAIN, ended(RunState::Ready), 50);
        trace.run(CoreId(0), MAIN, None, 50);
    });
    let migrated = |(at_ns, _, event): (Ns, u32, &Ftrace)| match event {
        Ftrace::SchedMigrateTask(task) => Some((at_ns, task.pid, task.orig_cpu, task.dest_cpu)),
        _ => None,
    };
    let told: Vec<_> = reader.events(3).filter_map(migrated).collect();
    assert_eq!(told, [(49, Some(MAIN_TID), Some(3), Some(0))]);
    assert_eq!(reader.turns(3), [(MAIN_TID, 0, 50, READY)]);
}

#[test]
fn threads_of_the_system_are_threads_of_the_kernel() {
    let reader = traced(|trace| {
        trace.run(CoreId(0), MAIN, None, 0);
        // The core is taken before the thread is gone.
        trace.noise(CoreId(0), NoiseKind::Thread, "kworker", 30, 10);
        trace.stop(CoreId(0), MAIN, ended(RunState::Ready), 10);
        trace.system_ends(CoreId(0), 40);
        trace.run(CoreId(0), MAIN, None, 40);
        trace.stop(CoreId(0), MAIN, ended(RunState::Blocked), 50);
        trace.noise(CoreId(0), NoiseKind::Thread, "kworker", 5, 60);
        trace.system_ends(CoreId(0), 65);
    });
    let turns = [(MAIN_TID, 0, 10, READY), (3, 10, 40, 1), (MAIN_TID, 40, 50, 1), (3, 60, 65, 1)];
    assert_eq!(reader.turns(0), turns);
    assert_eq!(reader.system[&3], ("kworker/0".to_owned(), 2));
}

#[test]
fn interrupts_that_meet_follow_each_other() {
    let reader = traced(|trace| {
        trace.noise(CoreId(1), NoiseKind::Interrupt, "timer", 10, 100);
        trace.noise(CoreId(1), NoiseKind::Interrupt, "timer", 10, 105);
    });
    let irq = |(at_ns, _, event): (Ns, u32, &Ftrace)| match event {
        Ftrace::IrqHandlerEntry(_) => Some((at_ns, "begins")),
        Ftrace::IrqHandlerExit(_) => Some((at_ns, "ends")),
        _ => None,
    };
    let told: Vec<_> = reader.events(1).filter_map(irq).collect();
    assert_eq!(told, [(100, "begins"), (110, "ends"), (110, "begins"), (120, "ends")]);
}

#[test]
fn a_cluster_s_frequency_is_that_of_each_of_its_cpus() {
    let reader = traced(|trace| {
        trace.frequency(ClusterId(1), 1200, 0);
        trace.frequency(ClusterId(1), 600, 8);
    });
    let clocked = |(at_ns, _, event): (Ns, u32, &Ftrace)| match event {
        Ftrace::CpuFrequency(clock) => Some((at_ns, clock.state.unwrap(), clock.cpu_id.unwrap())),
        _ => None,
    };
    let told = |cpu| reader.events(cpu).filter_map(clocked).collect::<Vec<_>>();
    assert_eq!(told(2), [(0, 1_200_000, 2), (8, 600_000, 2)]);
    assert_eq!(told(3), [(0, 1_200_000, 3), (8, 600_000, 3)]);
    assert_eq!(told(0), []);
}

#[test]
fn threads_are_grouped_by_application() {
    let reader = traced(|_| {});
    assert_eq!(reader.system[&MAIN_TID], ("main".to_owned(), MAIN_TID));
    assert_eq!(reader.system[&WORK_TID], ("work".to_owned(), WORK_TID));
    assert_eq!(reader.system[&OTHER_TID], ("other".to_owned(), MAIN_TID));
    let named = [(MAIN_TID, "a".to_owned()), (WORK_TID, "b".to_owned())];
    assert_eq!(reader.processes, named.into());
    for (thread, app, pid) in [("main", "a", MAIN_TID), ("work", "b", WORK_TID)] {
        let track = &reader.tracks[&reader.track(thread)];
        let process = reader.tracks[&track.parent_uuid.unwrap()].process.clone().unwrap();
        assert_eq!((process.process_name.as_deref(), process.pid), (Some(app), Some(pid)));
        assert_eq!(track.thread.as_ref().unwrap().tid, Some(pid.into()));
    }
}

#[test]
fn threads_of_a_system_keep_its_numbers() {
    let mut bytes = Vec::new();
    let mut trace = PerfettoTrace::new(&mut bytes, &(&machine()).into()).unwrap();
    let ids = Some(crate::SystemIds { pid: 77, tid: 79 });
    trace.thread(TraceThread { id: MAIN, app: 0, app_name: "xz", name: "work", ids });
    trace.run(CoreId(0), MAIN, None, 3);
    trace.finish().unwrap();
    let reader = Reader::read(&bytes);
    assert_eq!(reader.system, [(79, ("work".to_owned(), 77))].into());
    assert_eq!(reader.turns(0), [(79, 3, 3, READY)]);
}

#[test]
fn counters_are_written_when_they_change() {
    let reader = traced(|trace| {
        trace.queue_len(CoreId(2), 1, 3_000);
        trace.queue_len(CoreId(2), 0, 3_500);
        trace.queue_len(CoreId(2), 0, 3_600);
        trace.power(ClusterId(0), 812.5, 4_000);
    });
    let queue = reader.track("core 2 (little little-type 1200 MHz) run queue");
    let power = reader.track("big power");
    let told = [(queue, 1.0, 3_000), (queue, 0.0, 3_500), (power, 812.5, 4_000)];
    assert_eq!(reader.counters, told);
}

/// 10 s of 20 threads that switch every 0.5 ms on 4 cores (80,000 turns) must fit into 50 MB several times.
#[test]
fn a_turn_costs_about_two_hundred_bytes() {
    let mut bytes = Vec::new();
    let mut trace = PerfettoTrace::new(&mut bytes, &(&machine()).into()).unwrap();
    for thread in 0..20 {
        introduce(&mut trace, thread, thread as usize / 5, "application", "worker");
    }
    let why = Reason::new(DecidedBy::Order, "it comes first in the queue");
    let turns = 10_000;
    for turn in 0..turns {
        let (core, thread, at_ns) =
            (CoreId((turn % 4) as u16), ThreadId(turn % 20), 500_000 * u64::from(turn));
        trace.wake(Some(ThreadId((turn + 1) % 20)), thread, Some(core), at_ns);
        trace.queue_len(core, 4, at_ns);
        trace.run(core, thread, Some(&why), at_ns + 1_000);
        trace.queue_len(core, 3, at_ns + 1_000);
        trace.stop(core, thread, ended(RunState::Blocked), at_ns + 400_000);
    }
    trace.finish().unwrap();
    let reader = Reader::read(&bytes);
    assert_eq!((0..4).map(|cpu| reader.turns(cpu).len()).sum::<usize>(), turns as usize);
    let per_turn = bytes.len() / turns as usize;
    assert!((150..=400).contains(&per_turn), "{per_turn} bytes per turn");
}

/// A writer that is full after some bytes.
struct Full {
    left: usize,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.left {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "disk full"));
        }
        self.left -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_error_of_the_writer_is_returned_at_the_end() {
    for left in [0, 100_000] {
        let mut trace = PerfettoTrace::new(Full { left }, &(&machine()).into()).unwrap();
        introduce(&mut trace, 0, 0, "a", "main");
        for slice in 0..20_000 {
            trace.run(CoreId(0), ThreadId(0), None, 10 * slice);
            trace.stop(CoreId(0), ThreadId(0), ended(RunState::Blocked), 10 * slice + 5);
        }
        let error = trace.finish().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}

#[test]
fn spans_have_a_track_each_and_arrows() {
    let mut bytes = Vec::new();
    let names = ["worker 0", "worker 1"].map(str::to_owned);
    let mut trace = SpanTrace::new(&mut bytes, "Workers".to_owned(), names);
    trace.begin(0, "a".to_owned(), vec![7], None, 0);
    trace.begin(1, "b".to_owned(), vec![], None, 0);
    trace.end(0, 20);
    trace.end(1, 20);
    trace.begin(0, "c".to_owned(), vec![], Some(7), 20);
    trace.end(0, 30);
    trace.finish().unwrap();
    let reader = Reader::read(&bytes);
    assert_eq!(reader.on("worker 0"), [("a", 0, 20), ("c", 20, 30)]);
    assert_eq!(reader.on("worker 1"), [("b", 0, 20)]);
    assert_eq!(reader.check_flows(), 1);
}

#[test]
fn decisions_are_instants_of_their_thread() {
    let mut bytes = Vec::new();
    let mut trace = PerfettoTrace::new(&mut bytes, &(&machine()).into()).unwrap();
    introduce(&mut trace, 0, 0, "a", "main");
    for (change, at_ns) in [("to big cores", 5), ("to little cores", 9), ("to big cores", 12)] {
        trace.decided(ThreadId(0), Decision::Planned(change), None, at_ns);
    }
    trace.finish().unwrap();
    let (big, little) = ("to big cores", "to little cores");
    assert_eq!(Reader::read(&bytes).on("main"), [(big, 5, 5), (little, 9, 9), (big, 12, 12)]);
}

/// The values of the slice or instant that begins then on a track.
fn values_at<'a>(reader: &'a Reader, title: &str, start_ns: Ns) -> Vec<(&'a str, &'a str)> {
    let track = reader.track(title);
    let mut slices = reader.slices.iter();
    let slice = slices.find(|slice| slice.track == track && slice.start_ns == start_ns).unwrap();
    slice.values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

#[test]
fn a_slice_tells_why_it_began_and_why_it_ended() {
    let mut bytes = Vec::new();
    let mut trace = PerfettoTrace::new(&mut bytes, &(&machine()).into()).unwrap();
    introduce(&mut trace, 0, 0, "a", "main");
    introduce(&mut trace, 1, 0, "a", "next");
    let loads = ReasonValue::Loads(vec![(CoreId(0), 1024), (CoreId(2), 0)]);
    let placed = Reason::new(DecidedBy::Allocator, "its previous core, which is idle")
        .with("loads", loads)
        .core("previous_core", CoreId(2));
    trace.decided(ThreadId(0), Decision::Placed(CoreId(2)), Some(&placed), 10);
    let chosen = Reason::new(DecidedBy::Order, "it comes first in the queue")
        .with("vruntime_ns", ReasonValue::Ns(-5))
        .count("waiting", 2_u64)
        .thread("first", ThreadId(1))
        .real("gain", 1.5);
    trace.run(CoreId(2), ThreadId(0), Some(&chosen), 20);
    let over = Reason::new(DecidedBy::Slice, "its slice is over").ns("slice_ns", 30);
    let end = TurnEnd { instructions: Some(7), state: RunState::Ready, why: Some(&over) };
    trace.stop(CoreId(2), ThreadId(0), end, 50);
    let interrupts = Decision::Interrupts { running: ThreadId(0), core: CoreId(2), yes: true };
    trace.decided(ThreadId(1), interrupts, None, 60);
    trace.finish().unwrap();
    let reader = Reader::read(&bytes);
    assert_eq!(
        reader.on("main"),
        [("put on core 2", 10, 10), ("it comes first in the queue", 20, 50)]
    );
    let turn = reader.slices.iter().find(|slice| slice.start_ns == 20).unwrap();
    assert_eq!(turn.instructions, Some(7));
    assert_eq!(reader.on("next"), [("interrupts a/main", 60, 60)]);
    assert_eq!(
        values_at(&reader, "main", 10),
        [
            ("why.rule", "allocator"),
            ("why.because", "its previous core, which is idle"),
            ("why.loads", "0: 1024, 2: 0"),
            ("why.previous_core", "2"),
        ]
    );
    let slice = [
        ("why.rule", "order"),
        ("why.because", "it comes first in the queue"),
        ("why.vruntime_ns", "-5"),
        ("why.waiting", "2"),
        ("why.first", "a/next"),
        ("why.gain", "1.5"),
        ("end.rule", "slice"),
        ("end.because", "its slice is over"),
        ("end.slice_ns", "30"),
    ];
    assert_eq!(values_at(&reader, "main", 20), slice);
}
