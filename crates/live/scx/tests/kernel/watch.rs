//! What the slow plane knows of threads: it reads those only that are marked as changed.

use ampsched_scx::layout::Thread;
use ampsched_scx::native::Native;

use crate::check::Found;

/// What is read of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    in_use: bool,
    generation: u32,
    place: (u32, u32),
    times_ns: [u64; 4],
}

impl Seen {
    fn of(thread: &Thread) -> Self {
        // Of a slot that is free nothing else matters.
        if thread.in_use == 0 {
            return Self { generation: thread.generation, ..Self::default() };
        }
        let run_ns = thread.run_ns.iter().sum();
        Self {
            in_use: true,
            generation: thread.generation,
            place: (thread.state, thread.core),
            times_ns: [thread.since_ns, run_ns, thread.ready_ns, thread.blame_ns],
        }
    }
}

/// Reads changes only.
#[derive(Default)]
pub struct Watch {
    known: Vec<Seen>,
    changed: Vec<(u32, Thread)>,
}

impl Watch {
    /// Looks at the threads. Afterwards it must know all.
    pub fn look(&mut self, c: &mut Native) -> Found {
        c.read_changed(&mut self.changed);
        if !self.changed.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Err("a thread is read twice, or out of order".to_owned());
        }
        let count = c.state().thread_count;
        self.known.resize(count as usize, Seen::default());
        for (slot, thread) in &self.changed {
            self.known[*slot as usize] = Seen::of(thread);
        }
        for slot in 0..count {
            let (known, now) = (&self.known[slot as usize], Seen::of(c.thread(slot)));
            if *known != now {
                return Err(format!(
                    "thread {slot} has changed without a mark: {known:?}, {now:?}"
                ));
            }
        }
        Ok(())
    }

    /// Nothing happens any more: what has changed is read, read once more, and after that nothing.
    pub fn rest(&mut self, c: &mut Native) -> Found {
        for _ in 0..3 {
            self.look(c)?;
        }
        match self.changed.len() {
            0 => Ok(()),
            count => Err(format!("{count} threads are read that have done nothing")),
        }
    }
}
