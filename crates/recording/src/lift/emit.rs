//! The text of a lifted program, and its report.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::acts::Acts;
use super::amounts::{self, number, number_of};
use super::groups::{Group, Groups, clean};
use super::node::{Node, Step, Sym};
use super::objects::{Objects, What};
use super::report::{self, ObjectRow, Report};
use super::scale::{
    SCALED_ROUNDS_MIN, Scale, answers, assumptions, makes_items, posted_by_items, scale,
};
use super::teams::{Way, refills};
use super::text::{self, block, kind};
use super::work::{self, Place};
use super::{Level, Lifted, Options, Scaling, phases};
use crate::Recording;

/// Writes the program and its report.
pub(super) fn emit(
    recording: &Recording,
    acts: &Acts,
    groups: Groups,
    objects: Objects,
    options: &Options,
    level: Level,
) -> Lifted {
    let scale = if level == Level::Jobs { Scale::Work } else { scale(&groups) };
    let counts = Counts::of(&groups);
    let mut writer = Writer {
        groups: &groups,
        objects: &objects,
        options,
        scale,
        counts,
        answers: answers(&groups),
        posted: posted_by_items(&groups),
        names: HashMap::new(),
        used: BTreeMap::new(),
        steps: 0,
        depth: 0,
    };
    let mut threads = Vec::new();
    let mut rows = Vec::new();
    for group in &groups.list {
        writer.steps = 0;
        let body = writer.body(group);
        let count = writer.count_of(group);
        threads.extend(text::thread(recording, group, &count, body));
        rows.push(report::Group {
            name: group.name.clone(),
            threads: group.members.len(),
            count,
            recorded_ns: group.work_ns,
            lifted_ns: 0.0,
            parts: parts(group, takes_items(group)),
            takes_items: takes_items(group),
            is_literal: group.is_literal,
            members: group.members.clone(),
            steps: writer.steps,
        });
    }
    let name = match options.name.is_empty() {
        true => clean(&recording.info.name),
        false => clean(&options.name),
    };
    let name = if name.is_empty() { "lifted".to_owned() } else { name };
    let mut text = text::head(&name, recording, &groups, options);
    text.extend(writer.objects());
    text.extend(threads);
    let used: Vec<ObjectRow> = writer.rows();
    let literal = writer.literal();
    let mut notes = assumptions(&groups, options, scale);
    notes.extend(objects.notes.iter().cloned());
    notes.extend(text::asks_note(recording));
    let report = Report {
        level: level.word().to_owned(),
        recorded_ns: groups.list.iter().map(|group| group.work_ns).sum(),
        lifted_ns: 0.0,
        groups: rows,
        objects: used,
        idle_ns: idle_ns(recording, acts),
        literal_share: literal.0,
        literal_steps_share: literal.1,
        jobs: objects.jobs,
        notes,
    };
    Lifted { toml: text.join("\n") + "\n", report }
}

/// What each thread of the program stands for: those that take items, or come one after the other, for all.
fn parts(group: &Group, takes_items: bool) -> Vec<report::Part> {
    let count = match (takes_items, group.team.way) {
        (true, _) | (_, Way::Window) => 1,
        _ => group.team.size.max(1),
    };
    let mut found = vec![report::Part::default(); count];
    let all = group.members.iter().zip(&group.works_ns).enumerate();
    all.for_each(|(at, (thread, work_ns))| {
        found[at % count].threads.push(*thread);
        found[at % count].recorded_ns += work_ns;
    });
    found
}

fn takes_items(group: &Group) -> bool {
    let mut found = false;
    let mut look = |step: &Step| found |= matches!(step.sym, Sym::Each(_) | Sym::Dynamic(_));
    group.nodes.iter().for_each(|node| node.each_step(&mut |step| look(step)));
    found
}

fn idle_ns(recording: &Recording, acts: &Acts) -> f64 {
    let lists = recording.threads.iter().zip(&acts.idle_ns);
    let events = lists.flat_map(|(thread, idle_ns)| thread.events.iter().zip(idle_ns));
    events.map(|(event, idle_ns)| event.work_ns.min(*idle_ns) as f64).sum()
}

/// How often things happened in the recording.
struct Counts {
    pushes: HashMap<u32, f64>,
}

impl Counts {
    fn of(groups: &Groups) -> Self {
        let mut found = Self { pushes: HashMap::new() };
        let mut seen = HashSet::new();
        groups.list.iter().for_each(|group| found.add(&group.nodes, &mut seen));
        found
    }

    fn add(&mut self, nodes: &[Node], seen: &mut HashSet<Sym>) {
        for node in nodes {
            let step = match node {
                Node::Step(step) => step,
                Node::Loop { body, .. } => {
                    self.add(body, seen);
                    continue;
                }
            };
            if let Sym::Push(queue) = step.sym {
                *self.pushes.entry(queue).or_default() += step.samples.len() as f64;
            }
            // A common body tells of the items of all groups.
            if step.common.is_none() || seen.insert(step.sym) {
                self.add(&step.body, seen);
            }
        }
    }
}

struct Writer<'a> {
    groups: &'a Groups,
    objects: &'a Objects,
    options: &'a Options,
    scale: Scale,
    counts: Counts,
    /// Groups whose number is n, by the semaphores that they wait for or post.
    answers: HashMap<Sym, Vec<usize>>,
    /// Semaphores that are posted once for each item, and by nobody else.
    posted: HashSet<u32>,
    names: HashMap<u32, String>,
    /// Names given by kind.
    used: BTreeMap<&'static str, usize>,
    steps: usize,
    depth: usize,
}

impl Writer<'_> {
    /// How many threads of a group are there at a time.
    fn count_of(&self, group: &Group) -> String {
        match (group.is_n, group.team.way, self.groups.main_takes_part) {
            (true, Way::Window, _) => format!("min(n, {})", group.members.len()),
            (true, _, true) => "n - 1".to_owned(),
            (true, _, false) => "n".to_owned(),
            _ => group.team.size.to_string(),
        }
    }

    /// A number of threads as an expression, if it is that of the threads that share work.
    fn threads(&self, count: u32) -> String {
        let is_group = |group: &&Group| group.is_n && group.team.size == count as usize;
        match self.groups.list.iter().find(is_group) {
            Some(group) => self.count_of(group),
            None => count.to_string(),
        }
    }

    fn body(&mut self, group: &Group) -> Vec<String> {
        let members = group.members.len();
        let nodes = group.nodes.iter().cloned();
        let nodes: Vec<Node> =
            nodes.flat_map(|node| phases::cut(node, members, group.work_ns)).collect();
        let place = Place {
            members: &group.members,
            executions: members as f64,
            is_item: false,
            team: group.team.size,
            is_curved: group.is_curved,
            has_index: group.team.has_index(),
            group_work: group.work_ns,
            shared_by: None,
            is_scaled: false,
        };
        self.nodes(&nodes, place)
    }

    fn nodes(&mut self, nodes: &[Node], place: Place) -> Vec<String> {
        nodes.iter().flat_map(|node| self.node(node, place)).collect()
    }

    fn node(&mut self, node: &Node, place: Place) -> Vec<String> {
        match node {
            Node::Step(step) => self.step(step, place),
            Node::Loop { counts, body } => self.rounds(node, counts, body, place),
        }
    }

    fn rounds(&mut self, node: &Node, counts: &[f64], body: &[Node], place: Place) -> Vec<String> {
        let sum: f64 = counts.iter().sum();
        let mean = match place.is_item {
            true => work::steady_rounds(node, sum / place.executions, place),
            false => sum / counts.len().max(1) as f64,
        };
        let is_outer = self.depth == 0 && mean >= SCALED_ROUNDS_MIN && mean.fract() == 0.0;
        let is_scaled = is_outer && self.scale == Scale::Rounds;
        let is_scaled = is_scaled || (self.scale == Scale::Items && self.is_by_items(mean, node));
        let by_threads = self.refills(node).or_else(|| self.once_for_each(mean, body));
        let rounds = match (is_scaled, by_threads) {
            (true, _) => format!("\"ceil({mean} * scale)\""),
            (_, Some(threads)) => amounts::plain(&threads),
            _ => amounts::rounds(mean),
        };
        self.depth += 1;
        let inner = self.nodes(body, Place { executions: place.executions * mean, ..place });
        self.depth -= 1;
        match rounds == "1" {
            true => inner,
            false => block(&format!("loop = {rounds}"), inner),
        }
    }

    /// Whether a loop has as many rounds as there are items: it makes them, or waits for all of them.
    fn is_by_items(&self, rounds: f64, node: &Node) -> bool {
        let Node::Loop { body, .. } = node else { return false };
        if rounds.fract() != 0.0 || body.iter().any(|node| matches!(node, Node::Loop { .. })) {
            return false;
        }
        match &body[..] {
            [Node::Step(step)] => match step.sym {
                Sym::SemWait(one) => self.posted.contains(&one),
                _ => makes_items(node),
            },
            _ => makes_items(node),
        }
    }

    /// The rounds of a loop that starts a thread whenever one of n has ended, until there were as many as recorded.
    fn refills(&self, node: &Node) -> Option<String> {
        let is_refilled = |(number, group): &(u32, &Group)| {
            let later = group.members.len() - group.team.size;
            group.is_n
                && group.team.way == Way::Window
                && refills(node, *number) == Some(later as f64)
        };
        let (_, group) = (0..).zip(&self.groups.list).find(is_refilled)?;
        Some(format!("max(0, {} - n)", group.members.len()))
    }

    /// The number of threads that share work, if a loop waits for each of them, or wakes each of them, once.
    fn once_for_each(&self, rounds: f64, body: &[Node]) -> Option<String> {
        let [Node::Step(step)] = body else { return None };
        let (Sym::SemWait(one) | Sym::SemPost(one)) = step.sym else { return None };
        let answer = match step.sym {
            Sym::SemWait(_) => Sym::SemPost(one),
            _ => Sym::SemWait(one),
        };
        let groups = self.answers.get(&answer)?.iter().map(|group| &self.groups.list[*group]);
        let mut found = groups.filter(|group| rounds == group.team.size as f64);
        found.next().map(|group| self.count_of(group))
    }

    fn step(&mut self, step: &Step, place: Place) -> Vec<String> {
        self.steps += 1;
        let shared = step.is_share()
            && self.groups.n > 1
            && self.options.scaling == Scaling::FixedTotal
            && !place.is_item;
        let before = Place {
            shared_by: shared.then_some(self.groups.n as f64),
            is_scaled: self.scale == Scale::Work,
            ..place
        };
        let objects = self.objects;
        let (names, used) = (&mut self.names, &mut self.used);
        let mut name = |object: u32| name_of(object, objects, names, used);
        let mut lines = work::lines(step, before, &mut name);
        lines.extend(self.sym(step, place));
        lines
    }

    fn sym(&mut self, step: &Step, place: Place) -> Vec<String> {
        let line = match step.sym {
            Sym::Barrier(one) => format!("{{ barrier = \"{}\" }},", self.name(one)),
            Sym::SemWait(one) => format!("{{ sem_wait = \"{}\" }},", self.name(one)),
            Sym::SemPost(one) => {
                let post = format!("{{ sem_post = \"{}\" }},", self.name(one));
                match self.objects.fan(one) {
                    1 => post,
                    fan => {
                        let times = amounts::plain(&self.threads(fan));
                        let post = post.trim_end_matches(',');
                        format!("{{ loop = {times}, body = [ {post} ] }},")
                    }
                }
            }
            Sym::Push(one) => return self.push(one, step, place),
            Sym::Close(one) => format!("{{ close = \"{}\" }},", self.name(one)),
            Sym::Each(one) => return self.items("each", one, step, place),
            Sym::Dynamic(one) => return self.items("dynamic", one, step, place),
            Sym::Fork(group) => {
                let group = &self.groups.list[group as usize];
                let is_team = group.team.size == step.times as usize;
                match (is_team && group.is_n, step.times) {
                    (false, 1) => format!("{{ fork = \"{}\" }},", group.name),
                    (true, _) => {
                        let times = amounts::plain(&self.count_of(group));
                        format!("{{ fork = \"{}\", times = {times} }},", group.name)
                    }
                    (_, times) => format!("{{ fork = \"{}\", times = {times} }},", group.name),
                }
            }
            Sym::JoinAll => "{ join = true },".to_owned(),
            Sym::Sleep | Sym::Io(_) => {
                let times: Vec<f64> = step.samples.iter().map(|sample| sample.time_ns).collect();
                let mean_us = times.iter().sum::<f64>() / place.executions / 1e3;
                let amount = amounts::spread(&number(mean_us), &times);
                match step.sym {
                    Sym::Io(one) => {
                        format!("{{ io_us = {amount}, device = \"{}\" }},", self.name(one))
                    }
                    _ => format!("{{ sleep_us = {amount} }},"),
                }
            }
            _ => return Vec::new(),
        };
        vec![line]
    }

    /// As many items as were recorded, however many times the step is executed.
    fn push(&mut self, queue: u32, step: &Step, place: Place) -> Vec<String> {
        let push = format!("{{ push = \"{}\" }}", self.name(queue));
        let times = step.samples.len() as f64 / place.executions;
        match place.is_item && (times - 1.0).abs() > 1e-6 {
            true => vec![format!("{{ loop = {}, body = [ {push} ] }},", amounts::rounds(times))],
            false => vec![format!("{push},")],
        }
    }

    fn items(&mut self, word: &str, object: u32, step: &Step, place: Place) -> Vec<String> {
        let all = step.common.unwrap_or(step.pieces) as f64;
        let executions = match self.objects.list[object as usize].what {
            What::Pool { total } => total * step.samples.len() as f64 / place.members.len() as f64,
            _ => self.counts.pushes.get(&object).copied().unwrap_or(all),
        };
        let name = self.name(object);
        self.depth += 1;
        let inside = Place { executions: executions.max(1e-9), is_item: true, ..place };
        let mut body = self.nodes(&step.body, inside);
        self.depth -= 1;
        if body.is_empty() {
            body = vec!["{ run_us = 0, profile = \"recorded\" },".to_owned()];
        }
        block(&format!("{word} = \"{name}\""), body)
    }

    fn name(&mut self, object: u32) -> String {
        name_of(object, self.objects, &mut self.names, &mut self.used)
    }

    /// Declarations of the objects that were used.
    fn objects(&self) -> Vec<String> {
        let mut text = Vec::new();
        for (object, name) in self.sorted() {
            let (table, key) = match &self.objects.list[object as usize].what {
                What::Mutex { members: 1 } => ("mutexes", None),
                What::Mutex { members } => ("mutexes", Some(format!("count = {members}"))),
                What::Barrier => ("barriers", None),
                What::Semaphore { initial: 0, .. } => ("semaphores", None),
                What::Semaphore { initial, .. } => {
                    ("semaphores", Some(format!("initial = {initial}")))
                }
                What::Room { members, each } => ("semaphores", self.room(*members, *each)),
                What::Queue { capacity } => ("queues", Some(format!("capacity = {capacity}"))),
                What::Pool { total } if self.scale == Scale::Items => {
                    let total = number_of(*total);
                    ("pools", Some(format!("total = \"ceil({total} * scale)\"")))
                }
                What::Pool { total } => ("pools", Some(format!("total = {}", number_of(*total)))),
                What::Device => ("devices", None),
            };
            text.push(String::new());
            text.push(format!("[{table}.{name}]"));
            text.extend(key);
        }
        text
    }

    /// What a semaphore for what is in flight begins with.
    fn room(&self, members: u32, each: u32) -> Option<String> {
        let threads = self.threads(members);
        let is_parameter = !threads.bytes().all(|byte| byte.is_ascii_digit());
        is_parameter.then(|| format!("initial = \"max(0, {threads} - {members}) * {each}\""))
    }

    fn sorted(&self) -> Vec<(u32, &String)> {
        let mut sorted: Vec<_> = self.names.iter().map(|(object, name)| (*object, name)).collect();
        sorted.sort_unstable();
        sorted
    }

    fn rows(&self) -> Vec<ObjectRow> {
        let row = |(object, name): (u32, &String)| {
            let object = &self.objects.list[object as usize];
            let kind = kind(&object.what).to_owned();
            ObjectRow { name: name.clone(), kind, was: object.was.clone() }
        };
        self.sorted().into_iter().map(row).collect()
    }

    /// Shares of work and of steps that are literal.
    fn literal(&self) -> (f64, f64) {
        let (mut work, mut all_work, mut steps, mut all_steps) = (0.0, 0.0, 0.0, 0.0);
        for node in self.groups.list.iter().flat_map(|group| &group.nodes) {
            node.each_step(&mut |step| {
                let is_literal = match step.sym {
                    Sym::SemWait(one) | Sym::SemPost(one) => {
                        self.objects.list[one as usize].is_literal
                    }
                    _ => false,
                };
                let (own, count) = (step.own_work(), step.samples.len() as f64);
                all_work += own;
                all_steps += count;
                work += if is_literal { own } else { 0.0 };
                steps += if is_literal { count } else { 0.0 };
            });
        }
        (work / f64::max(all_work, 1.0), steps / f64::max(all_steps, 1.0))
    }
}

fn name_of(
    object: u32,
    objects: &Objects,
    names: &mut HashMap<u32, String>,
    used: &mut BTreeMap<&'static str, usize>,
) -> String {
    if let Some(name) = names.get(&object) {
        return name.clone();
    }
    let kind = kind(&objects.list[object as usize].what);
    let count = used.entry(kind).or_default();
    *count += 1;
    let name = format!("{kind}{count}");
    names.insert(object, name.clone());
    name
}
