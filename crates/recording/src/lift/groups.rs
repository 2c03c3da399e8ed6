//! Threads that do the same become one group.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::bodies;
use super::fidelity::Kept;
use super::fold::{Likeness, fold};
use super::items::Code;
use super::node::{Node, Step, Sym, are_like, merge_all};
use super::teams::{self, Team, Way, is_refilled};
use super::text;
use crate::Recording;

/// A barrier's share of the main thread counts as one from this part of what the others do on.
const SHARE_MIN: f64 = 0.25;
/// And up to this many times as much.
const SHARE_MAX: f64 = 4.0;
/// Shorter works at barriers are shares whatever they are, in ns.
const SHORT_NS: f64 = 2e4;
/// Part of a thread's work below which amounts do not keep steps from being the same.
const SMALL_SHARE: f64 = 5e-4;
/// Such amounts in ns at least.
const SMALL_NS: f64 = 3e3;

/// Threads that do the same.
#[derive(Debug)]
pub(super) struct Group {
    pub name: String,
    /// Recorded threads: in the order of their starts, of those that start together those with most work first.
    pub members: Vec<u32>,
    pub nodes: Vec<Node>,
    /// Whether others start it.
    pub is_forked: bool,
    /// Whether it is of daemon threads.
    pub is_daemon: bool,
    /// Whether its number is the parameter n, less 1 if the main thread takes part.
    pub is_n: bool,
    /// How they are started.
    pub team: Team,
    /// Whether it is a thread that stays as it was.
    pub is_literal: bool,
    /// Whether what each thread does is told by itself.
    pub is_curved: bool,
    pub start_ns: u64,
    /// All work in ns.
    pub work_ns: f64,
    /// The work of each member in ns.
    pub works_ns: Vec<f64>,
}

/// All groups, and the parameter.
#[derive(Debug)]
pub(super) struct Groups {
    pub list: Vec<Group>,
    /// The parameter n: threads that share work, the main thread included if it takes part.
    pub n: usize,
    /// Whether the main thread takes part in the work of those whose number is n.
    pub main_takes_part: bool,
}

/// Builds groups; the first one has the first thread. Threads that stay as they were stay alone.
pub(super) fn build(recording: &Recording, codes: Vec<Code>, kept: &Kept) -> Groups {
    let works = works(&codes);
    let sets = sets(recording, &codes, &kept.literal);
    let mut of_thread: HashMap<u32, usize> = HashMap::new();
    for (group, set) in sets.iter().enumerate() {
        set.iter().for_each(|place| {
            of_thread.insert(codes[*place].thread, group);
        });
    }
    let teams: Vec<(Team, Vec<Vec<usize>>)> =
        sets.iter().map(|set| teams::team(set, recording, &codes, &of_thread)).collect();
    let (n_group, main_takes_part) = parameter(&sets, &teams, &codes, &works);
    let n_size = n_group.map_or(0, |group| teams[group].0.size);
    let shares = if main_takes_part { main_shares(&codes, &sets, n_group) } else { HashSet::new() };
    let mut codes = codes;
    if let Some(group) = n_group.filter(|_| main_takes_part) {
        hint(&mut codes, &sets[group]);
    }
    let is_forked: HashSet<usize> = codes
        .iter()
        .flat_map(|code| &code.steps)
        .filter_map(|step| match step.sym {
            Sym::Fork(child) => of_thread.get(&child).copied(),
            _ => None,
        })
        .collect();
    let starts: Vec<u64> =
        codes.iter().map(|code| recording.threads[code.thread as usize].begin_ns()).collect();
    let first_ns = starts.iter().copied().min().unwrap_or(0);
    let mut codes: Vec<Option<Code>> = codes.into_iter().map(Some).collect();
    let mut list = Vec::new();
    for (number, (team, mut runs)) in teams.into_iter().enumerate() {
        // Those with most work come first.
        runs.iter_mut().for_each(|run| run.sort_by(|a, b| works[*b].total_cmp(&works[*a])));
        let set: Vec<usize> = runs.concat();
        let is_pair = main_takes_part && n_group == Some(number);
        let is_n = (team.is_free() || is_pair) && team.size == n_size;
        let start = set.iter().map(|place| starts[*place]).min().unwrap_or(0);
        let members: Vec<Code> = set.iter().filter_map(|place| codes[*place].take()).collect();
        let threads: Vec<u32> = members.iter().map(|code| code.thread).collect();
        let is_share = |place: usize| {
            (is_n && team.way != Way::Window) || (number == 0 && shares.contains(&place))
        };
        let nodes = nodes(members, &of_thread, is_share);
        let works_ns: Vec<f64> = set.iter().map(|place| works[*place]).collect();
        list.push(Group {
            name: String::new(),
            is_literal: threads.iter().any(|thread| kept.literal.contains(thread)),
            is_curved: threads.iter().any(|thread| kept.curved.contains(thread)),
            members: threads,
            nodes,
            is_forked: is_forked.contains(&number),
            is_daemon: false,
            is_n,
            team,
            start_ns: start - first_ns,
            work_ns: works_ns.iter().sum(),
            works_ns,
        });
    }
    let nodes = list.iter_mut().map(|group| std::mem::take(&mut group.nodes)).collect();
    for (group, nodes) in list.iter_mut().zip(bodies::finish(nodes)) {
        group.nodes = nodes;
    }
    name(recording, &mut list);
    let mut groups = Groups { list, n: n_size + usize::from(main_takes_part), main_takes_part };
    groups.fix_windows();
    groups
}

impl Groups {
    /// Makes the number of threads what it was.
    pub fn fix(&mut self) {
        self.list.iter_mut().for_each(|group| group.is_n = false);
        (self.n, self.main_takes_part) = (0, false);
    }

    /// A window has another size only if one loop refills it.
    fn fix_windows(&mut self) {
        for number in 0..self.list.len() {
            let group = &self.list[number];
            let later = group.members.len() - group.team.size.min(group.members.len());
            let is_refilled =
                || self.list.iter().any(|one| is_refilled(&one.nodes, number as u32, later));
            if group.is_n && group.team.way == Way::Window && !is_refilled() {
                self.list[number].is_n = false;
            }
        }
        if self.list.iter().all(|group| !group.is_n) {
            self.fix();
        }
    }
}

fn works(codes: &[Code]) -> Vec<f64> {
    codes.iter().map(|code| code.steps.iter().map(Step::work).sum()).collect()
}

/// Sets of equal threads, by place in `codes`.
fn sets(recording: &Recording, codes: &[Code], literal: &HashSet<u32>) -> Vec<Vec<usize>> {
    let by_thread: HashMap<u32, usize> =
        codes.iter().enumerate().map(|(place, code)| (code.thread, place)).collect();
    let mut hashes = vec![None; codes.len()];
    for place in 0..codes.len() {
        code_hash(place, codes, &by_thread, literal, &mut hashes);
    }
    // Equal threads are those of equal creators; the first one stays alone, and so do those that stay as they were.
    let mut exact: BTreeMap<(Option<u32>, u64, u64), Vec<usize>> = BTreeMap::new();
    // So are those that ask the scheduler for the same.
    let asked = |place: usize| text::asks_hash(&recording.threads[codes[place].thread as usize]);
    let above: Vec<u64> = (0..codes.len())
        .map(|place| ancestry(place, codes, &by_thread, &hashes) ^ asked(place))
        .collect();
    for place in 0..codes.len() {
        let thread = codes[place].thread;
        let alone = (thread == 0 || literal.contains(&thread)).then_some(thread);
        let key = (alone, above[place], hashes[place].unwrap_or(0));
        exact.entry(key).or_default().push(place);
    }
    // Threads without an equal may still do the same, each in another number of rounds.
    let mut alike: Vec<(u64, Vec<Node>, Vec<usize>)> = Vec::new();
    let mut found = Vec::new();
    for ((alone, parent, _), set) in exact {
        let single = set[0];
        let starts_nobody = |step: &Step| !matches!(step.sym, Sym::Fork(_));
        let can_be_alike = set.len() == 1
            && alone.is_none()
            && codes[single].steps.len() < 200_000
            && codes[single].steps.iter().all(starts_nobody);
        if !can_be_alike {
            found.push(set);
            continue;
        }
        let likeness = Likeness { small_ns: 0.0, by_work: false };
        let shape = fold(shape(&codes[single].steps), likeness);
        let like = |(other, nodes, _): &&mut (u64, Vec<Node>, Vec<usize>)| {
            *other == parent && are_like(nodes, &shape) && !has_barrier(&shape)
        };
        match alike.iter_mut().find(like) {
            Some((_, _, set)) => set.push(single),
            None => alike.push((parent, shape, vec![single])),
        }
    }
    found.extend(alike.into_iter().map(|(_, _, set)| set));
    found.iter_mut().for_each(|set| set.sort_unstable());
    found.sort();
    found
}

/// Steps without their amounts.
fn shape(steps: &[Step]) -> Vec<Node> {
    let bare = |step: &Step| Node::Step(Step { times: step.times, ..Step::bare(step.sym) });
    steps.iter().map(bare).collect()
}

fn has_barrier(nodes: &[Node]) -> bool {
    let mut found = false;
    for node in nodes {
        node.each_step(&mut |step| found |= matches!(step.sym, Sym::Barrier(_)));
    }
    found
}

/// A hash of what a thread does, the children that it starts included.
fn code_hash(
    place: usize,
    codes: &[Code],
    by_thread: &HashMap<u32, usize>,
    literal: &HashSet<u32>,
    hashes: &mut Vec<Option<u64>>,
) -> u64 {
    if let Some(hash) = hashes[place] {
        return hash;
    }
    let mut hasher = DefaultHasher::new();
    // Who starts a thread that stays alone does what nobody else does.
    literal.get(&codes[place].thread).hash(&mut hasher);
    for step in &codes[place].steps {
        match step.sym {
            Sym::Fork(child) => {
                let child = by_thread.get(&child).copied();
                let hash = child.map(|child| code_hash(child, codes, by_thread, literal, hashes));
                hash.hash(&mut hasher);
            }
            sym => sym.hash(&mut hasher),
        }
    }
    let hash = hasher.finish();
    hashes[place] = Some(hash);
    hash
}

/// A hash of what those do who created a thread, the nearest one last.
fn ancestry(
    place: usize,
    codes: &[Code],
    by_thread: &HashMap<u32, usize>,
    hashes: &[Option<u64>],
) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut above = codes[place].parent;
    while let Some(parent) = above.and_then(|thread| by_thread.get(&thread).copied()) {
        (codes[parent].thread == 0, hashes[parent]).hash(&mut hasher);
        above = codes[parent].parent;
    }
    hasher.finish()
}

/// The set whose team's size is the parameter n, and whether the main thread does as its threads do.
fn parameter(
    sets: &[Vec<usize>],
    teams: &[(Team, Vec<Vec<usize>>)],
    codes: &[Code],
    works: &[f64],
) -> (Option<usize>, bool) {
    let work = |set: &Vec<usize>| set.iter().map(|place| works[*place]).sum::<f64>();
    let several = sets.iter().enumerate().filter(|(group, _)| teams[*group].0.is_free());
    let most = several.max_by(|(_, one), (_, two)| work(one).total_cmp(&work(two)));
    let Some((group, set)) = most else {
        let pair = two_that_meet(sets, codes);
        return (pair, pair.is_some());
    };
    let takes_part = sets[0] == [0] && !set.contains(&0) && main_works(codes, set);
    (Some(group), takes_part)
}

/// A single thread that meets the main thread at barriers and shares its work.
fn two_that_meet(sets: &[Vec<usize>], codes: &[Code]) -> Option<usize> {
    let is_worker = |(_, set): &(usize, &Vec<usize>)| set[0] != 0 && main_works(codes, set);
    let mut workers = sets.iter().enumerate().filter(is_worker);
    let found = workers.next().map(|(group, _)| group);
    found.filter(|_| sets.len() == 2 && workers.next().is_none())
}

fn main_works(codes: &[Code], set: &[usize]) -> bool {
    let (Some(main), Some(other)) = (codes.first(), codes.get(set[0])) else { return false };
    let work = |code: &Code| -> f64 {
        let at_barriers = code.steps.iter().filter(|step| matches!(step.sym, Sym::Barrier(_)));
        at_barriers.map(Step::work).sum()
    };
    let syms = |code: &Code| -> HashSet<Sym> {
        let all = code.steps.iter().map(|step| step.sym);
        all.filter(|sym| matches!(sym, Sym::Barrier(_) | Sym::Dynamic(_) | Sym::Each(_))).collect()
    };
    let shared: HashSet<Sym> = syms(main).intersection(&syms(other)).copied().collect();
    let takes_too = shared.iter().any(|sym| !matches!(sym, Sym::Barrier(_)));
    let whole: f64 = other.steps.iter().map(Step::work).sum();
    let is_most = work(other) >= SHARE_MIN * whole;
    takes_too || (!shared.is_empty() && is_most && work(main) >= SHARE_MIN * work(other))
}

/// Steps of the main thread whose work is its share, by place.
fn main_shares(codes: &[Code], sets: &[Vec<usize>], n_group: Option<usize>) -> HashSet<usize> {
    let workers = n_group.map_or(&[][..], |group| &sets[group]);
    let mut others: HashMap<Sym, Vec<f64>> = HashMap::new();
    for place in workers {
        let mut rounds: HashMap<Sym, usize> = HashMap::new();
        for step in codes[*place].steps.iter().filter(|step| matches!(step.sym, Sym::Barrier(_))) {
            let round = rounds.entry(step.sym).or_default();
            let sums = others.entry(step.sym).or_default();
            sums.resize(sums.len().max(*round + 1), 0.0);
            sums[*round] += step.work() / workers.len() as f64;
            *round += 1;
        }
    }
    let mut rounds: HashMap<Sym, usize> = HashMap::new();
    let mut found = HashSet::new();
    for (place, step) in codes[0].steps.iter().enumerate() {
        let Some(sums) = others.get(&step.sym) else { continue };
        let round = rounds.entry(step.sym).or_default();
        let mean = sums.get(*round).copied().unwrap_or(0.0);
        *round += 1;
        let own = step.work();
        let is_like = own >= SHARE_MIN * mean && own <= SHARE_MAX * mean;
        if is_like || own.max(mean) < SHORT_NS {
            found.insert(place);
        }
    }
    found
}

/// Notes at barriers what the main thread and the others do there on average, so that they fold alike.
fn hint(codes: &mut [Code], workers: &[usize]) {
    let mut sums: HashMap<(Sym, usize), (f64, f64)> = HashMap::new();
    let places: Vec<usize> = std::iter::once(0).chain(workers.iter().copied()).collect();
    for place in &places {
        each_round(&mut codes[*place], &mut |step, round| {
            let sum = sums.entry((step.sym, round)).or_default();
            *sum = (sum.0 + step.own_work(), sum.1 + 1.0);
        });
    }
    for place in places {
        each_round(&mut codes[place], &mut |step, round| {
            let (work, count) = sums[&(step.sym, round)];
            step.hint = Some(work / count);
        });
    }
}

/// Calls `visit` with each step at a barrier and the number of its round there.
fn each_round(code: &mut Code, visit: &mut dyn FnMut(&mut Step, usize)) {
    let mut rounds: HashMap<Sym, usize> = HashMap::new();
    for step in code.steps.iter_mut().filter(|step| matches!(step.sym, Sym::Barrier(_))) {
        let round = rounds.entry(step.sym).or_default();
        visit(step, *round);
        *round += 1;
    }
}

/// The code of a group, with loops.
fn nodes(
    members: Vec<Code>,
    of_thread: &HashMap<u32, usize>,
    is_share: impl Fn(usize) -> bool,
) -> Vec<Node> {
    let count = members.len();
    let prepare = |code: Code| -> Vec<Node> {
        let steps = code.steps.into_iter().enumerate().map(|(place, mut step)| {
            let work = step.own_work();
            step.kinds_ns = if is_share(place) { (work, 0.0) } else { (0.0, work) };
            step
        });
        forks(steps.collect(), of_thread).into_iter().map(Node::Step).collect()
    };
    let mut all: Vec<Vec<Node>> = members.into_iter().map(prepare).collect();
    let is_equal = all.iter().all(|nodes| are_like(nodes, &all[0]));
    let found = if is_equal {
        together(all)
    } else {
        // Equal but for the numbers of rounds: folded one by one.
        let likeness = Likeness { small_ns: 0.0, by_work: false };
        all = all.into_iter().map(|nodes| fold(nodes, likeness)).collect();
        return together(all);
    };
    let work: f64 = found.iter().map(Node::own_work).sum();
    let small_ns = SMALL_NS.max(SMALL_SHARE * work / count as f64);
    let exact = fold(found.clone(), Likeness { small_ns, by_work: true });
    let rough = fold(found, Likeness { small_ns, by_work: false });
    if size(&exact) > 60.max(3 * size(&rough)) { rough } else { exact }
}

fn size(nodes: &[Node]) -> usize {
    let mut count = 0;
    nodes.iter().for_each(|node| node.each_step(&mut |_| count += 1));
    count
}

fn together(all: Vec<Vec<Node>>) -> Vec<Node> {
    let mut rest = all.into_iter();
    let mut found = rest.next().unwrap_or_default();
    rest.for_each(|more| merge_all(&mut found, more));
    found
}

/// Starts of threads become starts of groups; those of one group that follow each other become one step.
fn forks(steps: Vec<Step>, of_thread: &HashMap<u32, usize>) -> Vec<Step> {
    let mut found: Vec<Step> = Vec::new();
    for mut step in steps {
        if let Sym::Fork(child) = step.sym {
            let Some(group) = of_thread.get(&child) else { continue };
            step.sym = Sym::Fork(*group as u32);
            if let Some(last) = found.last_mut().filter(|last| last.sym == step.sym) {
                last.times += 1;
                last.samples[0].segment.add(&step.samples[0].segment);
                continue;
            }
        }
        found.push(step);
    }
    found
}

/// Names groups: as their threads are called, if that tells them apart, else by what they do.
fn name(recording: &Recording, groups: &mut [Group]) {
    let mut used: HashSet<String> = HashSet::new();
    let thread_name = |group: &Group| {
        let names = group.members.iter().map(|thread| &recording.threads[*thread as usize].name);
        let mut cleaned: Vec<String> = names.map(|name| clean(name)).collect();
        cleaned.dedup();
        (cleaned.len() == 1).then(|| cleaned.remove(0)).filter(|name| !name.is_empty())
    };
    let names: Vec<Option<String>> = groups.iter().map(thread_name).collect();
    let single = groups.iter().filter(|group| group.members.len() > 1).count() == 1;
    for (number, group) in groups.iter_mut().enumerate() {
        let is_unique = names.iter().filter(|name| **name == names[number]).count() == 1;
        let own = names[number].clone().filter(|_| is_unique && number > 0);
        let base = match own {
            Some(name) => name,
            None if number == 0 => "main".to_owned(),
            None if single && group.members.len() > 1 => "worker".to_owned(),
            None => format!("stage{number}"),
        };
        let mut name = base.clone();
        let mut again = 2;
        while !used.insert(name.clone()) {
            name = format!("{base}_{again}");
            again += 1;
        }
        group.name = name;
    }
}

/// Letters, digits and underscores of a name.
pub(super) fn clean(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let name: String = name.chars().map(plain).collect();
    name.trim_matches('_').to_owned()
}
