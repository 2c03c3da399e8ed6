//! Interned core sets, so that a thread's affinity is two bytes and a test is one look-up.

use ampsched_model::{CoreId, CoreSet};

/// A core set in an [`AffinityTable`]; 0 is the set of all cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AffinityId(pub u16);

impl AffinityId {
    /// All cores.
    pub const ALL: Self = Self(0);
}

/// The core sets in use.
#[derive(Clone, Debug)]
pub struct AffinityTable {
    sets: Vec<CoreSet>,
}

impl AffinityTable {
    /// A table whose set 0 is all cores of a machine.
    pub fn new(cores: usize) -> Self {
        Self { sets: vec![CoreSet::first(cores)] }
    }

    /// The identifier of a set; equal sets share one.
    ///
    /// Panics after 65,536 different sets (policies use a handful).
    pub fn intern(&mut self, set: &CoreSet) -> AffinityId {
        let index = self.sets.iter().position(|known| known == set).unwrap_or_else(|| {
            self.sets.push(set.clone());
            self.sets.len() - 1
        });
        AffinityId(u16::try_from(index).expect("fewer than 65,536 affinity sets"))
    }

    /// The set itself.
    pub fn set(&self, id: AffinityId) -> &CoreSet {
        &self.sets[id.0 as usize]
    }

    /// Whether a thread of that affinity may run on the core.
    #[inline]
    pub fn allows(&self, id: AffinityId, core: CoreId) -> bool {
        id == AffinityId::ALL || self.sets[id.0 as usize].contains(core)
    }

    /// The intersection of a policy's and a user's set; the user's alone if they have nothing in common.
    pub fn restrict(&mut self, policy: &CoreSet, user: AffinityId) -> AffinityId {
        let common: CoreSet = policy.iter().filter(|&core| self.allows(user, core)).collect();
        if common.is_empty() { user } else { self.intern(&common) }
    }
}
