//! How programs come to an end, as far as their code tells.

use crate::{CodePtr, ObjectKind, Op, Program, ThreadSpec};

impl Program {
    /// The name of a thread that starts with the program and then, whatever happens, repeats something for ever; and
    /// neither a duration nor the end of other threads ends it.
    pub fn endless_thread(&self) -> Option<&str> {
        let endless = self.threads.iter().find(|thread| self.keeps_on(thread));
        endless.filter(|_| self.duration_ns.is_none()).map(|thread| thread.name.as_str())
    }

    /// Whether only a duration ends the program, or the simulation: a thread that starts with it repeats something for
    /// ever.
    pub fn never_ends_by_itself(&self) -> bool {
        self.threads.iter().any(|thread| self.keeps_on(thread))
    }

    /// Whether a thread starts with the program and keeps it from ending.
    fn keeps_on(&self, thread: &ThreadSpec) -> bool {
        thread.count > 0 && !thread.is_daemon && self.is_endless(thread)
    }

    /// Whether a thread cannot get to its end: on the way that it certainly goes there is a loop without end. (It may
    /// also wait for ever before that.)
    fn is_endless(&self, thread: &ThreadSpec) -> bool {
        let mut pc = thread.entry;
        loop {
            pc = match &self.code[pc.index()] {
                Op::Loop { count, end } => match count.always() {
                    Some(u64::MAX) => return true,
                    Some(1..) => CodePtr(pc.0 + 1),
                    // What may be repeated no times is passed.
                    Some(0) | None => *end,
                },
                Op::Pop { end, .. } | Op::Take { end, .. } => *end,
                Op::Exit => return false,
                _ => CodePtr(pc.0 + 1),
            };
        }
    }

    /// Whether nothing that instances of a thread do concerns other threads: they work, sleep and wait for timers.
    pub fn is_solitary(&self, thread: &ThreadSpec) -> bool {
        let code = self.code[thread.entry.index()..].iter();
        code.take_while(|op| !matches!(op, Op::Exit)).all(|op| match op {
            Op::Compute { .. }
            | Op::Run { .. }
            | Op::Occupy { .. }
            | Op::Loop { .. }
            | Op::LoopEnd { .. }
            | Op::Sleep(_)
            | Op::SleepUntil { .. }
            | Op::Period { .. }
            | Op::Yield => true,
            Op::TimerWait { timer, .. } => {
                self.objects[timer.index()].kind == ObjectKind::Timer { shared: false }
            }
            _ => false,
        })
    }
}
