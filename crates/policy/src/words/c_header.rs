//! The words as a header for the interpreter in C.

use std::fmt::Write as _;

use ampsched_model::MAX_CLASSES;

use super::{Choice, Group, STEPS_MAX, Slot, Wire};
use crate::{
    Allocator, Balance, BalanceWhen, Change, Charge, EnqueueKind, LoadBand, LoadFilter, Order,
    Prefer, QueueScope, Rules, RunState, SPEED_ONE, Slice, Steal, StealFrom, WakePreempt,
};

/// The text of `bpf/words.h`: the numbers of all words, and Rules as the loader writes them.
pub fn c_header() -> String {
    let mut text = String::from(
        "/* SPDX-License-Identifier: GPL-2.0-only */\n\
         /* The words of Rules and Plan, generated from crates/policy/src/words by `make bless`; do not edit. */\n\
         #ifndef AMPSCHED_WORDS_H\n#define AMPSCHED_WORDS_H\n\n",
    );
    for (name, value) in [
        ("CLASSES_MAX", MAX_CLASSES as u64),
        ("STEPS_MAX", STEPS_MAX as u64),
        ("SPEED_ONE", SPEED_ONE.into()),
    ] {
        // Writing into a string does not fail.
        let _ = writeln!(text, "#define {name} {value}ull");
    }
    text.push('\n');
    for group in [
        QueueScope::group(),
        Order::group(),
        Allocator::group(),
        StealFrom::group(),
        LoadFilter::group(),
        Slice::group(),
        Charge::group(),
        WakePreempt::group(),
        BalanceWhen::group(),
        Prefer::group(),
        Change::group(),
        RunState::group(),
        EnqueueKind::group(),
    ] {
        enumeration(&mut text, group);
    }
    text.push('\n');
    structure::<LoadBand>(&mut text);
    structure::<Steal>(&mut text);
    structure::<Balance>(&mut text);
    structure::<Rules>(&mut text);
    text.push_str("#endif\n");
    text
}

/// One line, or one per word if that is too long.
fn enumeration(text: &mut String, group: &Group) {
    let prefix = group.name.to_uppercase();
    let names: Vec<String> =
        group.words.iter().map(|word| format!("{prefix}_{}", word.name.to_uppercase())).collect();
    let line = format!("enum {} {{ {} }};", group.name, names.join(", "));
    let block = || format!("enum {} {{\n    {},\n}};", group.name, names.join(",\n    "));
    text.push_str(&if line.len() <= 120 { line } else { block() });
    text.push('\n');
}

fn structure<T: Wire>(text: &mut String) {
    let mut slots = Vec::new();
    T::fields(&mut slots);
    let _ = writeln!(text, "struct {} {{", T::group().name);
    for slot in slots {
        let _ = match slot {
            Slot::Scalar(name) => writeln!(text, "    u64 {name};"),
            Slot::Array(name, count) => writeln!(text, "    u64 {name}[{count}];"),
            Slot::Struct(name, tag) => writeln!(text, "    struct {tag} {name};"),
            Slot::Structs(name, tag, count) => writeln!(text, "    struct {tag} {name}[{count}];"),
        };
    }
    text.push_str("};\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares a generated file with its text, or writes it if `BLESS` is set.
    #[test]
    fn the_header_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../live/scx/bpf/words.h");
        let text = c_header();
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        let found = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(found, text, "bpf/words.h is not what the table says; run `make bless`");
    }
}
