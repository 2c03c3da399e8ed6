//! What is measured of single threads during a session, as the factors that policies read.

use std::collections::BTreeMap;
use std::io;

use ampsched_computer::{CoreMap, Root};
use ampsched_model::{ClassId, InputError, Ns, StallCounters};
use ampsched_policy::{Factor, FactorKind, Factors, Needs, Stalls};

use crate::counters::{Counters, Perf, Source, Survey};
use crate::speedups::Speedups;

/// Time on a class of cores after which counts are believed (ours): below, a window holds little but the
/// misses after a change of threads.
const WINDOW_NS: f64 = 1e6;

/// Counters of the scheduled threads, and what follows from them.
pub struct Instruments<S: Source = Perf> {
    counters: Option<Counters<S>>,
    /// By PMU: the class of its cores, if they are of one.
    classes: Vec<Option<ClassId>>,
    speedups: Option<Speedups>,
    threads: BTreeMap<i32, Known>,
    places: Places,
    wants: Needs,
    predicts: bool,
    reasons: Vec<String>,
    notes: Vec<String>,
}

/// Where the counters stand that stalls are made of.
#[derive(Clone, Copy, Debug, Default)]
struct Places {
    instructions: Option<usize>,
    cycles: Option<usize>,
    stalls: Option<usize>,
    llc_misses: Option<usize>,
}

/// What is known of a thread.
struct Known {
    /// The class on which the window was counted.
    class: Option<ClassId>,
    counts: Vec<f64>,
    ran_ns: f64,
    speedup: Factor,
    stalls: Option<Stalls>,
}

impl<S: Source> Instruments<S> {
    /// Counts what a policy and a model read, if anything. Errors: files of a PMU cannot be understood, or the
    /// model does not know the cores of this machine.
    pub fn start(
        mut source: S,
        root: &Root,
        cores: &CoreMap,
        needs: &Needs,
        speedups: Option<Speedups>,
    ) -> Result<Self, InputError> {
        let mut speedups = speedups.filter(|_| needs.speedup);
        let wanted = wanted(needs, speedups.as_ref());
        let survey = match wanted.is_empty() {
            true => Survey::default(),
            false => Survey::make(root, cores, &wanted, &mut source)?,
        };
        let mut reasons = survey.reasons.clone();
        let counters = (!survey.pmus.is_empty()).then(|| Counters::new(source, &survey));
        let names = counters.as_ref().map_or(&[][..], |counters| counters.names());
        let (mut notes, mut predicts) = (survey.describe(), false);
        if let Some(model) = &mut speedups {
            let lacks = model.bind(names);
            match lacks.is_empty() {
                true => {
                    notes.push(model.describe(cores));
                    predicts = true;
                }
                false => reasons.push(format!(
                    "{}, but here nothing counts {}",
                    model.describe(cores),
                    lacks.join(", ")
                )),
            }
        }
        let place = |name: &str| names.iter().position(|known| *known == name);
        let places = Places {
            instructions: place("instructions"),
            cycles: place("cycles"),
            stalls: place("stall_memory_cycles").or_else(|| place("stall_backend_cycles")),
            llc_misses: place("llc_misses"),
        };
        let classes = counters.iter().flat_map(Counters::pmus);
        let classes = classes.map(|pmu| only_class(cores, |cpu| pmu.core.covers(cpu))).collect();
        let (threads, wants) = (BTreeMap::new(), *needs);
        Ok(Self { counters, classes, speedups, threads, places, wants, predicts, reasons, notes })
    }

    /// What is counted and predicted, in a line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether retired instructions are counted wherever threads run.
    pub fn counts_instructions(&self) -> bool {
        self.places.instructions.is_some()
    }

    /// Whether stalls are told.
    pub fn tells_stalls(&self) -> bool {
        let Places { instructions, cycles, stalls, .. } = self.places;
        instructions.and(cycles).and(stalls).is_some()
    }

    /// The policy's needs without those that are met here.
    pub fn unmet(&self, needs: &Needs) -> Needs {
        Needs {
            instructions: needs.instructions && !self.counts_instructions(),
            stalls: needs.stalls && !self.tells_stalls(),
            speedup: needs.speedup && !self.predicts,
            ..*needs
        }
    }

    /// Why something is not counted or predicted that is wanted, each reason in a sentence.
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons = self.reasons.clone();
        let waiting = self.counters.as_ref().map_or(0, Counters::waiting);
        if waiting > 0 {
            reasons.push(format!(
                "{waiting} threads are not counted: no more files may be open (raise ulimit -n)"
            ));
        }
        reasons
    }

    /// Counts a thread from now on. Errors: this process may not.
    pub fn follow(&mut self, tid: i32) -> io::Result<()> {
        let Some(counters) = &mut self.counters else { return Ok(()) };
        let counts = vec![0.0; counters.names().len()];
        let (speedup, stalls) = (Factor::default(), None);
        self.threads.insert(tid, Known { class: None, counts, ran_ns: 0.0, speedup, stalls });
        counters.follow(tid)
    }

    /// Counts a thread no longer.
    pub fn forget(&mut self, tid: i32) {
        self.threads.remove(&tid);
        if let Some(counters) = &mut self.counters {
            counters.forget(tid);
        }
    }

    /// Reads the counters of a thread that was seen on a class of cores. Returns the instructions that it has
    /// retired since the last time. Errors: its counters cannot be read, and are given up.
    pub fn look(&mut self, tid: i32, class: ClassId, now_ns: Ns) -> io::Result<u64> {
        let Some(counters) = &mut self.counters else { return Ok(0) };
        let Some(known) = self.threads.get_mut(&tid) else { return Ok(0) };
        let Some(found) = counters.read(tid)? else { return Ok(0) };
        let mut instructions = 0.0;
        // Counters of two kinds of cores do not add up: what was counted on the most counts.
        let longest = (0..found.len()).max_by(|&a, &b| found[a].ran_ns.total_cmp(&found[b].ran_ns));
        for (pmu, counts) in found.iter().enumerate().filter(|(_, counts)| counts.ran_ns > 0.0) {
            let retired = self.places.instructions.map_or(f64::NAN, |place| counts.counts[place]);
            instructions += if retired.is_finite() { retired } else { 0.0 };
            if Some(pmu) == longest {
                known.add(self.classes[pmu].unwrap_or(class), &counts.counts, counts.ran_ns);
            }
        }
        if let Some(class) = known.class.filter(|_| known.ran_ns >= WINDOW_NS) {
            let predicted = self.speedups.as_ref().and_then(|m| m.predict(class, &known.counts));
            if let Some(value) = predicted {
                known.speedup = Factor { value, kind: FactorKind::Predicted, at_ns: now_ns };
            }
            if let Some(counters) = self.places.stalls(&known.counts) {
                known.stalls = Some(Stalls { class, counters, at_ns: now_ns });
            }
            known.begin(class);
        }
        Ok(instructions.round() as u64)
    }

    /// What is known of a thread: predicted speed-ups come before those that were stated, which come before the
    /// ratio of the classes' speeds.
    pub fn tell(&self, tid: i32, factors: &mut Factors) {
        let Some(known) = self.threads.get(&tid) else { return };
        if known.speedup.kind != FactorKind::Missing {
            factors.speedup = known.speedup;
        }
        if self.wants.stalls {
            factors.stalls = known.stalls;
        }
    }
}

impl Known {
    /// Adds counts to the window; a thread that has changed its kind of core begins anew.
    fn add(&mut self, class: ClassId, counts: &[f64], ran_ns: f64) {
        if self.class != Some(class) {
            self.begin(class);
        }
        self.ran_ns += ran_ns;
        for (sum, count) in self.counts.iter_mut().zip(counts) {
            *sum += count;
        }
    }

    fn begin(&mut self, class: ClassId) {
        self.class = Some(class);
        self.counts.fill(0.0);
        self.ran_ns = 0.0;
    }
}

impl Places {
    /// Stalls as PMUs count them. What no PMU counts (misses at a time, distances between operations) is
    /// what says least: one miss at a time, no dependences.
    fn stalls(&self, counts: &[f64]) -> Option<StallCounters> {
        let instructions = counts[self.instructions?];
        let (cpi, stalled) =
            (counts[self.cycles?] / instructions, counts[self.stalls?] / instructions);
        let memory = stalled.min(cpi);
        let llc_mpi = self.llc_misses.map_or(0.0, |place| counts[place] / instructions);
        (cpi.is_finite() && cpi > 0.0 && memory.is_finite()).then_some(StallCounters {
            cpi_base: cpi - memory,
            cpi_memory: memory,
            llc_mpi: if llc_mpi.is_finite() { llc_mpi } else { 0.0 },
            mlp: 1.0,
            dependence: [0.0; 3],
            load_use_distance: 1.0,
        })
    }
}

/// What is read by a policy, and by a model if it reads speed-ups.
fn wanted(needs: &Needs, speedups: Option<&Speedups>) -> Vec<&'static str> {
    const STALLS: [&str; 5] =
        ["instructions", "cycles", "stall_memory_cycles", "stall_backend_cycles", "llc_misses"];
    let mut wanted = Vec::new();
    if needs.instructions {
        wanted.push("instructions");
    }
    if needs.stalls {
        wanted.extend(STALLS);
    }
    wanted.extend(speedups.iter().flat_map(|model| model.counters()));
    wanted
}

/// The class of some CPUs of a machine if they are of one.
fn only_class(cores: &CoreMap, is_meant: impl Fn(usize) -> bool) -> Option<ClassId> {
    let mut classes = (0..cores.class_count()).map(ClassId::from);
    let has = |class: &ClassId| cores.cpus_of_class(*class).into_iter().any(&is_meant);
    let first = classes.by_ref().find(has)?;
    classes.find(has).is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use ampsched_predict::Models;

    use super::*;
    use crate::fake::{Fake, hybrid, machine};

    /// A speed-up of 1 + 0.5 x instructions per cycle from the fast cores of [`hybrid`], and nothing from the slow
    /// ones.
    fn model(core_type: &str, feature: &str) -> Models {
        let text = format!(
            r#"{{"format": "ampsched-speedup-1", "name": "own", "models": [{{"core_type": "{core_type}",
                "predicts": "speedup", "features": [{{"count": "{feature}", "per": "cycles"}}],
                "regression": {{"kind": "linear", "intercept": 1, "coefficients": [0.5]}},
                "speedup_range": [1, 3], "capacity_ratio": 1.5}}]}}"#
        );
        Models::parse("own.json", &text).unwrap()
    }

    fn start(fake: &Fake, needs: Needs, models: Option<Models>) -> Instruments<Fake> {
        let (_folder, root, cores) = hybrid();
        let speedups = models.map(|models| Speedups::new(&models, &root, &cores).unwrap());
        Instruments::start(fake.clone(), &root, &cores, &needs, speedups).unwrap()
    }

    fn runs(fake: &Fake, tid: i32, pmu: u32, ns: u64) {
        *fake.0.borrow_mut().ran_ns.entry((tid, pmu)).or_default() += ns;
    }

    const FAST: u32 = 4;
    const SLOW: u32 = 10;

    #[test]
    fn only_what_somebody_reads_is_counted() {
        let fake = machine([8, 8]);
        let mut nothing = start(&fake, Needs { blame: true, ..Needs::default() }, None);
        nothing.follow(7).unwrap();
        assert_eq!((nothing.notes().len(), fake.0.borrow().opened), (0, 0));
        // A policy that reads no speed-ups needs no model.
        let needs = Needs { instructions: true, stalls: true, ..Needs::default() };
        let mut counts = start(&fake, needs, Some(model("golden-cove", "instructions")));
        counts.follow(7).unwrap();
        let unmet = counts.unmet(&needs);
        assert!(!unmet.instructions && !unmet.stalls);
        runs(&fake, 7, FAST, 1_000_000);
        assert_eq!(counts.look(7, ClassId(0), 5).unwrap(), 4000);
        runs(&fake, 7, SLOW, 1_000_000);
        runs(&fake, 7, FAST, 1_000_000);
        assert_eq!(counts.look(7, ClassId(0), 6).unwrap(), 5000, "of both PMUs together");
        assert_eq!(counts.look(8, ClassId(0), 6).unwrap(), 0, "nobody knows it");
    }

    #[test]
    fn speedups_are_predicted_from_long_windows_of_known_cores() {
        let fake = machine([8, 8]);
        let needs = Needs { speedup: true, ..Needs::default() };
        // As `ampsched calibrate` names them: the place among the kinds of cores.
        let mut instruments = start(&fake, needs, Some(model("golden-cove-0", "instructions")));
        assert!(
            instruments.notes()[2].starts_with("the model own predicts"),
            "{:?}",
            instruments.notes()
        );
        assert!(!instruments.unmet(&needs).speedup);
        instruments.follow(7).unwrap();
        let stated = Factor { value: 1.7, kind: FactorKind::Measured, at_ns: 0 };
        let told = |instruments: &mut Instruments<Fake>, now_ns| {
            instruments.look(7, ClassId(0), now_ns).unwrap();
            let mut factors = Factors { speedup: stated, ..Factors::default() };
            instruments.tell(7, &mut factors);
            factors.speedup
        };
        runs(&fake, 7, FAST, 600_000);
        assert_eq!(told(&mut instruments, 1), stated, "too short");
        runs(&fake, 7, FAST, 600_000);
        let predicted = Factor { value: 2.0, kind: FactorKind::Predicted, at_ns: 2 };
        assert_eq!(told(&mut instruments, 2), predicted, "4000 instructions in 2000 cycles");
        runs(&fake, 7, SLOW, 5_000_000);
        assert_eq!(told(&mut instruments, 3), predicted, "the model does not know these cores");
    }

    #[test]
    fn a_model_of_other_cores_or_counters_is_refused() {
        let (_folder, root, cores) = hybrid();
        let other = Speedups::new(&model("cortex-a15", "instructions"), &root, &cores).unwrap_err();
        let text = other.to_string();
        let cores_here = "it knows cortex-a15, but the cores here are golden-cove-0, gracemont-1";
        assert!(text.contains(cores_here), "{text}");
        let needs = Needs { speedup: true, ..Needs::default() };
        let instruments = start(&machine([8, 8]), needs, Some(model("golden-cove", "fp_simd_ops")));
        assert!(instruments.unmet(&needs).speedup);
        let reasons = instruments.reasons();
        assert!(
            reasons.iter().any(|reason| reason.ends_with("nothing counts fp_simd_ops")),
            "{reasons:?}"
        );
    }

    #[test]
    fn stalls_are_shares_of_the_cycles() {
        let fake = machine([8, 8]);
        let mut instruments = start(&fake, Needs { stalls: true, ..Needs::default() }, None);
        assert!(instruments.tells_stalls());
        instruments.follow(7).unwrap();
        runs(&fake, 7, SLOW, 2_000_000);
        instruments.look(7, ClassId(1), 9).unwrap();
        let mut factors = Factors::default();
        instruments.tell(7, &mut factors);
        let stalls = factors.stalls.unwrap();
        // The PMU of the slow cores counts, whatever core the thread was seen on last: a cycle per instruction; the
        // generic event 8 of the fake counts more of them than there are, which are all of them then.
        assert_eq!((stalls.class, stalls.at_ns), (ClassId(0), 9));
        assert_eq!((stalls.counters.cpi(), stalls.counters.memory_share()), (1.0, 1.0));
    }

    #[test]
    fn without_a_pmu_everything_is_missing_and_said() {
        let (folder, root, cores) = hybrid();
        std::fs::remove_dir_all(folder.path().join("sys/bus")).unwrap();
        let needs = Needs { instructions: true, stalls: true, ..Needs::default() };
        let instruments = Instruments::start(machine([8, 8]), &root, &cores, &needs, None).unwrap();
        let unmet = instruments.unmet(&needs);
        assert!(unmet.instructions && unmet.stalls);
        assert!(instruments.reasons()[0].starts_with("the kernel shows no PMU"));
    }
}
