//! abreast: programs advance side by side.

use ampsched_model::Ns;

use super::cfs::CfsRules;
use super::support::claims::{Bids, Low};
use super::support::seats::{self, seat};
use crate::{Needs, ParamInfo, Params, Plan, Policy, PolicyInfo, Rules, StealFrom, Topology, View};
use accounts::{Accounts, Program};
use clocks::Clocks;

mod accounts;
mod clocks;
#[cfg(test)]
mod tests;

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "abreast",
    summary: "fast cores and time go to the programs that are furthest behind, where a fast core gains most",
    source: "ours; its index for programs of unknown length follows Gittins (J. Royal Stat. Soc. B 41(2), 1979)",
    documentation: "\
**Purpose.** Many programs at once: as short as possible on average, and all slowed down alike; at a price, with less energy.

**When to use.** As the first choice for mixes of programs, whether their threads are fewer or more than the cores, whether \
they wait for each other or not, and whether some mostly sleep. It needs speed-ups; without them it still shares by slowdown. Not where \
a deadline is what counts.

**Algorithm.** Every 4 ms each program is looked at as a whole. Its *slowdown* S is the time since it began in which it could run, over \
the time that it would have needed alone with a fast core for each of its threads: a window in which r of its threads were runnable on \
average and did w ns of work, in time on a fast core, counts w / min(max(r, 1), cores). Its *claim* is S^`fairness` / min(max(r, 1), cores): the \
fewer of its threads can run, the more each of them carries the program. A thread's claim on a fast core is its program's claim x \
(1 - 1 / speed-up) x its own slowdown in the last 200 ms, so threads of a program take turns, x its weight. The greatest claims have a fast core each; \
who has one keeps it against a claim that is less than 10 % greater. The others share the slow cores under CFS, with periods as short as on \
a machine of one core; if they have slept in the last 200 ms, they wake up wherever there is least to do, on fast cores, too. A fast core \
that idles takes a running thread from a slow one.

With `lengths=1`, a program whose length was measured beforehand (`--facts`, `work_s`) claims A^2 / (L R) times as much: A is the time alone \
for what it has done, R for what is left, L = A + R, each 100 ms longer. Programs that end soon come first, which shortens mean turnaround and evens out slowdowns. Where a program's runtime tells how long the \
chain of tasks is that begins with a thread's task, its claim is in proportion to that: 1 for the longest.

With a price e of `energy`, clocks are limited every 100 ms to those with the least (e P / p + 1) / v: P is the power and v the \
speed of the cores that were busy, by the machine's energy model, p the mean power so far. That makes (all energy)^e x time least.

**Constants.** `fairness` = 5 is the least whole number with which programs were slowed down as evenly as by any other shipped policy on \
the training mixes; with 2, mean turnaround is least, as the index of Gittins says for programs of which nothing is known but \
how far they are. `tick_ms` = 4 is a tick at 250 Hz. CFS's constants are those of the kernel before it scales them by the number of cores: 6 ms, 0.75 ms and 1 ms. \
To the others results hardly react: 100 ms, during which a new program's slowdown counts \
less; 200 ms; 10 %. What runs elsewhere than on the slowest kind of core is on a fast one. An unknown speed-up is the ratio of the cores' capacities.

**Example.** One fast core, speed-ups 2 both. A has one thread, S = 1.2; B has three, S = 1.5. Bids on the fast core with \
`fairness` = 5: A 2.49 x 0.5, B 7.59 / 3 x 0.5 for each thread: B has it, narrowly. When two of B's threads wait for the third, r is 1 and it \
claims three times as much.

**Limits.** Where lengths are not known, a short program is slowed down more than a long one that goes on alone: the \
unfairness that remains. Where they are, other inputs than those that were measured mislead it. Fast cores of different speed count alike. One thread at most is *sent* to each fast core, so with many threads those on slow cores \
wait longer for their turn. Its first version also shared time on slow cores by claims: that earned little, and sleepers woke up late.",
    params: &[
        ParamInfo::number(
            "fairness",
            5.0,
            0.0,
            32.0,
            "how much more a program counts that is slowed down more: 0, throughput only; 2, least mean turnaround",
        ),
        ParamInfo::number(
            "energy",
            0.0,
            0.0,
            100.0,
            "price of energy: percent of time that a percent of energy is worth; 0, highest clocks; 1, energy x delay",
        ),
        ParamInfo::choice(
            "lengths",
            0,
            &["unknown", "known"],
            "whether it counts how much is left of programs and of graphs of tasks, where that is told",
        ),
        ParamInfo::number("tick_ms", 4.0, 0.1, 10_000.0, "period at which claims are compared"),
        ParamInfo::choice("without", 0, INGREDIENTS, "leaves an ingredient out, to see what it earns"),
    ],
    build: |params| Box::new(Abreast::new(params)),
};

/// What can be left out, by the parameter `without`.
const INGREDIENTS: &[&str] = &["nothing", "demand", "gain", "turns", "roaming", "periods", "pull"];

/// Of a thread on cores of which nothing is known: any that is the same for all does.
const UNKNOWN_SPEEDUP: f64 = 2.0;
/// Lead of those who have a fast core.
const STAY: f64 = 1.1;

/// Which ingredients there are.
#[derive(Clone, Copy, Debug)]
struct Ingredients {
    demand: bool,
    gain: bool,
    turns: bool,
    roaming: bool,
    periods: bool,
    pull: bool,
}

impl Ingredients {
    /// All but one of [`INGREDIENTS`].
    fn without(index: u32) -> Self {
        let has = |name| INGREDIENTS[index as usize] != name;
        Self {
            demand: has("demand"),
            gain: has("gain"),
            turns: has("turns"),
            roaming: has("roaming"),
            periods: has("periods"),
            pull: has("pull"),
        }
    }
}

/// Abreast.
struct Abreast {
    fairness: f64,
    energy: f64,
    knows_lengths: bool,
    tick_ns: Ns,
    has: Ingredients,
    accounts: Accounts,
    clocks: Clocks,
}

impl Abreast {
    fn new(params: &Params) -> Self {
        Self {
            fairness: params.number("fairness"),
            energy: params.number("energy"),
            knows_lengths: params.whole("lengths") == 1,
            tick_ns: params.ms("tick_ms"),
            has: Ingredients::without(params.whole("without")),
            accounts: Accounts::default(),
            clocks: Clocks::default(),
        }
    }

    /// How much a thread of a program counts; nice values aside.
    fn claim(&self, program: &Program) -> f64 {
        let slowdown = program.slowdown().powf(self.fairness) * program.urgency();
        if self.has.demand { slowdown / program.demand() } else { slowdown }
    }

    /// The claims of the runnable threads on fast cores.
    fn claims(&mut self, view: &View, unknown: f64) -> Bids<Low> {
        let programs: Vec<f64> =
            self.accounts.programs().iter().map(|program| self.claim(program)).collect();
        let longest_ns =
            if self.knows_lengths { longest_paths_ns(view, programs.len()) } else { Vec::new() };
        let mut claims = Bids::with_capacity(view.live_count());
        for thread in view.runnable() {
            let speedup = view.factors(thread).speedup.or(unknown).max(1.0);
            let gain = if self.has.gain { 1.0 - 1.0 / speedup } else { 1.0 };
            let turn = if self.has.turns { self.accounts.thread(thread).slowdown() } else { 1.0 };
            let stay = if seats::is_on_fast(view, thread) { STAY } else { 1.0 };
            let own = f64::from(view.plan(thread).weight) / 1024.0;
            let app = usize::from(view.app(thread).0);
            let program = programs.get(app).copied().unwrap_or(1.0);
            let path_ns = view.factors(thread).path_ns;
            let path =
                longest_ns.get(app).map_or(1.0, |longest_ns| path_ns.or(*longest_ns) / longest_ns);
            claims.push((Low(-program * own * gain * turn * path * stay), thread));
        }
        claims
    }
}

/// The longest path of each program's runnable threads, by the programs' numbers; 1 if nobody tells any.
fn longest_paths_ns(view: &View, programs: usize) -> Vec<f64> {
    let mut longest_ns = vec![1.0f64; programs];
    for thread in view.runnable() {
        if let Some(longest_ns) = longest_ns.get_mut(usize::from(view.app(thread).0)) {
            *longest_ns = longest_ns.max(view.factors(thread).path_ns.or(0.0));
        }
    }
    longest_ns
}

/// What a thread is taken to gain from a fast core if its speed-up is not known: the ratio of the cores' capacities, or
/// something if these are not known either.
fn unknown_speedup(topology: &Topology) -> f64 {
    let capacities = || topology.clusters().iter().map(|cluster| f64::from(cluster.capacity()));
    let ratio = capacities().fold(1.0, f64::max) / capacities().fold(f64::MAX, f64::min);
    if ratio > 1.0 { ratio } else { UNKNOWN_SPEEDUP }
}

impl Policy for Abreast {
    fn needs(&self) -> Needs {
        Needs {
            epoch_ns: Some(self.tick_ns),
            speedup: true,
            work: self.knows_lengths,
            paths: self.knows_lengths,
            frequencies: self.energy > 0.0,
            ..Needs::default()
        }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        let cfs = if self.has.periods { CfsRules::unscaled() } else { CfsRules::default() };
        let mut rules = seats::rules(cfs, topology);
        rules.steal.retain(|step| self.has.pull || step.from != StealFrom::RunningOnSlower);
        rules
    }

    fn caveat(&self, topology: &Topology, _sensors: bool) -> Option<String> {
        let is_vain = self.energy > 0.0 && !clocks::are_known(topology.clusters());
        is_vain.then(|| "knows no energy model, so energy has no price and clocks stay".into())
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        if self.energy > 0.0 {
            self.clocks.limit(view, plan, self.energy);
        }
        if seats::fast_cores(view) == 0 {
            return;
        }
        let unknown = unknown_speedup(view.topology());
        self.accounts.end_window(view, unknown);
        let claims = self.claims(view, unknown);
        let (now_ns, can_roam) = (view.now_ns(), self.has.roaming);
        seat(view, plan, &claims, |thread| can_roam && self.accounts.has_slept(thread, now_ns));
    }
}
