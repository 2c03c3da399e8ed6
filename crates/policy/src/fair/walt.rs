//! Window-assisted load tracking (WALT), which Android's vendor kernels use instead of PELT's averages
//! (kernel/sched/walt.c of Qualcomm's msm-4.14, the Snapdragon 855's: `update_task_demand`, `update_history`,
//! `update_cpu_busy_time`, `fixup_busy_time`, `freq_policy_load`, `migrate_top_tasks`).
//!
//! Time is cut into windows, the same on all cores. Work is time in ns x capacity of the core at its frequency / 1024
//! (`scale_exec_time`): time of the greatest core at its highest frequency.
//!
//! Left out: what interrupts and idle cores with waits for devices take, predicted demand (`sched_predl`), new threads'
//! part of a core (`nt_prev_runnable_sum`), groups of related threads, early detection, `core_ctl`.

use ampsched_model::Ns;

/// Length of a window (`MIN_SCHED_RAVG_WINDOW`).
pub(super) const WINDOW_NS: Ns = 20_000_000;
/// Busy windows that a thread remembers (`sched_ravg_hist_size`).
const REMEMBERED: usize = 5;
/// What a new thread is taken to need, in percent of a window (`sysctl_sched_init_task_load_pct`).
const NEW_PCT: u64 = 15;
/// Steps in which the work of a core's busiest thread is told, rounded up (`NUM_LOAD_INDICES`).
const STEPS: u64 = 1000;

/// What a thread has done since it was looked at last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Did {
    /// It slept, or waited for an idle core to begin with it (`TASK_WAKE`, `PICK_NEXT_TASK` after idle).
    Slept,
    /// It waited while others ran, which counts as demand (`SCHED_ACCOUNT_WAIT_TIME`), but not for the clock.
    Waited,
    Ran,
}

/// Work in the present window and in the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    pub present: u64,
    pub before: u64,
}

impl Work {
    /// So many windows have begun since.
    fn roll(&mut self, windows: u64) {
        match windows {
            0 => {}
            1 => *self = Self { present: 0, before: self.present },
            _ => *self = Self::default(),
        }
    }

    fn add(&mut self, other: Work) {
        self.present += other.present;
        self.before += other.before;
    }

    fn take(&mut self, other: Work) {
        debug_assert!(self.present >= other.present && self.before >= other.before);
        self.present = self.present.saturating_sub(other.present);
        self.before = self.before.saturating_sub(other.before);
    }

    fn raise(&mut self, other: Work) {
        self.present = self.present.max(other.present);
        self.before = self.before.max(other.before);
    }
}

/// What is kept of a thread (`struct ravg`).
#[derive(Clone, Debug)]
struct Thread {
    /// Where it is or was last.
    core: usize,
    /// Up to when it has been looked at (`mark_start`).
    mark_ns: Ns,
    /// Work of the present window, waiting included, at most a window (`sum`).
    sum: u64,
    /// Of the last windows in which it was busy, the latest first (`sum_history`).
    history: [u64; REMEMBERED],
    /// Of a window, as expected (`demand`).
    demand: u64,
    /// Work without waiting (`curr_window`, `prev_window`).
    work: Work,
    /// The parts of that which are in sums of cores (`curr_window_cpu`, `prev_window_cpu`).
    parts: Vec<(usize, Work)>,
    is_queued: bool,
    is_asleep: bool,
    /// When it fell asleep last (`last_sleep_ts`).
    slept_ns: Option<Ns>,
}

impl Thread {
    /// So many windows are over in each of which it has done some work, if any (`update_history`).
    fn remember(&mut self, work: u64, windows: u64) {
        if work == 0 || windows == 0 {
            return; // Windows in which it slept do not count.
        }
        for _ in 0..windows.min(REMEMBERED as u64) {
            self.history.rotate_right(1);
            self.history[0] = work;
        }
        self.sum = 0;
        self.demand = work.max(self.history.iter().sum::<u64>() / REMEMBERED as u64);
    }
}

/// What is kept of a core (`struct rq`).
#[derive(Clone, Debug)]
struct Core {
    /// Cores of one cluster share their clock.
    cluster: usize,
    /// Its capacity at its highest frequency, and at its present one.
    capacity: u64,
    speed: u64,
    /// The window in which it was looked at last.
    window: u64,
    /// Work of its threads (`curr_runnable_sum`, `prev_runnable_sum`).
    work: Work,
    /// The most that one of its threads has done, also elsewhere (`curr_top`, `prev_top`).
    top: Work,
    /// Sum of the demands of its queued threads, of 1024 (`cumulative_runnable_avg_scaled`).
    runnable: u64,
    /// The same of all that have been here in this window (`cum_window_demand_scaled`).
    seen: u64,
}

/// Demands of threads and the work of cores.
#[derive(Clone, Debug)]
pub(super) struct Walt {
    window_ns: Ns,
    threads: Vec<Thread>,
    cores: Vec<Core>,
}

impl Walt {
    /// For cores with their clusters and capacities; they run at their highest frequencies.
    pub fn new(window_ns: Ns, cores: impl Iterator<Item = (usize, u64)>) -> Self {
        let core = |(cluster, capacity)| Core {
            cluster,
            capacity,
            speed: capacity,
            window: 0,
            work: Work::default(),
            top: Work::default(),
            runnable: 0,
            seen: 0,
        };
        Self { window_ns, threads: Vec::new(), cores: cores.map(core).collect() }
    }

    /// Work of a window in parts of 1024 (`scale_demand`).
    fn util(&self, work: u64) -> u64 {
        work / (self.window_ns >> 10)
    }

    /// A new thread, which will be known by the next number (`init_new_task_load`).
    pub fn add(&mut self) {
        let demand = self.window_ns * NEW_PCT / 100;
        self.threads.push(Thread {
            core: 0,
            mark_ns: 0,
            sum: 0,
            history: [demand; REMEMBERED],
            demand,
            work: Work::default(),
            parts: Vec::new(),
            is_queued: false,
            is_asleep: false,
            slept_ns: None,
        });
    }

    /// A new thread starts on a core (`mark_task_starting`).
    pub fn start(&mut self, thread: usize, core: usize, now_ns: Ns) {
        let own = &mut self.threads[thread];
        (own.core, own.mark_ns) = (core, now_ns);
    }

    /// A core runs at a part of its highest frequency from now on: what ran there must have been booked.
    pub fn set_clock(&mut self, core: usize, present: u64, highest: u64) {
        let own = &mut self.cores[core];
        own.speed = own.capacity * present / highest.max(1);
    }

    /// A core's capacity at its frequency (`capacity_curr_of`).
    pub fn speed(&self, core: usize) -> u64 {
        self.cores[core].speed
    }

    /// What a thread needs, 0 to 1024 (`task_util`).
    pub fn demand(&self, thread: usize) -> u64 {
        self.util(self.threads[thread].demand)
    }

    /// What the queued threads of a core need together (`cpu_util`, but for its limit).
    pub fn runnable(&self, core: usize) -> u64 {
        self.cores[core].runnable
    }

    /// What all threads need that have been there in this window (`cpu_util_cum`, but for its limit).
    pub fn seen(&mut self, core: usize, now_ns: Ns) -> u64 {
        self.roll(core, now_ns);
        self.cores[core].seen
    }

    /// Whether a thread is among these (`task_in_cum_window_demand`).
    pub fn is_seen(&self, thread: usize, core: usize, now_ns: Ns) -> bool {
        let own = &self.threads[thread];
        own.core == core && (own.is_queued || self.has_slept_in(own, now_ns))
    }

    /// What the clock goes by, at most the core's capacity: the work of the window before, or that of the thread which
    /// did most (`cpu_util_freq_walt`; `freq_policy_load`, `FREQ_REPORT_MAX_CPU_LOAD_TOP_TASK`).
    pub fn load(&mut self, core: usize, now_ns: Ns) -> u64 {
        self.roll(core, now_ns);
        let step_ns = self.window_ns / STEPS;
        let own = &self.cores[core];
        let top = match own.top.before {
            0 => 0,
            work => (work / step_ns + 1).min(STEPS) * step_ns,
        };
        self.util(own.work.before.max(top)).min(own.capacity)
    }

    /// A thread comes into the queue of its core (`walt_inc_cumulative_runnable_avg`).
    pub fn enter(&mut self, thread: usize, now_ns: Ns) {
        self.book(thread, self.idled(thread), now_ns);
        let (demand, core) = (self.demand(thread), self.threads[thread].core);
        let own = &self.threads[thread];
        let is_new = !own.is_asleep || !self.has_slept_in(own, now_ns);
        let own = &mut self.threads[thread];
        (own.is_queued, own.is_asleep) = (true, false);
        self.cores[core].runnable += demand;
        self.cores[core].seen += if is_new { demand } else { 0 };
    }

    /// What a thread that has not run has done since.
    fn idled(&self, thread: usize) -> Did {
        if self.threads[thread].is_asleep { Did::Slept } else { Did::Waited }
    }

    /// A thread leaves it, where it waited, unless it has been booked up to now (`walt_dec_cumulative_runnable_avg`).
    pub fn leave(&mut self, thread: usize, sleeps: bool, now_ns: Ns) {
        self.book(thread, Did::Waited, now_ns);
        let demand = self.demand(thread);
        let own = &mut self.threads[thread];
        (own.is_queued, own.is_asleep) = (false, sleeps);
        let core = &mut self.cores[own.core];
        core.runnable -= demand;
        if sleeps {
            own.slept_ns = Some(now_ns);
        } else {
            core.seen = core.seen.saturating_sub(demand);
        }
    }

    /// Whether a thread fell asleep in this window.
    fn has_slept_in(&self, thread: &Thread, now_ns: Ns) -> bool {
        thread.slept_ns.is_some_and(|slept_ns| slept_ns / self.window_ns == now_ns / self.window_ns)
    }

    /// Begins the windows that have begun since (`update_window_start`, `rollover_cpu_window`).
    fn roll(&mut self, core: usize, now_ns: Ns) {
        let window = now_ns / self.window_ns;
        let own = &mut self.cores[core];
        let begun = window - own.window;
        if begun > 0 {
            own.window = window;
            own.work.roll(begun);
            own.top.roll(begun);
            own.seen = own.runnable;
        }
    }

    /// Books what a thread has done up to now (`update_task_ravg`).
    pub fn book(&mut self, thread: usize, did: Did, now_ns: Ns) {
        let number = self.threads[thread].core;
        self.roll(number, now_ns);
        let before = self.demand(thread);
        let (window_ns, speed) = (self.window_ns, self.cores[number].speed);
        let work = |ns: Ns| (ns * speed) >> 10;
        let (own, core) = (&mut self.threads[thread], &mut self.cores[number]);
        let mark_ns = std::mem::replace(&mut own.mark_ns, now_ns);
        let begun = now_ns / window_ns - mark_ns / window_ns;
        let start_ns = now_ns / window_ns * window_ns;
        let add = |sum: u64, ns: Ns| (sum + work(ns)).min(window_ns);
        match (did, begun) {
            (Did::Slept, 0) => {}
            (Did::Slept, _) => own.remember(own.sum, 1),
            (_, 0) => own.sum = add(own.sum, now_ns - mark_ns),
            _ => {
                let end_ns = (mark_ns / window_ns + 1) * window_ns;
                own.remember(add(own.sum, end_ns - mark_ns), 1);
                own.remember(work(window_ns), begun - 1);
                own.sum = add(0, now_ns - start_ns);
            }
        }
        own.work.roll(begun);
        own.parts.iter_mut().for_each(|(_, part)| part.roll(begun));
        if did == Did::Ran {
            let ran = match begun {
                0 => Work { present: work(now_ns - mark_ns), before: 0 },
                1 => Work { present: work(now_ns - start_ns), before: work(start_ns - mark_ns) },
                _ => Work { present: work(now_ns - start_ns), before: work(window_ns) },
            };
            own.work.add(ran);
            match own.parts.iter_mut().find(|part| part.0 == number) {
                Some((_, part)) => part.add(ran),
                None => own.parts.push((number, ran)),
            }
            core.work.add(ran);
            core.top.raise(own.work);
        }
        if own.is_queued {
            let after = own.demand / (window_ns >> 10);
            core.runnable = core.runnable - before + after;
            core.seen = (core.seen + after).saturating_sub(before);
        }
    }

    /// A thread that is in no queue goes to another core (`fixup_busy_time`).
    pub fn go(&mut self, thread: usize, to: usize, now_ns: Ns) {
        self.book(thread, self.idled(thread), now_ns);
        let from = self.threads[thread].core;
        let (demand, work) = (self.demand(thread), self.threads[thread].work);
        self.roll(to, now_ns);
        if self.threads[thread].is_asleep && self.has_slept_in(&self.threads[thread], now_ns) {
            self.cores[from].seen = self.cores[from].seen.saturating_sub(demand);
            self.cores[to].seen += demand;
        }
        self.threads[thread].core = to;
        // Clocks are shared: within a cluster, sums stay where they are.
        if self.cores[from].cluster != self.cores[to].cluster {
            let parts = std::mem::take(&mut self.threads[thread].parts);
            for (core, part) in parts {
                self.roll(core, now_ns);
                self.cores[core].work.take(part);
            }
            self.cores[to].work.add(work);
            self.threads[thread].parts.push((to, work));
        }
        self.cores[to].top.raise(work);
        let top = self.cores[from].top;
        if (work.present > 0 && work.present == top.present)
            || (work.before > 0 && work.before == top.before)
        {
            self.find_top(from, now_ns);
        }
    }

    /// Looks for the busiest thread of a core anew.
    fn find_top(&mut self, core: usize, now_ns: Ns) {
        let window = now_ns / self.window_ns;
        let mut top = Work::default();
        for thread in self.threads.iter().filter(|thread| thread.core == core) {
            let mut work = thread.work;
            work.roll(window - thread.mark_ns / self.window_ns);
            top.raise(work);
        }
        self.cores[core].top = top;
    }

    /// Work of all cores in the window before.
    #[cfg(test)]
    pub fn work_before(&mut self, now_ns: Ns) -> u64 {
        (0..self.cores.len()).for_each(|core| self.roll(core, now_ns));
        self.cores.iter().map(|core| core.work.before).sum()
    }

    /// Whether the sums of demands are those of the queued threads.
    ///
    /// # Errors
    /// What differs.
    pub fn check(&self) -> Result<(), String> {
        for (number, core) in self.cores.iter().enumerate() {
            let here = self.threads.iter().filter(|own| own.is_queued && own.core == number);
            let counted: u64 = here.map(|own| self.util(own.demand)).sum();
            if core.runnable != counted {
                let kept = core.runnable;
                return Err(format!("demand on core {number}: kept {kept}, counted {counted}"));
            }
        }
        Ok(())
    }
}
