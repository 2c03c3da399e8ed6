//! Cores that a trace shows to be taken away from all threads: by hot-plug (`cpuhp_enter`, Android's
//! `sched_cpu_hotplug`) or by isolation (`sched_isolate` and `halt_cpus`, of Qualcomm's core control).

use std::collections::BTreeMap;

use super::event::{Raw, What};

/// Most times that are named (ours).
const NAMED_MAX: usize = 6;

/// In a sentence which cores were away and when, in s of the trace's clock; none if none was. Events are in the order
/// of time.
pub fn sentence(events: &[Raw]) -> Option<String> {
    let mut since: BTreeMap<(u16, bool), u64> = BTreeMap::new();
    let mut spans: Vec<(u64, u16, Option<u64>)> = Vec::new();
    // By hot-plug and by isolation, of which one does not end the other.
    let mut set = |cpu: (u16, bool), is_away: bool, at_ns: u64| match (is_away, since.get(&cpu)) {
        (true, None) => {
            since.insert(cpu, at_ns);
        }
        (false, Some(&from_ns)) => {
            spans.push((from_ns, cpu.0, Some(at_ns)));
            since.remove(&cpu);
        }
        _ => {}
    };
    for raw in events {
        match raw.what {
            What::Away { cpu, is_away } => set((cpu, false), is_away, raw.at_ns),
            What::Isolated { cpus } => {
                (0..32).for_each(|cpu| set((cpu, true), cpus >> cpu & 1 == 1, raw.at_ns));
            }
            _ => {}
        }
    }
    spans.extend(since.into_iter().map(|((cpu, _), from_ns)| (from_ns, cpu, None)));
    spans.sort_unstable();
    let seconds = |ns: u64| format!("{:.3}", ns as f64 / 1e9);
    let span = |&(from_ns, cpu, until_ns): &(u64, u16, Option<u64>)| {
        let until = until_ns.map_or("the end".to_owned(), |ns| format!("{} s", seconds(ns)));
        format!("CPU {cpu} from {} s to {until}", seconds(from_ns))
    };
    let named: Vec<String> = spans.iter().take(NAMED_MAX).map(span).collect();
    let more = spans.len() - named.len();
    let more = if more > 0 { format!(" and {more} more times") } else { String::new() };
    (!named.is_empty()).then(|| {
        format!(
            "what would have been without cores taken away (hot-plug, isolation): {}{more}; replays have all cores",
            named.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::event::Context;

    fn of(events: &[(u64, What)]) -> Option<String> {
        let raw = |&(at_ms, what): &(u64, What)| Raw {
            at_ns: at_ms * 1_000_000,
            cpu: 0,
            tid: 0,
            context: Context::Thread,
            what,
        };
        sentence(&events.iter().map(raw).collect::<Vec<_>>())
    }

    #[test]
    fn cores_are_away_until_they_come_back() {
        let away = |cpu, is_away| What::Away { cpu, is_away };
        assert_eq!(of(&[(1, away(3, false)), (2, What::Isolated { cpus: 0 })]), None);
        let events = [
            (1000, away(4, true)),
            (1100, away(4, true)),
            (1500, What::Isolated { cpus: 0b1100_0000 }),
            (2000, What::Isolated { cpus: 0b1000_0000 }),
        ];
        let told = of(&events).unwrap();
        assert!(
            told.contains("CPU 6 from 1.500 s to 2.000 s, CPU 7 from 1.500 s to the end"),
            "{told}"
        );
        let often: Vec<(u64, What)> = (0..40).map(|at| (at, away(1, at % 2 == 0))).collect();
        assert!(of(&often).unwrap().contains(" and 14 more times; "));
    }
}
