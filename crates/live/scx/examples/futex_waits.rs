//! Real threads that let each other wait, under COLAB in this kernel: prints whom the kernel back end blames and for
//! how long, and how long a wait was as the threads see it, as JSON in ms. Tests in a virtual machine call it; cores 0
//! and 1 count as big.
#![allow(unsafe_code)] // Futex calls and mutexes of libc.

use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use ampsched_computer::{ByHand, Root, detect_cores};
use ampsched_policy::build_policy;
use ampsched_scx::class::choose_own;
use ampsched_scx::kernel::{Kernel, Options, Scope, monotonic_ns};
use ampsched_scx::lower;

/// How long each wait is to take.
const WAIT: Duration = Duration::from_millis(100);
/// How often a thread that waits for its turn looks. Sleeping is waiting for nobody.
const POLL: Duration = Duration::from_millis(1);

/// Threads by what they do.
type Tids = Arc<Mutex<BTreeMap<&'static str, i32>>>;

/// What a pair of threads shares.
#[derive(Default)]
struct Stage {
    /// The one that makes the other wait is ready.
    set: AtomicBool,
    /// All has been done and read: threads may end.
    over: AtomicBool,
    first: AtomicU32,
    second: AtomicU32,
    /// When one was about to wait, and when the other was about to wake it and had done so.
    waits_ns: AtomicU64,
    wakes_ns: AtomicU64,
    has_woken_ns: AtomicU64,
}

impl Stage {
    fn wait_in(&self, call: impl FnOnce()) {
        self.waits_ns.store(monotonic_ns(), Ordering::SeqCst);
        call();
    }

    fn wake_in(&self, call: impl FnOnce()) {
        self.wakes_ns.store(monotonic_ns(), Ordering::SeqCst);
        call();
        self.has_woken_ns.store(monotonic_ns(), Ordering::SeqCst);
    }

    /// Between what the wait must have been, in ms.
    fn waited_ms(&self) -> [f64; 2] {
        let since_ns = self.waits_ns.load(Ordering::SeqCst);
        [&self.wakes_ns, &self.has_woken_ns]
            .map(|at| at.load(Ordering::SeqCst).saturating_sub(since_ns) as f64 / 1e6)
    }
}

fn until(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        sleep(POLL);
    }
}

fn load() -> Kernel {
    let by_hand = ByHand { classes: vec!["2-3".to_owned(), "0-1".to_owned()], ratios: vec![] };
    let (cores, _) = detect_cores(&Root::default(), &by_hand).expect("four CPUs");
    let policy = build_policy("colab", &[]).expect("it exists");
    let (topology, needs) = (cores.topology(), policy.needs());
    let rules = policy.rules(topology);
    let lowered = lower::rules("colab", &needs, &rules, topology).expect("it can be lowered");
    let options = Options {
        scope: Scope::Chosen,
        cpus: topology.cores().map(|core| cores.cpu(core) as u32).collect(),
        hotplug_seq: 0,
        timeout_ms: 10_000,
        epoch_limit_ns: 0,
    };
    let initial = lower::state(lowered, &rules, topology, 64);
    Kernel::load(&initial, &rules, &options, needs.blame, None).expect("sched_ext")
}

/// Starts a thread under the policy; it stays until the stage is over, so that its blame can be read.
fn play(
    role: &'static str,
    tids: &Tids,
    stage: &Arc<Stage>,
    act: impl FnOnce(&Stage) + Send + 'static,
) -> JoinHandle<()> {
    let (tids, stage) = (tids.clone(), stage.clone());
    spawn(move || {
        choose_own().expect("root");
        // SAFETY: takes nothing.
        tids.lock().expect("nobody panics").insert(role, unsafe { libc::gettid() });
        act(&stage);
        until(&stage.over);
    })
}

fn futex(word: &AtomicU32, command: i32, value: u32, timeout: Option<Duration>, other: &AtomicU32) {
    let time = timeout.map(|time| libc::timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    });
    // For a requeue the place of the time holds how many threads are moved.
    let time = match &time {
        _ if command == libc::FUTEX_CMP_REQUEUE => std::ptr::without_provenance(1),
        Some(time) => std::ptr::from_ref(time),
        None => std::ptr::null(),
    };
    let command = command | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the words live as long as the threads that share them; the kernel checks the rest.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), command, value, time, other.as_ptr(), 0);
    }
}

/// A mutex whose holder inherits the priority of those that wait.
struct PiMutex(UnsafeCell<libc::pthread_mutex_t>);
// SAFETY: it is a mutex.
unsafe impl Sync for PiMutex {}
// SAFETY: it is never moved once in use.
unsafe impl Send for PiMutex {}

impl PiMutex {
    fn new() -> Arc<Self> {
        let own = Arc::new(Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)));
        // SAFETY: attributes are initialised, used once and given back.
        unsafe {
            let mut how = std::mem::zeroed();
            libc::pthread_mutexattr_init(&raw mut how);
            libc::pthread_mutexattr_setprotocol(&raw mut how, libc::PTHREAD_PRIO_INHERIT);
            libc::pthread_mutex_init(own.0.get(), &raw const how);
            libc::pthread_mutexattr_destroy(&raw mut how);
        }
        own
    }

    fn lock(&self) {
        // SAFETY: initialised.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    fn unlock(&self) {
        // SAFETY: held by the caller.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

/// A lock is held while another thread wants it.
fn mutex(tids: &Tids, stage: &Arc<Stage>) -> Vec<JoinHandle<()>> {
    let lock = Arc::new(Mutex::new(()));
    let other = lock.clone();
    let hold = move |stage: &Stage| {
        let held = lock.lock().expect("nobody panics");
        stage.set.store(true, Ordering::SeqCst);
        sleep(WAIT);
        stage.wake_in(|| drop(held));
    };
    let want = move |stage: &Stage| {
        until(&stage.set);
        stage.wait_in(|| drop(other.lock().expect("nobody panics")));
    };
    vec![play("mutex holder", tids, stage, hold), play("mutex waiter", tids, stage, want)]
}

fn pi_mutex(tids: &Tids, stage: &Arc<Stage>) -> Vec<JoinHandle<()>> {
    let lock = PiMutex::new();
    let other = lock.clone();
    let hold = move |stage: &Stage| {
        lock.lock();
        stage.set.store(true, Ordering::SeqCst);
        sleep(WAIT);
        stage.wake_in(|| lock.unlock());
    };
    let want = move |stage: &Stage| {
        until(&stage.set);
        stage.wait_in(|| other.lock());
        other.unlock();
    };
    vec![play("pi holder", tids, stage, hold), play("pi waiter", tids, stage, want)]
}

/// A thread waits for one futex, is moved to another one and woken there; somebody else wakes a third one meanwhile.
fn requeue(tids: &Tids, stage: &Arc<Stage>) -> Vec<JoinHandle<()>> {
    let wait = |stage: &Stage| {
        stage.set.store(true, Ordering::SeqCst);
        stage.wait_in(|| futex(&stage.first, libc::FUTEX_WAIT, 0, None, &stage.second));
    };
    let shift = |stage: &Stage| {
        until(&stage.set);
        sleep(WAIT / 2);
        futex(&stage.first, libc::FUTEX_CMP_REQUEUE, 0, None, &stage.second);
    };
    let wake = |stage: &Stage| {
        until(&stage.set);
        sleep(WAIT);
        stage.wake_in(|| futex(&stage.second, libc::FUTEX_WAKE, 1, None, &stage.second));
    };
    let miss = |stage: &Stage| {
        until(&stage.set);
        sleep(WAIT / 4);
        futex(&AtomicU32::new(0), libc::FUTEX_WAKE, 1, None, &stage.second);
    };
    vec![
        play("requeue waiter", tids, stage, wait),
        play("requeue mover", tids, stage, shift),
        play("requeue waker", tids, stage, wake),
        play("requeue other", tids, stage, miss),
    ]
}

/// A wait ends by its time-out while threads that run are interrupted by the timer.
fn time_out(tids: &Tids, stage: &Arc<Stage>) -> Vec<JoinHandle<()>> {
    let wait = |stage: &Stage| {
        futex(&stage.first, libc::FUTEX_WAIT, 0, Some(WAIT), &stage.second);
        stage.set.store(true, Ordering::SeqCst);
    };
    let spin = |stage: &Stage| {
        while !stage.set.load(Ordering::SeqCst) {
            std::hint::spin_loop();
        }
    };
    let roles = ["spinner 0", "spinner 1", "spinner 2", "spinner 3"];
    let mut all: Vec<_> = roles.map(|role| play(role, tids, stage, spin)).into();
    all.push(play("timed waiter", tids, stage, wait));
    all
}

/// A thread waits for what another one writes into a pipe.
fn pipe(tids: &Tids, stage: &Arc<Stage>) -> Vec<JoinHandle<()>> {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::FromRawFd;
    let mut ends = [0; 2];
    // SAFETY: writes two descriptors, which nobody else owns.
    let (mut reader, mut writer) = unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0, "a pipe");
        (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
    };
    let read = move |stage: &Stage| {
        stage.set.store(true, Ordering::SeqCst);
        let _ = reader.read(&mut [0]);
    };
    let write = move |stage: &Stage| {
        until(&stage.set);
        sleep(WAIT);
        let _ = writer.write(&[0]);
    };
    vec![play("pipe reader", tids, stage, read), play("pipe writer", tids, stage, write)]
}

/// How threads let each other wait.
type Scene = fn(&Tids, &Arc<Stage>) -> Vec<JoinHandle<()>>;

/// What is printed.
#[derive(Default, serde::Serialize)]
struct Found {
    /// By what a thread does.
    blame_ms: BTreeMap<&'static str, f64>,
    /// By scene: the least and the most that the wait can have been.
    waited_ms: BTreeMap<&'static str, [f64; 2]>,
}

/// Plays a scene and reads the blame of its threads.
fn see(kernel: &mut Kernel, name: &'static str, scene: Scene, found: &mut Found) {
    let (tids, stage) = (Tids::default(), Arc::new(Stage::default()));
    let played = scene(&tids, &stage);
    sleep(8 * WAIT);
    let mut seen = Vec::new();
    kernel.read_changed(&mut seen);
    for (&role, &tid) in tids.lock().expect("nobody panics").iter() {
        let own = seen.iter().find(|(_, thread)| thread.in_use != 0 && thread.pid == tid as u32);
        found.blame_ms.insert(role, own.map_or(f64::NAN, |(_, own)| own.blame_ns as f64 / 1e6));
    }
    found.waited_ms.insert(name, stage.waited_ms());
    stage.over.store(true, Ordering::SeqCst);
    played.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
}

fn main() {
    let mut kernel = load();
    let scenes: [(_, Scene); 5] = [
        ("mutex", mutex),
        ("pi", pi_mutex),
        ("requeue", requeue),
        ("time-out", time_out),
        ("pipe", pipe),
    ];
    let mut found = Found::default();
    for (name, scene) in scenes {
        see(&mut kernel, name, scene, &mut found);
    }
    assert!(kernel.exit().is_none(), "the scheduler has ended");
    println!("RESULT {}", serde_json::to_string(&found).expect("plain data"));
}
