//! Recordings written by hand: a clock for each thread, and what happens when.

use crate::{Core, Event, Info, Kind, Recording, Thread, Wake};

/// Threads that are being written.
pub struct Script {
    threads: Vec<Thread>,
    clocks: Vec<u64>,
}

impl Script {
    /// Threads that the first one creates, except itself.
    pub fn new(threads: usize) -> Self {
        let mut script =
            Self { threads: vec![Thread::default(); threads], clocks: vec![0; threads] };
        script.add(0, Kind::Start, 0, 0);
        for child in 1..threads {
            script.add(0, Kind::Create, child as u32, 1_000);
            script.clocks[child] = script.clocks[0];
            script.add(child, Kind::Start, 0, 0);
            script.last(child).aux = 1;
        }
        script
    }

    /// One more thread, that another one starts now.
    pub fn start(&mut self, creator: usize) -> usize {
        let child = self.threads.len();
        self.add(creator, Kind::Create, child as u32, 100_000);
        self.threads.push(Thread::default());
        self.clocks.push(self.clocks[creator]);
        self.add(child, Kind::Start, 0, 0);
        child
    }

    /// The time of a thread.
    pub fn clock(&self, thread: usize) -> u64 {
        self.clocks[thread]
    }

    /// The thread works and then does that.
    pub fn add(&mut self, thread: usize, kind: Kind, object: u32, work_ns: u64) {
        self.clocks[thread] += work_ns;
        let event = Event::new(kind, self.clocks[thread], work_ns);
        self.threads[thread].events.push(Event { object, ..event });
    }

    pub fn last(&mut self, thread: usize) -> &mut Event {
        self.threads[thread].events.last_mut().expect("it has events")
    }

    /// The thread works, and does that not before a time.
    pub fn wait(&mut self, thread: usize, kind: Kind, object: u32, until_ns: u64) {
        let waited_ns = until_ns.saturating_sub(self.clocks[thread]);
        self.clocks[thread] = self.clocks[thread].max(until_ns);
        self.add(thread, kind, object, 0);
        let event = self.last(thread);
        event.wait_ns = waited_ns;
        event.is_blocked = waited_ns > 0;
    }

    pub fn end(mut self) -> Recording {
        for thread in 1..self.threads.len() {
            self.add(thread, Kind::Exit, 0, 0);
        }
        let end_ns = self.clocks.iter().copied().max().unwrap_or(0);
        for thread in 1..self.threads.len() {
            self.wait(0, Kind::Join, thread as u32, end_ns);
        }
        self.add(0, Kind::Exit, 0, 0);
        let core = || Core { speed: 1.0, kind: String::new() };
        let wall_ns = self.clocks[0];
        let info = Info {
            name: "known".to_owned(),
            cores: vec![core(), core()],
            wall_ns,
            ..Info::default()
        };
        Recording { info, threads: self.threads, is_cut_off: false }
    }

    /// All threads meet at a barrier.
    pub fn barrier(&mut self, round: usize) {
        let _ = round;
        let release_ns = self.clocks.iter().copied().max().unwrap_or(0);
        for thread in 0..self.threads.len() {
            self.wait(thread, Kind::Barrier, 7, release_ns);
        }
    }

    /// All threads meet at a mutex and a condition; in each round another thread is the last one.
    pub fn monitor_barrier(&mut self, round: usize) {
        let count = self.threads.len();
        let last = round % count;
        for thread in (0..count).filter(|thread| *thread != last) {
            self.add(thread, Kind::Lock, 1, 0);
            self.add(thread, Kind::CondWait, 2, 0);
        }
        self.clocks[last] = self.clocks.iter().copied().max().unwrap_or(0) + 100;
        self.add(last, Kind::Lock, 1, 0);
        self.add(last, Kind::Broadcast, 2, 0);
        self.clocks[last] += 50;
        self.add(last, Kind::Unlock, 1, 0);
        let release_ns = self.clocks[last];
        for (order, thread) in (0..count).filter(|thread| *thread != last).enumerate() {
            self.wait(thread, Kind::CondWake, 2, release_ns + 10 * order as u64);
            self.add(thread, Kind::Unlock, 1, 0);
        }
    }
}

/// Threads that do 1 ms each between barriers.
pub fn barriers(threads: usize, rounds: usize, meet: fn(&mut Script, usize)) -> Recording {
    let mut script = Script::new(threads);
    for round in 0..rounds {
        for thread in 0..threads {
            // Work before an event of no meaning of its own.
            script.add(thread, Kind::Yield, 0, 1_000_000);
        }
        meet(&mut script, round);
    }
    script.end()
}

const MUTEX: u32 = 1;
const FILLED: u32 = 2;
const FREED: u32 = 3;
const CAPACITY: usize = 4;

/// A producer, and consumers that take 2.5 to 4 ms for an item, with a queue of four places between them.
pub fn pipeline(consumers: usize, items: usize) -> Recording {
    pipeline_with(consumers, items, |_, _, _| ())
}

/// The same; with each item, by its number, the thread that has taken it does something else, too.
pub fn pipeline_with(
    consumers: usize,
    items: usize,
    also: impl Fn(&mut Script, usize, usize),
) -> Recording {
    let mut script = Script::new(consumers + 2);
    let producer = 1;
    let mut put_ns = Vec::new();
    let mut taken_ns: Vec<u64> = Vec::new();
    // Whoever is free first takes the next item; the producer waits while four are there.
    for item in 0..items {
        script.add(producer, Kind::Yield, 0, 100_000);
        if item >= CAPACITY {
            let free_ns = taken_ns[item - CAPACITY];
            script.add(producer, Kind::Lock, MUTEX, 0);
            if free_ns > script.clocks[producer] {
                script.add(producer, Kind::CondWait, FREED, 0);
                script.wait(producer, Kind::CondWake, FREED, free_ns);
            }
        } else {
            script.add(producer, Kind::Lock, MUTEX, 0);
        }
        script.clocks[producer] += 10;
        script.add(producer, Kind::Signal, FILLED, 0);
        script.add(producer, Kind::Unlock, MUTEX, 0);
        put_ns.push(script.clocks[producer]);
        let taker = (2..consumers + 2).min_by_key(|thread| script.clocks[*thread]).unwrap_or(2);
        script.add(taker, Kind::Lock, MUTEX, 0);
        if put_ns[item] > script.clocks[taker] {
            script.add(taker, Kind::CondWait, FILLED, 0);
            script.wait(taker, Kind::CondWake, FILLED, put_ns[item] + 5);
        }
        script.add(taker, Kind::Signal, FREED, 0);
        script.add(taker, Kind::Unlock, MUTEX, 0);
        taken_ns.push(script.clocks[taker]);
        also(&mut script, taker, item);
        script.add(taker, Kind::Yield, 0, 2_500_000 + 500_000 * (item as u64 % 4));
    }
    script.add(producer, Kind::Lock, MUTEX, 0);
    script.add(producer, Kind::Broadcast, FILLED, 0);
    script.add(producer, Kind::Unlock, MUTEX, 0);
    for thread in 2..consumers + 2 {
        script.add(thread, Kind::Lock, MUTEX, 0);
        script.add(thread, Kind::Unlock, MUTEX, 0);
    }
    script.end()
}

/// Threads that draw numbers under a mutex and work 1 to 3 ms on each.
pub fn pool(threads: usize, pieces: usize) -> Recording {
    let mut script = Script::new(threads + 1);
    let first =
        |script: &Script| (1..=threads).min_by_key(|thread| script.clocks[*thread]).unwrap_or(1);
    for piece in 0..pieces {
        let thread = first(&script);
        script.add(thread, Kind::Lock, MUTEX, 0);
        script.add(thread, Kind::Unlock, MUTEX, 30);
        script.add(thread, Kind::Yield, 0, 1_000_000 + 400_000 * (piece as u64 % 6));
    }
    for thread in 1..=threads {
        script.add(thread, Kind::Lock, MUTEX, 0);
        script.add(thread, Kind::Unlock, MUTEX, 30);
    }
    script.end()
}

/// Parallel regions of 2 ms per thread; workers wait actively in between.
pub fn regions(threads: usize, regions: usize) -> Recording {
    let mut script = Script::new(threads);
    for _ in 0..regions {
        script.add(0, Kind::OmpFork, 9, 500_000);
        let begin_ns = script.clocks[0];
        for thread in 0..threads {
            let waited_ns = begin_ns.saturating_sub(script.clocks[thread]);
            script.add(thread, Kind::OmpBegin, 9, waited_ns);
            script.add(thread, Kind::OmpEnd, 9, 2_000_000);
        }
        script.add(0, Kind::OmpJoin, 9, 0);
    }
    script.end()
}

/// Two threads of which each wakes the other, as a kernel tells it.
pub fn ping_pong(rounds: usize) -> Recording {
    let mut script = Script::new(3);
    for _ in 0..rounds {
        for (waker, woken) in [(1, 2), (2, 1)] {
            script.add(waker, Kind::Wake, woken as u32, 300_000);
            let wake_ns = script.clocks[waker];
            script.wait(woken, Kind::Block, 0, wake_ns + 10);
            script.last(woken).aux = Wake::Thread(waker as u32).to_aux();
        }
    }
    script.end()
}

/// Threads that lock one of many mutexes after each 20 us.
pub fn cells(threads: usize, mutexes: u32) -> Recording {
    let mut script = Script::new(threads + 1);
    for visit in 0..500 {
        for thread in 1..=threads {
            let mutex = 100 + (visit * 7 + thread as u32 * 13) % mutexes;
            script.add(thread, Kind::Lock, mutex, 20_000);
            script.add(thread, Kind::Unlock, mutex, 500);
        }
    }
    script.end()
}

/// A pool of threads: the first one puts tasks into a queue, and waits until all of them are done, round by round.
pub fn task_rounds(workers: usize, rounds: usize, tasks: usize) -> Recording {
    let mut script = Script::new(workers + 1);
    let (done, told) = (11, 12);
    for _ in 0..rounds {
        for task in 0..tasks {
            script.add(0, Kind::Lock, MUTEX, 20_000);
            script.add(0, Kind::Signal, FILLED, 0);
            script.add(0, Kind::Unlock, MUTEX, 100);
            let put_ns = script.clocks[0];
            let taker = (1..=workers).min_by_key(|thread| script.clocks[*thread]).unwrap_or(1);
            script.add(taker, Kind::Lock, MUTEX, 0);
            if put_ns > script.clocks[taker] {
                script.add(taker, Kind::CondWait, FILLED, 0);
                script.wait(taker, Kind::CondWake, FILLED, put_ns + 5);
            }
            script.add(taker, Kind::Unlock, MUTEX, 0);
            script.add(taker, Kind::Yield, 0, 1_000_000 + 100_000 * (task as u64 % 3));
            script.add(taker, Kind::Lock, done, 0);
            script.add(taker, Kind::Unlock, done, 10);
        }
        let last = (1..=workers).max_by_key(|thread| script.clocks[*thread]).unwrap_or(1);
        script.threads[last].events.pop();
        script.add(last, Kind::Signal, told, 0);
        script.add(last, Kind::Unlock, done, 10);
        let told_ns = script.clocks[last];
        script.add(0, Kind::Lock, done, 0);
        script.add(0, Kind::CondWait, told, 0);
        script.wait(0, Kind::CondWake, told, told_ns + 10);
        script.add(0, Kind::Unlock, done, 0);
    }
    script.add(0, Kind::Lock, MUTEX, 0);
    script.add(0, Kind::Broadcast, FILLED, 0);
    script.add(0, Kind::Unlock, MUTEX, 0);
    let end_ns = script.clocks[0];
    for thread in 1..=workers {
        script.add(thread, Kind::Lock, MUTEX, 0);
        script.add(thread, Kind::CondWait, FILLED, 0);
        script.wait(thread, Kind::CondWake, FILLED, end_ns + 10);
        script.add(thread, Kind::Unlock, MUTEX, 0);
    }
    script.end()
}

/// Threads that do 1 ms each between barriers of which only wake-ups are known.
pub fn woken_barriers(threads: usize, rounds: usize) -> Recording {
    let mut script = Script::new(threads + 1);
    for round in 0..rounds {
        let last = 1 + round % threads;
        for thread in 1..=threads {
            script.clocks[thread] += u64::from(thread == last) * 1_000;
        }
        for thread in (1..=threads).filter(|thread| *thread != last) {
            let wake_ns = script.clocks[last] + 1_000_000 + 10 * thread as u64;
            // The wait ends when the last one has come; its work is counted before it.
            script.add(thread, Kind::Yield, 0, 1_000_000);
            script.wait(thread, Kind::Block, 0, wake_ns + 500);
            script.last(thread).aux = Wake::Thread(last as u32).to_aux();
        }
        script.add(last, Kind::Yield, 0, 1_000_000);
        for thread in (1..=threads).filter(|thread| *thread != last) {
            script.add(last, Kind::Wake, thread as u32, 10);
        }
    }
    script.end()
}
