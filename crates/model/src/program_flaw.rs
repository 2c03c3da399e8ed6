//! Checks that a program's code is well formed, whichever importer made it.

use crate::{CodePtr, ObjectId, ObjectKind, Op, ProfileId, Program, ThreadSpec};

/// A loop whose end has not been reached yet.
struct Open {
    /// Where the end must jump back to.
    back: CodePtr,
    /// Where the head jumps to when the loop is over.
    end: CodePtr,
    /// Whether it hands out items.
    items: bool,
}

impl Program {
    /// What is wrong with the code, in one line; `None` if nothing is.
    ///
    /// Well formed means: every thread's code runs from its entry to an `Exit`, loops are closed in the
    /// order in which they were opened, jumps lead to the matching ends, and every object, profile and
    /// thread that is named exists and is of the right kind. An importer that returns anything else has
    /// a bug; the engine relies on it.
    pub fn flaw(&self) -> Option<String> {
        if self.threads.is_empty() {
            return Some("no thread".to_owned());
        }
        let mut initial = self.threads.iter().filter(|thread| thread.count > 0).peekable();
        if initial.peek().is_some() && initial.all(|thread| thread.is_daemon) {
            return Some("only daemon threads start with it".to_owned());
        }
        self.threads.iter().find_map(|thread| {
            let attrs = thread.attrs.class.flaw().or_else(|| self.group_flaw(thread.attrs.group));
            let flaw = attrs.or_else(|| self.flaw_from(thread.entry));
            let flaw = flaw.or_else(|| self.daemon_flaw(thread))?;
            Some(format!("thread {}: {flaw}", thread.name))
        })
    }

    /// Where a program has several processes, a daemon thread may end while others go on that use the same objects.
    fn daemon_flaw(&self, thread: &ThreadSpec) -> Option<String> {
        let is_single = self.threads.iter().all(|other| other.process == thread.process);
        let is_wrong = thread.is_daemon && !is_single && !self.is_solitary(thread);
        is_wrong.then(|| "a daemon thread of one of several processes uses objects".to_owned())
    }

    fn flaw_from(&self, entry: CodePtr) -> Option<String> {
        let mut open: Vec<Open> = Vec::new();
        for (index, op) in self.code.iter().enumerate().skip(entry.index()) {
            if let Some(flaw) = self.operand_flaw(op) {
                return Some(format!("operation {index}: {flaw}"));
            }
            let next = CodePtr::from(index + 1);
            match op {
                Op::Loop { end, .. } => open.push(Open { back: next, end: *end, items: false }),
                Op::Pop { end, .. } | Op::Take { end, .. } => {
                    open.push(Open { back: CodePtr::from(index), end: *end, items: true });
                }
                Op::LoopEnd { start: back } | Op::ItemEnd { again: back } => {
                    let items = matches!(op, Op::ItemEnd { .. });
                    let closed = open.pop();
                    let fits = closed.is_some_and(|open| {
                        open.items == items && open.back == *back && open.end == next
                    });
                    if !fits {
                        return Some(format!("operation {index} ends no loop"));
                    }
                }
                Op::Exit => {
                    return open
                        .last()
                        .map(|open| format!("loop at {} has no end", open.back.index()));
                }
                _ => {}
            }
        }
        Some("code without an end".to_owned())
    }

    /// What is wrong with the objects, profiles and threads that an operation names.
    fn operand_flaw(&self, op: &Op) -> Option<String> {
        use ObjectKind as Kind;
        let object = |id: &ObjectId, fits: fn(&Kind) -> bool| match self.objects.get(id.index()) {
            Some(object) if fits(&object.kind) => None,
            Some(object) => Some(format!("object {} is of another kind", object.name)),
            None => Some(format!("no object {}", id.0)),
        };
        let mutex = |id: &ObjectId| object(id, |kind| matches!(kind, Kind::Mutex));
        let condition = |id: &ObjectId| object(id, |kind| matches!(kind, Kind::Condition));
        match op {
            Op::Compute { profile, .. } | Op::Run { profile, .. } | Op::Occupy { profile, .. } => {
                self.profile_flaw(*profile)
            }
            Op::Lock(id) | Op::Unlock(id) => mutex(id),
            Op::LockOneOf { first, count } | Op::UnlockOneOf { first, count } => {
                if *count == 0 {
                    return Some("an array of no mutex".to_owned());
                }
                (first.0..first.0.saturating_add(*count)).find_map(|id| mutex(&ObjectId(id)))
            }
            Op::Wait { condition: id, mutex: m }
            | Op::SignalAndWait { condition: id, mutex: m } => condition(id).or_else(|| mutex(m)),
            Op::Signal(id) | Op::Broadcast(id) => condition(id),
            Op::Barrier(id) => object(id, |kind| matches!(kind, Kind::Barrier { .. })),
            Op::SemWait(id) | Op::SemPost(id) => {
                object(id, |kind| matches!(kind, Kind::Semaphore { .. }))
            }
            Op::Push(id) | Op::Close(id) | Op::Pop { queue: id, .. } => {
                object(id, |kind| matches!(kind, Kind::Queue { .. }))
            }
            Op::Take { pool, .. } => object(pool, |kind| matches!(kind, Kind::Pool { .. })),
            Op::Tasks { region, profile } | Op::Create { region, profile } => {
                object(region, |kind| matches!(kind, Kind::Region(_)))
                    .or_else(|| self.profile_flaw(*profile))
            }
            Op::TimerWait { timer, .. } => object(timer, |kind| matches!(kind, Kind::Timer { .. })),
            Op::Io { device, .. } => object(device, |kind| matches!(kind, Kind::Device { .. })),
            Op::Fork { thread } | Op::Resume { thread } => {
                (*thread as usize >= self.threads.len()).then(|| format!("no thread {thread}"))
            }
            Op::SetClass(class) => class.flaw(),
            Op::SetGroup(group) => self.group_flaw(*group),
            _ => None,
        }
    }

    fn group_flaw(&self, group: Option<u16>) -> Option<String> {
        let group = group.filter(|&group| usize::from(group) >= self.groups.len())?;
        Some(format!("no group {group}"))
    }

    fn profile_flaw(&self, profile: ProfileId) -> Option<String> {
        (profile.index() >= self.profiles.len()).then(|| format!("no profile {}", profile.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Amount, Calibration, Object, SchedAttrs};

    fn program(code: Vec<Op>) -> Program {
        let objects = vec![
            Object::new("m".to_owned(), ObjectKind::Mutex),
            Object::new("q".to_owned(), ObjectKind::Queue { capacity: 1, producers: 1 }),
        ];
        let thread = ThreadSpec {
            name: "t".to_owned(),
            entry: CodePtr(0),
            count: 1,
            nice: 0,
            affinity: None,
            start_ns: 0,
            attrs: SchedAttrs::default(),
            is_daemon: false,
            process: 0,
        };
        Program {
            name: "p".to_owned(),
            description: String::new(),
            profiles: Vec::new(),
            objects,
            threads: vec![thread],
            groups: Vec::new(),
            code,
            duration_ns: None,
            energy_ratio: None,
            calibration: Calibration::default(),
            held_clocks: Vec::new(),
            recorded_cores: None,
        }
    }

    fn flaw(code: Vec<Op>) -> String {
        program(code).flaw().unwrap_or_default()
    }

    #[test]
    fn nested_loops_are_well_formed() {
        let queue = ObjectId(1);
        let code = vec![
            Op::Loop { count: Amount::constant(2.0), end: CodePtr(5) },
            Op::Pop { queue, end: CodePtr(4) },
            Op::Yield,
            Op::ItemEnd { again: CodePtr(1) },
            Op::LoopEnd { start: CodePtr(1) },
            Op::Exit,
        ];
        assert_eq!(program(code).flaw(), None);
    }

    #[test]
    fn every_flaw_is_named() {
        let count = Amount::constant(2.0);
        let profile = crate::ProfileId(0);
        let looped = |end: u32, start: u32| {
            vec![
                Op::Loop { count: count.clone(), end: CodePtr(end) },
                Op::Yield,
                Op::LoopEnd { start: CodePtr(start) },
                Op::Exit,
            ]
        };
        assert_eq!(flaw(looped(3, 1)), "");
        assert_eq!(flaw(looped(2, 1)), "thread t: operation 2 ends no loop");
        assert_eq!(flaw(looped(3, 0)), "thread t: operation 2 ends no loop");
        assert_eq!(
            flaw(vec![Op::Loop { count, end: CodePtr(2) }, Op::Exit]),
            "thread t: loop at 1 has no end"
        );
        assert_eq!(
            flaw(vec![Op::ItemEnd { again: CodePtr(0) }]),
            "thread t: operation 0 ends no loop"
        );
        assert_eq!(flaw(vec![Op::Yield]), "thread t: code without an end");
        assert_eq!(
            flaw(vec![Op::Lock(ObjectId(1))]),
            "thread t: operation 0: object q is of another kind"
        );
        assert_eq!(flaw(vec![Op::Push(ObjectId(7))]), "thread t: operation 0: no object 7");
        assert_eq!(
            flaw(vec![Op::LockOneOf { first: ObjectId(0), count: 2 }]),
            "thread t: operation 0: object q is of another kind"
        );
        assert_eq!(flaw(vec![Op::Fork { thread: 1 }]), "thread t: operation 0: no thread 1");
        let compute = Op::Compute { instructions: Amount::constant(1.0), profile };
        assert_eq!(flaw(vec![compute]), "thread t: operation 0: no profile 0");
        let mut empty = program(Vec::new());
        empty.threads.clear();
        assert_eq!(empty.flaw(), Some("no thread".to_owned()));
    }

    #[test]
    fn h35_2_daemon_threads_need_others_and_leave_nothing_behind() {
        let mut alone = program(vec![Op::Lock(ObjectId(0)), Op::Exit]);
        alone.threads[0].is_daemon = true;
        assert_eq!(alone.flaw(), Some("only daemon threads start with it".to_owned()));
        let mut two = alone.clone();
        two.threads.push(ThreadSpec { is_daemon: false, ..alone.threads[0].clone() });
        assert_eq!(two.flaw(), None);
        two.threads[1].process = 1;
        let flaw = "thread t: a daemon thread of one of several processes uses objects";
        assert_eq!(two.flaw(), Some(flaw.to_owned()));
        two.code[0] = Op::Yield;
        assert_eq!(two.flaw(), None);
    }
}
