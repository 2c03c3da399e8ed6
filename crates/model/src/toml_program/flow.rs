//! Checks that follow the steps of a thread in order: locks, closed queues, unreachable steps.
//!
//! Bodies have no conditions, only loops, so the set of locked mutexes is known at every step: a
//! loop's body must leave it as it found it, or the next round would meet another state.

use super::ast::{
    Group, GroupIndex, ObjectDecl, ObjectIndex, Repeat, Step, StepKind, for_each_step,
};
use crate::InputError;
use crate::reader::{Spot, quoted};

/// What is known before a step.
struct Flow<'a> {
    objects: &'a [ObjectDecl],
    locked: Vec<ObjectIndex>,
    closed: Vec<ObjectIndex>,
}

/// Checks the steps of every thread group.
pub(crate) fn check(objects: &[ObjectDecl], groups: &[Group]) -> Result<(), InputError> {
    for group in groups {
        let mut flow = Flow { objects, locked: Vec::new(), closed: Vec::new() };
        let ends = flow.body(&group.body, 0)?;
        if let (true, Some(mutex)) = (ends, flow.locked.first()) {
            let message = format!("ends while mutex {} is locked", flow.name(*mutex));
            return Err(group.spot.error(message));
        }
        check_join(group)?;
    }
    check_forks(groups)
}

impl Flow<'_> {
    /// Follows a body; the answer is whether its end can be reached.
    fn body(&mut self, body: &[Step], loops: usize) -> Result<bool, InputError> {
        let mut ends = true;
        for step in body {
            if !ends {
                return Err(step.spot.error("is never reached, the loop before it has no end"));
            }
            ends = self.step(step, loops)?;
        }
        Ok(ends)
    }

    fn step(&mut self, step: &Step, loops: usize) -> Result<bool, InputError> {
        match &step.kind {
            StepKind::Lock(mutex) => self.lock(*mutex, &step.spot)?,
            StepKind::Unlock(mutex) => self.unlock(*mutex, &step.spot)?,
            StepKind::Wait { mutex, .. } => self.require_locked(*mutex, &step.spot)?,
            StepKind::Sync { mutex, .. } => self.require_free(*mutex, &step.spot)?,
            StepKind::Push(queue) => self.require_open(*queue, &step.spot)?,
            StepKind::Close(queue) => self.close(*queue, loops, &step.spot)?,
            StepKind::Each { body, .. } | StepKind::Dynamic { body, .. } => {
                return self.repeated(step, body, loops);
            }
            StepKind::Loop { repeat, body } => return self.looped(step, repeat, body, loops),
            _ => {}
        }
        Ok(true)
    }

    fn looped(
        &mut self,
        step: &Step,
        repeat: &Repeat,
        body: &[Step],
        loops: usize,
    ) -> Result<bool, InputError> {
        if body.is_empty() {
            return Err(step.spot.error("the loop's body is empty, at least 1 step is needed"));
        }
        let ends = self.repeated(step, body, loops)?;
        if matches!(repeat, Repeat::Times(_)) {
            return Ok(ends);
        }
        if !takes_time(body) {
            let error = step.spot.error("a loop without end in which no time passes");
            return Err(error.with_hint("add a step that computes, sleeps or waits"));
        }
        Ok(false)
    }

    /// Follows the body of a loop and checks that it leaves the mutexes as it found them.
    fn repeated(&mut self, step: &Step, body: &[Step], loops: usize) -> Result<bool, InputError> {
        let before = self.locked.clone();
        let ends = self.body(body, loops + 1)?;
        if !ends {
            return Ok(false);
        }
        if let Some(mutex) = self.locked.iter().find(|mutex| !before.contains(mutex)) {
            let message =
                format!("mutex {} is still locked at the end of the body", self.name(*mutex));
            return Err(step.spot.error(message));
        }
        if let Some(mutex) = before.iter().find(|mutex| !self.locked.contains(mutex)) {
            let message = format!(
                "mutex {}, locked before, is not locked at the end of the body",
                self.name(*mutex)
            );
            return Err(step.spot.error(message));
        }
        Ok(true)
    }

    fn lock(&mut self, mutex: ObjectIndex, spot: &Spot) -> Result<(), InputError> {
        self.require_free(mutex, spot)?;
        self.locked.push(mutex);
        Ok(())
    }

    fn unlock(&mut self, mutex: ObjectIndex, spot: &Spot) -> Result<(), InputError> {
        self.require_locked(mutex, spot)?;
        self.locked.retain(|locked| *locked != mutex);
        Ok(())
    }

    fn require_locked(&self, mutex: ObjectIndex, spot: &Spot) -> Result<(), InputError> {
        if self.locked.contains(&mutex) {
            return Ok(());
        }
        let error =
            spot.error(format!("mutex {} is not locked by this thread here", self.name(mutex)));
        Err(error.with_hint(format!("lock it before: {{ lock = {} }}", self.name(mutex))))
    }

    fn require_free(&self, mutex: ObjectIndex, spot: &Spot) -> Result<(), InputError> {
        if !self.locked.contains(&mutex) {
            return Ok(());
        }
        Err(spot.error(format!(
            "mutex {} is locked by this thread already, it would wait for itself",
            self.name(mutex)
        )))
    }

    fn require_open(&self, queue: ObjectIndex, spot: &Spot) -> Result<(), InputError> {
        if !self.closed.contains(&queue) {
            return Ok(());
        }
        Err(spot.error(format!("this thread has closed queue {} already", self.name(queue))))
    }

    fn close(&mut self, queue: ObjectIndex, loops: usize, spot: &Spot) -> Result<(), InputError> {
        self.require_open(queue, spot)?;
        if loops > 0 {
            let error = spot.error(format!(
                "closes queue {} in a loop, a producer closes it once",
                self.name(queue)
            ));
            return Err(error.with_hint("write it behind the loop"));
        }
        self.closed.push(queue);
        Ok(())
    }

    fn name(&self, object: ObjectIndex) -> String {
        quoted(&self.objects[object].name)
    }
}

/// Whether a round of the body can take time: it computes, sleeps or can wait for something.
fn takes_time(body: &[Step]) -> bool {
    let mut takes = false;
    for_each_step(body, &mut |step| {
        takes |= match &step.kind {
            StepKind::Work { amount, .. }
            | StepKind::Sleep(amount)
            | StepKind::Io { amount, .. } => !amount.is_zero(),
            StepKind::Timer { .. }
            | StepKind::Tasks { .. }
            | StepKind::Wait { .. }
            | StepKind::Sync { .. }
            | StepKind::Barrier(_)
            | StepKind::SemWait(_)
            | StepKind::Push(_)
            | StepKind::Join
            | StepKind::Suspend => true,
            _ => false,
        };
    });
    takes
}

fn check_join(group: &Group) -> Result<(), InputError> {
    if group.has_step(|kind| matches!(kind, StepKind::Fork { .. })) {
        return Ok(());
    }
    let mut result = Ok(());
    for_each_step(&group.body, &mut |step| {
        if matches!(step.kind, StepKind::Join) {
            result = Err(step
                .spot
                .error(format!("thread {} forks nothing that it could join", quoted(&group.name))));
        }
    });
    result
}

/// Refuses groups that fork themselves, directly or through others: they would never stop.
fn check_forks(groups: &[Group]) -> Result<(), InputError> {
    let forks: Vec<Vec<GroupIndex>> = groups.iter().map(forked_by).collect();
    for (start, group) in groups.iter().enumerate() {
        let mut reached = forks[start].clone();
        let mut next = 0;
        while next < reached.len() {
            if reached[next] == start {
                let message = format!(
                    "thread {} forks itself, so there is no end of threads",
                    quoted(&group.name)
                );
                return Err(group.spot.error(message));
            }
            for forked in &forks[reached[next]] {
                if !reached.contains(forked) {
                    reached.push(*forked);
                }
            }
            next += 1;
        }
    }
    Ok(())
}

/// Groups that a group forks, each once.
pub(crate) fn forked_by(group: &Group) -> Vec<GroupIndex> {
    let mut forked = Vec::new();
    for_each_step(&group.body, &mut |step| {
        if let StepKind::Fork { group, .. } = step.kind {
            if !forked.contains(&group) {
                forked.push(group);
            }
        }
    });
    forked
}
