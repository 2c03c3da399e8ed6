//! A cluster for tests of governors: it passes time under loads and asks its governor.

use ampsched_model::Ns;

use super::{ClusterSample, CoreSample, FrequencyDomain, Governor, Limits, build_governor};

/// A domain of full capacity that changes its frequency in 100 us, with a tick of 4 ms.
pub fn domain(freqs_mhz: &[u32], cores: usize) -> FrequencyDomain {
    FrequencyDomain {
        freqs_mhz: freqs_mhz.to_vec(),
        cores,
        capacity: 1024,
        transition_ns: 100_000,
        tick_ns: 4_000_000,
    }
}

/// A governor from a text such as `ondemand:up_threshold=80`.
pub fn build(text: &str, domain: &FrequencyDomain) -> Box<dyn Governor> {
    let (name, params) = text.split_once(':').unwrap_or((text, ""));
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap();
        (key.to_owned(), value.parse().unwrap())
    };
    let params: Vec<_> = params.split(':').filter(|pair| !pair.is_empty()).map(pair).collect();
    build_governor(name, &params, domain).unwrap()
}

/// A cluster and its governor.
pub struct Cluster {
    pub cores: Vec<CoreSample>,
    pub mhz: u32,
    pub now_ns: Ns,
    limits: Limits,
    governor: Box<dyn Governor>,
}

impl Cluster {
    /// A cluster at its highest frequency.
    pub fn new(governor: &str, domain: FrequencyDomain) -> Self {
        let governor = build(governor, &domain);
        let cores = vec![CoreSample::default(); domain.cores];
        Self { cores, mhz: domain.max_mhz(), now_ns: 0, limits: domain.limits(), governor }
    }

    /// The little cluster of an Exynos 5422: four cores, 200 to 1400 MHz in steps of 100.
    pub fn little(governor: &str) -> Self {
        let freqs_mhz: Vec<u32> = (2..=14).map(|hundreds| hundreds * 100).collect();
        Self::new(governor, domain(&freqs_mhz, 4))
    }

    /// Sets the frequency without asking the governor.
    pub fn jump(&mut self, mhz: u32) {
        self.mhz = mhz;
    }

    /// Sets the limits, of which the governor hears at the next look.
    pub fn limit(&mut self, min_mhz: u32, max_mhz: u32) {
        self.limits = Limits { min_mhz, max_mhz };
    }

    /// The governor takes over.
    pub fn start(&mut self) -> u32 {
        self.look(0.0, &[])
    }

    /// Lets ms pass in which the first cores are busy for some percent of the time, the others idle.
    pub fn pass(&mut self, ms: f64, loads: &[f64]) {
        self.now_ns += (ms * 1e6) as Ns;
        for (core, load) in self.cores.iter_mut().zip(loads) {
            core.busy_ns += (ms * 1e4 * load) as Ns;
        }
    }

    /// The same; then the governor looks and the cluster follows.
    pub fn look(&mut self, ms: f64, loads: &[f64]) -> u32 {
        self.pass(ms, loads);
        let Self { now_ns, mhz, limits, .. } = *self;
        self.mhz =
            self.governor.next_mhz(&ClusterSample { now_ns, mhz, limits, cores: &self.cores });
        self.mhz
    }

    /// Least time until the next look in us.
    pub fn gap_us(&self) -> u64 {
        self.governor.pace().unwrap().gap_ns / 1000
    }

    /// Time until the next look of an idle cluster in us.
    pub fn idle_gap_us(&self) -> Option<u64> {
        self.governor.pace().unwrap().idle_gap_ns.map(|ns| ns / 1000)
    }
}
