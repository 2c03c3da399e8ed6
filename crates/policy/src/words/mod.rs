//! The contract between policies and the places that run them: every word of Rules, Plan, Needs and Factors, once.
//!
//! The enums and structs of `rules.rs`, `plan.rs`, `needs.rs` and `factors.rs` are declared by the macros of this
//! module. Each row is the Rust item itself, its documentation, what it reads, and what every place makes of it.
//! From the rows come the numbers on the wire, the lowering, the header in C, the words of Python, what the daemon
//! and the kernel refuse, the random rules of the conformance traces and the reference page "the words of a policy".
//!
//! A new word is one row, its execution in Rust (the compiler asks for it) and in C (a test asks for it).

mod c_header;
mod check;
mod field;
#[macro_use]
mod macros;
mod table;
mod types;
mod value;

pub use c_header::c_header;
pub(crate) use check::Contract;
pub use check::{Refusal, Why};
pub use field::{Choice, Field, Payloads, Record, STEPS_MAX, Slot, Source, Used, Wire};
pub use table::{Part, TABLE, words_in_use};
pub use value::{Value, python_key, set_rule};

use crate::{ChangeKind, Needs, Rules};

/// What a place makes of a word.
#[derive(Clone, Copy)]
pub enum Does {
    /// What it says.
    Exact,
    /// Something near.
    Approximates {
        /// What a policy with this word does, as in "it ...".
        what: &'static str,
        /// What happens instead.
        instead: &'static str,
    },
    /// Nothing: a policy with this word is another policy without it.
    Refuses {
        /// What a policy with this word does, as in "it ...".
        what: &'static str,
        /// What would happen instead.
        instead: &'static str,
    },
    /// What it says if the host has the means, else nothing.
    With {
        /// The means.
        means: Means,
        /// What a policy with this word does, as in "it ...".
        what: &'static str,
    },
    /// It depends on the policy's other words.
    Depends(fn(&Needs, &Rules) -> Does),
}

impl Does {
    /// What the place makes of the word for a policy with these needs and rules.
    pub fn of(self, needs: &Needs, rules: &Rules) -> Self {
        match self {
            Self::Depends(decide) => decide(needs, rules).of(needs, rules),
            settled => settled,
        }
    }

    /// Whether the place does what the word says, whatever the policy.
    pub fn is_exact(self) -> bool {
        matches!(self, Self::Exact)
    }
}

/// What a computer may offer a policy or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// Clocks that may be set (cpufreq).
    Clocks,
    /// Counters of retired instructions.
    Instructions,
    /// Counters of stalls.
    Stalls,
    /// Ways of holding a thread back.
    Freezer,
}

/// The facts of a row beside its name, its documentation and its type.
#[derive(Clone, Copy)]
pub struct Facts {
    /// Changes of a plan that a rule reads.
    pub reads: &'static [ChangeKind],
    /// Changes of a plan that mean nothing where this rule holds, whatever other rules read.
    pub hides: &'static [ChangeKind],
    /// Whether a rule reads tracked load, so that a policy with it must name [`Needs::load_tracking`].
    pub reads_load: bool,
    /// What the interpreter inside the kernel does.
    pub kernel: Does,
    /// What the daemon does, on top of the kernel's own fair scheduler.
    pub daemon: Does,
    /// The word in Python, if not its name.
    pub python: &'static str,
}

/// What becomes of words that a kernel which executes Rules and Plan by itself does not know.
pub const NOT_IN_KERNEL: &str = "not inside the kernel";

impl Facts {
    /// A word that all places execute as written, and that reads nothing.
    pub const PLAIN: Self = Self {
        reads: &[],
        hides: &[],
        reads_load: false,
        kernel: Does::Exact,
        daemon: Does::Exact,
        python: "",
    };
}

/// A word: a choice, a field, a change, a need or a factor.
pub struct Word {
    /// Its name in snake case.
    pub name: &'static str,
    /// What it means: the documentation of the Rust item.
    pub doc: &'static str,
    /// What it carries, with units in the names.
    pub payload: &'static [Payload],
    /// The rest.
    pub facts: Facts,
}

impl Word {
    /// Whether it can be chosen by its name alone: what it carries has defaults.
    pub fn is_statable(&self) -> bool {
        self.payload.iter().all(|payload| !payload.samples.is_empty())
    }

    /// Its name in Python.
    pub fn python(&self) -> &'static str {
        if self.facts.python.is_empty() { self.name } else { self.facts.python }
    }

    /// Its documentation as one paragraph.
    pub fn about(&self) -> String {
        self.doc.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// A number that a word carries.
pub struct Payload {
    /// Its name, unit last.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// Values that conformance traces draw from; the first is the default.
    pub samples: &'static [u64],
}

/// Words among which one is chosen, or which stand side by side.
pub struct Group {
    /// Name in snake case: the name of the enum or struct.
    pub name: &'static str,
    /// What it is about.
    pub doc: &'static str,
    /// Its words, numbered by their place.
    pub words: &'static [Word],
}

impl Group {
    /// How people name one of its words as a rule of a policy, as in `allocator = wake_affine`.
    fn rule(&self, word: &Word) -> String {
        match self.name {
            "rules" => word.name.to_owned(),
            "steal" | "balance" => format!("{}.{}", self.name, word.name),
            choice => format!("{choice} = {}", word.name),
        }
    }
}
