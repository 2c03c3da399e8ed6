//! The table itself: all groups of words, and which of them a policy uses.

use super::{Choice, Group, Record, Word};
use crate::{
    Allocator, Balance, BalanceWhen, Change, Charge, Events, Factors, Hooks, LoadBand, LoadFilter,
    Needs, Order, Prefer, QueueScope, Rules, Slice, Steal, StealFrom, WakePreempt,
};

/// Which part of the contract a group belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The fast plane.
    Rules,
    /// What the slow plane asks for.
    Plan,
    /// What the host must provide.
    Needs,
    /// What the host tells of threads.
    Factors,
}

/// A group, and the part of the contract to which it belongs.
pub type Entry = (Part, fn() -> &'static Group);

/// All words, group by group.
pub static TABLE: &[Entry] = &[
    (Part::Rules, <Rules as Record>::group),
    (Part::Rules, <QueueScope as Choice>::group),
    (Part::Rules, <Order as Choice>::group),
    (Part::Rules, <Allocator as Choice>::group),
    (Part::Rules, <LoadBand as Record>::group),
    (Part::Rules, <Steal as Record>::group),
    (Part::Rules, <StealFrom as Choice>::group),
    (Part::Rules, <LoadFilter as Choice>::group),
    (Part::Rules, <Slice as Choice>::group),
    (Part::Rules, <Charge as Choice>::group),
    (Part::Rules, <WakePreempt as Choice>::group),
    (Part::Rules, <Balance as Record>::group),
    (Part::Rules, <BalanceWhen as Choice>::group),
    (Part::Plan, Change::group),
    (Part::Plan, <Prefer as Choice>::group),
    (Part::Needs, <Needs as Record>::group),
    (Part::Needs, <Events as Record>::group),
    (Part::Needs, <Hooks as Record>::group),
    (Part::Factors, Factors::group),
];

/// The words that a policy with these needs and rules uses, in the order of the table, each once.
pub fn words_in_use(needs: &Needs, rules: &Rules) -> Vec<&'static Word> {
    let mut words: Vec<&'static Word> = Vec::new();
    let mut note = |word: &'static Word| {
        if !words.iter().any(|known| std::ptr::eq(*known, word)) {
            words.push(word);
        }
    };
    needs.visit_fields(&mut note);
    // Linux's fair class decides by no rule.
    if !needs.hooks.fair {
        rules.visit_fields(&mut note);
    }
    words
}
