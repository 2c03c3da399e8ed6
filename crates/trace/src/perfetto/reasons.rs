//! Decisions as names of events, and reasons as their values.

use std::io::Write;

use ampsched_model::{CoreId, ThreadId};
use ampsched_policy::{Reason, ReasonValue};

use super::PerfettoTrace;
use super::packets::Interned;
use super::proto::DebugAnnotation;
use crate::Decision;

impl<W: Write> PerfettoTrace<W> {
    /// A decision as the name of an event.
    pub(super) fn words_of(&self, decision: Decision) -> String {
        match decision {
            Decision::Placed(core) => format!("put on core {}", core.0),
            Decision::Moved { from, to } => format!("moved from core {} to core {}", from.0, to.0),
            Decision::Interrupts { running, yes: true, .. } => {
                format!("interrupts {}", self.name(running))
            }
            Decision::Interrupts { running, yes: false, .. } => {
                format!("does not interrupt {}", self.name(running))
            }
            Decision::Planned(change) => change.to_owned(),
            Decision::Held => "held back".to_owned(),
            Decision::Ended => "ended".to_owned(),
            Decision::PassedOver(core) => format!("passed over by core {}", core.0),
        }
    }

    fn name(&self, thread: ThreadId) -> &str {
        &self.threads[thread.index()].name
    }

    /// A reason as a group of values: the rule, the reason in words, and what counted.
    pub(super) fn values_of(
        &mut self,
        group: &'static str,
        why: Option<&Reason>,
    ) -> Vec<DebugAnnotation> {
        let Some(why) = why else { return Vec::new() };
        let rule = why.by.words(self.rules.as_ref());
        let mut values =
            vec![self.text("rule", rule), self.text("because", why.because.to_owned())];
        for (name, value) in &why.values {
            values.push(self.value(name, value));
        }
        let name_iid = Some(self.packets.intern(Interned::Value, group));
        vec![DebugAnnotation { name_iid, dict_entries: values, ..DebugAnnotation::default() }]
    }

    fn text(&mut self, name: &str, text: String) -> DebugAnnotation {
        DebugAnnotation {
            name_iid: Some(self.packets.intern(Interned::Value, name)),
            string_value_iid: Some(self.packets.intern(Interned::Text, text)),
            ..DebugAnnotation::default()
        }
    }

    fn value(&mut self, name: &str, value: &ReasonValue) -> DebugAnnotation {
        let mut named = DebugAnnotation {
            name_iid: Some(self.packets.intern(Interned::Value, name)),
            ..DebugAnnotation::default()
        };
        match value {
            ReasonValue::Ns(ns) => named.int_value = Some(*ns),
            ReasonValue::Count(count) => named.uint_value = Some(*count),
            ReasonValue::Real(real) => named.double_value = Some(*real),
            ReasonValue::Core(core) => named.uint_value = Some(core.0.into()),
            ReasonValue::Thread(thread) => return self.text(name, self.name(*thread).to_owned()),
            ReasonValue::Word(word) => return self.text(name, word.clone()),
            // Loads differ each time, so they are not worth a number.
            ReasonValue::Loads(loads) => named.string_value = Some(format_loads(loads)),
        }
        named
    }
}

/// The load of each core, such as `0: 1024, 1: 2048`.
fn format_loads(loads: &[(CoreId, u64)]) -> String {
    let each: Vec<String> =
        loads.iter().map(|(core, load)| format!("{}: {load}", core.0)).collect();
    each.join(", ")
}
