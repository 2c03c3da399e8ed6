//! Performance counters of threads, and the speed-ups that a trained model predicts from them.
//!
//! While threads run, only their instructions are counted, by profile and cluster; counts follow from
//! rates when a policy asks. Sampling costs nothing unless speed-ups are predicted.

use ampsched_model::{
    Cluster, ClusterId, Draw, Machine, Ns, Profile, ThreadId, counters, machine_speed_ips,
};
use ampsched_policy::{Factor, FactorKind};
use ampsched_predict::{
    Predictor, SIMULATED, SIMULATED_COUNTERS, counter_cv, counts_per_instruction, noise_factor,
};

use crate::Predicted;

/// What a thread has retired since its counters were last read.
#[derive(Clone, Debug, Default)]
struct Window {
    /// (profile, cluster, instructions).
    parts: Vec<(u32, ClusterId, u64)>,
    /// Whether a prediction was ever made.
    is_known: bool,
}

/// A model bound to the counters of a cluster.
struct ClusterModel {
    predictor: Predictor,
    /// Coefficient of variation of each count.
    cv: f64,
}

/// Counters and models of a run.
pub(super) struct Sampler {
    stale_ns: Ns,
    /// By cluster; none if the models do not know its cores.
    models: Vec<Option<ClusterModel>>,
    capacity_ratio: f64,
    profiles: Vec<Profile>,
    /// Counts per instruction of each profile (rows) on each cluster.
    rates: Vec<[f64; SIMULATED]>,
    windows: Vec<Window>,
}

impl Sampler {
    pub fn new(source: &Predicted, machine: &Machine) -> Self {
        let models = machine.clusters.iter().map(|cluster| {
            let model = source.models.for_core(&cluster.core_type, f64::from(cluster.max_mhz()))?;
            let predictor = Predictor::new(model, &SIMULATED_COUNTERS);
            Some(ClusterModel { predictor, cv: counter_cv(source.counter_cv, model.running_share) })
        });
        Self {
            stale_ns: source.stale_ns,
            models: models.collect(),
            capacity_ratio: source.models.models[0].capacity_ratio,
            profiles: Vec::new(),
            rates: Vec::new(),
            windows: Vec::new(),
        }
    }

    /// Adds profiles, numbered in the order of these calls.
    pub fn add_profiles(&mut self, profiles: &[Profile], machine: &Machine) {
        for profile in profiles {
            for cluster in &machine.clusters {
                self.rates.push(rates(profile, machine, cluster, f64::from(cluster.max_mhz())));
            }
            self.profiles.push(profile.clone());
        }
    }

    /// A cluster runs at another frequency from now on: memory costs other numbers of cycles.
    ///
    /// Its model stays the one for the highest frequency, which is all that was trained.
    pub fn set_frequency(&mut self, machine: &Machine, cluster: ClusterId, mhz: u32) {
        let clusters = machine.clusters.len();
        for (row, profile) in self.profiles.iter().enumerate() {
            let cluster_of = &machine.clusters[cluster.index()];
            self.rates[row * clusters + cluster.index()] =
                rates(profile, machine, cluster_of, f64::from(mhz));
        }
    }

    /// Counts instructions that a thread has retired.
    #[inline]
    pub fn count(&mut self, thread: ThreadId, profile: u32, cluster: ClusterId, instructions: u64) {
        if self.windows.len() <= thread.index() {
            self.windows.resize_with(thread.index() + 1, Window::default);
        }
        let parts = &mut self.windows[thread.index()].parts;
        let same = parts.iter_mut().find(|part| (part.0, part.1) == (profile, cluster));
        match same {
            Some(part) => part.2 += instructions,
            None => parts.push((profile, cluster, instructions)),
        }
    }

    /// Reads and clears a thread's counters and predicts its speed-up; `last` is what it was before.
    ///
    /// A thread that has retired nothing keeps its factor; one that never has gets the capacity ratio.
    pub fn speedup(&mut self, seed: u64, thread: ThreadId, last: &Factor, now_ns: Ns) -> Factor {
        let predicted = |value| Factor { value, kind: FactorKind::Predicted, at_ns: now_ns };
        let Some(window) = self.windows.get_mut(thread.index()) else {
            return predicted(self.capacity_ratio);
        };
        let is_fresh = window.is_known && now_ns < last.at_ns + self.stale_ns;
        let Some(cluster) = busiest(&window.parts) else {
            return if window.is_known { *last } else { predicted(self.capacity_ratio) };
        };
        if is_fresh {
            return *last;
        }
        let mut counts = [0.0; SIMULATED];
        for &(profile, part, instructions) in &window.parts {
            // The PMUs of two kinds of cores count apart.
            if part == cluster {
                let row = &self.rates[profile as usize * self.models.len() + cluster.index()];
                for (count, rate) in counts.iter_mut().zip(row) {
                    *count += rate * instructions as f64;
                }
            }
        }
        window.parts.clear();
        window.is_known = true;
        let Some(model) = &self.models[cluster.index()] else {
            return predicted(self.capacity_ratio);
        };
        if model.cv > 0.0 {
            let mut random = Draw::new(seed).child(u64::from(thread.0)).child(now_ns);
            for count in &mut counts {
                *count *= noise_factor(model.cv, &mut random);
            }
        }
        predicted(model.predictor.predict(&counts).speedup)
    }
}

/// Counts per instruction of a profile on a cluster at a frequency.
fn rates(profile: &Profile, machine: &Machine, cluster: &Cluster, mhz: f64) -> [f64; SIMULATED] {
    let cycles = mhz * 1e6 / machine_speed_ips(profile, machine, cluster, mhz);
    counts_per_instruction(&counters(profile, &cluster.params, mhz), cycles)
}

/// The cluster on which most instructions were retired, the first one of equals; none if nothing was.
fn busiest(parts: &[(u32, ClusterId, u64)]) -> Option<ClusterId> {
    let retired = |cluster: ClusterId| -> u64 {
        parts.iter().filter(|part| part.1 == cluster).map(|part| part.2).sum()
    };
    let mut best = None;
    for &(_, cluster, _) in parts {
        let instructions = retired(cluster);
        if instructions > best.map_or(0, |(_, most)| most) {
            best = Some((cluster, instructions));
        }
    }
    best.map(|(cluster, _)| cluster)
}
