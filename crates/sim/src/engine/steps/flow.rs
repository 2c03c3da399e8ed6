//! Steps that move the program counter: loops, items of queues, iterations of pools.

use ampsched_model::{Amount, CodePtr, ObjectId, ThreadId};

use super::{Engine, Step};
use crate::engine::pools::Taker;
use crate::engine::threads::{Frame, Thread};
use crate::streams;

/// Enters a counted loop, or passes it if it has no iterations.
pub(super) fn begin_loop(thread: &mut Thread, count: &Amount, end: CodePtr) -> Step {
    let left = count.draw(&mut thread.draw);
    if left == 0 {
        thread.pc = end;
    } else {
        thread.frames.push(Frame::Loop { left });
        thread.next_step();
    }
    Step::Go
}

/// Goes back to the start of a loop, or on if that was its last iteration.
pub(super) fn end_loop(thread: &mut Thread, start: CodePtr) -> Step {
    let Some(Frame::Loop { left }) = thread.frames.last_mut() else {
        unreachable!("loops are balanced")
    };
    if *left != u64::MAX {
        *left -= 1;
    }
    if *left == 0 {
        thread.frames.pop();
        thread.next_step();
    } else {
        thread.pc = start;
    }
    Step::Go
}

/// Leaves an item for the next one.
pub(super) fn end_item(thread: &mut Thread, again: CodePtr) -> Step {
    thread.pc = again;
    if let Some(Frame::Item { outer }) = thread.frames.last() {
        thread.draw = *outer;
        thread.frames.pop();
    }
    Step::Go
}

impl Engine<'_> {
    /// Takes the next iteration of a pool: from the thread's chunk, else a new chunk.
    pub(super) fn take_iteration(
        &mut self,
        thread: ThreadId,
        pool: ObjectId,
        end: CodePtr,
    ) -> Step {
        let entry = &mut self.threads[thread];
        let (outer, use_number, rest) = match entry.frames.last() {
            Some(&Frame::Iteration { pool: same, outer, use_number, next, end })
                if same == pool =>
            {
                entry.frames.pop();
                (outer, use_number, (next < end).then_some((next, end)))
            }
            _ => (entry.draw, entry.uses_of(pool), None),
        };
        entry.draw = outer;
        let is_shared = rest.is_none();
        let chunk = match rest {
            Some(_) => rest,
            None => {
                let core = self.sched.thread(thread).core;
                let class = self.sched.topology().core(core).class;
                let taker = Taker { thread, class, now_ns: self.events.now_ns() };
                self.objects.take_chunk(pool, use_number, taker)
            }
        };
        if is_shared {
            self.hand_over(thread, pool);
        }
        let entry = &mut self.threads[thread];
        let Some((iteration, last)) = chunk else {
            entry.finish_use(pool);
            entry.pc = end;
            return Step::Go;
        };
        let next = iteration + 1;
        entry.frames.push(Frame::Iteration { pool, outer, use_number, next, end: last });
        let app = &self.apps[entry.app];
        entry.draw =
            streams::of_iteration(&app.draw, pool.0 - app.object_base, use_number, iteration);
        entry.next_step();
        Step::Go
    }
}
