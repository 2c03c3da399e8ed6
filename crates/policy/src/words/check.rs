//! The contract enforced: a policy whose rules read what its needs do not name is refused at once, a change that none
//! of its rules reads when it is made.

use std::fmt;

use super::table::words_in_use;
use super::{Part, TABLE, Word};
use crate::{Change, ChangeKind, Needs, Plan, Rules};

/// Why a change is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// No rule of the policy reads it.
    Unread(ChangeKind),
    /// A rule of the policy takes its meaning away.
    Hidden(ChangeKind),
    /// The policy's needs do not name it.
    Unnamed(&'static str),
    /// This rule reads tracked load, and the policy's needs do not say how to track it.
    Untracked(&'static str),
}

/// What a policy asks for, or has, and its own contract rules out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub why: Why,
}

impl fmt::Display for Refusal {
    /// What follows the policy's name: "asks for ...", "has ...".
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.why {
            Why::Unread(kind) => {
                let name = kind.word().name;
                write!(
                    out,
                    "asks for `{name}`, which none of its rules reads; rules that would: "
                )?;
                out.write_str(&kind.readers().join(", "))
            }
            Why::Hidden(kind) => {
                let name = kind.word().name;
                write!(
                    out,
                    "asks for `{name}`, which means nothing with its rule {}",
                    hiders(kind).join(", ")
                )
            }
            Why::Unnamed(what) => write!(out, "asks for {what}, which its needs do not name"),
            Why::Untracked(name) => {
                let rules = rules_with(|word| word.name == name && word.facts.reads_load);
                write!(
                    out,
                    "has the rule {}, which reads tracked load, but its needs do not name load_tracking",
                    rules.join(", ")
                )
            }
        }
    }
}

impl ChangeKind {
    /// The rules that read it, as in `allocator = wake_affine`.
    pub fn readers(self) -> Vec<String> {
        rules_with(|word| word.facts.reads.contains(&self))
    }
}

fn hiders(kind: ChangeKind) -> Vec<String> {
    rules_with(|word| word.facts.hides.contains(&kind))
}

fn rules_with(has: impl Fn(&Word) -> bool) -> Vec<String> {
    let groups = TABLE.iter().filter(|(part, _)| *part == Part::Rules).map(|(_, group)| group());
    let rows = groups.flat_map(|group| group.words.iter().map(move |word| (group, word)));
    rows.filter(|(_, word)| has(word)).map(|(group, word)| group.rule(word)).collect()
}

/// What a policy may ask for, as bits of [`ChangeKind`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contract {
    read: u32,
    hidden: u32,
    holds: bool,
    clocks: bool,
}

impl Contract {
    /// That of a policy with these needs and rules.
    ///
    /// Errors: a rule reads what the needs do not name.
    pub fn new(needs: &Needs, rules: &Rules) -> Result<Self, Refusal> {
        let (mut read, mut hidden) = (0, 0);
        let bits = |kinds: &[ChangeKind]| kinds.iter().fold(0, |bits, &kind| bits | bit(kind));
        for word in words_in_use(needs, rules) {
            if word.facts.reads_load && needs.load_tracking.is_none() {
                return Err(Refusal { why: Why::Untracked(word.name) });
            }
            read |= bits(word.facts.reads);
            hidden |= bits(word.facts.hides);
        }
        Ok(Self { read, hidden, holds: needs.holds, clocks: needs.frequencies })
    }

    /// Errors: the policy asks for something that its own words rule out.
    pub fn check(&self, plan: &Plan) -> Result<(), Refusal> {
        if plan.sets_clocks() && !self.clocks {
            return Err(Refusal { why: Why::Unnamed("frequencies") });
        }
        plan.changes().iter().try_for_each(|(_, change)| self.check_change(change))
    }

    fn check_change(&self, change: &Change) -> Result<(), Refusal> {
        let kind = change.kind();
        let why = if self.hidden & bit(kind) != 0 {
            Why::Hidden(kind)
        } else if self.read & bit(kind) == 0 {
            Why::Unread(kind)
        } else if kind == ChangeKind::Hold && !self.holds {
            Why::Unnamed("holds")
        } else {
            return Ok(());
        };
        Err(Refusal { why })
    }
}

fn bit(kind: ChangeKind) -> u32 {
    1 << kind as u32
}
