//! Explains a deadlock: the cycle of threads and objects if there is one, else who waits for what.

use ampsched_model::{AppId, ThreadId};
use ampsched_policy::RunState;

use super::apps::AppRun;
use super::objects::ObjectState;
use super::threads::{Thread, WaitsFor};
use super::{Engine, Fallible};
use crate::SimError;

/// Waiting threads that a report without a cycle names.
const NAMED_MAX: usize = 8;

impl Engine<'_> {
    /// The error for a deadlock: of one application, or of all.
    pub(super) fn deadlock(&self, app: Option<AppId>) -> SimError {
        let concerned = |thread: &ThreadId| app.is_none_or(|app| self.threads[*thread].app == app);
        let blocked: Vec<ThreadId> = self.blocked().filter(concerned).collect();
        let report = match self.cycle(&blocked) {
            Some(cycle) => self.describe_cycle(&cycle),
            None => self.waiting_list(app, &blocked),
        };
        SimError::Deadlock { at_ns: self.events.now_ns(), report }
    }

    /// An application whose threads all wait for one another, and will for ever, and for which the predicate holds.
    ///
    /// Objects are an application's own, so nothing that others do can help it; its daemon threads may.
    pub(super) fn stuck_app(&self, is_meant: impl Fn(&AppRun) -> bool) -> Option<AppId> {
        let mut stuck = vec![Some(0); self.apps.iter().len()];
        for thread in self.sched.live_threads() {
            let Thread { app, spec, .. } = &self.threads[thread];
            let is_blocked = self.sched.thread(thread).state == RunState::Blocked;
            let (is_stuck, of_app) =
                (is_blocked && self.waits_for_others(thread), &mut stuck[app.index()]);
            if !self.apps.is_daemon(*app, *spec) {
                *of_app = of_app.map(|count| count + u32::from(is_stuck));
            } else if !is_stuck && !self.apps[*app].is_solitary(*spec) {
                *of_app = None;
            }
        }
        let is_stuck = |(app, &stuck): (&AppRun, &Option<u32>)| {
            app.live > 0
                && stuck == Some(app.live)
                && app.program.duration_ns.is_none()
                && is_meant(app)
        };
        self.apps.iter().zip(&stuck).position(is_stuck).map(AppId::from)
    }

    /// In a pause: fails if a program waits for ever beside its daemon threads, which go on.
    pub(super) fn check_daemons(&self) -> Fallible {
        if !self.apps.iter().any(AppRun::has_daemons) {
            return Ok(());
        }
        match self.stuck_app(AppRun::has_daemons) {
            Some(stuck) => Err(self.deadlock(Some(stuck)).into()),
            None => Ok(()),
        }
    }

    /// Whether only another thread can wake it: no device, no timer.
    fn waits_for_others(&self, thread: ThreadId) -> bool {
        match self.threads[thread].waits_for {
            WaitsFor::Object(object) => {
                !matches!(self.objects.state(object), ObjectState::Device { .. })
            }
            WaitsFor::Children | WaitsFor::Resume => true,
            WaitsFor::Time | WaitsFor::Nothing => false,
        }
    }

    fn blocked(&self) -> impl Iterator<Item = ThreadId> + '_ {
        let live = self.sched.live_threads();
        live.filter(|&thread| self.sched.thread(thread).state == RunState::Blocked)
    }

    /// A thread that the given one waits for, if that is a certain thread.
    fn waits_for_thread(&self, thread: ThreadId) -> Option<ThreadId> {
        match self.threads[thread].waits_for {
            WaitsFor::Object(object) => match self.objects.state(object) {
                ObjectState::Mutex { owner, .. } => *owner,
                _ => None,
            },
            WaitsFor::Children => {
                self.blocked().find(|&child| self.threads[child].parent == Some(thread))
            }
            WaitsFor::Nothing | WaitsFor::Time | WaitsFor::Resume => None,
        }
    }

    fn cycle(&self, blocked: &[ThreadId]) -> Option<Vec<ThreadId>> {
        blocked.iter().find_map(|&start| {
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

    fn waiting_list(&self, app: Option<AppId>, blocked: &[ThreadId]) -> String {
        let mut lines: Vec<String> = blocked
            .iter()
            .map(|&thread| {
                format!("{} waits for {}", self.thread_name(thread), self.awaited(thread))
            })
            .collect();
        if lines.len() > NAMED_MAX {
            let more = lines.len() - NAMED_MAX;
            lines.truncate(NAMED_MAX);
            lines.push(format!("and {more} more"));
        }
        let whose = app.map_or_else(String::new, |app| format!(" of {}", self.apps[app].name));
        format!("no thread{whose} can run: {}", lines.join("; "))
    }

    fn awaited(&self, thread: ThreadId) -> String {
        match self.threads[thread].waits_for {
            WaitsFor::Object(object) => {
                let kind = self.objects.kind(object);
                format!("{kind} \"{}\"", self.objects.name(object))
            }
            WaitsFor::Children => "its children".into(),
            WaitsFor::Resume => "a resume".into(),
            WaitsFor::Time => "a time".into(),
            WaitsFor::Nothing => "nothing".into(),
        }
    }
}
