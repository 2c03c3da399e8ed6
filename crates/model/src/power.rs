//! Power of a cluster: its cores, what they share, and the states in which cores idle.
//!
//! A running core draws dynamic power, C V^2 f times the activity of what it runs, and leakage. The
//! uncore (L2, clock tree, interface) of a cluster draws both, too, from when its first core wakes up
//! until its last core is asleep deeply enough. What depends on what, so that a simulation can keep it:
//!
//! | quantity | depends on |
//! |---|---|
//! | dynamic power of a core | operating point, profile |
//! | dynamic power of the uncore | operating point |
//! | leakage of both | voltage, temperature |
//! | constant part of an idle state | state |
//!
//! Only leakage depends on temperature. Where the numbers come from and how far off they are is in
//! `docs/explanation/power-model.md`.

mod activity;
mod board;
mod energy_model;
mod leakage;

pub use activity::ActivityLaw;
pub use board::{BoardPower, PowerLimit};
pub use energy_model::EnergyPoint;
pub use leakage::Leakage;

use crate::{Ns, Opp, Sensor};

/// What is known of a cluster's power. [`Default`] says: nothing; see [`ClusterPower::is_known`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterPower {
    /// Dynamic power at each operating point of the cluster; empty if nothing is known.
    pub points: Vec<PowerPoint>,
    /// Leakage of one core.
    pub core_leakage: Leakage,
    /// Leakage of what the cores share.
    pub uncore_leakage: Leakage,
    /// How dynamic power depends on what a core runs.
    pub activity: ActivityLaw,
    /// Idle states from the shallowest to the deepest; at least one if power is known.
    pub idle_states: Vec<IdleState>,
    /// What an energy-aware scheduler believes: the published table; empty if there is none.
    pub energy_model: Vec<EnergyPoint>,
    /// The capacity that a kernel is told of a core, of 1024 for the fastest one, over the MHz at which it has it;
    /// none: kernels believe the core model. A table (`energy_model`) says it, too.
    pub capacity_per_mhz: Option<f64>,
    /// The power sensor of the cluster, if it has one; its unit is mW.
    pub sensor: Option<Sensor>,
}

/// Dynamic power at an operating point.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PowerPoint {
    /// Supply voltage in V.
    pub volt: f64,
    /// Dynamic power of one running core at activity 1 in mW.
    pub core_mw: f64,
    /// Dynamic power of the uncore in mW.
    pub uncore_mw: f64,
}

/// A state in which a core idles.
#[derive(Clone, Debug, PartialEq)]
pub struct IdleState {
    /// Name, such as `wfi`.
    pub name: String,
    /// What a core in this state draws.
    pub core: Remaining,
    /// What the uncore draws once every core of the cluster is in this state or a deeper one.
    pub uncore: Remaining,
    /// Time to enter it.
    pub entry_ns: Ns,
    /// Time to leave it.
    pub exit_ns: Ns,
    /// Shortest stay that saves energy.
    pub min_residency_ns: Ns,
}

/// Power that is left in an idle state: a constant, and a share of what would be drawn otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Remaining {
    /// Constant part in mW.
    pub constant_mw: f64,
    /// Share in 0..=1: of a core's leakage, or of the uncore's dynamic power and leakage.
    pub share: f64,
}

/// What a core does, as far as its power is concerned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CoreState {
    /// It runs something of that activity, see [`ActivityLaw::of`].
    Running {
        /// Dynamic power relative to that of the reference.
        activity: f64,
    },
    /// It is in the idle state of that index.
    Idle(usize),
    /// It is switched off: hot-unplugged, or not part of the machine.
    Off,
}

impl ClusterPower {
    /// Whether power is known; if not, no energy can be told.
    pub fn is_known(&self) -> bool {
        !self.points.is_empty()
    }

    /// What leaving the idle state takes in which a core is that has idled for some time: the deepest one that has paid
    /// off by then.
    pub fn exit_after_ns(&self, idle_ns: Ns) -> Ns {
        let reached = self.idle_states.iter().take_while(|state| state.min_residency_ns <= idle_ns);
        reached.last().or(self.idle_states.first()).map_or(0, |state| state.exit_ns)
    }

    /// Power of one core in mW at the operating point of index `opp`.
    ///
    /// # Panics
    /// If power is not known, or there is no such operating point or idle state.
    #[inline]
    pub fn core_power_mw(&self, opp: usize, state: CoreState, celsius: f64) -> f64 {
        let leakage_mw = self.core_leakage.power_mw(self.points[opp].volt, celsius);
        self.core_power_with_mw(opp, state, leakage_mw)
    }

    /// The same if its leakage at that operating point is known already.
    #[inline]
    pub fn core_power_with_mw(&self, opp: usize, state: CoreState, leakage_mw: f64) -> f64 {
        match state {
            CoreState::Running { activity } => activity * self.points[opp].core_mw + leakage_mw,
            CoreState::Idle(index) => {
                let left = self.idle_states[index].core;
                left.constant_mw + left.share * leakage_mw
            }
            CoreState::Off => 0.0,
        }
    }

    /// Power of the uncore in mW at the operating point of index `opp`.
    ///
    /// `idle` is the shallowest idle state among the cores that are not switched off; `None` while a
    /// core runs. If all cores are off, so is the uncore, and nobody should ask.
    ///
    /// # Panics
    /// If power is not known, or there is no such operating point or idle state.
    #[inline]
    pub fn uncore_power_mw(&self, opp: usize, idle: Option<usize>, celsius: f64) -> f64 {
        let leakage_mw = self.uncore_leakage.power_mw(self.points[opp].volt, celsius);
        self.uncore_power_with_mw(opp, idle, leakage_mw)
    }

    /// The same if its leakage at that operating point is known already.
    #[inline]
    pub fn uncore_power_with_mw(&self, opp: usize, idle: Option<usize>, leakage_mw: f64) -> f64 {
        let left = idle.map_or(Remaining { constant_mw: 0.0, share: 1.0 }, |index| {
            self.idle_states[index].uncore
        });
        let full = self.points[opp].uncore_mw + leakage_mw;
        left.constant_mw + left.share * full
    }
}

impl PowerPoint {
    /// Dynamic power by C V^2 f, with C in uW / (MHz V^2) of one core at activity 1 and of the uncore.
    pub fn of_law(opp: Opp, core_uw_per_mhz_v2: f64, uncore_uw_per_mhz_v2: f64) -> PowerPoint {
        let mhz_v2 = f64::from(opp.mhz) * opp.volt * opp.volt;
        PowerPoint {
            volt: opp.volt,
            core_mw: core_uw_per_mhz_v2 * mhz_v2 / 1000.0,
            uncore_mw: uncore_uw_per_mhz_v2 * mhz_v2 / 1000.0,
        }
    }
}
