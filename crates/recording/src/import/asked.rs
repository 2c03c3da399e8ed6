//! What threads ask of the scheduler beside their priorities: of what stands beside a trace, and of its events.

use std::collections::{BTreeMap, HashMap};

use ampsched_model::{CLAMP_MAX, GROUPS_MAX};

use super::cgroups::{Cgroups, OfThread, Place};
use super::event::{Names, PRIO_DEADLINE};
use super::track::Track;
use crate::asks::{Asks, Group, Policy};

/// What is known of all threads, and what is not.
#[derive(Debug, Default)]
pub struct Asked {
    /// By track.
    pub asks: Vec<Asks>,
    /// Groups that threads are in.
    pub groups: Vec<Group>,
    /// What is lost, a sentence each.
    pub unknown: Vec<String>,
}

/// What is unknown if nothing stands beside a trace whose events tell nothing either.
const UNTOLD: &str =
    "control groups, sets of CPUs and clamps (uclamp) of threads: no event tells them";

/// What is counted while threads are looked at.
#[derive(Debug, Default)]
struct Losses {
    changed: usize,
    moved: usize,
    groupless: usize,
    ran_elsewhere: usize,
    boosted: usize,
    too_many_groups: usize,
    moves_to_nowhere: usize,
    deadlines: usize,
    unheard: BTreeMap<&'static str, usize>,
}

/// That a thread was moved within a hierarchy.
#[derive(Clone, Copy, Debug)]
struct Moved {
    /// Where it has spent most of its CPU time; none if that is where it was at the begin, or if nobody has stated it.
    to: Option<Place>,
    has_others: bool,
    is_nowhere: bool,
}

/// All that is looked at.
struct Reader<'a> {
    tracks: &'a [Track],
    processes: &'a [u32],
    names: &'a Names,
    cgroups: Option<&'a Cgroups>,
    /// How many CPUs the trace has.
    cpus: usize,
    /// Hierarchies, and the group of each track in each.
    places: Vec<(usize, Vec<Option<Place>>)>,
    numbers: HashMap<String, u16>,
    groups: Vec<Group>,
    losses: Losses,
}

/// What the chosen tracks ask for.
pub fn asked(
    tracks: &[Track],
    chosen: &[usize],
    processes: &[u32],
    names: &Names,
    cgroups: Option<&Cgroups>,
    cpus: usize,
) -> Asked {
    let mut reader = Reader {
        tracks,
        processes,
        names,
        cgroups,
        cpus,
        places: Vec::new(),
        numbers: HashMap::new(),
        groups: Vec::new(),
        losses: Losses::default(),
    };
    if let Some(cgroups) = cgroups {
        let of = |hierarchy| (hierarchy, reader.places(cgroups, hierarchy));
        reader.places = cgroups.hierarchies().into_iter().map(of).collect();
    }
    let asks: Vec<Asks> = chosen.iter().map(|&track| reader.track(track)).collect();
    let mut unknown = cgroups.map(Cgroups::losses).unwrap_or_default();
    let moves = chosen.iter().map(|&track| tracks[track].groups.len()).sum();
    unknown.extend(reader.losses.sentences(cgroups.is_some(), moves));
    if cgroups.is_none() && asks.iter().all(Asks::is_none) {
        unknown.push(UNTOLD.to_owned());
    }
    Asked { asks, groups: reader.groups, unknown }
}

impl Reader<'_> {
    fn track(&mut self, index: usize) -> Asks {
        let track = &self.tracks[index];
        let own = self.cgroups.and_then(|cgroups| cgroups.own(track.tid));
        let own = own.cloned().unwrap_or_default();
        let has_deadline = track.main_prio().0 == Some(PRIO_DEADLINE);
        let policy = own.policy.or(has_deadline.then_some(Policy::Deadline));
        self.losses.deadlines += usize::from(policy == Some(Policy::Deadline));
        let (cpus, group, boost) = self.of_groups(index, &own);
        let (uclamp_min, uclamp_max) = self.clamps(track, &own, boost);
        let cpus = cpus.filter(|cpus| !(0..self.cpus).all(|cpu| cpus.contains(&(cpu as u16))));
        if let Some(cpus) = &cpus {
            let is_outside = |core: u16| usize::from(core) < self.cpus && !cpus.contains(&core);
            let ran_elsewhere = track.events.iter().any(|event| is_outside(event.core));
            self.losses.ran_elsewhere += usize::from(ran_elsewhere);
        }
        Asks { policy, cpus, uclamp_min, uclamp_max, group }
    }

    /// Clamps of events, else of the thread itself, raised by the boost of its group.
    fn clamps(
        &mut self,
        track: &Track,
        own: &OfThread,
        boost: Option<u16>,
    ) -> (Option<u16>, Option<u16>) {
        let (told, has_others) = track.clamps.main(track.cpu_ns, true);
        self.losses.changed += usize::from(has_others);
        let told_min = told.map(|(min, _)| min).filter(|&min| min > 0);
        let told_max = told.map(|(_, max)| max).filter(|&max| max < CLAMP_MAX);
        self.losses.boosted += usize::from(boost.is_some());
        (told_min.or(own.uclamp_min).max(boost), told_max.or(own.uclamp_max))
    }

    /// CPUs, the group and the boost, 0 to 1024, that a thread has of its groups, its own CPUs before those of a group.
    fn of_groups(
        &mut self,
        index: usize,
        own: &OfThread,
    ) -> (Option<Vec<u16>>, Option<u16>, Option<u16>) {
        let track = &self.tracks[index];
        let (told, has_others) = track.cpus.main(track.cpu_ns, true);
        self.losses.changed += usize::from(has_others);
        let told = told.map(|bits| (0..32).filter(|bit| bits >> bit & 1 == 1).collect());
        let mut cpus = told.filter(|cpus: &Vec<u16>| !cpus.is_empty());
        let Some(cgroups) = self.cgroups else { return (cpus, None, None) };
        let (mut of_group, mut group, mut boost, mut is_anywhere) = (None, None, None, false);
        let mut has_moved = false;
        for number in 0..self.places.len() {
            let (hierarchy, places) = &self.places[number];
            let place = places[index];
            let moved = self.moved_in(cgroups, *hierarchy, index);
            self.losses.moved += usize::from(moved.is_some_and(|moved| moved.has_others));
            self.losses.moves_to_nowhere += usize::from(moved.is_some_and(|it| it.is_nowhere));
            let Some(place) = place else { continue };
            is_anywhere = true;
            let known = cgroups.cpus(place);
            has_moved |= known.is_some() && moved.is_some();
            of_group = of_group.or(known);
            group = group.or_else(|| self.group(cgroups, place));
            boost = boost.or(cgroups.boost(place).filter(|&boost| boost > 0));
            for what in cgroups.unheard(place) {
                *self.losses.unheard.entry(what).or_default() += 1;
            }
        }
        self.losses.groupless += usize::from(!is_anywhere && !self.places.is_empty());
        let stated = own.cpus.clone().filter(|_| !has_moved).or(of_group);
        cpus = cpus.or(stated);
        let boost = boost.map(|percent| (u32::from(CLAMP_MAX) * percent as u32 / 100) as u16);
        (cpus, group, boost)
    }

    /// Where threads were for most of their CPU time: where the file has them until they were moved, else where the
    /// thread was that created them.
    fn places(&self, cgroups: &Cgroups, hierarchy: usize) -> Vec<Option<Place>> {
        let mut places: Vec<Option<Place>> = Vec::with_capacity(self.tracks.len());
        for (index, track) in self.tracks.iter().enumerate() {
            let stated = cgroups.place_of(hierarchy, track.tid, self.processes[index]);
            let of_parent = || places.get(track.parent? as usize).copied().flatten();
            let begin = stated.or_else(of_parent);
            let moved = self.moved_in(cgroups, hierarchy, index);
            places.push(moved.and_then(|moved| moved.to).or(begin));
        }
        places
    }

    /// Where a thread was moved within a hierarchy, if it was.
    fn moved_in(&self, cgroups: &Cgroups, hierarchy: usize, index: usize) -> Option<Moved> {
        let track = &self.tracks[index];
        let of_hierarchy = |(number, _): &&(u32, _)| cgroups.hierarchy(*number) == Some(hierarchy);
        let (_, moves) = track.groups.iter().find(of_hierarchy)?;
        let (path, has_others) = moves.main(track.cpu_ns, false);
        let path = path.map(|name| match self.names.text(name) {
            rooted if rooted.starts_with('/') => rooted.to_owned(),
            name => format!("/{name}"),
        });
        let to = path.as_ref().and_then(|path| cgroups.place_at(hierarchy, path));
        Some(Moved { to, has_others, is_nowhere: path.is_some() && to.is_none() })
    }

    /// The number of the group in which a thread shares CPU time, and of those above it, which get numbers if they have
    /// none.
    fn group(&mut self, cgroups: &Cgroups, place: Place) -> Option<u16> {
        let mut own = None;
        for (path, stated) in cgroups.sharing(place) {
            let known = self.numbers.get(path).copied();
            if known.is_none() && self.groups.len() >= GROUPS_MAX {
                self.losses.too_many_groups += 1;
                return own;
            }
            let number = known.unwrap_or_else(|| {
                let number = self.groups.len() as u16;
                self.numbers.insert(path.to_owned(), number);
                self.groups.push(Group {
                    path: path.to_owned(),
                    shares: stated.shares,
                    uclamp_min: stated.uclamp_min.filter(|&min| min > 0),
                    uclamp_max: stated.uclamp_max.filter(|&max| max < CLAMP_MAX),
                });
                number
            });
            own = own.or(Some(number));
        }
        own
    }
}

impl Losses {
    fn sentences(self, is_stated: bool, moves: usize) -> Vec<String> {
        let mut found = Vec::new();
        let mut say = |count: usize, text: &str| {
            if count > 0 {
                found.push(text.replace("{}", &count.to_string()));
            }
        };
        say(
            if is_stated { 0 } else { moves },
            "what {} moves between control groups have changed: state the groups (--cgroups)",
        );
        say(
            self.changed,
            "{} times that a thread had several CPU masks or clamps: it has those of most of its CPU time",
        );
        say(
            self.moved.min(moves),
            "{} times that a thread was moved between control groups: it is in that of most of its CPU time",
        );
        say(self.moves_to_nowhere, "{} moves of threads to control groups that nobody has stated");
        say(self.groupless, "the control groups of {} threads, which nobody has stated");
        say(
            self.ran_elsewhere,
            "why {} threads ran on CPUs that they may not use: their CPUs are those of another time",
        );
        say(
            self.boosted,
            "what SchedTune's boost does beside clamps: that of {} threads counts as their uclamp_min",
        );
        say(self.too_many_groups, "the groups of {} threads: there are more than 1,000");
        say(
            self.deadlines,
            "runtime and period of {} threads with deadlines: they count as SCHED_FIFO of priority 99",
        );
        for (what, count) in self.unheard {
            say(count, &format!("what follows from {what} for {{}} threads: replays leave it out"));
        }
        found
    }
}
