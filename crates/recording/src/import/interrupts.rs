//! Wake-ups from interrupts, in traces that do not tell in what an event happened.
//!
//! Flags of an event say so (`common_flags`), and Perfetto's traces of older versions leave them out. What happened
//! between the begin and the end of an interrupt on a core (`irq_handler_entry`, `softirq_entry`, `ipi_entry`,
//! `hrtimer_expire_entry`) was done by it, and not by the thread that it has interrupted.

use std::collections::HashMap;

use super::event::{Context, Raw, What};

/// Says of events in the order of time which of unknown context happened in an interrupt.
pub fn settle(events: &mut [Raw]) {
    // How many have begun on a core and not ended, those within each other included.
    let mut open: HashMap<u16, u32> = HashMap::new();
    for raw in events {
        match raw.what {
            What::InterruptBegin | What::TimerBegin => *open.entry(raw.cpu).or_default() += 1,
            What::InterruptEnd | What::TimerEnd => {
                if let Some(depth) = open.get_mut(&raw.cpu) {
                    *depth = depth.saturating_sub(1);
                }
            }
            // No thread is switched to in an interrupt: the end of this one was not told.
            What::Switch { .. } | What::Lost { .. } => {
                open.remove(&raw.cpu);
            }
            What::Waking { .. }
                if raw.context == Context::Unknown
                    && open.get(&raw.cpu).is_some_and(|depth| *depth > 0) =>
            {
                raw.context = Context::Interrupt;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::event::{Left, NO_PRIO, Name};

    fn settled(whats: &[(u16, What)]) -> Vec<Context> {
        let raw = |(at_ns, &(cpu, what)): (u64, &(u16, What))| Raw {
            at_ns,
            cpu,
            tid: 7,
            context: Context::Unknown,
            what,
        };
        let mut events: Vec<Raw> = (0..).zip(whats).map(raw).collect();
        settle(&mut events);
        let is_wake = |raw: &&Raw| matches!(raw.what, What::Waking { .. });
        events.iter().filter(is_wake).map(|raw| raw.context).collect()
    }

    #[test]
    fn wake_ups_between_begin_and_end_are_the_interrupts() {
        let wake = What::Waking { woken: 9, name: Name::default(), is_late: false };
        let found = settled(&[
            (0, wake),
            (0, What::InterruptBegin),
            (0, wake),
            (1, wake),
            (0, What::TimerBegin),
            (0, wake),
            (0, What::TimerEnd),
            (0, wake),
            (0, What::InterruptEnd),
            (0, wake),
            (1, What::InterruptEnd),
            (1, wake),
        ]);
        let (unknown, interrupt) = (Context::Unknown, Context::Interrupt);
        let wanted = [unknown, interrupt, unknown, interrupt, interrupt, unknown, unknown];
        assert_eq!(found, wanted);
    }

    #[test]
    fn an_end_that_was_not_told_is_over_with_the_next_switch_or_loss() {
        let wake = What::Waking { woken: 9, name: Name::default(), is_late: false };
        let switch = What::Switch {
            from: 7,
            from_name: Name::default(),
            left: Left::Sleeps,
            to: 8,
            to_name: Name::default(),
            prios: [NO_PRIO; 2],
        };
        for other in [switch, What::Lost { events: 1 }] {
            let found = settled(&[(0, What::InterruptBegin), (0, wake), (0, other), (0, wake)]);
            assert_eq!(found, [Context::Interrupt, Context::Unknown]);
        }
    }

    /// A field of a message: a number, or bytes.
    fn number(tag: u8, value: u8) -> Vec<u8> {
        vec![tag << 3, value]
    }

    fn bytes(tag: u32, value: &[u8]) -> Vec<u8> {
        let mut field = Vec::new();
        prost::encoding::encode_varint(u64::from(tag << 3 | 2), &mut field);
        prost::encoding::encode_varint(value.len() as u64, &mut field);
        [field.as_slice(), value].concat()
    }

    #[test]
    fn perfetto_tells_interrupts_by_their_events() {
        // Begin and end by the numbers of their messages: ipi, softirq, irq_handler.
        for (begin, end) in [(21, 22), (24, 25), (36, 37)] {
            let waking = [bytes(1, b"app"), number(2, 9), number(4, 0)].concat();
            let event = |at_ns: u8, tag: u32, message: &[u8]| {
                let fields = [number(1, at_ns), number(2, 7), bytes(tag, message)];
                bytes(2, &fields.concat())
            };
            let bundle = [
                number(1, 0),
                event(1, begin, &[]),
                event(2, 20, &waking),
                event(3, end, &[]),
                event(4, 20, &waking),
            ];
            let trace = bytes(1, &bytes(1, &bundle.concat()));
            let mut story = crate::import::perfetto::read("x", &trace).unwrap();
            story.sort();
            let found: Vec<_> = story.events.iter().map(|raw| (raw.what, raw.context)).collect();
            assert_eq!(found[0].0, What::InterruptBegin, "{begin}");
            assert_eq!(found[1].1, Context::Interrupt, "{begin}");
            assert_eq!((found[2].0, found[3].1), (What::InterruptEnd, Context::Unknown), "{end}");
        }
    }
}
