//! Dynamic loops: threads that take the next piece of work until none is left.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use super::Level;
use super::acts::{Act, Acts};
use super::node::Sym;
use super::objects::{Objects, What};
use super::visits::{Visit, Visits};
use crate::{Kind, Recording};

/// Least pieces of all phases together.
const PIECES_MIN: usize = 8;
/// Most of the pieces' work that may be done while the mutex is held.
const HOLD_SHARE_MAX: f64 = 0.25;
/// Least share of a phase's work that the pieces are.
const COVERED_SHARE_MIN: f64 = 0.6;
/// Least share of phases that look like a dynamic loop.
const FITTING_SHARE_MIN: f64 = 0.9;
/// Totals that differ by less than this factor are those of one loop.
const TOTAL_FACTOR: f64 = 1.3;

/// A thread and an event of it.
type Spot = (u32, u32);

/// What a thread does with a mutex between two steps.
struct Stretch {
    thread: u32,
    /// (First event, last event, end in ns) of visits.
    visits: Vec<(u32, u32, u64)>,
    /// The event behind which it begins; none: the thread's begin.
    from: Option<u32>,
    /// The event of the step that ends it.
    to: u32,
    /// When the thread comes there.
    end_ns: u64,
    /// Until when visits of others may belong to the same phase: they go on from there together.
    leave_ns: u64,
}

/// Stretches of several threads at the same time.
type Phase = Vec<Stretch>;

/// How pieces are taken.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// A visit takes a piece; each thread's last one finds none.
    Takes,
    /// A visit ends a piece.
    Ends,
    /// An event takes a piece; nothing tells the end.
    Chunks,
}

/// Recognises dynamic loops.
pub(super) fn recognise(
    recording: &Recording,
    visits: &Visits,
    acts: &mut Acts,
    objects: &mut Objects,
    level: Level,
) {
    if level == Level::Full {
        let releases = releases(recording, acts);
        let sums = sums(recording, acts);
        let claimed = HashSet::new();
        let mut finder =
            Finder { recording, sums, releases, shares: shares(recording), claimed, acts, objects };
        finder.chunks();
        for all in &visits.by_mutex {
            finder.mutex(all);
        }
    }
    acts.sort();
}

/// Per thread the work up to each event, it included, in ns.
fn sums(recording: &Recording, acts: &Acts) -> Vec<Vec<f64>> {
    let of = |(index, thread): (usize, &crate::Thread)| {
        let mut sum = 0.0;
        let add = |(at, event): (usize, &crate::Event)| {
            sum += acts.work_ns(index, at, event);
            sum
        };
        thread.events.iter().enumerate().map(add).collect()
    };
    recording.threads.iter().enumerate().map(of).collect()
}

/// When barriers opened, by thread and event.
fn releases(recording: &Recording, acts: &Acts) -> HashMap<(u32, u32), u64> {
    let mut first: HashMap<(u32, usize), u64> = HashMap::new();
    let mut places = Vec::new();
    for (thread, recorded) in recording.threads.iter().enumerate() {
        let mut rounds: HashMap<u32, usize> = HashMap::new();
        for (at, event) in recorded.events.iter().enumerate() {
            if let Some(Sym::Barrier(barrier)) = acts.sym(thread, at) {
                let round = rounds.entry(barrier).or_default();
                let open_ns = first.entry((barrier, *round)).or_insert(u64::MAX);
                *open_ns = (*open_ns).min(event.at_ns);
                places.push(((thread as u32, at as u32), (barrier, *round)));
                *round += 1;
            }
        }
    }
    places.into_iter().map(|(place, round)| (place, first[&round])).collect()
}

/// Who ends shares of parallel regions together: those that end them as often before, if all end equally many.
fn shares(recording: &Recording) -> HashMap<Spot, Rc<Vec<Spot>>> {
    let mut rounds: Vec<Vec<(u32, u32)>> = Vec::new();
    let mut lengths = HashSet::new();
    for (thread, recorded) in (0..).zip(&recording.threads) {
        let ends = (0..).zip(&recorded.events).filter(|(_, event)| event.kind == Kind::OmpEnd);
        let mut count = 0;
        for (round, (at, _)) in ends.enumerate() {
            rounds.resize(rounds.len().max(round + 1), Vec::new());
            rounds[round].push((thread, at));
            count += 1;
        }
        if count > 0 {
            lengths.insert(count);
        }
    }
    let mut found = HashMap::new();
    for round in rounds.into_iter().filter(|_| lengths.len() == 1).map(Rc::new) {
        round.iter().for_each(|place| {
            found.insert(*place, Rc::clone(&round));
        });
    }
    found
}

struct Finder<'a> {
    recording: &'a Recording,
    sums: Vec<Vec<f64>>,
    /// For (thread, event) at a barrier: when the first thread of that round left it.
    releases: HashMap<(u32, u32), u64>,
    /// For (thread, event) at the end of a share of a parallel region: all that end there.
    shares: HashMap<Spot, Rc<Vec<Spot>>>,
    /// Ends of stretches (thread, event) that are dynamic loops already.
    claimed: HashSet<(u32, u32)>,
    acts: &'a mut Acts,
    objects: &'a mut Objects,
}

impl Finder<'_> {
    fn mutex(&mut self, all: &[Visit]) {
        let is_plain = all.iter().all(|visit| visit.waits.is_empty());
        if all.len() < PIECES_MIN || !is_plain || all[0].thread == all[all.len() - 1].thread {
            return;
        }
        let untouched = |visit: &&Visit| {
            let act = self.acts.acts[visit.thread as usize][visit.first as usize];
            matches!(act, Act::Enter(_))
        };
        let visits = all.iter().filter(untouched);
        let list = visits.map(|visit| (visit.thread, visit.first, visit.last, visit.end_ns));
        let phases = self.phases(list.collect());
        for way in [Way::Takes, Way::Ends] {
            if self.fits(&phases, way) {
                self.make(phases, way);
                return;
            }
        }
    }

    fn chunks(&mut self) {
        let mut by_object: BTreeMap<u32, Vec<(u32, u32, u32, u64)>> = BTreeMap::new();
        for (thread, recorded) in (0..).zip(&self.recording.threads) {
            for (at, event) in (0..).zip(&recorded.events) {
                if event.kind == Kind::OmpChunk {
                    let chunk = (thread, at, at, event.at_ns);
                    by_object.entry(event.object).or_default().push(chunk);
                }
            }
        }
        for list in by_object.into_values() {
            let phases = self.phases(list);
            self.make(phases, Way::Chunks);
        }
    }

    /// Cuts visits into stretches between steps, and puts those together that are at the same time.
    fn phases(&self, list: Vec<(u32, u32, u32, u64)>) -> Vec<Phase> {
        let mut stretches: Vec<Stretch> = Vec::new();
        for (thread, first, last, end_ns) in list {
            match stretches.last_mut() {
                Some(stretch) if stretch.thread == thread && first < stretch.to => {
                    stretch.visits.push((first, last, end_ns));
                }
                _ => stretches.push(self.stretch(thread, first, last, end_ns)),
            }
        }
        stretches.sort_by_key(|stretch| (stretch.visits[0].2, stretch.thread));
        let mut phases: Vec<Phase> = Vec::new();
        for stretch in stretches {
            let fits = |phase: &&mut Phase| {
                phase
                    .iter()
                    .all(|one| one.thread != stretch.thread && stretch.visits[0].2 <= one.leave_ns)
            };
            match phases.last_mut().filter(fits) {
                Some(phase) => phase.push(stretch),
                None => phases.push(vec![stretch]),
            }
        }
        phases
    }

    fn stretch(&self, thread: u32, first: u32, last: u32, end_ns: u64) -> Stretch {
        let acts = &self.acts.acts[thread as usize];
        let is_step = |act: &Act| matches!(act, Act::Sym(_));
        let from = acts[..first as usize].iter().rposition(is_step).map(|at| at as u32);
        let next = acts[last as usize..].iter().position(is_step);
        let to = next.map_or(acts.len() - 1, |next| last as usize + next);
        let event = &self.recording.threads[thread as usize].events[to];
        let come_ns = event.at_ns.saturating_sub(event.wait_ns);
        Stretch {
            thread,
            visits: vec![(first, last, end_ns)],
            from,
            to: to as u32,
            end_ns: come_ns,
            leave_ns: match next {
                Some(_) => *self.releases.get(&(thread, to as u32)).unwrap_or(&event.at_ns),
                None => u64::MAX,
            },
        }
    }

    /// Whether phases look like a dynamic loop.
    fn fits(&self, phases: &[Phase], way: Way) -> bool {
        let least = if way == Way::Ends { 4 } else { 2 };
        let is_telling = |phase: &&Phase| pieces(phase, way) >= least * phase.len();
        let shared = || phases.iter().filter(|phase| phase.len() > 1);
        let telling: Vec<&Phase> = shared().filter(is_telling).collect();
        let count =
            |phases: &[&Phase]| -> usize { phases.iter().map(|phase| pieces(phase, way)).sum() };
        let all = count(&shared().collect::<Vec<_>>());
        if count(&telling) < PIECES_MIN.max(all / 2) {
            return false;
        }
        let is_in_order = |phase: &&&Phase| match way {
            Way::Takes => last_find_none(phase),
            _ => nobody_ends_early(phase),
        };
        let fitting = telling.iter().filter(is_in_order).count();
        let varies = |phase: &&Phase| {
            let counts = || phase.iter().map(|stretch| stretch.visits.len());
            counts().max() > counts().min().map(|least| least + 1)
        };
        fitting as f64 >= FITTING_SHARE_MIN * telling.len() as f64
            && telling.iter().any(varies)
            && self.is_most_of_the_work(&telling, way)
    }

    /// Whether pieces are most of the work, and little of it is done while the mutex is held.
    fn is_most_of_the_work(&self, phases: &[&Phase], way: Way) -> bool {
        let (mut held, mut pieces, mut whole) = (0.0, 0.0, 0.0);
        let (mut own, mut locks) = (0, 0);
        for stretch in phases.iter().flat_map(|phase| phase.iter()) {
            let sums = &self.sums[stretch.thread as usize];
            let begin = stretch.from.map_or(0.0, |from| sums[from as usize]);
            let (first, last) = (stretch.visits[0], stretch.visits[stretch.visits.len() - 1]);
            whole += sums[stretch.to as usize] - begin;
            own += stretch.visits.len();
            let acts = &self.acts.acts[stretch.thread as usize];
            let range = &acts[stretch.from.unwrap_or(0) as usize..=stretch.to as usize];
            locks += range.iter().filter(|act| matches!(act, Act::Enter(_))).count();
            pieces += match way {
                Way::Ends => sums[last.1 as usize] - begin,
                _ => sums[last.0 as usize] - sums[first.1 as usize],
            };
            let hold =
                |(first, last, _): &(u32, u32, u64)| sums[*last as usize] - sums[*first as usize];
            held += stretch.visits.iter().map(hold).sum::<f64>();
        }
        // Other mutexes that are locked as often tell that this one is nothing special.
        let is_special = own * 2 > locks;
        is_special
            && pieces > 0.0
            && held < HOLD_SHARE_MAX * pieces
            && pieces >= COVERED_SHARE_MIN * whole
    }

    fn make(&mut self, phases: Vec<Phase>, way: Way) {
        let mut totals: Vec<(f64, usize, u32)> = Vec::new();
        for phase in phases {
            let total = pieces(&phase, way);
            let is_right = match way {
                Way::Takes => last_find_none(&phase),
                Way::Ends => nobody_ends_early(&phase),
                Way::Chunks => true,
            };
            let is_taken = phase.iter().any(|one| self.claimed.contains(&(one.thread, one.to)));
            if !is_right || is_taken || total == 0 || (phase.len() < 2 && way != Way::Chunks) {
                continue;
            }
            let near = |(sum, count, _): &&mut (f64, usize, u32)| {
                let mean = *sum / *count as f64;
                mean < TOTAL_FACTOR * total as f64 && (total as f64) < TOTAL_FACTOR * mean
            };
            let pool = match totals.iter_mut().find(near) {
                Some((sum, count, pool)) => {
                    *sum += total as f64;
                    *count += 1;
                    *pool
                }
                None => {
                    let pool = self.objects.add(What::Pool { total: total as f64 }, "");
                    totals.push((total as f64, 1, pool));
                    pool
                }
            };
            for stretch in &phase {
                self.claimed.insert((stretch.thread, stretch.to));
                self.mark(stretch, pool, way);
            }
            // Who got nothing was there, too.
            let place = phase.first().map(|stretch| (stretch.thread, stretch.to));
            let share =
                place.and_then(|place| self.shares.get(&place)).cloned().unwrap_or_default();
            for (thread, at) in share.iter() {
                if phase.iter().all(|stretch| stretch.thread != *thread) {
                    self.acts.before(*thread, *at, Sym::TakeEnd(pool));
                }
            }
        }
        let how = match way {
            Way::Takes => "mutex: a number is drawn",
            Way::Ends => "mutex at the end of each piece",
            Way::Chunks => "dynamic loop",
        };
        for (sum, count, pool) in totals {
            let object = &mut self.objects.list[pool as usize];
            object.was = format!("{how}, {count} times {:.0} pieces", sum / count as f64);
            object.what = What::Pool { total: (sum / count as f64).round().max(1.0) };
        }
    }

    fn mark(&mut self, stretch: &Stretch, pool: u32, way: Way) {
        let thread = stretch.thread;
        let count = stretch.visits.len();
        if way == Way::Ends {
            match stretch.from {
                Some(from) => self.acts.behind(thread, from, Sym::Take(pool)),
                None => self.acts.behind(thread, 0, Sym::Take(pool)),
            }
        }
        for (number, (first, last, _)) in stretch.visits.iter().enumerate() {
            let is_last = number + 1 == count;
            let sym = if is_last { Sym::TakeEnd(pool) } else { Sym::Take(pool) };
            match way {
                Way::Takes => self.acts.replace(thread, *first, *last, Some(sym)),
                Way::Ends => self.acts.behind(thread, *last, sym),
                Way::Chunks => {
                    self.acts.replace(thread, *first, *last, Some(Sym::Take(pool)));
                    if is_last {
                        self.acts.before(thread, stretch.to, Sym::TakeEnd(pool));
                    }
                }
            }
        }
    }
}

/// Pieces of work that were taken.
fn pieces(phase: &[Stretch], way: Way) -> usize {
    let visits: usize = phase.iter().map(|stretch| stretch.visits.len()).sum();
    if way == Way::Takes { visits - phase.len() } else { visits }
}

/// Whether the last visit of each thread comes when no other visit follows but such last ones.
fn last_find_none(phase: &[Stretch]) -> bool {
    let last = |stretch: &Stretch| stretch.visits[stretch.visits.len() - 1].2;
    let last_piece_ns = last_start_ns(phase);
    phase.iter().all(|stretch| last(stretch) >= last_piece_ns)
}

/// Whether no thread stops while another one begins a further piece.
fn nobody_ends_early(phase: &[Stretch]) -> bool {
    let last_piece_ns = last_start_ns(phase);
    phase.iter().all(|stretch| stretch.end_ns >= last_piece_ns)
}

/// When the last piece was begun: the last but one visit of a thread.
fn last_start_ns(phase: &[Stretch]) -> u64 {
    let starts = phase.iter().filter_map(|stretch| stretch.visits.iter().rev().nth(1));
    starts.map(|visit| visit.2).max().unwrap_or(0)
}
