//! What threads ask of the scheduler beside affinity and weight: class, slice, utilisation clamps, group.
//!
//! The host hands them to the interpreter ([`Sched::set_attrs`]), which gives them to the part that can honour them.
//! What a policy does not honour is said with the result ([`Honours`]).

use ampsched_model::{CLAMP_MAX, CoreId, Ns, SHARES_DEFAULT, SchedClass, ThreadId};

use crate::{Allocator, Order, Sched, Slice};

/// The weight of a thread of class idle, whatever its nice value (kernel/sched/sched.h, `WEIGHT_IDLEPRIO`, 6.12).
pub const WEIGHT_IDLE: u32 = 3;

/// A group of threads that share CPU time as one; 0 is the root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u16);

impl GroupId {
    /// The group of all threads that state none.
    pub const ROOT: Self = Self(0);

    /// Its place in a table.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// What a thread asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadAttrs {
    /// Its scheduling class; the policy only sees threads of the fair ones.
    pub class: SchedClass,
    /// Length of its slices or requests in ns (Linux: `sched_attr.sched_runtime` of a fair thread); 0: as the policy
    /// says.
    pub slice_ns: Ns,
    /// Least utilisation that it asks for, 0 to 1024; none: the class's default.
    pub uclamp_min: Option<u16>,
    /// Greatest utilisation that it is worth, 0 to 1024; none: 1024.
    pub uclamp_max: Option<u16>,
    /// Its group.
    pub group: GroupId,
}

/// A group (a control group with Linux's cpu controller).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupInfo {
    /// Path from the root, `/` for the root itself.
    pub path: String,
    /// The group above; the root is above itself.
    pub parent: GroupId,
    /// Its share among the groups and threads beside it; 1024 is `cpu.weight` 100 or a thread of nice 0.
    pub shares: u32,
    /// Least utilisation of its threads, 0 to 1024.
    pub uclamp_min: u16,
    /// Greatest utilisation of its threads, 0 to 1024.
    pub uclamp_max: u16,
}

impl GroupInfo {
    fn new(path: &str, parent: GroupId) -> Self {
        Self {
            path: path.to_owned(),
            parent,
            shares: SHARES_DEFAULT,
            uclamp_min: 0,
            uclamp_max: CLAMP_MAX,
        }
    }

    pub(crate) fn root() -> Self {
        Self::new("/", GroupId::ROOT)
    }
}

/// Which attributes a policy honours; all of them change nothing elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Honours {
    /// Slices of single threads.
    pub slice: bool,
    /// Utilisation clamps, in placement.
    pub uclamp: bool,
    /// Groups.
    pub group: bool,
    /// The classes batch and idle.
    pub batch: bool,
}

impl Sched {
    /// What a thread asks for.
    #[inline]
    pub fn attrs(&self, thread: ThreadId) -> &ThreadAttrs {
        &self.attrs[thread.index()]
    }

    /// Tells what a thread asks for from now on. A slice goes into its plan if the rules know requests.
    pub fn set_attrs(&mut self, thread: ThreadId, attrs: ThreadAttrs) {
        let before = std::mem::replace(&mut self.attrs[thread.index()], attrs);
        self.some_batch |= matches!(attrs.class, SchedClass::Batch | SchedClass::Idle);
        if self.honours.slice && before.slice_ns != attrs.slice_ns {
            self.plans[thread.index()].slice_ns = attrs.slice_ns;
        }
    }

    /// Whether a woken thread interrupts a running one, and why, if the fair classes decide it (kernel/sched/fair.c,
    /// `check_preempt_wakeup_fair`, 6.12): threads of class idle are interrupted by all others, and neither they nor
    /// those of class batch interrupt anybody.
    pub(crate) fn preempts_by_class(
        &self,
        woken: ThreadId,
        running: ThreadId,
    ) -> Option<(bool, &'static str)> {
        let (new, old) = (self.attrs(woken).class, self.attrs(running).class);
        match (new, old) {
            (SchedClass::Fair | SchedClass::Batch, SchedClass::Idle) => {
                Some((true, "the running thread is of class idle"))
            }
            (SchedClass::Batch, _) => {
                Some((false, "a woken thread of class batch interrupts nobody"))
            }
            (SchedClass::Idle, _) => {
                Some((false, "a woken thread of class idle interrupts nobody"))
            }
            _ => None,
        }
    }

    /// The attributes that the policy honours: what its rules say until the host says otherwise.
    pub fn honours(&self) -> Honours {
        self.honours
    }

    /// Tells which attributes the policy honours by code of its own; before the first thread is added.
    pub fn set_honours(&mut self, honours: Honours) {
        self.honours = honours;
    }

    /// What rules honour.
    pub(crate) fn honoured_by(rules: &crate::Rules) -> Honours {
        Honours {
            slice: matches!(rules.slice, Slice::Request { .. }),
            uclamp: matches!(rules.allocator, Allocator::ByEnergy { .. }),
            group: false,
            batch: rules.order != Order::Fifo,
        }
    }

    /// The group of a path, which exists with all above it as soon as it is named. The path is absolute.
    pub fn group(&mut self, path: &str) -> GroupId {
        if path == "/" {
            return GroupId::ROOT;
        }
        if let Some(known) = self.groups.iter().position(|group| group.path == path) {
            return GroupId(known as u16);
        }
        let above = path.rfind('/').filter(|&at| at > 0).map_or("/", |at| &path[..at]);
        let parent = self.group(above);
        self.groups.push(GroupInfo::new(path, parent));
        GroupId(u16::try_from(self.groups.len() - 1).expect("fewer than 65,536 groups"))
    }

    /// A group.
    pub fn group_info(&self, group: GroupId) -> &GroupInfo {
        &self.groups[group.index()]
    }

    /// Tells what is stated of a group.
    pub fn group_mut(&mut self, group: GroupId) -> &mut GroupInfo {
        &mut self.groups[group.index()]
    }

    /// All groups by number, the root first; a group comes behind the one above it.
    pub fn groups(&self) -> &[GroupInfo] {
        &self.groups
    }

    /// The utilisation clamps of a thread in force, least and greatest: its own, within those of its groups
    /// (kernel/sched/core.c, `uclamp_eff_get`, 6.12). A real-time thread that states none asks for a whole core
    /// (`sysctl_sched_uclamp_util_min_rt_default`); a deadline thread for its bandwidth.
    pub fn uclamp(&self, thread: ThreadId) -> (u16, u16) {
        let attrs = self.attrs(thread);
        let default = match attrs.class {
            SchedClass::Fifo { .. } | SchedClass::RoundRobin { .. } => CLAMP_MAX,
            SchedClass::Deadline { runtime_ns, period_ns, .. } => {
                (runtime_ns * u64::from(CLAMP_MAX)).div_ceil(period_ns.max(1)) as u16
            }
            SchedClass::Fair | SchedClass::Batch | SchedClass::Idle => 0,
        };
        let (mut min, mut max) =
            (attrs.uclamp_min.unwrap_or(default), attrs.uclamp_max.unwrap_or(CLAMP_MAX));
        let mut group = attrs.group;
        while group != GroupId::ROOT {
            let info = self.group_info(group);
            let cut = |value: u16| value.max(info.uclamp_min).min(info.uclamp_max);
            (min, max) = (cut(min), cut(max));
            group = info.parent;
        }
        (min, max)
    }

    /// A core's utilisation within the clamps of what runs and waits there: the greatest of each, as in Linux
    /// (kernel/sched/core.c, `uclamp_rq_inc`, 6.12; kernel/sched/cpufreq_schedutil.c reads it). `util` is 0 to the
    /// core's capacity, `more` are threads of classes above that wait for this core.
    pub fn clamped_util(
        &self,
        core: CoreId,
        util: u32,
        more: impl Iterator<Item = ThreadId>,
    ) -> u32 {
        let (mut clamps, mut add) = (None, |thread: ThreadId| self.uclamp(thread));
        let all = self.current(core).into_iter().chain(self.queue(core).iter().map(|it| it.thread));
        for (min, max) in all.chain(more).map(&mut add) {
            let (most_min, most_max) = clamps.unwrap_or((0, 0));
            clamps = Some((most_min.max(min), most_max.max(max)));
        }
        let Some((min, max)) = clamps else { return util };
        util.min(max.into()).max(min.into()).min(self.util_max(core))
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::AppId;

    use super::*;
    use crate::testing::{build, topology};

    fn sched(policy: &str) -> Sched {
        let topology = topology(&[(0, 2)]);
        let rules = build(policy, &[]).rules(&topology);
        Sched::new(topology, rules)
    }

    #[test]
    fn groups_exist_with_those_above_them() {
        let mut sched = sched("cfs");
        let deep = sched.group("/tg1/tg11");
        assert_eq!(
            (deep, sched.group("/tg1"), sched.group("/")),
            (GroupId(2), GroupId(1), GroupId(0))
        );
        assert_eq!(sched.group("/tg1/tg11"), deep);
        assert_eq!(sched.group_info(deep).parent, GroupId(1));
        assert_eq!(sched.groups().len(), 3);
    }

    #[test]
    fn clamps_lie_within_those_of_the_groups() {
        let mut sched = sched("cfs");
        let thread = sched.add(AppId(0), 1024, None);
        let set = |sched: &mut Sched, class, min, max, group| {
            let attrs = ThreadAttrs { class, slice_ns: 0, uclamp_min: min, uclamp_max: max, group };
            sched.set_attrs(thread, attrs);
            sched.uclamp(thread)
        };
        let (fair, root) = (SchedClass::Fair, GroupId::ROOT);
        assert_eq!(set(&mut sched, fair, None, None, root), (0, 1024));
        assert_eq!(
            set(&mut sched, SchedClass::Fifo { priority: 1 }, None, None, root),
            (1024, 1024)
        );
        assert_eq!(
            set(&mut sched, SchedClass::Fifo { priority: 1 }, Some(5), None, root),
            (5, 1024)
        );
        let dl = SchedClass::Deadline { runtime_ns: 10, deadline_ns: 40, period_ns: 40 };
        assert_eq!(set(&mut sched, dl, None, None, root), (256, 1024));
        // The example of Documentation/scheduler/sched-util-clamp.rst, "Cgroup restrictions".
        let group = sched.group("/a");
        (sched.group_mut(group).uclamp_min, sched.group_mut(group).uclamp_max) = (0, 614);
        assert_eq!(set(&mut sched, fair, Some(0), Some(1024), group), (0, 614));
        assert_eq!(set(&mut sched, fair, Some(410), Some(512), group), (410, 512));
    }

    #[test]
    fn a_core_has_the_greatest_clamps_of_its_threads() {
        let mut sched = sched("cfs");
        let none = || std::iter::empty();
        assert_eq!(sched.clamped_util(CoreId(0), 300, none()), 300);
        let attrs = [(Some(0), Some(200)), (Some(500), Some(700))];
        for (uclamp_min, uclamp_max) in attrs {
            let thread = sched.add(AppId(0), 1024, None);
            sched.set_attrs(thread, ThreadAttrs { uclamp_min, uclamp_max, ..Default::default() });
            sched.enqueue(thread, CoreId(0), crate::EnqueueKind::Fork, 0);
        }
        let clamped = |util| sched.clamped_util(CoreId(0), util, none());
        assert_eq!([100, 600, 900].map(clamped), [500, 600, 700]);
    }

    #[test]
    fn a_slice_is_honoured_by_requests_only() {
        for (policy, honoured) in [("cfs", 0), ("eevdf", 5_000_000)] {
            let mut sched = sched(policy);
            let thread = sched.add(AppId(0), 1024, None);
            sched.set_attrs(thread, ThreadAttrs { slice_ns: 5_000_000, ..Default::default() });
            assert_eq!(sched.plan(thread).slice_ns, honoured, "{policy}");
            assert_eq!(sched.honours().slice, honoured > 0);
        }
    }
}
