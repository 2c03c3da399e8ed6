//! A session that reads only the threads of the kernel's table that have changed decides the same as a driver that is
//! told of all threads at each look.

mod crowd;
#[path = "../subjects/session.rs"]
mod subjects;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use ampsched_live_driver::{Decision, Dilation, Driver, Facts, Observation};
use ampsched_live_session::{Backend, JournalFile, Observed};
use ampsched_model::{AppId, CoreId, Ns, ThreadId};
use ampsched_policy::{Choice, Factor, FactorKind, PELT_UNIT_NS, RunState, Source, build_policy};
use ampsched_scx::layout::Thread;
use ampsched_scx::{Scx, loads};

use crate::crowd::{CORES, Crowd};
use crate::subjects::{cores, session};

const LOOKS: u64 = 120;
const LOOK_NS: Ns = 10_000_000;

/// A new folder for a journal.
fn folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("ampsched-looks-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A thread as the table showed it at the last look.
struct Known {
    thread: ThreadId,
    generation: u32,
    last: Thread,
    waited_ns: Ns,
}

/// A driver that is told of all threads.
struct Reference {
    driver: Driver,
    by_slot: Vec<Option<Known>>,
    ratio: Option<f64>,
}

fn run_ns(thread: &Thread) -> Ns {
    thread.run_ns.iter().sum()
}

fn state(thread: &Thread) -> RunState {
    RunState::from_number(thread.state, &mut Source::defaults())
}

/// How long a thread has waited, the present stay included.
fn waited_ns(thread: &Thread, now_ns: Ns) -> Ns {
    match state(thread) {
        RunState::Ready | RunState::Held => thread.ready_ns + now_ns - thread.since_ns,
        _ => thread.ready_ns,
    }
}

/// What is known of a thread that does nothing.
fn signs(thread: &Thread) -> (u32, u32, Ns, Ns, Ns, Ns) {
    let Thread { state, core, since_ns, ready_ns, blame_ns, .. } = *thread;
    (state, core, since_ns, run_ns(thread), ready_ns, blame_ns)
}

impl Reference {
    fn look(&mut self, table: &[Thread], now_ns: Ns) -> Vec<Decision> {
        let (mut silent, mut changed) = (Vec::new(), Vec::new());
        self.by_slot.resize_with(table.len(), || None);
        for (slot, seen) in table.iter().enumerate() {
            let is_gone =
                |known: &mut Known| seen.in_use == 0 || known.generation != seen.generation;
            if let Some(gone) = self.by_slot[slot].take_if(is_gone) {
                changed.push(Observation {
                    thread: gone.thread,
                    state: RunState::Exited,
                    core: self.driver.sched().thread(gone.thread).core,
                    ran_ns: 0,
                    waited_ns: 0,
                    instructions: 0,
                    blame_ns: 0,
                });
            }
            if seen.in_use == 0 {
                continue;
            }
            let is_new = self.by_slot[slot].is_none();
            let driver = &mut self.driver;
            let known = self.by_slot[slot].get_or_insert_with(|| Known {
                thread: driver.add(AppId(0), seen.weight, None, now_ns),
                generation: seen.generation,
                last: Thread { run_ns: seen.run_ns.map(|_| 0), ready_ns: 0, blame_ns: 0, ..*seen },
                waited_ns: 0,
            });
            let is_silent = !is_new && signs(seen) == signs(&known.last);
            let told = Observation {
                thread: known.thread,
                state: match state(seen) {
                    RunState::New => RunState::Blocked,
                    state => state,
                },
                core: CoreId(seen.core as u16),
                ran_ns: run_ns(seen) - run_ns(&known.last),
                waited_ns: waited_ns(seen, now_ns) - known.waited_ns,
                instructions: 0,
                blame_ns: seen.blame_ns - known.last.blame_ns,
            };
            (known.last, known.waited_ns) = (*seen, waited_ns(seen, now_ns));
            if is_silent { silent.push(told) } else { changed.push(told) }
        }
        silent.sort_by_key(|told| told.thread);
        self.driver.look(&[silent, changed].concat(), now_ns);
        for known in self.by_slot.iter().flatten() {
            let mut factors = Facts::default().factors("", self.ratio, now_ns);
            let value = known.last.blame_ns as f64;
            factors.blame_ns = Factor { value, kind: FactorKind::Measured, at_ns: now_ns };
            self.driver.set_factors(known.thread, factors);
        }
        self.driver.epoch().unwrap()
    }
}

fn decides_the_same(policy: &str, threads: usize, seed: u64) -> usize {
    let (mut session, folder) = (session(policy, cores(CORES)), folder());
    let place = JournalFile::at(&folder.join("journal")).unwrap().unwrap();
    let (held, journal) = place.create().unwrap();
    let mut scx = Scx::<Crowd>::start(&mut session, journal).unwrap();
    scx.fast_plane().unwrap().begin(threads, seed);
    let cores = cores(CORES);
    let policy_again = build_policy(policy, &[]).unwrap();
    let driver = Driver::new(policy_again, cores.topology(), Dilation::REAL).unwrap();
    let mut reference = Reference { driver, by_slot: Vec::new(), ratio: cores.speed_ratio() };
    let mut decisions = 0;
    for look in 1..=LOOKS {
        let now_ns = look * LOOK_NS;
        let crowd = scx.fast_plane().unwrap();
        crowd.pass_until(now_ns);
        let table = crowd.table();
        let own = session.step(&mut scx, now_ns).unwrap();
        let expected = reference.look(&table, now_ns);
        assert_eq!(own, expected, "{policy}, seed {seed}, look {look}");
        decisions += own.len();
        let (one, other) = (session.driver.sched(), reference.driver.sched());
        for thread in one.live_threads() {
            let (mine, same) = (one.stats_until(thread, now_ns), other.stats_until(thread, now_ns));
            assert_eq!(mine, same, "{policy}, seed {seed}, look {look}, {thread:?}");
        }
    }
    held.remove().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    decisions
}

/// What the policy has decided of the threads in a table, by their numbers; of speeds those that it has set.
fn plans(table: &[Thread]) -> BTreeMap<u32, [u64; 8]> {
    let there = table.iter().filter(|thread| thread.in_use != 0);
    let plan = |own: &Thread| {
        let [a, b, c, d] = own.speed.map(u64::from);
        let (prefer, weight) = (own.prefer.into(), own.weight.into());
        [
            own.affinity.words[0],
            own.rank,
            own.slice_ns,
            prefer,
            weight,
            a << 32 | b,
            c << 32 | d,
            own.held.into(),
        ]
    };
    there.map(|own| (own.pid, plan(own))).collect()
}

/// The kernel's table is another one, with the same threads in other places but for those that have ended meanwhile.
fn keeps_what_it_knows(policy: &str, seed: u64) -> usize {
    let (mut session, folder) = (session(policy, cores(CORES)), folder());
    let place = JournalFile::at(&folder.join("journal")).unwrap().unwrap();
    let (held, journal) = place.create().unwrap();
    let mut scx = Scx::<Crowd>::start(&mut session, journal).unwrap();
    scx.fast_plane().unwrap().begin(12, seed);
    for look in 1..=LOOKS {
        scx.fast_plane().unwrap().pass_until(look * LOOK_NS);
        session.step(&mut scx, look * LOOK_NS).unwrap();
    }
    let expected = plans(&scx.fast_plane().unwrap().table());
    let (epochs, threads) = (session.driver.epochs(), session.driver.sched().thread_count());
    scx.restart(&mut session).unwrap();
    let crowd = scx.fast_plane().unwrap();
    let left: Vec<u32> = expected.keys().copied().skip(1).rev().collect();
    for &pid in &left {
        crowd.come(pid);
    }
    crowd.pass_none_until((LOOKS + 1) * LOOK_NS);
    session.step(&mut scx, (LOOKS + 1) * LOOK_NS).unwrap();
    assert_eq!(session.driver.sched().thread_count(), threads, "{policy}: nobody is new");
    assert_eq!(session.driver.sched().present_count(), left.len(), "{policy}: one has ended");
    assert!(session.driver.epochs() >= epochs, "{policy}");
    let found = plans(&scx.fast_plane().unwrap().table());
    let mut changed = 0;
    for (pid, plan) in found {
        assert_eq!(plan, expected[&pid], "{policy}, thread {pid}");
        changed +=
            usize::from(plan[1..] != [0, 0, 0, 1024, 1024 << 32 | 1024, 1024 << 32 | 1024, 0]);
    }
    held.remove().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    changed
}

#[test]
fn what_a_policy_has_learnt_is_kept_when_the_scheduler_begins_anew() {
    let policies = ["colab", "hsp", "wash", "acfs", "max-fair"];
    let changed: usize = policies.map(|policy| keeps_what_it_knows(policy, 1)).iter().sum();
    assert!(changed > 20, "{changed} plans were other than at first");
}

/// What the policy is told of tracked load is what the kernel's table says of all threads, whoever has changed.
fn knows_the_loads(policy: &str, seed: u64) -> u32 {
    let (mut session, folder) = (session(policy, cores(CORES)), folder());
    let place = JournalFile::at(&folder.join("journal")).unwrap().unwrap();
    let (held, journal) = place.create().unwrap();
    let mut scx = Scx::<Crowd>::start(&mut session, journal).unwrap();
    scx.fast_plane().unwrap().begin(12, seed);
    let mut sum = 0;
    for look in 1..=LOOKS {
        let now_ns = look * LOOK_NS;
        scx.fast_plane().unwrap().pass_until(now_ns);
        session.step(&mut scx, now_ns).unwrap();
        let crowd = scx.fast_plane().unwrap();
        let (table, tracked) = (crowd.table(), crowd.native.state().cores.map(|core| core.tracked));
        let known: BTreeMap<u32, ThreadId> =
            scx.scheduled().map(|known| (known.tid as u32, known.thread)).collect();
        for own in table.iter().filter(|own| own.in_use != 0) {
            let thread = known[&own.pid];
            let core = &tracked[own.tracked.core as usize];
            let expected = loads::of_thread(core, &own.tracked, PELT_UNIT_NS, now_ns);
            let found = session.driver.sched().thread_load(thread, now_ns);
            assert_eq!(found, Some(expected), "{policy}, seed {seed}, look {look}, {thread:?}");
            sum += expected.util;
        }
    }
    held.remove().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    sum
}

#[test]
fn loads_of_threads_that_have_not_changed_follow_from_the_time() {
    for policy in ["gts", "eas", "utilisation-aware"] {
        let sum: u32 = (1..=3).map(|seed| knows_the_loads(policy, seed)).sum();
        assert!(sum > 10_000, "{policy}: threads have used {sum}");
    }
}

#[test]
fn who_reads_changes_only_decides_the_same() {
    let mut decisions = 0;
    for policy in ["colab", "hsp", "prop-sp", "wash", "camp", "acfs", "max-fair", "cfs", "rr"] {
        for (threads, seed) in [(12, 1), (12, 2), (120, 3)] {
            decisions += decides_the_same(policy, threads, seed);
        }
    }
    assert!(decisions > 1_000, "{decisions} decisions were compared");
}
