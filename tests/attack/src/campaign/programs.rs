//! Random programs that always can go on, as the text of their files.
//!
//! Threads of a group execute the same steps, so that barriers are met; locks are released where they are taken;
//! whoever waits for a semaphore, a signal, an item or a child is sure to get it. Who waits to be resumed may wait for
//! ever, so programs with such threads have a duration.

use ampsched_task::REGISTRY;

use super::{mechanisms, settings};
use crate::dice::Dice;

/// Shipped profiles that code here behaves like.
const PROFILES: [&str; 6] = ["fft", "radix", "lu_cb", "blackscholes", "ocean_cp", "dedup"];

/// What a program's file says.
#[derive(Clone, Debug)]
pub struct ProgramText {
    /// The file.
    pub text: String,
    /// Whether the work that it does, in instructions, is the same on all machines and under all policies.
    pub fixed_work: bool,
}

/// How long steps may take, and on what.
struct Maker<'d> {
    dice: &'d mut Dice,
    /// Cores of the machine.
    cores: usize,
    fixed_work: bool,
}

/// A program for a machine of so many cores.
pub fn program<'d>(dice: &'d mut Dice, cores: usize) -> ProgramText {
    let mut maker = Maker { dice, cores, fixed_work: true };
    let parts: [fn(&mut Maker<'d>) -> String; 9] = [
        Maker::group,
        Maker::pipeline,
        Maker::family,
        Maker::region,
        Maker::posters,
        Maker::monitor,
        Maker::players,
        Maker::hog,
        Maker::urgent,
    ];
    let sure = maker.dice.index(parts.len());
    let has_duration = maker.dice.once_in(8);
    let mut text = maker.head(has_duration);
    for (number, part) in parts.iter().enumerate() {
        if number == sure || maker.dice.once_in(5) {
            text += &part(&mut maker);
        }
    }
    if has_duration {
        text += &maker.endless();
    }
    mechanisms::of_program(ProgramText { text, fixed_work: maker.fixed_work })
}

impl Maker<'_> {
    /// What stands before the threads: objects that any of them may use.
    fn head(&mut self, has_duration: bool) -> String {
        let mut text = String::new();
        if has_duration {
            // How far threads get until then depends on everything.
            self.fixed_work = false;
            text += &format!("duration_ms = {:.3}\n", self.dice.scale(0.1, 30.0));
        }
        if self.dice.once_in(4) {
            text += &format!("energy_ratio = {:.2}\n", self.dice.scale(0.2, 5.0));
        }
        let shared = self.dice.once_in(2);
        text + &format!(
            "[mutexes.m]\n[mutexes.n]\n[mutexes.a]\ncount = 3\n[devices.d]\n[timers.t]\nshared = {shared}\n"
        )
    }

    fn profile(&mut self) -> &'static str {
        self.dice.of::<&str>(&PROFILES)
    }

    /// Work that is the same wherever it is done.
    fn work(&mut self) -> String {
        let profile = self.profile();
        let us = self.dice.scale(1.0, 1500.0) as u64 + 1;
        let amount = match self.dice.whole(0..=7) {
            0 => format!("{{ mean = {us}, cv = 0.8 }}"),
            1 => format!("{{ low = {us}, high = {} }}", us * 3),
            2 => format!("{{ mean = {us}, dist = \"exponential\" }}"),
            3 => format!("{{ mean = {us}, cv = 0.3, dist = \"normal\" }}"),
            4 => format!("{{ quantiles = [0.2, 1, 3.5], scale = {us} }}"),
            _ => us.to_string(),
        };
        match self.dice.once_in(3) {
            true => format!("{{ compute = {}, profile = \"{profile}\" }}", us * 1000),
            false => format!("{{ run_us = {amount}, profile = \"{profile}\" }}"),
        }
    }

    /// A step that any thread can execute at any time.
    fn step(&mut self) -> String {
        let us = self.dice.scale(1.0, 1500.0) as u64 + 1;
        match self.dice.whole(0..=21) {
            0 => format!("{{ sleep_us = {{ mean = {us}, dist = \"exponential\" }} }}"),
            1 => format!("{{ sleep_us = {us} }}"),
            2 => format!("{{ lock = \"m\" }}, {}, {{ unlock = \"m\" }}", self.work()),
            3 => {
                let (outer, inner) = (self.work(), self.work());
                format!(
                    "{{ lock = \"m\" }}, {outer}, {{ lock = \"n\" }}, {inner}, {{ unlock = \"n\" }}, {{ unlock = \"m\" }}"
                )
            }
            4 => format!("{{ io_us = {us}, device = \"d\" }}"),
            5 => "{ yield = true }".to_owned(),
            6 => format!("{{ set_nice = {} }}", self.dice.whole(0..=39) as i64 - 20),
            7 => format!("{{ set_cores = {} }}", self.some_cores()),
            8 => {
                self.fixed_work = false;
                format!("{{ occupy_us = {us}, profile = \"{}\" }}", self.profile())
            }
            9 => format!("{{ lock = \"a\" }}, {}, {{ unlock = \"a\" }}", self.work()),
            10 => format!("{{ lock = \"m\" }}, {{ sleep_us = {us} }}, {{ unlock = \"m\" }}"),
            11 => {
                let mode = self.dice.of(&["relative", "absolute"]);
                format!("{{ timer_us = {us}, timer = \"t\", mode = \"{mode}\" }}")
            }
            12 => {
                let most = self.dice.whole(1..=3);
                format!("{{ loop = {{ low = 0, high = {most} }}, body = [{}] }}", self.work())
            }
            13 => format!("{{ set_{} }}", self.class()),
            14 => self.attribute(),
            _ => self.work(),
        }
    }

    fn body(&mut self, most: u64) -> String {
        let count = self.dice.whole(1..=most);
        let mut steps: Vec<String> = (0..count).map(|_| self.step()).collect();
        // At least one step takes time.
        steps.push(self.work());
        steps.join(", ")
    }

    fn some_cores(&mut self) -> String {
        let chosen: Vec<usize> = (0..self.cores).filter(|_| self.dice.once_in(2)).collect();
        match chosen.is_empty() {
            true => format!("[{}]", self.dice.index(self.cores)),
            false => format!("{chosen:?}"),
        }
    }

    /// A class that any thread may have: a key and its value, and what belongs to it.
    fn class(&mut self) -> String {
        let priority = self.dice.whole(1..=99);
        match self.dice.whole(0..=4) {
            0 => format!("class = \"fifo\", priority = {priority}"),
            1 => format!("class = \"rr\", priority = {priority}"),
            2 => "class = \"batch\"".to_owned(),
            3 => "class = \"idle\"".to_owned(),
            _ => "class = \"fair\"".to_owned(),
        }
    }

    /// A step that changes a slice, a clamp or a group.
    fn attribute(&mut self) -> String {
        match self.dice.whole(0..=3) {
            0 => format!("{{ set_slice_us = {} }}", self.dice.whole(0..=9000)),
            1 => format!("{{ set_uclamp_min = {} }}", self.dice.whole(0..=1024)),
            2 => format!("{{ set_uclamp_max = {} }}", self.dice.whole(0..=1024)),
            _ => format!("{{ set_group = \"{}\" }}", self.dice.of(&["/", "/a", "/a/b"])),
        }
    }

    /// Keys of a group of threads: how many, of which weight, where.
    fn threads(&mut self, name: &str, count: u64) -> String {
        let mut text = format!("[[threads]]\nname = \"{name}\"\ncount = {count}\n");
        if self.dice.once_in(3) {
            text += &format!("nice = {}\n", self.dice.whole(0..=39) as i64 - 20);
        }
        if self.dice.once_in(5) {
            text += &format!("cores = {}\n", self.some_cores());
        }
        if self.dice.once_in(6) {
            text += &format!("start_us = {:.1}\n", self.dice.scale(10.0, 5000.0));
        }
        if self.dice.once_in(6) {
            text += &self.class().replace(", ", "\n");
            text += "\nslice_us = 2000\nuclamp_max = 700\ngroup = \"/a/b\"\n";
        }
        text
    }

    /// Threads that meet at a barrier and share a pool of iterations.
    fn group(&mut self) -> String {
        let (count, rounds) = (self.dice.whole(1..=6), self.dice.whole(1..=5));
        let body = self.body(4);
        let (pool, dynamic) = match self.dice.once_in(3) {
            true => (
                "[pools.p]\ntotal = 20\nchunk = 3\n",
                format!(", {{ dynamic = \"p\", body = [{}] }}", self.work()),
            ),
            false => ("", String::new()),
        };
        let threads = self.threads("group", count);
        format!(
            "[barriers.b]\n{pool}{threads}body = [{{ loop = {rounds}, body = [{body}{dynamic}, {{ barrier = \"b\" }}] }}]\n"
        )
    }

    /// Sources, a bounded queue and sinks.
    fn pipeline(&mut self) -> String {
        let (sources, sinks) = (self.dice.whole(1..=2), self.dice.whole(1..=3));
        let (items, capacity) = (self.dice.whole(1..=12), self.dice.whole(1..=4));
        let (made, used) = (self.work(), self.body(2));
        let source = self.threads("source", sources);
        let sink = self.threads("sink", sinks);
        format!(
            "[queues.q]\ncapacity = {capacity}\n{source}body = [{{ loop = {items}, body = [{made}, {{ push = \"q\" }}] }}, \
             {{ close = \"q\" }}]\n{sink}body = [{{ each = \"q\", body = [{used}] }}]\n"
        )
    }

    /// A parent that forks children and waits for them.
    fn family(&mut self) -> String {
        let (parents, children) = (self.dice.whole(1..=2), self.dice.whole(1..=4));
        let (before, body, rounds) = (self.work(), self.body(2), self.dice.whole(1..=3));
        let parent = self.threads("parent", parents);
        let child = self.threads("child", 0);
        // Who is forked starts when it is forked.
        let child: String = child
            .lines()
            .filter(|line| !line.starts_with("start_us"))
            .map(|line| format!("{line}\n"))
            .collect();
        format!(
            "{parent}body = [{{ loop = {rounds}, body = [{before}, {{ fork = \"child\", times = {children} }}, {{ join = true }}] }}]\n\
             {child}body = [{body}]\n"
        )
    }

    /// A parallel region under a task policy.
    fn region(&mut self) -> String {
        let graph = *self.dice.of(&[
            "canneal:steps=2:blocks=3",
            "blackscholes:runs=2:blocks=6",
            "swaptions:swaptions=6",
            "dedup:chunks=2:batches=3",
        ]);
        let policy = self.dice.of(REGISTRY);
        let params: String = settings::params(self.dice, policy.params)
            .iter()
            .map(|(name, value)| format!(":{name}={value}"))
            .collect();
        let (count, work_us) = (self.dice.whole(1..=4), self.dice.scale(5.0, 300.0));
        let rounds = self.dice.whole(1..=2);
        let threads = self.threads("worker", count);
        let profile = self.profile();
        let grab_us = *self.dice.of(&[0.0, 0.2]);
        // A thief takes what is shared, an owner does not, and who is idle in time to steal depends on everything. The
        // other policies take each task, or each chunk of a loop, in the same way whoever comes.
        self.fixed_work &= grab_us == 0.0 || policy.name != "work-stealing";
        let (create_us, creator) = match policy.lazy && self.dice.once_in(2) {
            false => (0.0, String::new()),
            true => {
                let thread = self.threads("creator", 1);
                let step = format!("{{ create = \"r\", profile = \"{profile}\" }}");
                (0.5, format!("{thread}body = [{{ loop = {rounds}, body = [{step}] }}]\n"))
            }
        };
        format!(
            "[regions.r]\ngraph = \"{graph}\"\npolicy = \"{}{params}\"\nwork_us = {work_us:.2}\ngrab_us = {grab_us}\n\
             create_us = {create_us}\n{threads}body = [{{ loop = {rounds}, body = [{{ tasks = \"r\", profile = \"{profile}\" }}] }}]\n\
             {creator}",
            policy.name
        )
    }

    /// Whoever waits for a semaphore, and whoever posts it as often.
    fn posters(&mut self) -> String {
        let (times, initial) = (self.dice.whole(1..=8), self.dice.whole(0..=2));
        let (before, after) = (self.work(), self.work());
        let poster = self.threads("poster", 1);
        let taker = self.threads("taker", 1);
        format!(
            "[semaphores.s]\ninitial = {initial}\n{poster}body = [{{ loop = {times}, body = [{before}, {{ sem_post = \"s\" }}] }}]\n\
             {taker}body = [{{ loop = {}, body = [{{ sem_wait = \"s\" }}, {after}] }}]\n",
            times + initial
        )
    }

    /// Threads that wait for a condition, and one that signals it when, and only when, somebody waits: it gets the
    /// mutex only once whoever has posted waits.
    fn monitor(&mut self) -> String {
        let (waiters, rounds) = (self.dice.whole(1..=4), self.dice.whole(1..=4));
        let (before, after, meanwhile) = (self.work(), self.work(), self.work());
        let waiter = self.threads("waiter", waiters);
        let signaller = self.threads("signaller", 1);
        let (times, signal) = match self.dice.once_in(2) {
            true => (waiters, "{ broadcast = \"c\" }".to_owned()),
            false => (1, "{ signal = \"c\" }".to_owned()),
        };
        let all = rounds * waiters / times;
        format!(
            "[mutexes.cm]\n[conditions.c]\n[semaphores.cs]\n{waiter}body = [{{ loop = {rounds}, body = [{before}, \
             {{ lock = \"cm\" }}, {{ sem_post = \"cs\" }}, {{ wait = \"c\", mutex = \"cm\" }}, {{ unlock = \"cm\" }}, {after}] }}]\n\
             {signaller}body = [{{ loop = {all}, body = [{{ loop = {times}, body = [{{ sem_wait = \"cs\" }}] }}, {meanwhile}, \
             {{ lock = \"cm\" }}, {signal}, {{ unlock = \"cm\" }}] }}]\n"
        )
    }

    /// Two threads that take turns; who has ended lets the other one go.
    fn players(&mut self) -> String {
        let times = self.dice.whole(1..=6);
        let mut text = "[mutexes.pm]\n[conditions.pc]\n".to_owned();
        for name in ["ping", "pong"] {
            let work = self.work();
            let player = self.threads(name, 1);
            text += &format!(
                "{player}body = [{{ loop = {times}, body = [{work}, {{ sync = \"pc\", mutex = \"pm\" }}] }}, {{ signal = \"pc\" }}]\n"
            );
        }
        text
    }

    /// Threads that go on until the program's duration is over.
    fn endless(&mut self) -> String {
        let sleepers = self.dice.whole(1..=3);
        let us = self.dice.scale(50.0, 3000.0) as u64;
        let (work, answer) = (self.body(2), self.work());
        let waker = self.threads("waker", 1);
        let sleeper = self.threads("sleeper", sleepers);
        format!(
            "{waker}body = [{{ loop = \"forever\", body = [{work}, {{ timer_us = {us}, timer = \"t\", mode = \"relative\" }}, \
             {{ resume = \"sleeper\" }}] }}]\n{sleeper}body = [{{ loop = \"forever\", body = [{{ suspend = true }}, {answer}] }}]\n"
        )
    }

    /// Threads with deadlines, which may use all cores.
    fn urgent(&mut self) -> String {
        let (count, rounds) = (self.dice.whole(1..=2), self.dice.whole(1..=4));
        let period_us = self.dice.whole(2_000..=20_000);
        let (runtime_us, deadline_us) =
            (period_us / 20, self.dice.whole(period_us / 10..=period_us));
        let (work, sleep_us) = (self.work(), self.dice.whole(1..=2 * period_us));
        let end = match self.dice.once_in(3) {
            true => format!(", {{ set_{} }}, {}", self.class(), self.work()),
            false => String::new(),
        };
        format!(
            "[[threads]]\nname = \"urgent\"\ncount = {count}\nclass = \"deadline\"\nruntime_us = {runtime_us}\n\
             deadline_us = {deadline_us}\nperiod_us = {period_us}\n\
             body = [{{ loop = {rounds}, body = [{work}, {{ sleep_us = {sleep_us} }}, {{ yield = true }}] }}{end}]\n"
        )
    }

    /// Threads that only compute.
    fn hog(&mut self) -> String {
        let count = self.dice.whole(1..=3);
        let profile = self.profile();
        let us = self.dice.scale(500.0, 20_000.0) as u64;
        format!(
            "{}body = [{{ run_us = {us}, profile = \"{profile}\" }}]\n",
            self.threads("hog", count)
        )
    }
}
