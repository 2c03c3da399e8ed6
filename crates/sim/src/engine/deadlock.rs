//! Explains a deadlock: the cycle of threads and objects if there is one, else who waits for what.

use ampsched_model::ThreadId;
use ampsched_policy::RunState;

use super::objects::ObjectState;
use super::{Engine, WaitsFor};
use crate::SimError;

/// Waiting threads that a report without a cycle names.
const NAMED_MAX: usize = 8;

impl Engine<'_> {
    pub(super) fn deadlock(&self) -> SimError {
        let report =
            self.cycle().map_or_else(|| self.waiting_list(), |cycle| self.describe_cycle(&cycle));
        SimError::Deadlock { at_ns: self.now_ns, report }
    }

    fn blocked(&self) -> impl Iterator<Item = ThreadId> + '_ {
        let live = self.sched.live_threads();
        live.filter(|&thread| self.sched.thread(thread).state == RunState::Blocked)
    }

    /// A thread that the given one waits for, if that is a certain thread.
    fn waits_for_thread(&self, thread: ThreadId) -> Option<ThreadId> {
        match self.threads[thread.index()].waits_for {
            WaitsFor::Object(object) => match &self.objects[object.index()] {
                ObjectState::Mutex { owner, .. } => *owner,
                _ => None,
            },
            WaitsFor::Children => {
                self.blocked().find(|&child| self.threads[child.index()].parent == Some(thread))
            }
            WaitsFor::Nothing | WaitsFor::Time | WaitsFor::Resume => None,
        }
    }

    fn cycle(&self) -> Option<Vec<ThreadId>> {
        self.blocked().find_map(|start| {
            let mut path = vec![start];
            while let Some(next) = self.waits_for_thread(*path.last()?) {
                if let Some(first) = path.iter().position(|&thread| thread == next) {
                    return Some(path.split_off(first));
                }
                path.push(next);
            }
            None
        })
    }

    fn describe_cycle(&self, cycle: &[ThreadId]) -> String {
        let links: Vec<String> = cycle
            .iter()
            .enumerate()
            .map(|(index, &thread)| {
                let next = cycle[(index + 1) % cycle.len()];
                format!(
                    "{} waits for {} held by {}",
                    self.thread_name(thread),
                    self.awaited(thread),
                    self.thread_name(next)
                )
            })
            .collect();
        format!("cycle: {}", links.join("; "))
    }

    fn waiting_list(&self) -> String {
        let mut lines: Vec<String> = self
            .blocked()
            .map(|thread| {
                format!("{} waits for {}", self.thread_name(thread), self.awaited(thread))
            })
            .collect();
        if lines.len() > NAMED_MAX {
            let more = lines.len() - NAMED_MAX;
            lines.truncate(NAMED_MAX);
            lines.push(format!("and {more} more"));
        }
        format!("no thread can run: {}", lines.join("; "))
    }

    fn awaited(&self, thread: ThreadId) -> String {
        match self.threads[thread.index()].waits_for {
            WaitsFor::Object(object) => {
                let kind = match &self.objects[object.index()] {
                    ObjectState::Mutex { .. } => "mutex",
                    ObjectState::Condition { .. } => "condition",
                    ObjectState::Barrier { .. } => "barrier",
                    ObjectState::Semaphore { .. } => "semaphore",
                    ObjectState::Queue { .. } => "queue",
                    ObjectState::Pool(_) => "pool",
                    ObjectState::Device { .. } => "device",
                    ObjectState::Timer { .. } => "timer",
                };
                format!("{kind} \"{}\"", self.object_names[object.index()])
            }
            WaitsFor::Children => "its children".into(),
            WaitsFor::Resume => "a resume".into(),
            WaitsFor::Time => "a time".into(),
            WaitsFor::Nothing => "nothing".into(),
        }
    }
}
