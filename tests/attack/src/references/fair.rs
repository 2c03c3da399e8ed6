//! CFS on one core by its definition (Linux 3.16, kernel/sched/fair.c), for threads of nice 0, whose virtual run time
//! is their run time. The least virtual run time comes first. A turn ends after an equal share of the period, or, past
//! the least granularity, once the thread is a share ahead of the first that waits (`check_preempt_tick`, here without
//! ticks). A new thread starts a share behind the queue's least (`START_DEBIT`), a woken one at most half a latency
//! before it (`GENTLE_FAIR_SLEEPERS`), and either interrupts who is ahead of it by more than the wake-up granularity.

use super::setup::{Cluster, Setup, compute, costs, machine, thread, us};
use super::{Case, TIE, Verdict};

/// Constants, in ns.
#[derive(Clone, Copy, Debug)]
struct Tunables {
    latency: u64,
    least: u64,
    wakeup: u64,
}

impl Tunables {
    /// What each of so many threads has of the period.
    fn share(&self, threads: usize) -> u64 {
        self.latency.max(threads as u64 * self.least) / threads as u64
    }
}

/// A thread: when it starts, and pairs of work and the sleep behind it.
#[derive(Clone, Debug)]
struct Plan {
    start: u64,
    works: Vec<(u64, u64)>,
}

/// What is known of a thread.
#[derive(Clone, Debug)]
struct Task {
    virtual_ns: u64,
    place: usize,
    left: u64,
    /// When it wakes, if it sleeps; never: it has ended.
    wakes: Option<u64>,
    end: u64,
}

/// The core.
#[derive(Debug)]
struct Queue<'a> {
    tunables: Tunables,
    plans: &'a [Plan],
    tasks: Vec<Task>,
    waiting: Vec<usize>,
    running: Option<usize>,
    since: u64,
    /// When the turn ends; never if nobody waits.
    until: u64,
    least: u64,
    now: u64,
}

impl Queue<'_> {
    fn first(&self) -> Option<u64> {
        self.waiting.iter().map(|&task| self.tasks[task].virtual_ns).min()
    }

    /// Time goes on.
    fn reach(&mut self, now: u64) {
        let ran = now - std::mem::replace(&mut self.now, now);
        let Some(running) = self.running else { return };
        let task = &mut self.tasks[running];
        (task.virtual_ns, task.left) = (task.virtual_ns + ran, task.left - ran);
        let own = task.virtual_ns;
        self.least = self.least.max(self.first().map_or(own, |first| first.min(own)));
    }

    fn set_end(&mut self) {
        let (Some(running), Some(first)) = (self.running, self.first()) else {
            return self.until = u64::MAX;
        };
        let share = self.tunables.share(self.waiting.len() + 1);
        let ahead = (first + share).saturating_sub(self.tasks[running].virtual_ns);
        let by_lead = (self.since + self.tunables.least).max(self.now + ahead);
        self.until = by_lead.min(self.since + share).max(self.now);
    }

    /// The first of those that wait gets the core; none if two are equal.
    fn pick(&mut self) -> Option<()> {
        self.running = None;
        if let Some(first) = self.first() {
            let mut all = (0..self.waiting.len())
                .filter(|&place| self.tasks[self.waiting[place]].virtual_ns == first);
            let (place, None) = (all.next()?, all.next()) else { return None };
            self.running = Some(self.waiting.swap_remove(place));
            self.since = self.now;
        }
        self.set_end();
        Some(())
    }

    /// The running thread waits again.
    fn switch(&mut self) -> Option<()> {
        self.waiting.extend(self.running);
        self.pick()
    }

    fn wake(&mut self, woken: usize) -> Option<()> {
        let threads = self.waiting.len() + usize::from(self.running.is_some()) + 1;
        let (debit, credit) = (self.tunables.share(threads), self.tunables.latency / 2);
        let task = &mut self.tasks[woken];
        task.wakes = None;
        task.virtual_ns = match task.place {
            0 => self.least + debit,
            _ => task.virtual_ns.max(self.least.saturating_sub(credit)),
        };
        let limit = task.virtual_ns + self.tunables.wakeup;
        self.waiting.push(woken);
        match self.running {
            Some(running) if self.tasks[running].virtual_ns <= limit => {
                self.set_end();
                Some(())
            }
            _ => self.switch(),
        }
    }

    /// The running thread has done its work.
    fn leave(&mut self, thread: usize) -> Option<()> {
        let (task, works) = (&mut self.tasks[thread], &self.plans[thread].works);
        let sleep = works[task.place].1;
        task.place += 1;
        task.end = self.now;
        let next = works.get(task.place);
        task.left = next.map_or(0, |work| work.0);
        task.wakes = Some(next.map_or(u64::MAX, |_| self.now + sleep));
        self.pick()
    }
}

/// When each thread ends; none if it depends on the order of what happens at one moment.
fn schedule(plans: &[Plan], tunables: Tunables) -> Option<Vec<u64>> {
    let task = |plan: &Plan| {
        let (left, wakes) = (plan.works[0].0, Some(plan.start));
        Task { virtual_ns: 0, place: 0, left, wakes, end: 0 }
    };
    let tasks = plans.iter().map(task).collect();
    let (waiting, running, until) = (Vec::new(), None, u64::MAX);
    let (since, least, now) = (0, 0, 0);
    let mut queue = Queue { tunables, plans, tasks, waiting, running, since, until, least, now };
    loop {
        let wakes: Vec<u64> = queue.tasks.iter().filter_map(|task| task.wakes).collect();
        let woken = wakes.iter().copied().min().unwrap_or(u64::MAX);
        let done = queue.running.map_or(u64::MAX, |it| queue.now + queue.tasks[it].left);
        let due = done.min(queue.until);
        if woken == u64::MAX && due == u64::MAX {
            return Some(queue.tasks.iter().map(|task| task.end).collect());
        }
        if woken == due || wakes.iter().filter(|&&it| it == woken && it < u64::MAX).count() > 1 {
            return None;
        }
        queue.reach(woken.min(due));
        match queue.running {
            _ if woken < due => {
                let woken = queue.tasks.iter().position(|task| task.wakes == Some(woken))?;
                queue.wake(woken)?;
            }
            Some(running) if queue.tasks[running].left == 0 => queue.leave(running)?,
            _ => queue.switch()?,
        }
    }
}

/// One to nine threads.
pub fn run(case: &mut Case) -> Verdict {
    let dice = &mut case.dice;
    let (mut plans, mut tunables) = loop {
        let longest = dice.whole(1_000_000..=20_000_000);
        let mut plan = |_| {
            let works = (0..dice.whole(1..=4))
                .map(|_| (dice.whole(1..=longest), dice.whole(1..=longest)))
                .collect();
            Plan { start: dice.whole(0..=3 * longest), works }
        };
        let mut plans: Vec<Plan> = (0..9).map(&mut plan).collect();
        plans.truncate(dice.whole(1..=9) as usize);
        plans.sort_by_key(|plan| plan.start);
        // Parameters of 0 mean the kernel's constants.
        let (latency, least) = (1000 * dice.whole(1000..=20_000), 1000 * dice.whole(100..=3000));
        let tunables = Tunables { latency, least, wakeup: 1000 * dice.whole(1..=4000) };
        if schedule(&plans, tunables).is_some() {
            break (plans, tunables);
        }
    };
    let program: String = (plans.iter().enumerate())
        .map(|(number, plan)| {
            let last = plan.works.len() - 1;
            let step = |(place, (work, sleep)): (usize, &(u64, u64))| match place == last {
                true => compute(*work),
                false => format!("{}, {{ sleep_us = {} }}", compute(*work), us(*sleep)),
            };
            let body: Vec<String> = plan.works.iter().enumerate().map(step).collect();
            thread(&format!("t{number}"), &format!("start_us = {}", us(plan.start)), &body)
        })
        .collect();
    let ms = |ns: u64| ns as f64 / 1e6;
    let policy = format!(
        "cfs:latency_ms={}:min_granularity_ms={}:wakeup_granularity_ms={}",
        ms(tunables.latency),
        ms(tunables.least),
        ms(tunables.wakeup)
    );
    let machine = machine(&[Cluster::new(1, 1000)], &costs(&[]));
    let outcome = case.simulate(&Setup::new(machine, program, &policy))?;
    tunables.latency = case.bend("latency", tunables.latency, 100_000);
    tunables.least = case.bend("least granularity", tunables.least, 100_000);
    tunables.wakeup = case.bend("wake-up granularity", tunables.wakeup, 1_000_000);
    plans[0].works[0].0 = case.bend("work", plans[0].works[0].0, 1);
    plans[0].works[0].1 = case.bend("sleep", plans[0].works[0].1, 1);
    let expected = schedule(&plans, tunables).ok_or(TIE)?;
    case.each_thread("end", &outcome, |thread| thread.end_ns, &expected)
}
