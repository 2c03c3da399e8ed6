//! Identifiers and small sets. Newtypes, so that a core is never mistaken for a thread.

/// Simulated or real time in nanoseconds.
pub type Ns = u64;

/// Most core classes (kinds of core, ordered by speed) that one machine may have.
pub const MAX_CLASSES: usize = 4;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $inner:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);
        impl $name {
            /// The identifier as an index into a table.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
        impl From<usize> for $name {
            #[inline]
            fn from(index: usize) -> Self {
                debug_assert!(index as u64 <= <$inner>::MAX as u64);
                Self(index as $inner)
            }
        }
    };
}

id!(/// A core, numbered in the machine's core order (as a kernel numbers its CPUs).
    CoreId, u16);
id!(/// A group of cores that share an L2 cache and a clock.
    ClusterId, u8);
id!(/// A kind of core; 0 is the slowest, higher is faster.
    ClassId, u8);
id!(/// A thread, over all applications of a run.
    ThreadId, u32);
id!(/// An application (one program instance of a workload).
    AppId, u16);
id!(/// A synchronisation object; in a [`crate::Program`] local to it, in a run global.
    ObjectId, u32);
id!(/// A behaviour profile in a program's profile table.
    ProfileId, u16);
id!(/// A position in a program's code.
    CodePtr, u32);

/// Cores in words, ascending: `core 1`, `cores 0, 3-5`.
pub fn name_cores(cores: &[CoreId]) -> String {
    let follows = |one: &CoreId, other: &CoreId| other.0 == one.0 + 1;
    let range = |cores: &[CoreId]| match cores {
        [first, .., last] => format!("{}-{}", first.0, last.0),
        cores => cores.iter().map(|core| core.0.to_string()).collect(),
    };
    let ranges: Vec<String> = cores.chunk_by(follows).map(range).collect();
    format!("core{} {}", if cores.len() == 1 { "" } else { "s" }, ranges.join(", "))
}

/// A set of cores as a bit field of any length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CoreSet {
    words: Vec<u64>,
}

impl CoreSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The set {0, 1, ..., count - 1}.
    pub fn first(count: usize) -> Self {
        (0..count).map(CoreId::from).collect()
    }

    /// Adds a core.
    pub fn insert(&mut self, core: CoreId) {
        let word = core.index() / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (core.index() % 64);
    }

    /// Whether the core is in the set.
    #[inline]
    pub fn contains(&self, core: CoreId) -> bool {
        self.words.get(core.index() / 64).is_some_and(|word| word >> (core.index() % 64) & 1 == 1)
    }

    /// The number of cores in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no core is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The cores in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = CoreId> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            (0..64)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| CoreId::from(index * 64 + bit))
        })
    }
}

/// The set of that core alone.
impl From<CoreId> for CoreSet {
    fn from(core: CoreId) -> Self {
        let mut words = vec![0; core.index() / 64 + 1];
        words[core.index() / 64] = 1 << (core.index() % 64);
        Self { words }
    }
}

impl FromIterator<CoreId> for CoreSet {
    fn from_iter<I: IntoIterator<Item = CoreId>>(cores: I) -> Self {
        let mut set = Self::new();
        for core in cores {
            set.insert(core);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_holds_what_was_inserted_beyond_one_word() {
        let set: CoreSet = [3, 64, 1023].into_iter().map(CoreId::from).collect();
        assert_eq!(set.iter().map(CoreId::index).collect::<Vec<_>>(), [3, 64, 1023]);
        assert_eq!(set.len(), 3);
        assert!(
            set.contains(CoreId(64)) && !set.contains(CoreId(65)) && !set.contains(CoreId(5000))
        );
        assert!(CoreSet::new().is_empty() && !set.is_empty());
        assert_eq!(CoreSet::first(70).len(), 70);
    }
}
