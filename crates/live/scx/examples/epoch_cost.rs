//! What a step of a session costs by how many threads there are and how many of them have done something: the look,
//! the policy's epoch and the changes of its plan. The fast plane is the kernel's, compiled for this process. Threads
//! sleep, or all wait for a core; some have run for a moment since the last look.
//!
//! Prints a line for each policy, number of threads and number of those that have run: these three, and ns of CPU time
//! per step, median and mean, while the others sleep and while they wait. Policies are given as arguments. Who waits
//! goes where a plan sends it before the next step.

#[path = "../tests/subjects/session.rs"]
mod subjects;

use std::hint::black_box;

use ampsched_live_session::{Backend, JournalFile};
use ampsched_model::Ns;
use ampsched_policy::{Choice, EnqueueKind, Prefer, RunState};
use ampsched_scx::Scx;
use ampsched_scx::layout::{Op, Operation, Set};

use crate::subjects::{Table, cores, session};

const POLICIES: [&str; 4] = ["cfs", "colab", "hsp", "prop-sp"];
const THREADS: [usize; 3] = [1_000, 4_000, 10_000];
const CORES: usize = 8;
const STEP_NS: Ns = 10_000_000;
/// Steps before anything is measured: threads are new then.
const FIRST_STEPS: u64 = 4;
/// Steps that are measured: a second and a half.
const STEPS: u64 = 150;

/// What threads do that do not run.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Others {
    #[default]
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
    let mut session = session(policy, cores(CORES));
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

/// Threads of which some run for a moment now and then.
#[derive(Default)]
struct Turns {
    /// Who runs next.
    next: usize,
    threads: usize,
    others: Others,
}

type Crowd = Table<Turns>;

impl Crowd {
    /// Threads come and run for a moment.
    fn join(&mut self, threads: usize, others: Others) {
        let pid = std::process::id();
        for _ in 0..threads {
            let thread = self.native.init_thread(1024, &Set::ALL);
            let own = self.native.thread_mut(thread);
            (own.pid, own.process, own.since_ns) = (pid, pid, self.now_ns);
        }
        (self.host.threads, self.host.others) = (threads, others);
        for thread in 0..threads {
            self.happen(thread, Op::Enqueue, EnqueueKind::Fork.number().into());
            if others == Others::Sleep {
                self.run(thread, 0);
            }
        }
    }

    /// Time passes until the next look, in which so many threads run, one after another on each core.
    fn pass(&mut self, changed: usize) {
        self.carry_out();
        self.now_ns += STEP_NS;
        let ran_ns = STEP_NS * CORES as u64 / 2 / changed.max(CORES) as u64;
        for _ in 0..changed {
            let thread = self.host.next % self.host.threads;
            self.host.next += 1;
            if self.host.others == Others::Sleep {
                self.happen(thread, Op::Enqueue, EnqueueKind::Wake.number().into());
            }
            self.run(thread, ran_ns);
        }
    }

    /// A thread that waits runs.
    fn run(&mut self, thread: usize, ran_ns: Ns) {
        self.happen(thread, Op::Start, 0);
        self.happen(thread, Op::Charge, ran_ns);
        match self.host.others {
            Others::Sleep => self.happen(thread, Op::Stop, RunState::Blocked.number().into()),
            Others::Wait => self.happen(thread, Op::Requeue, 0),
        }
    }

    /// Who waits where the policy does not want it goes to a core where it does.
    fn carry_out(&mut self) {
        for Operation { thread, .. } in std::mem::take(&mut self.applied) {
            let own = *self.native.thread(thread);
            let core = own.core as usize;
            let suits = |core: &usize| {
                let kind = if *core < CORES / 2 { Prefer::Big } else { Prefer::Little };
                let prefers = own.prefer == Prefer::Any.number() || own.prefer == kind.number();
                prefers && own.affinity.contains(*core)
            };
            let waits = own.in_use != 0 && own.state == RunState::Ready.number();
            let others = (core..core + CORES).map(|core| core % CORES);
            if let Some(to) = others.filter(|_| waits).find(suits).filter(|&to| to != core) {
                self.operate(Op::Dequeue, thread, own.core, 0);
                self.operate(Op::Enqueue, thread, to as u32, EnqueueKind::Requeue.number().into());
            }
        }
    }

    fn happen(&mut self, thread: usize, kind: Op, a: u64) {
        let own = self.native.thread(thread as u32);
        let waits =
            own.state == RunState::Ready.number() || own.state == RunState::Running.number();
        let core = if waits { own.core } else { (thread % CORES) as u32 };
        self.operate(kind, thread as u32, core, a);
    }
}
