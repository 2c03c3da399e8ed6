//! Objects with their numbers filled in, and checks that what is waited for can happen.

use super::ast::{
    DeclKind, Group, GroupIndex, ObjectDecl, ObjectIndex, RegionDecl, Repeat, Step, StepKind,
    for_each_step,
};
use super::code::{NS_PER_US, TIME_US_MAX};
use super::counts::{GroupCount, Number, threads};
use crate::expr::{AMOUNT_MAX, Expr, Scope};
use crate::limits::{OBJECTS_MAX, TASKS_MAX, THREADS_MAX};
use crate::reader::{Spot, quoted};
use crate::{InputError, Ns, Object, ObjectId, ObjectKind, Region, SPIN_US_MAX};

/// Largest capacity of a queue, count of a semaphore.
const COUNT_MAX: i64 = 1_000_000_000;
/// Most requests that a device serves at the same time.
const DEPTH_MAX: i64 = 1024;

/// Where a declared object stands in the program's object table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    /// First element.
    pub first: ObjectId,
    /// Elements; more than 1 only for arrays of mutexes.
    pub count: u32,
}

/// The objects of a program, and where each declaration went.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    pub table: Vec<Object>,
    pub placed: Vec<Placed>,
}

/// What is known once threads are counted.
pub(crate) struct Usage<'a> {
    pub params: &'a [(String, f64)],
    pub objects: &'a [ObjectDecl],
    pub groups: &'a [Group],
    pub counts: &'a [GroupCount],
}

impl<'a> Usage<'a> {
    /// Builds the object table and refuses programs that cannot work.
    pub fn objects(&self) -> Result<Objects, InputError> {
        let mut objects = Objects::default();
        for (index, declared) in self.objects.iter().enumerate() {
            let (kind, count) = self.object(index, declared)?;
            objects.placed.push(Placed { first: ObjectId::from(objects.table.len()), count });
            if objects.table.len() + count as usize > OBJECTS_MAX {
                return Err(declared
                    .spot
                    .error(format!("more than {OBJECTS_MAX} objects in the program")));
            }
            let spin_ns = self.spin_ns(declared)?;
            objects.table.extend((0..count).map(|element| Object {
                name: element_name(declared, element, count),
                kind: kind.clone(),
                spin_ns,
            }));
        }
        self.check_groups()?;
        Ok(objects)
    }

    fn object(
        &self,
        index: ObjectIndex,
        declared: &ObjectDecl,
    ) -> Result<(ObjectKind, u32), InputError> {
        let kind = match &declared.kind {
            DeclKind::Mutex { count } => {
                let count = self.whole(count, 1, OBJECTS_MAX as i64)? as u32;
                self.check_mutex(index, declared, count)?;
                return Ok((ObjectKind::Mutex, count));
            }
            DeclKind::Condition => self.condition(index, declared)?,
            DeclKind::Barrier { parties } => {
                ObjectKind::Barrier { parties: self.parties(index, declared, parties)? }
            }
            DeclKind::Semaphore { initial } => self.semaphore(index, declared, initial)?,
            DeclKind::Queue { capacity, producers } => {
                self.queue(index, declared, capacity, producers)?
            }
            DeclKind::Pool { total, chunk, participants, schedule } => ObjectKind::Pool {
                total: self.whole(total, 0, AMOUNT_MAX as i64)? as u64,
                chunk: self.whole(chunk, 1, AMOUNT_MAX as i64)? as u64,
                participants: self.participants(index, declared, participants)?,
                schedule: *schedule,
            },
            DeclKind::Region(region) => ObjectKind::Region(self.region(index, declared, region)?),
            DeclKind::Device { depth, latency_us } => ObjectKind::Device {
                depth: self.whole(depth, 1, DEPTH_MAX)? as u32,
                latency_ns: self.time_ns(latency_us, 0.0)?.round() as Ns,
            },
            DeclKind::Timer { shared } => ObjectKind::Timer { shared: *shared },
        };
        Ok((kind, 1))
    }

    fn whole(&self, expr: &Expr, lowest: i64, highest: i64) -> Result<i64, InputError> {
        expr.whole(Scope { params: self.params, instance: None }, lowest, highest)
    }

    fn check_mutex(
        &self,
        index: ObjectIndex,
        declared: &ObjectDecl,
        count: u32,
    ) -> Result<(), InputError> {
        let waits = |kind: &StepKind| match kind {
            StepKind::Wait { mutex, .. } | StepKind::Sync { mutex, .. } => *mutex == index,
            _ => false,
        };
        match self.first(waits).filter(|_| count > 1) {
            Some(step) => Err(step.spot.error(format!(
                "mutex {} is an array of {count}, a single one is needed here",
                quoted(&declared.name)
            ))),
            None => Ok(()),
        }
    }

    fn condition(
        &self,
        index: ObjectIndex,
        declared: &ObjectDecl,
    ) -> Result<ObjectKind, InputError> {
        let signals = |kind: &StepKind| match kind {
            StepKind::Signal(condition) | StepKind::Broadcast(condition) => *condition == index,
            StepKind::Sync { condition, .. } => *condition == index,
            _ => false,
        };
        let waits = |kind: &StepKind| matches!(kind, StepKind::Wait { condition, .. } if *condition == index);
        match (self.first(waits), self.first(signals)) {
            (Some(wait), None) => Err(wait
                .spot
                .error(format!("no thread signals condition {}", quoted(&declared.name)))),
            _ => Ok(ObjectKind::Condition),
        }
    }

    fn semaphore(
        &self,
        index: ObjectIndex,
        declared: &ObjectDecl,
        initial: &Expr,
    ) -> Result<ObjectKind, InputError> {
        let initial = self.whole(initial, 0, COUNT_MAX)? as u32;
        let waits =
            self.first(|kind| matches!(kind, StepKind::SemWait(semaphore) if *semaphore == index));
        let posts =
            self.first(|kind| matches!(kind, StepKind::SemPost(semaphore) if *semaphore == index));
        match (waits, posts) {
            (Some(wait), None) if initial == 0 => Err(wait.spot.error(format!(
                "semaphore {} is 0 and no thread posts it",
                quoted(&declared.name)
            ))),
            _ => Ok(ObjectKind::Semaphore { initial }),
        }
    }

    fn parties(
        &self,
        index: ObjectIndex,
        declared: &ObjectDecl,
        parties: &Option<Expr>,
    ) -> Result<u32, InputError> {
        let arrives =
            |kind: &StepKind| matches!(kind, StepKind::Barrier(barrier) if *barrier == index);
        let (total, at_once) = self.threads_with(arrives);
        let Some(expr) = parties else {
            return counted(at_once, &declared.spot, "arrive at it", "parties")
                .map(|parties| parties.max(1));
        };
        let parties = self.whole(expr, 1, THREADS_MAX)?;
        match total.filter(|total| (parties as u64) > *total && self.first(arrives).is_some()) {
            Some(total) => Err(expr.spot.error(format!(
                "{parties} parties, but only {} can arrive: the barrier can never be met",
                threads(total)
            ))),
            None => Ok(parties as u32),
        }
    }

    fn participants(
        &self,
        index: ObjectIndex,
        declared: &ObjectDecl,
        stated: &Option<Expr>,
    ) -> Result<u32, InputError> {
        let takes =
            |kind: &StepKind| matches!(kind, StepKind::Dynamic { pool, .. } if *pool == index);
        let (total, at_once) = self.threads_with(takes);
        let Some(expr) = stated else {
            return counted(at_once, &declared.spot, "take from it", "participants")
                .map(|threads| threads.max(1));
        };
        self.stated(expr, total, "participants", "take from the pool")
    }

    fn region(
        &self,
        index: ObjectIndex,
        declared: &ObjectDecl,
        stated: &RegionDecl,
    ) -> Result<Region, InputError> {
        let works =
            |kind: &StepKind| matches!(kind, StepKind::Tasks { region, .. } if *region == index);
        let creates =
            |kind: &StepKind| matches!(kind, StepKind::Create { region, .. } if *region == index);
        let (total, at_once) = self.threads_with(works);
        let workers = match &stated.workers {
            None => counted(at_once, &declared.spot, "work on it", "workers")?.max(1),
            Some(expr) => self.stated(expr, total, "workers", "work on the region")?,
        };
        let (_, creators) = self.threads_with(creates);
        if let Some(create) = self.first(creates).filter(|_| creators != Some(1)) {
            let message = format!("the tasks of region {} have", quoted(&declared.name));
            return Err(create.spot.error(format!("{message} more than one creator")));
        }
        let is_lazy = self.first(creates).is_some();
        if let Some(window) = stated.window.as_ref().filter(|_| !is_lazy) {
            let error = window.spot.error("a window, but all tasks are there from the start");
            let hint = format!("add {{ create = {} }} to a thread", quoted(&declared.name));
            return Err(error.with_hint(hint));
        }
        let window = |expr: &Expr| self.whole(expr, 1, TASKS_MAX as i64).map(|most| most as u32);
        let path = stated.path();
        if let (Some(path), None) = (&path, &stated.text) {
            return Err(stated.graph_spot.error(format!("file {} was not found", quoted(path))));
        }
        Ok(Region {
            place: declared.spot.place(),
            graph: path.unwrap_or_else(|| stated.graph.clone()),
            text: stated.text.clone(),
            policy: stated.policy.clone(),
            workers,
            work_ns: self.time_ns(&stated.work_us, 1.0 / NS_PER_US)?,
            grab_ns: self.time_ns(&stated.grab_us, 0.0)?,
            create_ns: self.time_ns(&stated.create_us, 0.0)?,
            is_lazy,
            window: stated.window.as_ref().map(window).transpose()?,
        })
    }

    fn spin_ns(&self, declared: &ObjectDecl) -> Result<Ns, InputError> {
        let Some(spin_us) = &declared.spin_us else { return Ok(0) };
        let scope = Scope { params: self.params, instance: None };
        Ok((spin_us.within(scope, 0.0, SPIN_US_MAX)? * NS_PER_US).round() as Ns)
    }

    fn time_ns(&self, time_us: &Expr, least_us: f64) -> Result<f64, InputError> {
        let scope = Scope { params: self.params, instance: None };
        Ok(time_us.within(scope, least_us, TIME_US_MAX)? * NS_PER_US)
    }

    fn queue(
        &self,
        index: ObjectIndex,
        declared: &ObjectDecl,
        capacity: &Expr,
        producers: &Option<Expr>,
    ) -> Result<ObjectKind, InputError> {
        let capacity = self.whole(capacity, 1, COUNT_MAX)? as u32;
        let closes = |kind: &StepKind| matches!(kind, StepKind::Close(queue) if *queue == index);
        let (total, _) = self.threads_with(closes);
        self.check_queue(index, declared)?;
        let producers = match producers {
            Some(expr) => self.stated(expr, total, "producers", "close the queue")?,
            None => counted(total, &declared.spot, "close it", "producers")?,
        };
        Ok(ObjectKind::Queue { capacity, producers })
    }

    fn check_queue(&self, index: ObjectIndex, declared: &ObjectDecl) -> Result<(), InputError> {
        let name = quoted(&declared.name);
        let pushes = |kind: &StepKind| matches!(kind, StepKind::Push(queue) if *queue == index);
        let takes =
            |kind: &StepKind| matches!(kind, StepKind::Each { queue, .. } if *queue == index);
        let closes = |kind: &StepKind| matches!(kind, StepKind::Close(queue) if *queue == index);
        let error = match (self.first(pushes), self.first(takes)) {
            (Some(push), None) => {
                let error = push.spot.error(format!("no thread takes items from queue {name}"));
                error.with_hint(format!("add {{ each = {name}, body = [..] }} to a thread"))
            }
            (None, Some(each)) => each.spot.error(format!("no thread pushes into queue {name}")),
            (Some(_), Some(each))
                if self.first(closes).is_none() && !self.pushes_for_ever(&pushes) =>
            {
                let message = format!("no thread closes queue {name}, so this would wait for ever");
                each.spot
                    .error(message)
                    .with_hint(format!("end each producer with {{ close = {name} }}"))
            }
            _ => return Ok(()),
        };
        Err(error)
    }

    /// Whether some thread pushes in a loop without end, so that the queue never needs closing.
    fn pushes_for_ever(&self, pushes: &impl Fn(&StepKind) -> bool) -> bool {
        let mut found = false;
        for group in self.started() {
            for_each_step(&group.body, &mut |step| {
                if matches!(step.kind, StepKind::Loop { repeat: Repeat::Forever, .. }) {
                    for_each_step(step.body(), &mut |inner| found |= pushes(&inner.kind));
                }
            });
        }
        found
    }

    /// A stated number of threads, which must not exceed the number that there can be.
    fn stated(&self, expr: &Expr, total: Number, what: &str, act: &str) -> Result<u32, InputError> {
        let stated = self.whole(expr, 1, THREADS_MAX)?;
        match total.filter(|total| stated as u64 > *total) {
            Some(total) => Err(expr
                .spot
                .error(format!("{stated} {what}, but only {} can {act}", threads(total)))),
            None => Ok(stated as u32),
        }
    }

    fn check_groups(&self) -> Result<(), InputError> {
        for (index, (group, count)) in self.groups.iter().zip(self.counts).enumerate() {
            if !count.is_started() && group.count.is_number() {
                let error =
                    group.spot.error(format!("thread {} is never started", quoted(&group.name)));
                return Err(error.with_hint("its count is 0 and no thread forks it"));
            }
            self.check_suspend(index)?;
        }
        Ok(())
    }

    fn check_suspend(&self, index: GroupIndex) -> Result<(), InputError> {
        let resumes = |kind: &StepKind| matches!(kind, StepKind::Resume(group) if *group == index);
        let group = &self.groups[index];
        let mut suspend = None;
        for_each_step(&group.body, &mut |step| {
            if matches!(step.kind, StepKind::Suspend) {
                suspend = suspend.or(Some(step));
            }
        });
        match suspend.filter(|_| self.counts[index].is_started() && self.first(resumes).is_none()) {
            Some(step) => {
                Err(step.spot.error(format!("no thread resumes thread {}", quoted(&group.name))))
            }
            None => Ok(()),
        }
    }

    /// Groups of which some instance may run.
    fn started(&self) -> impl Iterator<Item = &'a Group> + '_ {
        self.groups
            .iter()
            .zip(self.counts)
            .filter(|(_, count)| count.is_started())
            .map(|(group, _)| group)
    }

    /// The first step of a started thread that satisfies a predicate.
    fn first(&self, predicate: impl Fn(&StepKind) -> bool) -> Option<&'a Step> {
        let mut found = None;
        for group in self.started() {
            for_each_step(&group.body, &mut |step| {
                if found.is_none() && predicate(&step.kind) {
                    found = Some(step);
                }
            });
        }
        found
    }

    /// Threads whose code has such a step: over the whole run, and at the same time.
    fn threads_with(&self, predicate: impl Fn(&StepKind) -> bool) -> (Number, Number) {
        let with_step =
            self.groups.iter().zip(self.counts).filter(|(group, _)| group.has_step(&predicate));
        with_step.fold((Some(0), Some(0)), |(total, at_once), (_, count)| {
            let add = |sum: Number, number: Number| Some(sum?.saturating_add(number?));
            (add(total, count.total), add(at_once, count.at_once))
        })
    }
}

/// A derived number of threads as the object needs it.
fn counted(number: Number, spot: &Spot, act: &str, key: &str) -> Result<u32, InputError> {
    match number.and_then(|number| u32::try_from(number).ok()) {
        Some(number) => Ok(number),
        None => Err(spot
            .error(format!("how many threads {act} depends on how often they are forked"))
            .with_hint(format!("state {key} = N"))),
    }
}

fn element_name(declared: &ObjectDecl, element: u32, count: u32) -> String {
    if count == 1 { declared.name.clone() } else { format!("{}.{element}", declared.name) }
}
