//! CPUs of a computer that recorded a program, and which cores of a machine stand for them.

use std::borrow::Cow;
use std::sync::Arc;

use crate::{App, CoreId, CoreSet, Machine, Op, Program, Workload, energy_models};

/// Speeds of one kind of core are equal up to this (ours).
const SPEED_ERROR: f64 = 1e-6;

/// The CPUs that the sets of a recorded program number: kind, empty if not known, and speed by the fastest's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedCores(pub Vec<(String, f64)>);

/// A workload whose sets of cores are those of a machine.
#[derive(Debug)]
pub struct Placed<'a> {
    /// The workload.
    pub workload: Cow<'a, Workload>,
    /// Threads that may use all cores because the machine has none for those that were recorded.
    pub dropped: usize,
}

/// Cores of one kind and speed.
struct Group<'a> {
    kind: &'a str,
    speed: f64,
    cores: Vec<CoreId>,
}

/// Cores by kind and speed, the fastest first.
fn grouped<'a>(cores: impl Iterator<Item = (&'a str, f64, CoreId)>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (kind, speed, core) in cores {
        let is_own = |group: &&mut Group<'_>| {
            group.kind == kind && (group.speed - speed).abs() < SPEED_ERROR
        };
        match groups.iter_mut().find(is_own) {
            Some(group) => group.cores.push(core),
            None => groups.push(Group { kind, speed, cores: vec![core] }),
        }
    }
    groups.sort_by(|one, other| other.speed.total_cmp(&one.speed).then(one.kind.cmp(other.kind)));
    groups
}

impl RecordedCores {
    /// What a set of these CPUs is on a machine: the same cores if it has as many of each kind; else the clusters that
    /// stand where the set's do between the slowest and the fastest, if it is made of whole clusters. None: no cores.
    fn on(&self, machine: &Machine, set: &CoreSet) -> Option<CoreSet> {
        let cpus = self.0.iter().enumerate();
        let own = grouped(cpus.map(|(cpu, (kind, speed))| (kind.as_str(), *speed, cpu.into())));
        let capacities = energy_models(machine);
        let capacity =
            |cluster: usize| capacities[cluster].last().map_or(0.0, |point| point.capacity);
        let clusters = machine.clusters.iter().enumerate();
        let theirs = grouped(clusters.flat_map(|(number, cluster)| {
            let speed = capacity(number);
            cluster.cores.iter().map(move |core| (cluster.core_type.as_str(), speed, *core))
        }));
        let is_same = |(one, other): (&Group<'_>, &Group<'_>)| {
            one.cores.len() == other.cores.len() && (one.kind.is_empty() || one.kind == other.kind)
        };
        let found: CoreSet = if own.len() == theirs.len() && own.iter().zip(&theirs).all(is_same) {
            let pairs = own.iter().zip(&theirs).flat_map(|(one, other)| {
                one.cores.iter().zip(&other.cores).filter(|(cpu, _)| set.contains(**cpu))
            });
            pairs.map(|(_, core)| *core).collect()
        } else {
            let whole = |group: &Group<'_>| group.cores.iter().all(|&cpu| set.contains(cpu));
            let any = |group: &Group<'_>| group.cores.iter().any(|&cpu| set.contains(cpu));
            if own.iter().any(|group| any(group) && !whole(group)) {
                return None;
            }
            let stands_for = |number: usize| {
                let last = theirs.len().max(2) - 1;
                own.get((number * own.len().saturating_sub(1) + last / 2) / last)
            };
            let chosen = theirs.iter().enumerate();
            let chosen = chosen.filter(|(number, _)| stands_for(*number).is_some_and(whole));
            chosen.flat_map(|(_, group)| group.cores.iter().copied()).collect()
        };
        (!found.is_empty()).then_some(found)
    }
}

impl Workload {
    /// The same for a machine: sets of CPUs of recorded programs become sets of its cores, see [`RecordedCores`].
    pub fn placed_on(&self, machine: &Machine) -> Placed<'_> {
        let is_recorded = |app: &App| app.program.recorded_cores.is_some();
        if !self.apps.iter().any(is_recorded) {
            return Placed { workload: Cow::Borrowed(self), dropped: 0 };
        }
        let (mut workload, mut dropped) = (self.clone(), 0);
        for app in &mut workload.apps {
            let Some(cores) = &app.program.recorded_cores else { continue };
            let (program, lost) = placed(&app.program, cores, machine);
            dropped += lost;
            app.program = Arc::new(program);
        }
        Placed { workload: Cow::Owned(workload), dropped }
    }
}

/// A program on a machine, and how many threads have lost their sets.
fn placed(program: &Program, recorded: &RecordedCores, machine: &Machine) -> (Program, usize) {
    let mut known: Vec<(CoreSet, Option<CoreSet>)> = Vec::new();
    let mut on = |set: &CoreSet| match known.iter().find(|(other, _)| other == set) {
        Some((_, found)) => found.clone(),
        None => {
            let found = recorded.on(machine, set);
            known.push((set.clone(), found.clone()));
            found
        }
    };
    let mut program = Program { recorded_cores: None, ..program.clone() };
    let mut dropped = 0;
    for thread in &mut program.threads {
        let Some(set) = &thread.affinity else { continue };
        thread.affinity = on(set);
        dropped += usize::from(thread.affinity.is_none());
    }
    for op in &mut program.code {
        if let Op::SetAffinity(set) = op {
            *set = on(set).unwrap_or_else(|| CoreSet::first(machine.cores()));
        }
    }
    (program, dropped)
}
