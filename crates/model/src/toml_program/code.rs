//! Turns bodies into flat code with jumps.

use std::collections::HashMap;

use super::amount::AmountExpr;
use super::ast::{Group, GroupIndex, ObjectIndex, Repeat, Step, StepKind, WorkUnit};
use super::counts::GroupCount;
use super::usage::Placed;
use crate::expr::{Expr, Scope};
use crate::limits::{CODE_MAX, CORES_MAX, THREADS_MAX};
use crate::reader::Spot;
use crate::{
    Amount, CodePtr, CoreId, CoreSet, InputError, Ns, ObjectId, Op, Profile, ProfileId, TaskGroup,
    ThreadSpec,
};

/// Nanoseconds per microsecond.
pub(crate) const NS_PER_US: f64 = 1000.0;
/// Longest start delay or timer period in microseconds: 10^9 s.
pub(crate) const TIME_US_MAX: f64 = 1e15;

/// Finds a profile by name, or explains at the given place why there is none.
pub(crate) type FindProfile<'a> = dyn Fn(&str, &Spot) -> Result<Profile, InputError> + 'a;

/// Code, threads and profiles of a program in the making.
pub(crate) struct Generator<'a> {
    params: &'a [(String, f64)],
    groups: &'a [Group],
    counts: &'a [GroupCount],
    placed: &'a [Placed],
    find_profile: &'a FindProfile<'a>,
    /// First thread specification of each group.
    first_spec: Vec<u32>,
    profile_ids: HashMap<String, ProfileId>,
    instance: Option<(u32, u32)>,
    pub code: Vec<Op>,
    pub threads: Vec<ThreadSpec>,
    pub profiles: Vec<Profile>,
    /// Groups that are stated, then those that threads name.
    pub task_groups: Vec<TaskGroup>,
}

impl<'a> Generator<'a> {
    /// A generator for these groups.
    pub fn new(
        params: &'a [(String, f64)],
        groups: &'a [Group],
        counts: &'a [GroupCount],
        placed: &'a [Placed],
        find_profile: &'a FindProfile<'a>,
    ) -> Self {
        let first_spec = counts.iter().scan(0, |next, count| {
            let first = *next;
            *next += count.specs;
            Some(first)
        });
        Self {
            params,
            groups,
            counts,
            placed,
            find_profile,
            first_spec: first_spec.collect(),
            profile_ids: HashMap::new(),
            instance: None,
            code: Vec::new(),
            threads: Vec::new(),
            profiles: Vec::new(),
            task_groups: Vec::new(),
        }
    }

    /// Generates the code of all groups.
    pub fn run(&mut self) -> Result<(), InputError> {
        for (group, count) in self.groups.iter().zip(self.counts) {
            for spec in 0..count.specs {
                self.instance = count.instance(spec);
                self.thread(group, count, spec)?;
            }
        }
        Ok(())
    }

    fn thread(&mut self, group: &Group, count: &GroupCount, spec: u32) -> Result<(), InputError> {
        let attrs = self.attrs(&group.attrs, &group.spot)?;
        let thread = ThreadSpec {
            name: if count.indexed { format!("{}.{spec}", group.name) } else { group.name.clone() },
            entry: self.here(),
            count: if count.indexed { u32::from(spec < count.initial) } else { count.initial },
            nice: self.nice(&group.nice)?,
            affinity: group.cores.as_ref().map(|cores| self.cores(cores)).transpose()?,
            start_ns: (group.start_us.within(self.scope(), 0.0, TIME_US_MAX)? * NS_PER_US).round()
                as Ns,
            attrs,
            is_daemon: group.is_daemon,
            process: 0,
        };
        self.threads.push(thread);
        self.body(&group.body)?;
        self.emit(Op::Exit, &group.spot)
    }

    fn body(&mut self, body: &[Step]) -> Result<(), InputError> {
        body.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &Step) -> Result<(), InputError> {
        let op = match &step.kind {
            StepKind::Work { unit, amount, profile, profile_spot } => {
                let profile = self.profile(profile, profile_spot)?;
                self.work(*unit, amount, profile)?
            }
            StepKind::Lock(mutex) => self.lock(*mutex),
            StepKind::Unlock(mutex) => self.unlock(*mutex),
            StepKind::Wait { condition, mutex } => {
                Op::Wait { condition: self.object(*condition), mutex: self.object(*mutex) }
            }
            StepKind::Signal(condition) => Op::Signal(self.object(*condition)),
            StepKind::Broadcast(condition) => Op::Broadcast(self.object(*condition)),
            StepKind::Sync { condition, mutex } => {
                Op::SignalAndWait { condition: self.object(*condition), mutex: self.object(*mutex) }
            }
            StepKind::Barrier(barrier) => Op::Barrier(self.object(*barrier)),
            StepKind::SemWait(semaphore) => Op::SemWait(self.object(*semaphore)),
            StepKind::SemPost(semaphore) => Op::SemPost(self.object(*semaphore)),
            StepKind::Push(queue) => Op::Push(self.object(*queue)),
            StepKind::Close(queue) => Op::Close(self.object(*queue)),
            StepKind::Each { queue, body } => {
                let queue = self.object(*queue);
                return self.items(step, body, |end| Op::Pop { queue, end });
            }
            StepKind::Dynamic { pool, body } => {
                let pool = self.object(*pool);
                return self.items(step, body, |end| Op::Take { pool, end });
            }
            StepKind::Tasks { region, profile, profile_spot } => Op::Tasks {
                region: self.object(*region),
                profile: self.profile(profile, profile_spot)?,
            },
            StepKind::Create { region, profile, profile_spot } => Op::Create {
                region: self.object(*region),
                profile: self.profile(profile, profile_spot)?,
            },
            StepKind::Loop { repeat, body } => return self.repeat(step, repeat, body),
            StepKind::Fork { group, times } => return self.fork(step, *group, times),
            StepKind::Join => Op::Join,
            StepKind::Sleep(amount) => Op::Sleep(amount.amount(self.scope(), NS_PER_US)?),
            StepKind::Timer { timer, period_us, mode } => Op::TimerWait {
                timer: self.object(*timer),
                period_ns: self.period_ns(period_us)?,
                mode: *mode,
            },
            StepKind::Io { device, amount } => Op::Io {
                device: self.object(*device),
                service_ns: amount.amount(self.scope(), NS_PER_US)?,
            },
            StepKind::Yield => Op::Yield,
            StepKind::Suspend => Op::Suspend,
            StepKind::Resume(group) => return self.resume(step, *group),
            StepKind::SetCores(cores) => Op::SetAffinity(self.cores(cores)?),
            StepKind::SetNice(nice) => Op::SetNice(self.nice(nice)?),
            StepKind::SetClass(class) => Op::SetClass(self.class(class)?),
            StepKind::SetSlice(slice_us) => Op::SetSlice(self.slice_ns(slice_us)?),
            StepKind::SetUclamp { is_min: true, value } => {
                Op::SetUclamp { min: Some(self.clamp(value)?), max: None }
            }
            StepKind::SetUclamp { is_min: false, value } => {
                Op::SetUclamp { min: None, max: Some(self.clamp(value)?) }
            }
            StepKind::SetGroup(path) => Op::SetGroup(self.group(path, &step.spot)?),
        };
        self.emit(op, &step.spot)
    }

    fn work(
        &self,
        unit: WorkUnit,
        amount: &AmountExpr,
        profile: ProfileId,
    ) -> Result<Op, InputError> {
        Ok(match unit {
            WorkUnit::Instructions => {
                Op::Compute { instructions: amount.amount(self.scope(), 1.0)?, profile }
            }
            WorkUnit::ReferenceTime => {
                Op::Run { reference_ns: amount.amount(self.scope(), NS_PER_US)?, profile }
            }
            WorkUnit::CpuTime => {
                Op::Occupy { cpu_ns: amount.amount(self.scope(), NS_PER_US)?, profile }
            }
        })
    }

    /// Work on items: `Pop` or `Take`, the body, and the jump back.
    fn items(
        &mut self,
        step: &Step,
        body: &[Step],
        take: impl Fn(CodePtr) -> Op,
    ) -> Result<(), InputError> {
        let again = self.here();
        self.emit(take(CodePtr(0)), &step.spot)?;
        self.body(body)?;
        self.emit(Op::ItemEnd { again }, &step.spot)?;
        self.code[again.index()] = take(self.here());
        Ok(())
    }

    fn repeat(&mut self, step: &Step, repeat: &Repeat, body: &[Step]) -> Result<(), InputError> {
        let count = match repeat {
            Repeat::Times(amount) => amount.amount(self.scope(), 1.0)?,
            // 2^64, which a draw turns into u64::MAX: for ever.
            Repeat::Forever => Amount::constant(u64::MAX as f64),
        };
        self.looped(step, count, |generator| generator.body(body))
    }

    fn looped(
        &mut self,
        step: &Step,
        count: Amount,
        body: impl FnOnce(&mut Self) -> Result<(), InputError>,
    ) -> Result<(), InputError> {
        let head = self.here();
        self.emit(Op::Loop { count: count.clone(), end: CodePtr(0) }, &step.spot)?;
        let start = self.here();
        body(self)?;
        self.emit(Op::LoopEnd { start }, &step.spot)?;
        self.code[head.index()] = Op::Loop { count, end: self.here() };
        Ok(())
    }

    /// Equal instances are forked in a loop, unequal ones one by one.
    fn fork(&mut self, step: &Step, group: GroupIndex, times: &Expr) -> Result<(), InputError> {
        let times = times.whole(self.scope(), 0, THREADS_MAX)? as u32;
        let first = self.first_spec[group];
        if self.counts[group].indexed {
            return (0..times)
                .try_for_each(|spec| self.emit(Op::Fork { thread: first + spec }, &step.spot));
        }
        match times {
            0 => Ok(()),
            1 => self.emit(Op::Fork { thread: first }, &step.spot),
            _ => self.looped(step, Amount::constant(f64::from(times)), |generator| {
                generator.emit(Op::Fork { thread: first }, &step.spot)
            }),
        }
    }

    fn resume(&mut self, step: &Step, group: GroupIndex) -> Result<(), InputError> {
        let first = self.first_spec[group];
        (first..first + self.counts[group].specs)
            .try_for_each(|thread| self.emit(Op::Resume { thread }, &step.spot))
    }

    fn lock(&self, mutex: ObjectIndex) -> Op {
        match self.placed[mutex] {
            Placed { first, count: 1 } => Op::Lock(first),
            Placed { first, count } => Op::LockOneOf { first, count },
        }
    }

    fn unlock(&self, mutex: ObjectIndex) -> Op {
        match self.placed[mutex] {
            Placed { first, count: 1 } => Op::Unlock(first),
            Placed { first, count } => Op::UnlockOneOf { first, count },
        }
    }

    fn object(&self, object: ObjectIndex) -> ObjectId {
        self.placed[object].first
    }

    fn profile(&mut self, name: &str, spot: &Spot) -> Result<ProfileId, InputError> {
        if let Some(id) = self.profile_ids.get(name) {
            return Ok(*id);
        }
        let profile = (self.find_profile)(name, spot)?;
        if self.profiles.len() > usize::from(u16::MAX) {
            return Err(spot
                .error(format!("more than {} profiles in one program", u32::from(u16::MAX) + 1)));
        }
        let id = ProfileId::from(self.profiles.len());
        self.profiles.push(profile);
        self.profile_ids.insert(name.to_owned(), id);
        Ok(id)
    }

    fn period_ns(&self, period_us: &Expr) -> Result<Ns, InputError> {
        Ok((period_us.within(self.scope(), 1.0 / NS_PER_US, TIME_US_MAX)? * NS_PER_US).round()
            as Ns)
    }

    fn nice(&self, nice: &Expr) -> Result<i8, InputError> {
        Ok(nice.whole(self.scope(), -20, 19)? as i8)
    }

    fn cores(&self, cores: &[Expr]) -> Result<CoreSet, InputError> {
        cores
            .iter()
            .map(|core| core.whole(self.scope(), 0, CORES_MAX - 1).map(|core| CoreId(core as u16)))
            .collect()
    }

    pub(super) fn scope(&self) -> Scope<'a> {
        Scope { params: self.params, instance: self.instance }
    }

    fn here(&self) -> CodePtr {
        CodePtr::from(self.code.len())
    }

    fn emit(&mut self, op: Op, spot: &Spot) -> Result<(), InputError> {
        if self.code.len() >= CODE_MAX {
            return Err(spot.error(format!(
                "the program has more than {CODE_MAX} steps, instances counted one by one"
            )));
        }
        self.code.push(op);
        Ok(())
    }
}
