//! Makes the work of a crew jobs of a queue, or of a dynamic loop, and ties others to the numbers of jobs done.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::acts::{Act, Acts};
use super::crews::{self, Crew};
use super::jobs::{self, Counts, Job};
use super::node::Sym;
use super::objects::{Objects, What};
use super::owners;
use super::stages;
use crate::{Kind, Recording};

/// The capacity of the queue: whoever feeds it waits for jobs done instead.
const CAPACITY: u32 = 1 << 20;
/// Threads that do fewer jobs at a time take turns.
const AT_A_TIME_MIN: f64 = 1.2;
/// If members wait for each other for more than this share of their time, that is told.
const INNER_SHARE_MAX: f64 = 0.05;

/// What was recognised.
pub(super) enum Shares {
    None,
    Made,
    /// To be recognised in this recording instead, in which more threads take jobs, or jobs end at more places.
    In(Box<Recording>),
}

/// Recognises a crew.
pub(super) fn recognise(recording: &Recording, acts: &mut Acts, objects: &mut Objects) -> Shares {
    acts.sort();
    let crew = crews::find(recording, acts);
    let Some(crew) = crew.and_then(|crew| stages::one_stage(recording, acts, crew)) else {
        return Shares::None;
    };
    if let Some(divided) = owners::divided(recording, &crew) {
        return Shares::In(Box::new(divided));
    }
    let jobs = jobs::jobs(recording, acts, &crew.members);
    if jobs.len() < crew.members.len() || jobs::at_a_time(&jobs) < AT_A_TIME_MIN {
        return Shares::None;
    }
    let mut maker = Maker { recording, acts, objects, counts: Counts::of(&jobs), crew, jobs };
    // What threads take from each other, nothing recorded tells.
    let mut members = maker.crew.members.iter().map(|member| &recording.threads[*member as usize]);
    if members.all(crews::looks_for_work) || maker.inner_share() > 0.0 {
        if let Some(divided) = jobs::divided(recording, maker.acts, &maker.crew.members) {
            return Shares::In(Box::new(divided));
        }
    }
    maker.make();
    Shares::Made
}

struct Maker<'a> {
    recording: &'a Recording,
    acts: &'a mut Acts,
    objects: &'a mut Objects,
    counts: Counts,
    crew: Crew,
    jobs: Vec<Job>,
}

/// What a thread outside has to do with the crew: events at which it waits, and at which it wakes.
#[derive(Default)]
struct Outsider {
    waits: Vec<u32>,
    wakes: Vec<u32>,
}

/// A call by which somebody outside may have woken a member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    at_ns: u64,
    thread: u32,
    event: u32,
}

/// Where somebody outside waits for jobs done.
struct Demand {
    event: u32,
    came_ns: u64,
    /// How many must be done.
    jobs: usize,
}

impl Maker<'_> {
    fn make(&mut self) {
        let meetings = self.meetings();
        let inner_share = self.inner_share();
        let outsiders = self.outsiders(&meetings);
        self.clear(&meetings);
        self.clear_own_mutexes();
        self.start_together();
        let calls = self.calls(&outsiders);
        let put_in = self.put_in(&calls);
        let waits = |(thread, one): (&u32, &Outsider)| self.wait(*thread, one, &calls, &put_in);
        let dones: Vec<u32> = outsiders.iter().flat_map(waits).collect();
        let (take, end) = match calls.is_empty() {
            false => {
                let queue = self.feed(&calls, &put_in);
                (Sym::Pop(queue), Sym::PopEnd(queue))
            }
            true => {
                let was =
                    format!("{} jobs of {} threads", self.jobs.len(), self.crew.members.len());
                let pool = self.objects.add(What::Pool { total: self.jobs.len() as f64 }, was);
                (Sym::Take(pool), Sym::TakeEnd(pool))
            }
        };
        self.work(take, end, &dones);
        self.note(inner_share);
    }

    fn note(&mut self, inner_share: f64) {
        let (jobs, members) = (self.jobs.len(), self.crew.members.len());
        let of = |member: &u32| self.jobs.iter().filter(|job| job.member == *member).count();
        self.objects.jobs = self.crew.members.iter().map(of).collect();
        self.objects.note(format!(
            "{jobs} jobs of {members} threads are taken by whoever is free. Others wait for as many jobs as had been \
             done where they were woken, whichever these are."
        ));
        if inner_share > INNER_SHARE_MAX {
            let percent = 100.0 * inner_share;
            self.objects.note(format!(
                "Threads that take jobs waited for each other for {percent:.0} % of their time; that is left out, \
                 so more of them may gain less than they do here."
            ));
        }
    }

    /// Share of the members' time that they waited for each other.
    fn inner_share(&self) -> f64 {
        let post = |sym| if let Sym::SemPost(one) = sym { Some(one) } else { None };
        let posted: HashSet<u32> = self.syms().filter_map(post).collect();
        let (mut waited_ns, mut all_ns) = (0.0, 0.0);
        for member in &self.crew.members {
            let thread = &self.recording.threads[*member as usize];
            let end_ns = thread.events.last().map_or(0, |event| event.at_ns);
            all_ns += end_ns.saturating_sub(thread.begin_ns()) as f64;
            for (at, event) in thread.events.iter().enumerate() {
                if let Some(Sym::SemWait(one)) = self.acts.sym(*member as usize, at) {
                    waited_ns += if posted.contains(&one) { event.wait_ns as f64 } else { 0.0 };
                }
            }
        }
        waited_ns / f64::max(all_ns, 1.0)
    }

    /// All steps of members.
    fn syms(&self) -> impl Iterator<Item = Sym> + '_ {
        self.crew.members.iter().flat_map(move |member| {
            let index = *member as usize;
            let own =
                (0..self.acts.acts[index].len()).filter_map(move |at| self.acts.sym(index, at));
            let extra = self.acts.extra[index].iter().map(|(_, sym)| *sym);
            own.chain(extra)
        })
    }

    /// Semaphores that members of the crew take or post, and barriers at which they meet.
    fn meetings(&self) -> HashSet<u32> {
        let meeting = |sym| match sym {
            Sym::SemWait(one) | Sym::SemPost(one) | Sym::Barrier(one) => Some(one),
            _ => None,
        };
        self.syms().filter_map(meeting).collect()
    }

    /// Threads outside of the crew that have to do with it.
    fn outsiders(&self, meetings: &HashSet<u32>) -> BTreeMap<u32, Outsider> {
        let mut found: BTreeMap<u32, Outsider> = BTreeMap::new();
        for (thread, recorded) in (0..).zip(&self.recording.threads) {
            if self.crew.members.contains(&thread) {
                continue;
            }
            let one = found.entry(thread).or_default();
            for (at, event) in (0..).zip(&recorded.events) {
                let sym = self.acts.sym(thread as usize, at as usize);
                let is_join = event.kind == Kind::Join && self.crew.members.contains(&event.object);
                let waits = match sym {
                    Some(Sym::SemWait(one) | Sym::Barrier(one)) => meetings.contains(&one),
                    _ => false,
                };
                if is_join || waits {
                    one.waits.push(at);
                }
                if matches!(sym, Some(Sym::SemPost(one)) if meetings.contains(&one)) {
                    one.wakes.push(at);
                }
            }
            for (place, sym) in &self.acts.extra[thread as usize] {
                if matches!(sym, Sym::SemPost(one) if meetings.contains(one)) {
                    one.wakes.push(place / 2);
                }
            }
        }
        found.retain(|_, one| !one.waits.is_empty() || !one.wakes.is_empty());
        found
    }

    /// Takes away what members do but their work, and input and output, and what others have to do with it.
    fn clear(&mut self, meetings: &HashSet<u32>) {
        let is_theirs = |sym: &Sym| match sym {
            Sym::SemWait(one) | Sym::SemPost(one) | Sym::Barrier(one) => meetings.contains(one),
            _ => false,
        };
        for (thread, list) in (0..).zip(&mut self.acts.acts) {
            let is_member = self.crew.members.contains(&thread);
            for act in list.iter_mut() {
                let is_out = match act {
                    Act::Sym(Sym::Io(_)) => false,
                    Act::Sym(sym) => is_member || is_theirs(sym),
                    _ => false,
                };
                if is_out {
                    *act = Act::None;
                }
            }
            let extra = &mut self.acts.extra[thread as usize];
            extra.retain(|(_, sym)| !is_member && !is_theirs(sym));
        }
    }

    /// The owner starts all members, and whom they started, where it started the first of them, and waits for their
    /// ends where it waits for the last of all.
    fn start_together(&mut self) {
        let moved = self.moved();
        let owner = self.crew.owner as usize;
        let (mut started, mut joined) = (None, None);
        let mut alone: HashSet<u32> = HashSet::new();
        for (at, event) in (0..).zip(&self.recording.threads[owner].events) {
            let act = &mut self.acts.acts[owner][at as usize];
            let is_moved = moved.contains(&event.object);
            match (event.kind, &act) {
                (Kind::Create, _) if is_moved => started = started.or(Some(at)),
                (Kind::Join, _) if is_moved => joined = Some(at),
                (_, Act::Sym(Sym::Fork(child))) => {
                    alone.insert(*child);
                    continue;
                }
                (_, Act::Sym(Sym::Join(child))) => {
                    alone.remove(child);
                    joined = Some(at);
                    continue;
                }
                _ => continue,
            }
            *act = Act::None;
        }
        for child in moved {
            self.acts.parent[child as usize] = Some(self.crew.owner);
            if let Some(at) = started {
                self.acts.behind(self.crew.owner, at, Sym::Fork(child));
            }
            if let Some(at) = joined.filter(|_| alone.is_empty()) {
                self.acts.behind(self.crew.owner, at, Sym::Join(child));
            }
        }
    }

    /// Mutexes that one member uses, with somebody outside: whoever takes a job has none of its own.
    fn clear_own_mutexes(&mut self) {
        let mut users: HashMap<u32, HashSet<u32>> = HashMap::new();
        for member in &self.crew.members {
            for act in &self.acts.acts[*member as usize] {
                if let Act::Enter(mutex) = act {
                    users.entry(*mutex).or_default().insert(*member);
                }
            }
        }
        let is_own = |mutex: &u32| users.get(mutex).is_some_and(|users| users.len() == 1);
        for act in self.acts.acts.iter_mut().flatten() {
            if matches!(act, Act::Enter(mutex) | Act::Leave(mutex) if is_own(mutex)) {
                *act = Act::None;
            }
        }
    }

    /// Members and whom they started, the members last.
    fn moved(&self) -> Vec<u32> {
        let is_member = |thread: u32| self.crew.members.contains(&thread);
        let is_moved = |child: &u32| {
            is_member(*child) || self.acts.parent[*child as usize].is_some_and(is_member)
        };
        let mut moved: Vec<u32> =
            (0..self.recording.threads.len() as u32).filter(is_moved).collect();
        moved.sort_by_key(|child| is_member(*child));
        moved
    }

    /// Semaphores by which a thread outside waits for the crew. While it puts jobs in, it waits for room: with more
    /// threads, for as much more as they take.
    fn wait(&mut self, thread: u32, one: &Outsider, calls: &[Call], put_in: &[usize]) -> Vec<u32> {
        let own = calls.iter().filter(|call| call.thread == thread);
        let last_call = own.map(|call| call.event).max().unwrap_or(0);
        let (room, results): (Vec<Demand>, Vec<Demand>) =
            self.demands(thread, one).into_iter().partition(|demand| demand.event < last_call);
        let in_flight = |demand: &Demand| {
            let before = calls.partition_point(|call| call.at_ns <= demand.came_ns);
            let put_in = before.checked_sub(1).map_or(0, |last| put_in[last]);
            (put_in + 1).saturating_sub(demand.jobs) as f64
        };
        let members = self.crew.members.len() as u32;
        let mean = room.iter().map(in_flight).sum::<f64>() / room.len().max(1) as f64;
        let each = (mean / f64::from(members)).round().max(1.0) as u32;
        let of_room = self.take(thread, What::Room { members, each }, &room);
        let of_results = self.take(thread, What::Semaphore { initial: 0, fan: 1 }, &results);
        of_room.into_iter().chain(of_results).collect()
    }

    /// Where a thread outside waited for the crew it waits for one job more than was done when it came.
    fn demands(&self, thread: u32, one: &Outsider) -> Vec<Demand> {
        let mut found: Vec<Demand> = Vec::new();
        for at in &one.waits {
            let event = &self.recording.threads[thread as usize].events[*at as usize];
            let came_ns = event.at_ns.saturating_sub(event.wait_ns);
            let done = self.counts.done(event.at_ns);
            let jobs = match event.kind {
                Kind::Join => done,
                _ => done.min(self.counts.done(came_ns) + 1),
            };
            if found.last().map_or(0, |last| last.jobs) < jobs {
                found.push(Demand { event: *at, came_ns, jobs });
            }
        }
        found
    }

    /// A semaphore that a thread takes as demanded.
    fn take(&mut self, thread: u32, what: What, demands: &[Demand]) -> Option<u32> {
        let all = demands.last()?.jobs;
        let was = match what {
            What::Room { .. } => format!("jobs done, {all} waited for before others"),
            _ => format!("jobs done, {all} waited for"),
        };
        let semaphore = self.objects.add(what, was);
        let mut had = 0;
        for demand in demands {
            for _ in had..demand.jobs {
                self.acts.behind(thread, demand.event, Sym::SemWait(semaphore));
            }
            had = demand.jobs;
        }
        Some(semaphore)
    }

    /// Where those outside make the calls by which some of them woke members, by time.
    fn calls(&self, outsiders: &BTreeMap<u32, Outsider>) -> Vec<Call> {
        let mut found = Vec::new();
        for (thread, one) in outsiders {
            let events = &self.recording.threads[*thread as usize].events;
            let wakes = one.wakes.iter().map(|at| &events[*at as usize]);
            let kinds: HashSet<(Kind, u32)> =
                wakes.map(|event| (event.kind, event.object)).collect();
            for (at, event) in (0..).zip(events) {
                if kinds.contains(&(event.kind, event.object)) {
                    found.push(Call { at_ns: event.at_ns, thread: *thread, event: at });
                }
            }
        }
        found.sort_unstable();
        found
    }

    /// Jobs that were put in up to each call: evenly, and none later than it was begun.
    fn put_in(&self, calls: &[Call]) -> Vec<usize> {
        let all = self.jobs.len();
        let mut put_in = 0;
        let up_to = |(number, _): (usize, &Call)| {
            let evenly = all * (number + 1) / calls.len();
            let begun = calls.get(number + 1).map_or(all, |next| self.counts.begun(next.at_ns));
            put_in = evenly.max(begun).max(put_in);
            put_in
        };
        calls.iter().enumerate().map(up_to).collect()
    }

    /// Whoever makes such calls puts jobs in there, and what was begun before all of them at its thread's begin.
    fn feed(&mut self, calls: &[Call], put_in: &[usize]) -> u32 {
        let was = format!("{} jobs of {} threads", self.jobs.len(), self.crew.members.len());
        let queue = self.objects.add(What::Queue { capacity: CAPACITY }, was);
        let mut had = self.counts.begun(calls[0].at_ns);
        (0..had).for_each(|_| self.acts.behind(calls[0].thread, 0, Sym::Push(queue)));
        for (call, all) in calls.iter().zip(put_in) {
            for _ in had..*all {
                self.acts.behind(call.thread, call.event, Sym::Push(queue));
            }
            had = had.max(*all);
        }
        queue
    }

    /// Members take jobs and tell that they are done.
    fn work(&mut self, take: Sym, end: Sym, dones: &[u32]) {
        let mut last: HashMap<u32, u32> = HashMap::new();
        for job in &self.jobs {
            self.acts.behind(job.member, job.first - 1, take);
            for done in dones {
                self.acts.behind(job.member, job.last, Sym::SemPost(*done));
            }
            last.insert(job.member, job.last);
        }
        for member in &self.crew.members {
            self.acts.behind(*member, last.get(member).copied().unwrap_or(0), end);
        }
    }
}
