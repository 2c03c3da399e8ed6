//! Rounds of the task runtime: random graphs, accesses and loops on real threads, some of which panic or are cancelled.
//!
//! What a round has computed is compared with the sequential result, which is the same whatever the interleaving.

use std::cell::UnsafeCell;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use ampsched_task::{Draft, Graph, REGISTRY, Recording, TaskId};
use ampsched_taskrt::{Config, Cores, Datum, Error, Runtime, Scope};

use crate::dice::Dice;
use crate::panics;

/// Data that tasks of a round read and write.
const DATA: usize = 4;
/// Most tasks of a round.
const TASKS_MAX: u64 = 14;
/// Policies that can start tasks while others are being created.
const AT_ONCE: [&str; 4] = ["cats", "cats-cost", "fifo", "work-stealing"];
/// What a payload says that is thrown on purpose.
const THROWN: &str = "on purpose";

/// One runtime for each policy.
pub struct Team {
    all: Vec<Runtime>,
    at_once: Vec<Runtime>,
}

impl Team {
    /// Of so many workers each, half of them supposed to be twice as fast; not pinned, as there may be fewer cores.
    ///
    /// # Errors
    /// No more threads.
    pub fn new(workers: usize) -> Result<Self, String> {
        let big = workers.div_ceil(2);
        let cores = format!("big:2=0-{};little={big}-{}", big - 1, workers.max(big + 1) - 1);
        let make = |policy: &str, record: bool| {
            let cores = Cores::parse(&cores).map_err(|error| error.to_string())?;
            let policy = policy.to_owned();
            let config = Config { policy, pin: false, record, ..Config::new(cores) };
            Runtime::new(&config).map_err(|error| error.to_string())
        };
        let all = REGISTRY.iter().map(|info| make(info.name, false));
        let at_once = AT_ONCE.iter().map(|&name| make(name, true));
        Ok(Self {
            all: all.collect::<Result<_, _>>()?,
            at_once: at_once.collect::<Result<_, _>>()?,
        })
    }

    /// The round of that number; else what was wrong with it.
    ///
    /// # Errors
    /// The result differs from the sequential one.
    pub fn round(&self, seed: u64, number: u64) -> Result<(), String> {
        let dice = &mut Dice::new(seed, number);
        let runtime = dice.of::<Runtime>(&self.all);
        let at_once = dice.of::<Runtime>(&self.at_once);
        match dice.whole(0..=11) {
            0..=7 => plain(runtime, dice),
            8 => {
                let tasks = accesses(|body| at_once.scope(body), dice)?;
                recorded(at_once, tasks)
            }
            9 => growing(at_once, dice),
            10 => nested(runtime, dice),
            _ => callers(runtime, dice),
        }
    }

    /// A data race on purpose, which ThreadSanitizer has to see: two tasks write one place at the same time.
    ///
    /// # Errors
    /// Of the runtime.
    pub fn race(&self) -> Result<(), String> {
        let (place, arrived) = (Unordered(UnsafeCell::new(0)), AtomicUsize::new(0));
        let body = |_| {
            // Relaxed: that one task sees the other puts nothing in order.
            arrived.fetch_add(1, Ordering::Relaxed);
            while arrived.load(Ordering::Relaxed) < 2 {
                std::hint::spin_loop();
            }
            place.write();
        };
        let mut draft = Draft::new("race");
        for name in ["one", "other"] {
            draft.task(name, "", 1.0, 0).expect("a task");
        }
        let graph = draft.finish().expect("there are no links");
        self.at_once[0].run_graph(&graph, body).map_err(|error| error.to_string())
    }
}

/// A place that threads write in no order.
struct Unordered(UnsafeCell<u64>);

// SAFETY: none; that is what it is for.
#[allow(unsafe_code)]
unsafe impl Sync for Unordered {}

impl Unordered {
    #[inline(never)]
    fn write(&self) {
        // SAFETY: none, see above; nothing depends on the value.
        #[allow(unsafe_code)]
        unsafe {
            *self.0.get() += 1;
        }
    }
}

/// A round that any thread may call, also beside others.
fn plain(runtime: &Runtime, dice: &mut Dice) -> Result<(), String> {
    match dice.whole(0..=7) {
        0..=2 => graph(runtime, dice),
        3..=4 => accesses(|body| runtime.graph(body), dice).map(|_| ()),
        5 => loops(runtime, dice),
        6 => broken_loop(runtime, dice),
        _ => broken_graph(runtime, dice),
    }
}

/// Threads that are no workers call one runtime at the same time.
fn callers(runtime: &Runtime, dice: &mut Dice) -> Result<(), String> {
    let seeds: Vec<u64> = (0..dice.whole(2..=3)).map(|_| dice.bits()).collect();
    std::thread::scope(|scope| {
        let call = |seed: u64| scope.spawn(move || plain(runtime, &mut Dice::new(seed, 0)));
        let threads: Vec<_> = seeds.into_iter().map(call).collect();
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        ended.into_iter().try_for_each(|end| end.unwrap_or_else(|_| Err(panics::last())))
    })
}

fn same(what: &str, is: u64, should: u64) -> Result<(), String> {
    if is == should { Ok(()) } else { Err(format!("{what}: {is} is not {should}")) }
}

/// A result that depends on the task and on the results before it, in their order.
fn mixed(task: u64, before: impl Iterator<Item = u64>) -> u64 {
    before.fold(task.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, |sum, value| {
        (sum.rotate_left(7) ^ value).wrapping_mul(0xff51_afd7_ed55_8ccd)
    })
}

fn random_graph(dice: &mut Dice) -> Graph {
    let mut draft = Draft::new("random");
    for task in 0..dice.whole(1..=TASKS_MAX) as u32 {
        draft.task(&task.to_string(), "", dice.whole(0..=3) as f64, 0).expect("a task");
        let mut before: Vec<u32> = (0..dice.whole(0..=3))
            .filter(|_| task > 0)
            .map(|_| dice.index(task as usize) as u32)
            .collect();
        before.sort_unstable();
        before.dedup();
        before.into_iter().for_each(|from| draft.link(from, task, 0.0, 0).expect("a link"));
    }
    draft.finish().expect("links lead on")
}

fn graph(runtime: &Runtime, dice: &mut Dice) -> Result<(), String> {
    let graph = random_graph(dice);
    let results: Vec<AtomicU64> = graph.tasks().map(|_| AtomicU64::new(0)).collect();
    let twice = AtomicU64::new(0);
    let get = |task: &TaskId| results[task.index()].load(Ordering::Relaxed);
    let ran = runtime.run_graph(&graph, |task| {
        let value = mixed(task.0.into(), graph.predecessors(task).iter().map(get));
        twice.fetch_add(
            u64::from(results[task.index()].swap(value, Ordering::Relaxed) != 0),
            Ordering::Relaxed,
        );
    });
    ran.map_err(|error| error.to_string())?;
    same("tasks executed twice", twice.into_inner(), 0)?;
    let mut expected: Vec<u64> = Vec::new();
    for task in graph.tasks() {
        let before = graph.predecessors(task).iter().map(|from| expected[from.index()]);
        let value = mixed(task.0.into(), before);
        expected.push(value);
        same(&format!("task {}", task.0), get(&task), value)?;
    }
    Ok(())
}

/// What programs may call their tasks.
const NAMES: [&str; 5] = ["", "1", "mix", "mix (2)", " a;\"b\n"];

/// Which data each task reads, which one it writes, and its name.
type Accesses = Vec<(Vec<usize>, usize, &'static str)>;

fn access(data: &[Datum<u64>], task: u64, reads: &[usize], writes: usize) {
    let mut write = data[writes].write();
    let before = reads.iter().map(|&read| *data[read].read());
    *write = mixed(task, before.chain([*write]).collect::<Vec<_>>().into_iter());
}

fn data() -> Vec<Datum<u64>> {
    (0..DATA).map(|_| Datum::new(0)).collect()
}

/// Tasks whose order follows from what they read and write; how many there were.
fn accesses<'env>(
    run: impl FnOnce(
        Box<dyn for<'scope> FnOnce(&'scope Scope<'scope, 'env>) + 'env>,
    ) -> Result<(), Error>,
    dice: &mut Dice,
) -> Result<usize, String> {
    let tasks: Accesses = (0..dice.whole(1..=TASKS_MAX))
        .map(|_| {
            let writes = dice.index(DATA);
            let mut reads: Vec<usize> = (0..dice.whole(0..=3)).map(|_| dice.index(DATA)).collect();
            reads.retain(|&read| read != writes);
            (reads, writes, *dice.of::<&str>(&NAMES))
        })
        .collect();
    let shared = std::sync::Arc::new(data());
    let (their, list) = (std::sync::Arc::clone(&shared), tasks.clone());
    run(Box::new(move |scope| {
        for (number, (reads, writes, name)) in list.into_iter().enumerate() {
            let new = scope.task("mix").name(name).writes(&their[writes]);
            let new = reads.iter().fold(new, |new, &read| new.reads(&their[read]));
            let data = std::sync::Arc::clone(&their);
            new.run(move || access(&data, number as u64, &reads, writes));
        }
    }))
    .map_err(|error| error.to_string())?;
    let expected = data();
    for (number, (reads, writes, _)) in tasks.iter().enumerate() {
        access(&expected, number as u64, reads, *writes);
    }
    shared.iter().zip(&expected).enumerate().try_for_each(|(place, (is, should))| {
        same(&format!("datum {place}"), *is.read(), *should.read())
    })?;
    Ok(tasks.len())
}

/// Since the last call the runtime has recorded so many tasks, each with one execution.
fn recorded(runtime: &Runtime, tasks: usize) -> Result<(), String> {
    let recording = runtime.take_recording().map_err(|error| error.to_string())?;
    let recording = recording.ok_or("nothing was recorded")?;
    let again =
        Recording::read("recording", &recording.write()).map_err(|error| error.to_string())?;
    same("tasks read again", again.graph.tasks().len() as u64, tasks as u64)?;
    same("recorded tasks", recording.graph.tasks().len() as u64, tasks as u64)?;
    same("recorded executions", recording.schedule.slots().len() as u64, tasks as u64)
}

/// How many tasks a task creates, and their keys, which follow from its own.
fn children(depth: u32, key: u64) -> impl Iterator<Item = u64> {
    let count = if depth == 0 { 0 } else { key >> 62 };
    (0..count).map(move |child| mixed(child, std::iter::once(key)))
}

/// Number and sum of the keys of a tree.
fn tree(depth: u32, key: u64) -> (usize, u64) {
    children(depth, key)
        .map(|child| tree(depth - 1, child))
        .fold((1, key), |all, part| (all.0 + part.0, all.1.wrapping_add(part.1)))
}

fn grow<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    sum: &'env AtomicU64,
    depth: u32,
    key: u64,
) {
    scope.task("grow").run(move || {
        sum.fetch_add(key, Ordering::Relaxed);
        children(depth, key).for_each(|child| grow(scope, sum, depth - 1, child));
    });
}

/// Tasks that create tasks in the scope that they belong to.
fn growing(runtime: &Runtime, dice: &mut Dice) -> Result<(), String> {
    let (depth, key, sum) = (dice.whole(0..=4) as u32, dice.bits(), AtomicU64::new(0));
    runtime.scope(|scope| grow(scope, &sum, depth, key)).map_err(|error| error.to_string())?;
    let (tasks, expected) = tree(depth, key);
    same("sum of the keys", sum.load(Ordering::Relaxed), expected)?;
    recorded(runtime, tasks)
}

/// Parts of a range that a loop has handed out.
#[derive(Default)]
struct Parts {
    count: AtomicUsize,
    sum: AtomicU64,
}

impl Parts {
    fn add(&self, part: &Range<usize>) {
        self.count.fetch_add(part.len(), Ordering::Relaxed);
        self.sum.fetch_add(part.clone().map(|index| index as u64).sum(), Ordering::Relaxed);
    }

    fn check(&self, range: &Range<usize>) -> Result<(), String> {
        same("iterations", self.count.load(Ordering::Relaxed) as u64, range.len() as u64)?;
        same(
            "their sum",
            self.sum.load(Ordering::Relaxed),
            range.clone().map(|index| index as u64).sum(),
        )
    }
}

fn range(dice: &mut Dice) -> Range<usize> {
    let first = dice.whole(0..=50) as usize;
    first..first + dice.whole(0..=300) as usize
}

fn loops(runtime: &Runtime, dice: &mut Dice) -> Result<(), String> {
    let range = range(dice);
    let parts = Parts::default();
    runtime.for_each(range.clone(), |part| parts.add(&part));
    parts.check(&range)?;
    let all: u64 = range.clone().map(|index| index as u64).sum();
    let sum = |part: Range<usize>| part.map(|index| index as u64).sum::<u64>();
    same("reduced", runtime.map_reduce(range.clone(), || 0, sum, |one, other| one + other), all)?;
    let mut values = vec![0_u64; range.len()];
    runtime.for_each_mut(&mut values, |first, part| {
        part.iter_mut().enumerate().for_each(|(offset, value)| *value = (first + offset) as u64);
    });
    values.iter().enumerate().try_for_each(|(index, &value)| same("element", value, index as u64))
}

/// A loop whose body panics or gives up somewhere: no iteration runs twice, the runtime goes on.
fn broken_loop(runtime: &Runtime, dice: &mut Dice) -> Result<(), String> {
    let range = range(dice);
    let at = range.start + dice.whole(0..=400) as usize;
    let (parts, panics) = (Parts::default(), dice.once_in(2));
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        runtime.try_for_each(range.clone(), |part| {
            parts.add(&part);
            match part.contains(&at) {
                true if panics => std::panic::panic_any(THROWN),
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
    }));
    let breaks = range.contains(&at);
    let is_right = match &outcome {
        Ok(Ok(())) => !breaks,
        Ok(Err(error)) => breaks && !panics && matches!(error, Error::Cancelled { .. }),
        Err(payload) => breaks && panics && payload.downcast_ref() == Some(&THROWN),
    };
    if !is_right {
        return Err(format!(
            "a loop over {range:?} that breaks at {at} (panics: {panics}) ends as {outcome:?}"
        ));
    }
    if !breaks {
        parts.check(&range)?;
    }
    let after = Parts::default();
    runtime.for_each(0..64, |part| after.add(&part));
    after.check(&(0..64))
}

/// A graph of which a task panics, or that a task cancels: what comes behind it does not run.
fn broken_graph(runtime: &Runtime, dice: &mut Dice) -> Result<(), String> {
    let (length, panics) = (dice.whole(2..=TASKS_MAX), dice.once_in(2));
    let at = dice.whole(0..=length - 1);
    let ran = AtomicU64::new(0);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        runtime.graph(|scope| {
            let mut last: Option<TaskId> = None;
            for number in 0..length {
                let new = scope.task("link");
                let new = match last {
                    Some(before) => new.after(before),
                    None => new,
                };
                let ran = &ran;
                last = Some(new.run(move || {
                    ran.fetch_add(1, Ordering::Relaxed);
                    match number == at {
                        true if panics => std::panic::panic_any(THROWN),
                        true => scope.cancel(),
                        false => {}
                    }
                }));
            }
        })
    }));
    let is_last = at == length - 1;
    let is_right = match &outcome {
        Ok(Ok(())) => !panics && is_last,
        Ok(Err(error)) => !panics && matches!(error, Error::Cancelled { .. }),
        Err(payload) => panics && payload.downcast_ref() == Some(&THROWN),
    };
    if !is_right {
        return Err(format!(
            "a chain of {length} tasks that breaks at {at} (panics: {panics}) ends as {outcome:?}"
        ));
    }
    same("tasks that ran", ran.into_inner(), at + 1)
}

/// Loops inside tasks of a graph.
fn nested(runtime: &Runtime, dice: &mut Dice) -> Result<(), String> {
    let graph = random_graph(dice);
    let parts: Vec<Parts> = graph.tasks().map(|_| Parts::default()).collect();
    let ran = runtime.run_graph(&graph, |task| {
        runtime.for_each(0..20 + task.index(), |part| parts[task.index()].add(&part));
    });
    ran.map_err(|error| error.to_string())?;
    graph.tasks().try_for_each(|task| parts[task.index()].check(&(0..20 + task.index())))
}
