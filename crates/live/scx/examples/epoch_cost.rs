//! What a step of a session costs by how many threads there are and how many of them have done something: the look,
//! the policy's epoch and the changes of its plan. The fast plane is the kernel's, compiled for this process. Threads
//! sleep, or all wait for a core; some have run for a moment since the last look.
//!
//! Prints a line for each policy, number of threads and number of those that have run: these three, and ns of CPU time
//! per step, median and mean, while the others sleep and while they wait. Policies are given as arguments.

use std::hint::black_box;

use ampsched_computer::{CoreMap, Domain};
use ampsched_live_session::{
    Backend, CoreSettings, JournalFile, Means, RecordSettings, ScopeSettings, Session, Settings,
    Setup,
};
use ampsched_model::{InputError, Ns};
use ampsched_policy::{Choice, EnqueueKind, Needs, RunState};
use ampsched_scx::layout::{Op, Operation, Thread};
use ampsched_scx::native::Native;
use ampsched_scx::table::Cores;
use ampsched_scx::{FastPlane, Scx, ScxError, lower};

const POLICIES: [&str; 4] = ["cfs", "colab", "hsp", "prop-sp"];
const THREADS: [usize; 3] = [1_000, 4_000, 10_000];
const CORES: usize = 8;
const STEP_NS: Ns = 10_000_000;
/// Steps before anything is measured: threads are new then.
const FIRST_STEPS: u64 = 4;
/// Steps that are measured: a second and a half.
const STEPS: u64 = 150;

/// What threads do that do not run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    Sleep,
    Wait,
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let policies: Vec<&str> = match given.is_empty() {
        true => POLICIES.to_vec(),
        false => given.iter().map(String::as_str).collect(),
    };
    for policy in policies {
        for threads in THREADS {
            for changed in [0, 100, threads] {
                let asleep = measure(policy, threads, changed, Others::Sleep);
                let waiting = measure(policy, threads, changed, Others::Wait);
                println!("{policy} {threads} {changed} {asleep} {waiting}");
            }
        }
    }
}

/// CPU time of a step in ns, median and mean.
fn measure(policy: &str, threads: usize, changed: usize, others: Others) -> String {
    let folder = std::env::temp_dir().join(format!("ampsched-epoch-cost-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for a journal");
    let mut session = session(policy);
    let place = JournalFile::at(&folder.join("journal")).expect("a folder").expect("is there");
    let (held, journal) = place.create().expect("a journal");
    let mut crowd = Scx::<Crowd>::start(&mut session, journal).expect("a policy for the kernel");
    let mut costs_ns = Vec::new();
    crowd.fast_plane().expect("it is loaded").join(threads, others);
    for step in 1..=FIRST_STEPS + STEPS {
        crowd.fast_plane().expect("it is loaded").pass(changed);
        let begun_ns = cpu_ns();
        black_box(session.step(&mut crowd, step * STEP_NS).expect("a step"));
        if step > FIRST_STEPS {
            costs_ns.push(cpu_ns() - begun_ns);
        }
    }
    held.remove().expect("a journal");
    std::fs::remove_dir_all(&folder).expect("an empty folder");
    let mean_ns = costs_ns.iter().sum::<u64>() / STEPS;
    costs_ns.sort_unstable();
    format!("{} {mean_ns}", costs_ns[costs_ns.len() / 2])
}

/// CPU time of this thread.
#[allow(unsafe_code)] // A call of libc.
fn cpu_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes a timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A session on four fast and four slow cores.
fn session(policy: &str) -> Session {
    let settings = Settings {
        policy: policy.to_owned(),
        param: Vec::new(),
        cores: CoreSettings::default(),
        backend: Means::Scx,
        degrade: true,
        allow_dvfs: false,
        facts: None,
        model: None,
        dilation: 1.0,
        scope: ScopeSettings { everything: true, ..ScopeSettings::default() },
        record: RecordSettings::default(),
    };
    let domain = |class: u8, first: usize| Domain {
        class,
        cpus: (first..first + CORES / 2).collect(),
        freqs_mhz: vec![1000],
        cpufreq: Vec::new(),
        relative_speed: None,
    };
    let mut setup = Setup::new(settings).expect("settings for this computer");
    setup.cores = CoreMap::new(vec![domain(1, 0), domain(0, CORES / 2)]);
    Session::new(setup).expect("a session")
}

/// Threads of which some run for a moment now and then.
struct Crowd {
    native: Native,
    now_ns: Ns,
    /// Who runs next.
    next: usize,
    threads: usize,
    others: Others,
}

impl Crowd {
    /// Threads come and run for a moment.
    fn join(&mut self, threads: usize, others: Others) {
        let pid = std::process::id();
        for _ in 0..threads {
            let thread = self.native.welcome(1024, (1 << CORES) - 1);
            let own = self.native.thread_mut(thread);
            (own.pid, own.process, own.since_ns) = (pid, pid, self.now_ns);
        }
        (self.threads, self.others) = (threads, others);
        for thread in 0..threads {
            self.happen(thread, Op::Enqueue, EnqueueKind::Fork.number().into());
            if others == Others::Sleep {
                self.run(thread, 0);
            }
        }
    }

    /// Time passes until the next look, in which so many threads run, one after another on each core.
    fn pass(&mut self, changed: usize) {
        self.now_ns += STEP_NS;
        let ran_ns = STEP_NS * CORES as u64 / 2 / changed.max(CORES) as u64;
        for _ in 0..changed {
            let thread = self.next % self.threads;
            self.next += 1;
            if self.others == Others::Sleep {
                self.happen(thread, Op::Enqueue, EnqueueKind::Wake.number().into());
            }
            self.run(thread, ran_ns);
        }
    }

    /// A thread that waits runs.
    fn run(&mut self, thread: usize, ran_ns: Ns) {
        self.happen(thread, Op::Start, 0);
        self.happen(thread, Op::Charge, ran_ns);
        match self.others {
            Others::Sleep => self.happen(thread, Op::Stop, RunState::Blocked.number().into()),
            Others::Wait => self.happen(thread, Op::Requeue, 0),
        }
    }

    fn happen(&mut self, thread: usize, kind: Op, a: u64) {
        let core = (thread % CORES) as u32;
        let (now_ns, kind, thread) = (self.now_ns, kind as u32, thread as u32);
        let mut operation = Operation { now_ns, a, kind, thread, core, ..Operation::default() };
        self.native.operate(std::slice::from_mut(&mut operation));
    }
}

impl FastPlane for Crowd {
    fn load(session: &Session) -> Result<Self, InputError> {
        let (rules, topology) = (session.driver.rules(), session.cores.topology());
        let lowered = lower::rules(&session.name, &Needs::default(), &rules, topology);
        let lowered = lowered.map_err(|why| InputError::new("policy", "", why.to_string()))?;
        let threads_max = THREADS[THREADS.len() - 1] as u32;
        let native = Native::new(lower::state(lowered, &rules, topology, threads_max));
        Ok(Self { native, now_ns: 0, next: 0, threads: 0, others: Others::Sleep })
    }

    fn read_changed(&mut self, changed: &mut Vec<(u32, Thread)>) {
        self.native.read_changed(changed);
    }

    fn read_cores(&mut self, cores: &mut Cores) {
        self.native.read_cores(cores);
    }

    fn clock_ns(&self) -> Ns {
        self.now_ns
    }

    fn apply(&mut self, operations: &mut [Operation]) -> Result<(), ScxError> {
        self.native.operate(operations);
        Ok(())
    }
}
