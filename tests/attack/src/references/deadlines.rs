//! Earliest deadline first (Liu and Layland, J. ACM 20, 1973) with a constant bandwidth server for each thread (Abeni
//! and Buttazzo, RTSS 1998, in the kernel's hard form: Documentation/scheduler/sched-deadline.rst): who wakes after its
//! deadline gets its budget and a deadline one period later; who has used its budget up waits for its deadline, and
//! gets a new budget with a deadline one period later then.

use super::setup::{Cluster, Setup, compute, costs, machine, thread, us};
use super::{Case, TIE, Verdict, any_policy};

/// A thread: sleeps between works are longer than its period.
#[derive(Clone, Debug)]
struct Server {
    start: u64,
    budget: u64,
    period: u64,
    /// Pairs of work and the sleep behind it.
    works: Vec<(u64, u64)>,
}

/// What a thread does.
#[derive(Clone, Copy, Debug)]
struct State {
    /// When it is ready next, if it is not now; never: it has ended.
    from: Option<u64>,
    is_throttled: bool,
    deadline: u64,
    budget: u64,
    place: usize,
    left: u64,
    woken: u64,
    end: u64,
    missed: u64,
    response_max: u64,
}

impl State {
    fn new(server: &Server) -> Self {
        let (from, left) = (Some(server.start), server.works[0].0);
        let (is_throttled, deadline, budget, place, woken) = (false, 0, 0, 0, 0);
        let (end, missed, response_max) = (0, 0, 0);
        Self { from, is_throttled, deadline, budget, place, left, woken, end, missed, response_max }
    }

    /// It is ready, from a sleep or with a new budget.
    fn begin(&mut self, server: &Server, now: u64) {
        if self.is_throttled {
            self.deadline += server.period;
        } else {
            (self.deadline, self.woken) = (now + server.period, now);
        }
        (self.from, self.is_throttled, self.budget) = (None, false, server.budget);
    }

    /// It has run for so long.
    fn run(&mut self, server: &Server, ran: u64, now: u64) {
        self.left -= ran;
        self.budget -= ran;
        if self.left == 0 {
            self.end = now;
            let response = now - self.woken;
            self.missed += u64::from(response > server.period);
            self.response_max = self.response_max.max(response);
            let sleep = server.works[self.place].1;
            self.place += 1;
            let next = server.works.get(self.place);
            self.left = next.map_or(0, |work| work.0);
            self.from = Some(next.map_or(u64::MAX, |_| now + sleep));
        } else if self.budget == 0 {
            (self.from, self.is_throttled) = (Some(self.deadline), true);
        }
    }
}

/// None if two deadlines are equal.
fn schedule(servers: &[Server]) -> Option<Vec<State>> {
    let mut states: Vec<State> = servers.iter().map(State::new).collect();
    let mut now = 0;
    loop {
        for (state, server) in states.iter_mut().zip(servers) {
            if state.from.is_some_and(|from| from <= now) {
                state.begin(server, now);
            }
        }
        let next = states.iter().filter_map(|state| state.from).min().unwrap_or(u64::MAX);
        let ready = || (0..states.len()).filter(|&it| states[it].from.is_none());
        let Some(first) = ready().min_by_key(|&it| states[it].deadline) else {
            if next == u64::MAX {
                return Some(states);
            }
            now = next;
            continue;
        };
        if ready().filter(|&it| states[it].deadline == states[first].deadline).count() > 1 {
            return None;
        }
        let ran = states[first].left.min(states[first].budget).min(next - now);
        now += ran;
        states[first].run(&servers[first], ran, now);
    }
}

/// All threads together reserve at most nine tenths of the core.
pub fn run(case: &mut Case) -> Verdict {
    let dice = &mut case.dice;
    let mut servers = loop {
        let count = dice.whole(1..=5);
        let mut servers: Vec<Server> = (0..count)
            .map(|_| {
                let period = dice.whole(100_000..=8_000_000);
                let budget = (period * 9 / 10 / count * dice.whole(20..=100) / 100).max(1024);
                let works = (0..dice.whole(1..=5))
                    .map(|_| (dice.whole(1..=budget * 3), period + dice.whole(1..=2 * period)))
                    .collect();
                let start = dice.whole(0..=1) * dice.whole(0..=3_000_000);
                Server { start, budget, period, works }
            })
            .collect();
        servers.sort_by_key(|server| server.start);
        if schedule(&servers).is_some() {
            break servers;
        }
    };
    let program: String = (servers.iter().enumerate())
        .map(|(number, server)| {
            let (budget, period) = (us(server.budget), us(server.period));
            let keys = format!(
                "class = \"deadline\"\nruntime_us = {budget}\nperiod_us = {period}\nstart_us = {}",
                us(server.start)
            );
            let last = server.works.len() - 1;
            let step = |(place, (work, sleep)): (usize, &(u64, u64))| match place == last {
                true => compute(*work),
                false => format!("{}, {{ sleep_us = {} }}", compute(*work), us(*sleep)),
            };
            let body: Vec<String> = server.works.iter().enumerate().map(step).collect();
            thread(&format!("t{number}"), &keys, &body)
        })
        .collect();
    let policy = any_policy(dice, 0);
    let machine = machine(&[Cluster::new(1, 1000)], &costs(&[]));
    let outcome = case.simulate(&Setup::new(machine, program, policy))?;
    let first = &mut servers[0];
    (first.works[0].0, first.works[0].1) =
        (case.bend("work", first.works[0].0, 1), case.bend("sleep", first.works[0].1, 1));
    first.budget = case.bend("budget", first.budget, 1);
    first.period = case.bend("period", first.period, 1);
    first.start = case.bend("start", first.start, 1);
    let expected = schedule(&servers).ok_or(TIE)?;
    let ends: Vec<u64> = expected.iter().map(|state| state.end).collect();
    case.each_thread("end", &outcome, |thread| thread.end_ns, &ends)?;
    for (thread, state) in outcome.threads.iter().zip(&expected) {
        let periods = thread.periods.as_ref().ok_or("a deadline thread without periods")?;
        let name = &thread.name;
        case.equal(&format!("missed by {name}"), periods.missed, state.missed)?;
        case.equal(&format!("response of {name}"), periods.response.max_ns, state.response_max)?;
    }
    Ok(())
}
