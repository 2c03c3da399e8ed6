//! What the members of a crew do, as jobs: where one ends and the next one begins.

use std::collections::{BTreeMap, HashMap};

use super::acts::Acts;
use crate::{Event, Kind, Recording};

/// Less than this share of the mean is no job but what is done between two.
const JOB_SHARE_MIN: f64 = 0.1;
/// Least jobs per member.
const JOBS_MIN: usize = 2;
/// Jobs whose distances to their median differ by less, as a share of their mean, are equally alike.
const UNEVEN_STEP: f64 = 0.25;
/// Pieces per member, on average, if nothing tells where jobs end.
const PIECES: f64 = 50.0;
/// Work before an event is divided from so many times as much as a piece.
const DIVIDED_FROM: f64 = 2.0;
/// Work that tells that a job has begun, or has not ended: this share of it.
const BEGUN_SHARE: f64 = 0.02;

/// A job of a member of a crew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Job {
    pub member: u32,
    /// Its events.
    pub first: u32,
    pub last: u32,
    pub start_ns: u64,
    pub end_ns: u64,
}

/// All jobs, by member and time. Jobs end where members come to an object that they share: the one that makes jobs most
/// alike, of such the one that they come to most rarely; if there is none, at any event.
pub(super) fn jobs(recording: &Recording, acts: &Acts, members: &[u32]) -> Vec<Job> {
    let works = Works::new(recording, acts, members);
    marked(&works, members).unwrap_or_else(|| {
        let all = members.iter().map(|member| {
            let count = recording.threads[*member as usize].events.len() as u32;
            (*member, (1..count).collect())
        });
        works.cut(&all.collect(), works.piece() / 2.0)
    })
}

/// Jobs that end at an object that members share.
fn marked(works: &Works<'_>, members: &[u32]) -> Option<Vec<Job>> {
    let busy = members.iter().filter(|member| works.total(**member) > 0.0).count();
    let marks = shared_marks(works.recording, members).into_values();
    let fine =
        marks.map(|marks| works.cut(&marks, 0.0)).filter(|jobs| jobs.len() >= JOBS_MIN * busy);
    fine.min_by_key(|jobs| (works.unevenness(jobs), jobs.len()))
}

/// The recording in which no event of a member has more work before it than a piece; none if something tells where jobs
/// end, or if there is no such event.
pub(super) fn divided(recording: &Recording, acts: &Acts, members: &[u32]) -> Option<Recording> {
    let works = Works::new(recording, acts, members);
    let piece = works.piece();
    let longest = works.by_member.values().flatten().copied().fold(0.0, f64::max);
    if longest <= DIVIDED_FROM * piece || marked(&works, members).is_some() {
        return None;
    }
    let mut found = recording.clone();
    for member in members {
        let thread = &mut found.threads[*member as usize];
        let mut since_ns = thread.begin_ns();
        let mut events = Vec::with_capacity(thread.events.len());
        for (event, work) in thread.events.iter().zip(&works.by_member[member]) {
            // What is active waiting is no work that others could have taken.
            let pieces =
                if *work == event.work_ns as f64 { (work / piece).round() as u64 } else { 1 };
            divide(*event, since_ns, pieces.max(1), &mut events);
            since_ns = event.at_ns;
        }
        thread.events = events;
    }
    Some(found)
}

/// Adds an event, and before it others that mean nothing, so that there is the same work before each.
fn divide(event: Event, since_ns: u64, pieces: u64, events: &mut Vec<Event>) {
    let came_ns = event.at_ns.saturating_sub(event.wait_ns).max(since_ns);
    let (work_ns, cpu_ns) = (event.work_ns / pieces, event.cpu_ns / pieces);
    for piece in 1..pieces {
        let at_ns = since_ns + (came_ns - since_ns) / pieces * piece;
        events.push(Event { cpu_ns, ..Event::new(Kind::Yield, at_ns, work_ns) });
    }
    let rest = pieces - 1;
    events.push(Event {
        work_ns: event.work_ns - rest * work_ns,
        cpu_ns: event.cpu_ns - rest * cpu_ns,
        ..event
    });
}

/// Events by member.
type Marks = HashMap<u32, Vec<u32>>;

/// Where members come to objects to which all that do anything come.
fn shared_marks(recording: &Recording, members: &[u32]) -> BTreeMap<(Kind, u32), Marks> {
    let mut found: BTreeMap<(Kind, u32), Marks> = BTreeMap::new();
    for member in members {
        for (at, event) in (0..).zip(&recording.threads[*member as usize].events) {
            if is_mark(event) {
                let marks = found.entry((event.kind, event.object)).or_default();
                marks.entry(*member).or_default().push(at);
            }
        }
    }
    let comers: Option<usize> = found.values().map(HashMap::len).max();
    found.retain(|_, marks| marks.len() > 1 && Some(marks.len()) >= comers.map(|most| most - 1));
    found
}

fn is_mark(event: &Event) -> bool {
    matches!(
        event.kind,
        Kind::Lock
            | Kind::WriteLock
            | Kind::SpinLock
            | Kind::Signal
            | Kind::Broadcast
            | Kind::SemPost
            | Kind::SemWait
            | Kind::Read
    )
}

/// Work of members, event by event.
struct Works<'a> {
    recording: &'a Recording,
    by_member: BTreeMap<u32, Vec<f64>>,
}

impl<'a> Works<'a> {
    fn new(recording: &'a Recording, acts: &Acts, members: &[u32]) -> Self {
        let of = |member: &u32| {
            let index = *member as usize;
            let events = recording.threads[index].events.iter().enumerate();
            (*member, events.map(|(at, event)| acts.work_ns(index, at, event)).collect())
        };
        Self { recording, by_member: members.iter().map(of).collect() }
    }

    /// How much jobs differ: their mean distance to the median by their mean, in steps. The last block of a file is
    /// short and may be one of few: by it, the standard deviation hides that the others agree.
    fn unevenness(&self, jobs: &[Job]) -> u32 {
        let work = |job: &Job| {
            self.by_member[&job.member][job.first as usize..=job.last as usize].iter().sum::<f64>()
        };
        let mut works: Vec<f64> = jobs.iter().map(work).collect();
        works.sort_by(f64::total_cmp);
        let Some(median) = works.get(works.len() / 2) else { return 0 };
        let distances: f64 = works.iter().map(|work| (work - median).abs()).sum();
        (distances / works.iter().sum::<f64>().max(1.0) / UNEVEN_STEP).round() as u32
    }

    fn total(&self, member: u32) -> f64 {
        self.by_member[&member].iter().sum()
    }

    /// The work of a piece if nothing tells where jobs end.
    fn piece(&self) -> f64 {
        let all: f64 = self.by_member.values().flatten().sum();
        all / (PIECES * self.by_member.len() as f64)
    }

    /// Cuts behind these events, but for pieces of less work.
    fn cut(&self, marks: &Marks, least: f64) -> Vec<Job> {
        let mut pieces: Vec<(u32, u32, u32, f64)> = Vec::new();
        for (member, works) in &self.by_member {
            let end = works.len() as u32 - 1;
            let inner = marks.get(member).into_iter().flatten().filter(|mark| **mark < end);
            let (mut first, mut sum, mut next) = (1, 0.0, 1);
            for mark in inner.copied().chain([end]) {
                sum += works[next..=mark as usize].iter().sum::<f64>();
                next = mark as usize + 1;
                if sum >= least && mark >= first {
                    pieces.push((*member, first, mark, std::mem::take(&mut sum)));
                    first = mark + 1;
                }
            }
            match pieces.last_mut().filter(|(one, ..)| one == member) {
                Some(last) => *last = (*member, last.1, end, last.3 + sum),
                None if sum > 0.0 => pieces.push((*member, 1, end, sum)),
                None => {}
            }
        }
        self.joined(pieces)
    }

    /// Joins what is between two jobs to the one that follows, or to the last one.
    fn joined(&self, pieces: Vec<(u32, u32, u32, f64)>) -> Vec<Job> {
        let all: f64 = pieces.iter().map(|piece| piece.3).sum();
        // The mean as work sees it: short pieces do not count.
        let squares: f64 = pieces.iter().map(|piece| piece.3 * piece.3).sum();
        let mean = squares / all.max(1.0);
        let mut found: Vec<(u32, u32, u32, f64)> = Vec::new();
        let mut open: Option<(u32, u32, u32, f64)> = None;
        for piece in pieces {
            let (member, mut first, last, mut work) = piece;
            let is_short = work < JOB_SHARE_MIN * mean;
            if let Some(short) = open.take() {
                if short.0 == member {
                    (first, work) = (short.1, work + short.3);
                } else {
                    append(&mut found, short);
                }
            }
            // Several that are short are no job either, unless they are as much as one together.
            match is_short && work < mean {
                true => open = Some((member, first, last, work)),
                false => found.push((member, first, last, work)),
            }
        }
        open.into_iter().for_each(|short| append(&mut found, short));
        found
            .into_iter()
            .map(|(member, first, last, work)| self.job(member, first, last, work))
            .collect()
    }

    fn job(&self, member: u32, first: u32, last: u32, work: f64) -> Job {
        let events = &self.recording.threads[member as usize].events;
        let works = &self.by_member[&member];
        let range = first as usize..=last as usize;
        let is_much = |at: &usize| works[*at] >= BEGUN_SHARE * work;
        let begin = range.clone().find(is_much).unwrap_or(first as usize);
        let end = range.rev().find(is_much).unwrap_or(last as usize);
        let start_ns = events[begin.saturating_sub(1)].at_ns;
        let end_ns = events[end].at_ns.saturating_sub(events[end].wait_ns).max(start_ns);
        Job { member, first, last, start_ns, end_ns }
    }
}

/// Adds what is too short to be a job to the member's last one.
fn append(found: &mut Vec<(u32, u32, u32, f64)>, short: (u32, u32, u32, f64)) {
    match found.last_mut().filter(|job| job.0 == short.0) {
        Some(job) => *job = (job.0, job.1, short.2, job.3 + short.3),
        None if short.3 > 0.0 => found.push(short),
        None => {}
    }
}

/// How many jobs were being done at a time, on average, while there were any.
pub(super) fn at_a_time(jobs: &[Job]) -> f64 {
    let mut spans: Vec<(u64, u64)> = jobs.iter().map(|job| (job.start_ns, job.end_ns)).collect();
    spans.sort_unstable();
    let (mut all, mut busy, mut until_ns) = (0.0, 0.0, 0);
    for (start_ns, end_ns) in spans {
        all += (end_ns - start_ns) as f64;
        busy += end_ns.saturating_sub(start_ns.max(until_ns)) as f64;
        until_ns = until_ns.max(end_ns);
    }
    all / f64::max(busy, 1.0)
}

/// Numbers of jobs that had begun, or ended, by time.
pub(super) struct Counts {
    starts: Vec<u64>,
    ends: Vec<u64>,
}

impl Counts {
    pub fn of(jobs: &[Job]) -> Self {
        let mut starts: Vec<u64> = jobs.iter().map(|job| job.start_ns).collect();
        let mut ends: Vec<u64> = jobs.iter().map(|job| job.end_ns).collect();
        starts.sort_unstable();
        ends.sort_unstable();
        Self { starts, ends }
    }

    /// Jobs that had begun before that time.
    pub fn begun(&self, at_ns: u64) -> usize {
        self.starts.partition_point(|start_ns| *start_ns < at_ns)
    }

    /// Jobs that had ended by then.
    pub fn done(&self, at_ns: u64) -> usize {
        self.ends.partition_point(|end_ns| *end_ns <= at_ns)
    }
}
