//! What stands beside a trace of control groups and threads: lines `PATH:VALUE`, as `grep -rH . DIRECTORY` prints them.
//!
//! Read are cgroup file systems of both versions where Android and systemd mount them (Documentation/admin-guide/
//! cgroup-v1/cpusets.rst, cgroup-v2.rst; Android's cgroups.json: `/dev/cpuset`, `/dev/cpuctl`, `/dev/stune`), Android's
//! SchedTune (Documentation/scheduler/sched-tune.txt of its kernels), `/proc/cgroups` and of each thread
//! `/proc/PID/task/TID/status` and `sched`. Other lines say nothing here.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ampsched_model::limits::CPUS_MAX;
use ampsched_model::{Budget, CLAMP_MAX, InputError, TaskGroup, path_flaw};

use crate::asks::{Policy, SHARES};

/// Where control groups are mounted that are no part of `/sys/fs/cgroup`.
const MOUNTS: [&str; 3] = ["/dev/cpuset", "/dev/cpuctl", "/dev/stune"];
/// Where systemd mounts them: all together (version 2), or one directory for each hierarchy.
const SYSTEM: &str = "/sys/fs/cgroup";
/// Most hierarchies (ours): each has a controller, of which Linux 6.12 has 14.
const HIERARCHIES_MAX: usize = 32;
/// Letters that are shown of what cannot be read (ours).
const SHOWN: usize = 80;

/// What is stated of a group in one hierarchy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stated {
    /// Its CPUs.
    pub cpus: Option<Vec<u16>>,
    /// Whether these are the effective ones, within those of the groups above.
    is_effective: bool,
    /// Its share of CPU time; 1024 is usual.
    pub shares: Option<u32>,
    /// Least utilisation of its threads, 0 to 1024.
    pub uclamp_min: Option<u16>,
    /// Greatest utilisation of its threads.
    pub uclamp_max: Option<u16>,
    /// `schedtune.boost`, in percent, -100 to 100.
    pub boost: Option<i16>,
    /// What is stated and no replay honours.
    pub unheard: BTreeSet<&'static str>,
}

impl Stated {
    /// Whether the cpu controller has stated anything of it.
    fn is_of_cpu(&self) -> bool {
        (self.shares, self.uclamp_min, self.uclamp_max) != (None, None, None)
    }
}

/// What is stated of one thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfThread {
    /// CPUs that it may use.
    pub cpus: Option<Vec<u16>>,
    /// Least utilisation that it asks for.
    pub uclamp_min: Option<u16>,
    /// Greatest utilisation that it is worth.
    pub uclamp_max: Option<u16>,
    /// Its class, if a priority does not tell it.
    pub policy: Option<Policy>,
}

/// A group of a hierarchy, by number.
pub type Place = usize;

/// Groups, and who is in them.
#[derive(Debug, Default)]
pub struct Cgroups {
    /// Mount points of the hierarchies.
    roots: Vec<String>,
    /// Hierarchy, path and what is stated.
    places: Vec<(usize, String, Stated)>,
    by_path: HashMap<(usize, String), Place>,
    threads: HashMap<(usize, u32), Place>,
    processes: HashMap<(usize, u32), Place>,
    /// What is stated of threads themselves.
    own: HashMap<u32, OfThread>,
    /// The kernel's numbers of hierarchies, by controllers.
    numbers: BTreeMap<String, u32>,
    /// Hierarchies by those numbers.
    numbered: Vec<(u32, usize)>,
    /// Threads that stand in two groups of a hierarchy.
    moved: usize,
    /// CPUs of all lists together.
    listed: usize,
    unreadable: usize,
    first_unreadable: String,
}

/// Whether something is stated of a group.
type Has = fn(&Stated) -> bool;
/// What became of a value.
type Readable = Option<()>;

impl Cgroups {
    /// Reads a file.
    ///
    /// # Errors
    /// No line tells anything of a control group or of a thread, or there is too much.
    pub fn parse(file: &str, text: &str) -> Result<Self, InputError> {
        let mut found = Self::default();
        let mut room = Budget::of(text.len());
        let is_unified = text.lines().any(|line| line.starts_with("/sys/fs/cgroup/cgroup."));
        for (number, line) in text.lines().enumerate() {
            let (before, listed) = (found.size(), found.listed);
            let line = line.trim_end();
            if found.line(line, is_unified).is_none() {
                found.unreadable += 1;
                if found.first_unreadable.is_empty() {
                    let shown: String = line.chars().take(SHOWN).collect();
                    found.first_unreadable = format!("line {}: {shown}", number + 1);
                }
            }
            room.take::<[Stated; 2]>(file, found.size() - before)?;
            room.take::<u16>(file, found.listed - listed)?;
            room.take::<u8>(file, line.len())?;
        }
        let has_lines = !found.places.is_empty() || !found.own.is_empty();
        if !has_lines || found.unreadable > 0 && found.is_empty() {
            let message = match found.unreadable {
                0 => "has no line of a control group or a thread (PATH:VALUE)".to_owned(),
                _ => format!("no line can be read; {}", found.first_unreadable),
            };
            let hint = "make it by: grep -rHs . /dev/cpuset /dev/cpuctl /dev/stune /sys/fs/cgroup /proc/cgroups";
            return Err(InputError::new(file, "", message).with_hint(hint));
        }
        found.numbered = found.numbered();
        Ok(found)
    }

    /// Whether nothing is stated of anybody.
    fn is_empty(&self) -> bool {
        self.places.iter().all(|(_, _, stated)| *stated == Stated::default())
            && self.threads.is_empty()
            && self.processes.is_empty()
            && self.own.values().all(|own| *own == OfThread::default())
    }

    fn size(&self) -> usize {
        self.places.len() + self.threads.len() + self.processes.len() + self.own.len()
    }

    /// Takes a line. None: it is about something that is read, and cannot be.
    fn line(&mut self, line: &str, is_unified: bool) -> Readable {
        // A group's name may have colons: the key is the first word before one that is a known file.
        let mut colons = line.match_indices(':').map(|(at, _)| line.split_at(at));
        let known = |(path, _): &(&str, &str)| is_read(path);
        let Some((path, value)) = colons.find(known) else { return Some(()) };
        let value = value[1..].trim();
        if let Some(rest) = path.strip_prefix("/proc/") {
            return match rest {
                "cgroups" => self.number(value),
                _ => self.of_thread(rest, value),
            };
        }
        let (directory, key) = path.rsplit_once('/')?;
        let (root, group) = split(directory, is_unified)?;
        if path_flaw(group).is_some() {
            return None;
        }
        let place = self.place(root, group)?;
        match key {
            "tasks" | "cgroup.threads" => self.member(place, value, true),
            "cgroup.procs" => self.member(place, value, false),
            _ => {
                let stated = &mut self.places[place].2;
                stated.state(key, value)?;
                self.listed += stated.cpus.as_ref().map_or(0, Vec::len);
                Some(())
            }
        }
    }

    /// `cpuset  2  9  1`: a controller, its hierarchy's number, groups, whether it is on.
    fn number(&mut self, value: &str) -> Readable {
        if value.starts_with('#') {
            return Some(());
        }
        let mut words = value.split_whitespace();
        let (controller, number) = (words.next()?, words.next()?.parse().ok()?);
        self.numbers.insert(controller.to_owned(), number);
        Some(())
    }

    /// `PID/task/TID/status` or `sched`, with a line of it.
    fn of_thread(&mut self, path: &str, value: &str) -> Readable {
        let tid: u32 = path.rsplit('/').nth(1)?.parse().ok()?;
        let (key, value) = value.split_once(':')?;
        let value = value.trim();
        let own = self.own.entry(tid).or_default();
        // The usual ones are what threads have that ask for nothing.
        let clamp = |usual: u16| {
            let clamp = value.parse().ok().filter(|&clamp| clamp <= CLAMP_MAX)?;
            Some(Some(clamp).filter(|&clamp| clamp != usual))
        };
        match key.trim() {
            "Cpus_allowed_list" => {
                let cpus = cpu_list(value)?;
                self.listed += cpus.len();
                own.cpus = Some(cpus);
            }
            "uclamp.min" => own.uclamp_min = clamp(0)?,
            "uclamp.max" => own.uclamp_max = clamp(CLAMP_MAX)?,
            "policy" => {
                own.policy = match value.parse::<u32>().ok()? {
                    2 => Some(Policy::Rr),
                    3 => Some(Policy::Batch),
                    5 => Some(Policy::Idle),
                    6 => Some(Policy::Deadline),
                    _ => None,
                }
            }
            _ => {}
        }
        Some(())
    }

    fn place(&mut self, root: &str, group: &str) -> Option<Place> {
        let known = self.roots.iter().position(|known| known == root);
        if known.is_none() {
            if self.roots.len() >= HIERARCHIES_MAX {
                return None;
            }
            self.roots.push(root.to_owned());
        }
        let hierarchy = known.unwrap_or(self.roots.len() - 1);
        let places = &mut self.places;
        Some(*self.by_path.entry((hierarchy, group.to_owned())).or_insert_with(|| {
            places.push((hierarchy, group.to_owned(), Stated::default()));
            places.len() - 1
        }))
    }

    fn member(&mut self, place: Place, value: &str, is_thread: bool) -> Readable {
        let number: u32 = value.parse().ok()?;
        let of = if is_thread { &mut self.threads } else { &mut self.processes };
        let before = of.insert((self.places[place].0, number), place);
        self.moved += usize::from(is_thread && before.is_some_and(|before| before != place));
        Some(())
    }

    /// The hierarchies of which something is stated that matters here, ascending: not those of memory or of processes.
    pub fn hierarchies(&self) -> Vec<usize> {
        let stated = self.places.iter().filter(|(_, _, stated)| *stated != Stated::default());
        stated.map(|(hierarchy, ..)| *hierarchy).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The group of a thread in a hierarchy: its own, else that of its process.
    pub fn place_of(&self, hierarchy: usize, tid: u32, process: u32) -> Option<Place> {
        let own = self.threads.get(&(hierarchy, tid));
        own.or_else(|| self.processes.get(&(hierarchy, process))).copied()
    }

    /// The hierarchy of the kernel's number, if `/proc/cgroups` was there.
    pub fn hierarchy(&self, number: u32) -> Option<usize> {
        self.numbered.iter().find(|(known, _)| *known == number).map(|(_, hierarchy)| *hierarchy)
    }

    /// Finds the hierarchies of the kernel's numbers by what their groups state.
    fn numbered(&self) -> Vec<(u32, usize)> {
        let controllers: [(&str, Has); 3] = [
            ("cpuset", |stated| stated.cpus.is_some()),
            ("cpu", Stated::is_of_cpu),
            ("schedtune", |stated| stated.boost.is_some()),
        ];
        let of = |(controller, has): &(&str, Has)| {
            let number = self.numbers.get(*controller)?;
            let (hierarchy, ..) = self.places.iter().find(|(_, _, stated)| has(stated))?;
            Some((*number, *hierarchy))
        };
        controllers.iter().filter_map(of).collect()
    }

    /// The group of a path in a hierarchy.
    pub fn place_at(&self, hierarchy: usize, path: &str) -> Option<Place> {
        self.by_path.get(&(hierarchy, path.to_owned())).copied()
    }

    /// A group, those above it, and the root.
    fn upwards(&self, place: Place) -> impl Iterator<Item = (&str, &Stated)> {
        let (hierarchy, path, _) = &self.places[place];
        let ends = path.rmatch_indices('/').map(|(at, _)| &path[..at.max(1)]);
        let above = std::iter::once(path.as_str()).chain(ends.filter(move |above| above != path));
        above.filter_map(|above| {
            let place = self.place_at(*hierarchy, above)?;
            Some((above, &self.places[place].2))
        })
    }

    /// The CPUs of a group, within those of the groups above; none if nobody has stated any.
    pub fn cpus(&self, place: Place) -> Option<Vec<u16>> {
        let mut found: Option<Vec<u16>> = None;
        for (_, stated) in self.upwards(place) {
            let Some(cpus) = &stated.cpus else { continue };
            found = Some(match found {
                None => cpus.clone(),
                Some(inner) => inner.into_iter().filter(|cpu| cpus.contains(cpu)).collect(),
            });
            if stated.is_effective {
                break;
            }
        }
        found.filter(|cpus| !cpus.is_empty())
    }

    /// The boost of a group in percent, of SchedTune.
    pub fn boost(&self, place: Place) -> Option<i16> {
        self.places[place].2.boost
    }

    /// The group whose threads share CPU time, and those above it of which something is stated, the innermost first: of
    /// version 2 that with the cpu controller. Empty: the root.
    pub fn sharing(&self, place: Place) -> Vec<(&str, &Stated)> {
        let of_cpu = |(path, stated): &(&str, &Stated)| stated.is_of_cpu() && *path != "/";
        self.upwards(place).filter(of_cpu).collect()
    }

    /// What is stated of a group and those above it and no replay honours.
    pub fn unheard(&self, place: Place) -> BTreeSet<&'static str> {
        self.upwards(place).flat_map(|(_, stated)| stated.unheard.iter().copied()).collect()
    }

    /// What is stated of a thread itself.
    pub fn own(&self, tid: u32) -> Option<&OfThread> {
        self.own.get(&tid)
    }

    /// What of the file could not be used, a sentence each.
    pub fn losses(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.unreadable > 0 {
            found.push(format!(
                "{} lines of control groups could not be read, the first: {}",
                self.unreadable, self.first_unreadable
            ));
        }
        if self.moved > 0 {
            let moved = self.moved;
            found.push(format!("{moved} threads stand in two control groups: the later counts"));
        }
        found
    }
}

impl Stated {
    /// Takes a value of a file.
    fn state(&mut self, key: &str, value: &str) -> Readable {
        let flag = |name| (value == "1").then_some(name);
        let mut unheard = None;
        match key {
            "cpus" | "cpuset.cpus" if self.is_effective => {}
            "cpus" | "cpuset.cpus" => self.cpus = Some(cpu_list(value)?),
            "effective_cpus" | "cpuset.effective_cpus" | "cpuset.cpus.effective" => {
                self.cpus = Some(cpu_list(value)?);
                self.is_effective = true;
            }
            "cpu.shares" => {
                self.shares = Some(value.parse().ok().filter(|it| SHARES.contains(it))?)
            }
            "cpu.weight" => {
                let weight = value.parse().ok().filter(|it| (1..=10_000).contains(it))?;
                self.shares = Some(TaskGroup::shares_of_weight(weight));
            }
            "cpu.uclamp.min" => self.uclamp_min = Some(clamp(value)?),
            "cpu.uclamp.max" => self.uclamp_max = Some(clamp(value)?),
            "schedtune.boost" => {
                let boost = value.parse().ok().filter(|it| (-100..=100).contains(it))?;
                self.boost = Some(boost);
                unheard = (boost < 0).then_some("schedtune.boost below 0");
            }
            "schedtune.prefer_idle" => unheard = flag("schedtune.prefer_idle"),
            "cpu.uclamp.latency_sensitive" => unheard = flag("cpu.uclamp.latency_sensitive"),
            "cpu.idle" => unheard = flag("cpu.idle"),
            "cpu.max" => unheard = (!value.starts_with("max")).then_some("a limit of CPU time"),
            _ => unheard = (!value.starts_with('-')).then_some("a limit of CPU time"),
        }
        self.unheard.extend(unheard);
        Some(())
    }
}

/// Whether a path is that of a file which is read.
fn is_read(path: &str) -> bool {
    let Some((directory, key)) = path.rsplit_once('/') else { return false };
    if let Some(rest) = directory.strip_prefix("/proc") {
        return match key {
            "cgroups" => rest.is_empty(),
            "status" | "sched" => rest.contains("/task/"),
            _ => false,
        };
    }
    let is_in = |mount: &str| {
        directory.strip_prefix(mount).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    const KEYS: [&str; 18] = [
        "cpus",
        "cpuset.cpus",
        "effective_cpus",
        "cpuset.effective_cpus",
        "cpuset.cpus.effective",
        "tasks",
        "cgroup.threads",
        "cgroup.procs",
        "cpu.shares",
        "cpu.weight",
        "cpu.uclamp.min",
        "cpu.uclamp.max",
        "cpu.uclamp.latency_sensitive",
        "cpu.idle",
        "cpu.max",
        "cpu.cfs_quota_us",
        "schedtune.boost",
        "schedtune.prefer_idle",
    ];
    KEYS.contains(&key) && (is_in(SYSTEM) || MOUNTS.into_iter().any(is_in))
}

/// A directory as the mount point of its hierarchy and the group in it.
fn split(directory: &str, is_unified: bool) -> Option<(&str, &str)> {
    let mount = MOUNTS.into_iter().find(|mount| directory.starts_with(mount));
    let root = match mount {
        Some(mount) => mount.len(),
        None if is_unified => SYSTEM.len(),
        None => {
            let rest = directory.strip_prefix(SYSTEM)?.strip_prefix('/')?;
            SYSTEM.len() + 1 + rest.find('/').unwrap_or(rest.len())
        }
    };
    let (root, group) = directory.split_at(root);
    Some((root, if group.is_empty() { "/" } else { group }))
}

/// A list of CPUs such as `0-3,6`, ascending; an empty one is none.
pub fn cpu_list(text: &str) -> Option<Vec<u16>> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first <= last && usize::from(last) < CPUS_MAX).then_some((first, last))
    };
    let mut ranges: Vec<(u16, u16)> = text.split(',').map(range).collect::<Option<_>>()?;
    ranges.sort_unstable();
    let mut found: Vec<u16> = Vec::new();
    for (first, last) in ranges {
        let from = found.last().map_or(first, |&before| first.max(before + 1));
        found.extend(from..=last);
    }
    Some(found)
}

/// A clamp in percent, such as `12.50`, or `max`, as utilisation (kernel/sched/core.c, `capacity_from_percent`, 6.12).
fn clamp(text: &str) -> Option<u16> {
    if text == "max" {
        return Some(CLAMP_MAX);
    }
    let percent: f64 = text.parse().ok().filter(|percent| (0.0..=100.0).contains(percent))?;
    let hundredths = (percent * 100.0).round() as u32;
    Some(((hundredths * u32::from(CLAMP_MAX) + 5000) / 10_000) as u16)
}

#[cfg(test)]
mod tests;
