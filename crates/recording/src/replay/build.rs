//! Actions at places of a recording, put together as code.

use std::collections::{BTreeMap, HashMap, HashSet};

use ampsched_model::{
    Amount, Calibration, CodePtr, Object, ObjectId, ObjectKind, Op, Profile, ProfileId, Program,
    SchedAttrs, Schedule, ThreadSpec, TimerMode,
};

use super::path::Part;
use super::{Options, Place, Replay, Sharing, locks, order, watchdogs};
use crate::{Group, Recording};

/// What a thread does at a place, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Action {
    /// The work of a frame has ended.
    EndFrame,
    /// Arrive at a barrier and wait. A mutex that it has given back meanwhile is taken, in its turn, behind that.
    Arrive {
        barrier: u32,
    },
    /// Wait for ties that point here.
    WaitFor {
        thread: u32,
    },
    /// Wait for the end of any of the programs that a thread has started.
    TakeEnd {
        counter: u32,
    },
    /// Release a mutex before waiting for a condition.
    Release {
        mutex: u32,
    },
    Sleep {
        ns: u64,
    },
    /// Sleep until a time since the begin.
    Until {
        at_ns: u64,
    },
    /// Sleep until so long after the time until which it slept before, the first time from now on.
    SleepUntil {
        ns: u64,
    },
    Lock {
        mutex: u32,
    },
    Unlock {
        mutex: u32,
    },
    Fork {
        thread: u32,
    },
    Yield,
    /// A frame begins, or began then.
    BeginFrame {
        begun_ns: u64,
        period_ns: u64,
    },
    /// Arrive at a barrier after having released what was held.
    ArriveAfter {
        barrier: u32,
    },
    /// Let go on who is tied to this place.
    Post {
        thread: u32,
    },
    /// End as one of those programs.
    CountEnd {
        counter: u32,
    },
    /// What follows, up to the end of that, is done for ever.
    Repeat,
    EndRepeat,
}

/// An edge of a share of what several threads do together.
#[derive(Clone, Copy, Debug)]
pub(super) enum Edge {
    Begin,
    End(Share),
}

/// Work that several threads do together, each a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Share {
    /// Up to a barrier, in one of its rounds.
    Round { barrier: u32, round: u32 },
    /// The parallel region with that number.
    Region(u32),
    /// The loop with that number, of so many chunks; or tasks.
    Loop { number: u32, chunks: u32 },
}

/// All actions, and what they refer to.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub actions: Vec<(Place, Action)>,
    /// From what was earlier to what waits for it.
    pub ties: Vec<(Place, Place)>,
    /// Parties of the barriers.
    pub barriers: Vec<u32>,
    /// Work before these events is none: the thread spun while it waited.
    pub spins: HashSet<Place>,
    /// When mutexes were acquired.
    pub lock_times: HashMap<Place, u64>,
    /// Where shares begin and end.
    pub shares: HashMap<Place, Edge>,
    /// The same for what was handed out.
    pub chunks: HashMap<Place, Edge>,
    /// Threads that another one starts.
    pub forked: HashSet<u32>,
    /// Threads that only watch, in ascending order.
    pub watching: Vec<u32>,
}

impl Plan {
    pub(super) fn act(&mut self, place: Place, action: Action) {
        self.actions.push((place, action));
    }

    /// Lets `to` wait for `from`, unless both are of one thread.
    pub(super) fn tie(&mut self, from: Place, to: Place) {
        if from.thread != to.thread {
            self.ties.push((from, to));
        }
    }

    /// Where shares begin and end that are taken piece by piece.
    fn edges(&self, sharing: Sharing) -> &HashMap<Place, Edge> {
        if matches!(sharing, Sharing::Loops(_)) { &self.shares } else { &self.chunks }
    }

    /// A new barrier.
    pub(super) fn barrier(&mut self, parties: u32) -> u32 {
        self.barriers.push(parties);
        self.barriers.len() as u32 - 1
    }

    /// Ties become actions.
    fn settle_ties(&mut self, recording: &Recording) {
        for (from, to) in self.take_ties(recording) {
            self.act(from, Action::Post { thread: to.thread });
            self.act(to, Action::WaitFor { thread: from.thread });
        }
    }

    /// Takes the ties out. One that another one of the same two threads implies is left out, so that the n-th wait of a
    /// pair is for its n-th post.
    pub(super) fn take_ties(&mut self, recording: &Recording) -> Vec<(Place, Place)> {
        let mut pairs: BTreeMap<(u32, u32), Vec<(Place, Place)>> = BTreeMap::new();
        for (from, to) in order::in_order(recording, std::mem::take(&mut self.ties)) {
            pairs.entry((from.thread, to.thread)).or_default().push((to, from));
        }
        let mut found = Vec::new();
        for mut ties in pairs.into_values() {
            ties.sort_unstable();
            let mut latest = None;
            for (to, from) in ties {
                if latest.is_none_or(|latest| from > latest) {
                    latest = Some(from);
                    found.push((from, to));
                }
            }
        }
        found
    }
}

/// Puts a program together.
pub(super) fn assemble(
    recording: &Recording,
    options: &Options,
    mut plan: Plan,
    mut notes: Vec<String>,
) -> Replay {
    locks::keep_order(&mut plan, &mut notes);
    plan.settle_ties(recording);
    let mut actions = std::mem::take(&mut plan.actions);
    actions.sort_unstable();
    let mut code = Code::new(&plan, Shares::of(options.sharing));
    let mut entries = write_threads(recording, options, &plan, &actions, &mut code);
    if options.sharing != Sharing::None {
        let known = std::mem::take(&mut code.shares).known();
        code = Code::new(&plan, known);
        entries = write_threads(recording, options, &plan, &actions, &mut code);
    }
    let processes = watchdogs::processes(recording, &plan);
    let specs = (0..).zip(&recording.threads).zip(entries).zip(processes);
    let threads = specs.map(|(((index, thread), entry), process)| {
        let is_forked = plan.forked.contains(&index);
        let (nice, class) = thread.scheduled();
        ThreadSpec {
            name: thread_name(index, &thread.name),
            entry,
            count: u32::from(!is_forked),
            nice,
            affinity: thread.asks.core_set(),
            start_ns: if is_forked { 0 } else { thread.begin_ns() },
            attrs: SchedAttrs {
                class,
                slice_ns: 0,
                uclamp_min: thread.asks.uclamp_min,
                uclamp_max: thread.asks.uclamp_max,
                group: thread.asks.group,
            },
            is_daemon: plan.watching.binary_search(&index).is_ok(),
            process,
        }
    });
    options.vary(&mut code.ops);
    let info = &recording.info;
    let profile = Profile { name: "recorded".to_owned(), ..options.profile.clone() };
    let program = Program {
        name: info.name.clone(),
        description: format!("replay of a recording: {}", info.command.join(" ")),
        profiles: vec![profile],
        objects: code.objects,
        threads: threads.collect(),
        groups: info.groups.iter().map(Group::of_program).collect(),
        code: code.ops,
        duration_ns: None,
        energy_ratio: None,
        calibration: Calibration::default(),
        held_clocks: info.clocks.iter().map(|clock| clock.held(&info.cores)).collect(),
        recorded_cores: recording.recorded_cores(),
    };
    let (shared_ns, waits, spins) = (code.shares.all_ns(), code.waits, plan.spins);
    Replay { program, notes, shared_ns, waits, spins }
}

/// Writes the code of all threads. Returns where each begins.
fn write_threads(
    recording: &Recording,
    options: &Options,
    plan: &Plan,
    actions: &[(Place, Action)],
    code: &mut Code,
) -> Vec<CodePtr> {
    let mut rest = actions;
    let mut entries = Vec::with_capacity(recording.threads.len());
    for (index, thread) in (0..).zip(&recording.threads) {
        entries.push(CodePtr(code.ops.len() as u32));
        for (event, what) in (0..).zip(&thread.events) {
            let place = Place { thread: index, event };
            if !plan.spins.contains(&place) {
                code.work_ns += what.work_ns as f64 / options.speed;
            }
            match plan.edges(options.sharing).get(&place) {
                Some(Edge::Begin) => code.flush(),
                Some(Edge::End(share)) => code.share(*share),
                None => {}
            }
            let count = rest.iter().take_while(|(at, _)| *at == place).count();
            let (here, behind) = rest.split_at(count);
            rest = behind;
            for (_, action) in here {
                code.act(index, *action);
                let part = Part::of(*action, what);
                code.waits.extend(part.map(|part| (code.ops.len() as u32 - 1, part)));
            }
        }
        code.flush();
        code.ops.push(Op::Exit);
    }
    entries
}

fn thread_name(index: u32, name: &str) -> String {
    if name.is_empty() { format!("t{index}") } else { format!("{name}.{index}") }
}

/// Code as it grows.
struct Code {
    ops: Vec<Op>,
    objects: Vec<Object>,
    barriers: Vec<ObjectId>,
    mutexes: HashMap<u32, ObjectId>,
    pairs: HashMap<(u32, u32), ObjectId>,
    ends: HashMap<u32, ObjectId>,
    timers: HashMap<u32, ObjectId>,
    /// What the waits are that keep their length, by their place in the code.
    waits: BTreeMap<u32, Part>,
    shares: Shares,
    /// Work since the last action, in ns of the machine's fastest core.
    work_ns: f64,
}

impl Code {
    fn new(plan: &Plan, shares: Shares) -> Self {
        let object = |(index, parties): (usize, &u32)| {
            Object::new(format!("barrier {index}"), ObjectKind::Barrier { parties: *parties })
        };
        let objects: Vec<Object> = plan.barriers.iter().enumerate().map(object).collect();
        let barriers = (0..objects.len()).map(ObjectId::from).collect();
        let (ops, waits) = (Vec::new(), BTreeMap::new());
        let (mutexes, pairs, ends) = (HashMap::new(), HashMap::new(), HashMap::new());
        let timers = HashMap::new();
        Self { ops, objects, barriers, mutexes, pairs, ends, timers, waits, shares, work_ns: 0.0 }
    }

    /// The work up to here; parts of a ns go on.
    fn flush(&mut self) {
        let whole_ns = self.work_ns.round();
        if whole_ns >= 1.0 {
            self.work_ns -= whole_ns;
            let reference_ns = Amount::constant(whole_ns);
            self.ops.push(Op::Run { reference_ns, profile: ProfileId(0) });
        }
    }

    /// The work up to here, which is a share of what several threads do.
    fn share(&mut self, share: Share) {
        let Some((total_ns, threads)) = self.shares.meet(share, self.work_ns) else {
            return self.flush();
        };
        self.work_ns = 0.0;
        let most = u64::from(threads) * PIECES;
        let pieces =
            if let Share::Loop { chunks, .. } = share { most.min(chunks.into()) } else { most };
        let (objects, schedule) = (&mut self.objects, self.shares.schedule);
        let pool = *self.shares.pools.entry(share).or_insert_with(|| {
            let kind =
                ObjectKind::Pool { total: pieces, chunk: 1, participants: threads, schedule };
            add(objects, format!("{share:?}"), kind)
        });
        let again = CodePtr(self.ops.len() as u32);
        let reference_ns = Amount::constant((total_ns / pieces as f64).round());
        self.ops.push(Op::Take { pool, end: CodePtr(again.0 + 3) });
        self.ops.push(Op::Run { reference_ns, profile: ProfileId(0) });
        self.ops.push(Op::ItemEnd { again });
    }

    fn act(&mut self, thread: u32, action: Action) {
        self.flush();
        let op = match action {
            Action::WaitFor { thread: poster } => Op::SemWait(self.pair(poster, thread)),
            Action::Post { thread: waiter } => Op::SemPost(self.pair(thread, waiter)),
            Action::TakeEnd { counter } => Op::SemWait(self.ends(counter)),
            Action::CountEnd { counter } => Op::SemPost(self.ends(counter)),
            Action::Release { mutex } | Action::Unlock { mutex } => Op::Unlock(self.mutex(mutex)),
            Action::Lock { mutex } => Op::Lock(self.mutex(mutex)),
            Action::Arrive { barrier } | Action::ArriveAfter { barrier } => {
                Op::Barrier(self.barriers[barrier as usize])
            }
            Action::Sleep { ns } => Op::Sleep(Amount::constant(ns as f64)),
            Action::Until { at_ns } => Op::SleepUntil { at_ns },
            Action::EndFrame => Op::Period { begun_ns: 0, length_ns: 0 },
            Action::BeginFrame { begun_ns, period_ns } => {
                Op::Period { begun_ns, length_ns: period_ns }
            }
            Action::SleepUntil { ns } => {
                let (timer, mode) = (self.timer(thread), TimerMode::Absolute);
                Op::TimerWait { timer, period_ns: ns, mode }
            }
            Action::Fork { thread } => Op::Fork { thread },
            Action::Yield => Op::Yield,
            // 2^64 is for ever; the end is told by the end.
            Action::Repeat => {
                Op::Loop { count: Amount::constant(u64::MAX as f64), end: CodePtr(0) }
            }
            Action::EndRepeat => return self.end_repeat(),
        };
        self.ops.push(op);
    }

    fn end_repeat(&mut self) {
        let end = CodePtr(self.ops.len() as u32 + 1);
        let head = self.ops.iter().rposition(|op| matches!(op, Op::Loop { .. }));
        let Some(head) = head else { return };
        self.ops.push(Op::LoopEnd { start: CodePtr(head as u32 + 1) });
        if let Op::Loop { end: behind, .. } = &mut self.ops[head] {
            *behind = end;
        }
    }

    fn pair(&mut self, poster: u32, waiter: u32) -> ObjectId {
        let objects = &mut self.objects;
        *self.pairs.entry((poster, waiter)).or_insert_with(|| {
            let name = format!("{poster} -> {waiter}");
            add(objects, name, ObjectKind::Semaphore { initial: 0 })
        })
    }

    fn ends(&mut self, counter: u32) -> ObjectId {
        let objects = &mut self.objects;
        *self.ends.entry(counter).or_insert_with(|| {
            add(objects, format!("ends {counter}"), ObjectKind::Semaphore { initial: 0 })
        })
    }

    fn timer(&mut self, thread: u32) -> ObjectId {
        let objects = &mut self.objects;
        *self.timers.entry(thread).or_insert_with(|| {
            add(objects, format!("timer {thread}"), ObjectKind::Timer { shared: false })
        })
    }

    fn mutex(&mut self, mutex: u32) -> ObjectId {
        let objects = &mut self.objects;
        *self
            .mutexes
            .entry(mutex)
            .or_insert_with(|| add(objects, format!("mutex {mutex:x}"), ObjectKind::Mutex))
    }
}

fn add(objects: &mut Vec<Object>, name: String, kind: ObjectKind) -> ObjectId {
    objects.push(Object::new(name, kind));
    ObjectId::from(objects.len() - 1)
}

/// Pieces per thread into which balanced work is divided (ours): fine enough that the last ones do not matter.
const PIECES: u64 = 32;
/// Work of all threads below which it is left as it is, in ns (ours).
const SHARED_NS_MIN: f64 = 20_000.0;

/// What is shared: first it is summed up, then known.
#[derive(Debug, Default)]
struct Shares {
    /// Work of all threads in ns, and how many they are.
    sums: HashMap<Share, (f64, u32)>,
    is_known: bool,
    pools: HashMap<Share, ObjectId>,
    schedule: Schedule,
}

impl Shares {
    /// Of which nothing is known yet.
    fn of(sharing: Sharing) -> Self {
        Self { schedule: sharing.schedule(), ..Self::default() }
    }

    /// The same, to be asked.
    fn known(self) -> Self {
        Self { is_known: true, ..self }
    }

    /// Adds a thread's share; when it is known, all threads' work and their number if it pays to divide it.
    fn meet(&mut self, share: Share, work_ns: f64) -> Option<(f64, u32)> {
        let sum = self.sums.entry(share).or_default();
        if self.is_known {
            return pays(sum).then_some(*sum);
        }
        *sum = (sum.0 + work_ns, sum.1 + 1);
        None
    }

    /// All work that is shared by several threads, in ns.
    fn all_ns(&self) -> f64 {
        self.sums.values().filter(|sum| pays(sum)).map(|(ns, _)| ns).sum()
    }
}

/// Whether it pays to divide so much work of so many threads.
fn pays((ns, threads): &(f64, u32)) -> bool {
    *threads > 1 && *ns >= SHARED_NS_MIN
}
