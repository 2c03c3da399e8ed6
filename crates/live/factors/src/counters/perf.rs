//! Counters of the kernel: `perf_event_open`.

use std::io;
use std::time::{Duration, Instant};

use perf_event::events::Software;
use perf_event::{Builder, Counter, ReadFormat};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::{Encoding, Source, Times};

/// For how long events are tried out (ours): who is alone on a PMU is counted at once or never.
const TRIAL: Duration = Duration::from_millis(2);

/// Files that are left for everything else, such as reading `/proc` (ours).
const FILES_KEPT: usize = 64;

/// Counters of real threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Perf;

/// Events of one thread that are counted at the same time.
#[derive(Debug)]
pub struct PerfGroup {
    leader: Counter,
    /// Kept open; they are read with the leader.
    _others: Vec<Counter>,
}

impl Source for Perf {
    type Group = PerfGroup;

    fn open(&mut self, tid: i32, events: &[Encoding]) -> io::Result<PerfGroup> {
        let (first, rest) = events.split_first().expect("a group has events");
        let mut leader = builder(tid, first).read_format(FORMAT).build()?;
        let others = rest.iter().map(|event| builder(tid, event).build_with_group(&mut leader));
        let others = others.collect::<io::Result<_>>()?;
        leader.enable_group()?;
        Ok(PerfGroup { leader, _others: others })
    }

    fn read(&mut self, group: &mut PerfGroup, counts: &mut [u64]) -> io::Result<Times> {
        let data = group.leader.read_group()?;
        for (count, entry) in counts.iter_mut().zip(data.iter()) {
            *count = entry.value();
        }
        let ns = |time: Option<Duration>| time.map_or(0, |time| time.as_nanos() as u64);
        Ok(Times { enabled_ns: ns(data.time_enabled()), running_ns: ns(data.time_running()) })
    }

    fn try_out(&mut self, cpu: usize, events: &[Encoding]) -> io::Result<bool> {
        let mut own = *self;
        let trial = || {
            let mut cpus = CpuSet::new();
            cpus.set(cpu);
            sched_setaffinity(None, &cpus)?;
            let mut group = own.open(0, events)?;
            let started = Instant::now();
            while started.elapsed() < TRIAL {
                std::hint::spin_loop();
            }
            let mut counts = vec![0; events.len()];
            Ok(own.read(&mut group, &mut counts)?.running_ns > 0)
        };
        // A thread of its own, whose affinity is nobody's business.
        std::thread::scope(|scope| {
            let trial = std::thread::Builder::new().spawn_scoped(scope, trial)?;
            trial.join().expect("a trial does not panic")
        })
    }

    fn files_max(&self) -> usize {
        let limit = getrlimit(Resource::Nofile).current;
        limit.map_or(usize::MAX, |limit| (limit as usize).saturating_sub(FILES_KEPT))
    }

    fn raise_limit(&mut self) -> bool {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        current != maximum
            && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok()
    }
}

const FORMAT: ReadFormat =
    ReadFormat::GROUP.union(ReadFormat::TOTAL_TIME_ENABLED).union(ReadFormat::TOTAL_TIME_RUNNING);

/// Counts user code of one thread on whatever CPU, and of nobody that it starts.
fn builder(tid: i32, event: &Encoding) -> Builder<'static> {
    let mut builder = Builder::new(Software::DUMMY);
    let attributes = builder.attrs_mut();
    attributes.type_ = event.kind;
    let [config, config1, config2] = event.config;
    (attributes.config, attributes.config1, attributes.config2) = (config, config1, config2);
    builder.observe_pid(tid).any_cpu().inherit(false);
    builder
}
