//! Blame from trace events: the time that a thread has waited for a futex is charged to the thread that wakes it.
//!
//! This is the accounting of COLAB (CGO 2020, section 4.1), which does it in the kernel's futex code. From outside,
//! three events tell the same: a thread enters a futex call that waits; another one wakes it while it is itself inside
//! a futex call that wakes; a thread leaves its futex call. Waits that end by a time-out or a signal are charged to
//! nobody.

use std::collections::{BTreeMap, BTreeSet};

use ampsched_model::Ns;

/// Commands that wait (include/uapi/linux/futex.h): WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2.
const WAITS: [u64; 5] = [0, 6, 9, 11, 13];
/// Commands that wake: WAKE, REQUEUE, CMP_REQUEUE, WAKE_OP, UNLOCK_PI, WAKE_BITSET, CMP_REQUEUE_PI.
const WAKES: [u64; 7] = [1, 3, 4, 5, 7, 10, 12];
/// What of the operation is not the command: FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME.
const FLAGS: u64 = 128 | 256;

/// Who has been waited for, and how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blame {
    /// Since when threads wait for a futex.
    waits: BTreeMap<i32, Ns>,
    /// Threads inside a call that wakes.
    waking: BTreeSet<i32>,
    /// What has not been taken out yet.
    blame_ns: BTreeMap<i32, Ns>,
    lost: u64,
}

/// A line of a trace.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    Enter { tid: i32, command: u64, at_ns: Ns },
    Leave { tid: i32 },
    Wake { by: i32, woken: i32, at_ns: Ns },
    Lost { events: u64 },
}

impl Blame {
    /// Reads a line of `trace_pipe`; others than of these events are passed over.
    pub fn read(&mut self, line: &str) {
        match parse(line) {
            Some(Event::Enter { tid, command, at_ns }) => {
                if WAITS.contains(&command) {
                    self.waits.insert(tid, at_ns);
                } else if WAKES.contains(&command) {
                    self.waking.insert(tid);
                }
            }
            Some(Event::Leave { tid }) => {
                self.waits.remove(&tid);
                self.waking.remove(&tid);
            }
            Some(Event::Wake { by, woken, at_ns }) if self.waking.contains(&by) => {
                if let Some(since_ns) = self.waits.remove(&woken) {
                    *self.blame_ns.entry(by).or_default() += at_ns.saturating_sub(since_ns);
                }
            }
            Some(Event::Lost { events }) => {
                // Who waits and who wakes is no longer known.
                self.lost = self.lost.saturating_add(events);
                self.waits.clear();
                self.waking.clear();
            }
            Some(Event::Wake { .. }) | None => {}
        }
    }

    /// Takes out how long others have waited for each thread since the last time, in ns.
    pub fn take(&mut self) -> BTreeMap<i32, Ns> {
        std::mem::take(&mut self.blame_ns)
    }

    /// Events that the kernel had no room for.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// Reads `  NAME-TID   [CPU] FLAGS SECONDS: EVENT`.
fn parse(line: &str) -> Option<Event> {
    if let Some((_, rest)) = line.split_once("[LOST ") {
        return Some(Event::Lost { events: rest.split(' ').next()?.parse().ok()? });
    }
    let (kind, head, rest) = [": sched_waking: ", ": sys_futex(", ": sys_futex -> "]
        .into_iter()
        .find_map(|kind| line.split_once(kind).map(|(head, rest)| (kind, head, rest)))?;
    let mut words = head.split_whitespace().rev();
    let (time, flags, _cpu, task) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let tid: i32 = task.rsplit_once('-')?.1.parse().ok()?;
    let at_ns = nanoseconds(time)?;
    match kind {
        ": sched_waking: " => {
            // An interrupt that comes while a thread wakes others is not that thread.
            let in_interrupt = matches!(flags.as_bytes().get(2)?, b'h' | b's' | b'H' | b'z' | b'Z');
            let pid = rest.rsplit_once(" prio=")?.0.rsplit_once("pid=")?.1;
            let woken = pid.parse().ok()?;
            (!in_interrupt).then_some(Event::Wake { by: tid, woken, at_ns })
        }
        ": sys_futex(" => {
            let operation = rest.split_once("op: ")?.1.split([',', ')']).next()?;
            let operation = operation.trim_start_matches("0x");
            let command = u64::from_str_radix(operation, 16).ok()? & !FLAGS;
            Some(Event::Enter { tid, command, at_ns })
        }
        _ => Some(Event::Leave { tid }),
    }
}

/// Reads seconds with six decimals. None: it is something else, or too long for nanoseconds.
fn nanoseconds(text: &str) -> Option<Ns> {
    let (seconds, micros) = text.split_once('.').filter(|(_, micros)| micros.len() == 6)?;
    let ns = |text: &str, per_one: Ns| text.parse::<Ns>().ok()?.checked_mul(per_one);
    ns(seconds, 1_000_000_000)?.checked_add(ns(micros, 1000)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn enter(tid: i32, operation: &str, at: &str) -> String {
        format!(
            "   a b-c-{tid}    [001] ..... {at}: sys_futex(uaddr: 0x7f, op: {operation}, val: 0, utime: 0)"
        )
    }

    fn wake(by: i32, woken: i32, flags: &str, at: &str) -> String {
        format!(
            "  <...>-{by} [000] {flags} {at}: sched_waking: comm=a pid=3 b pid={woken} prio=120 target_cpu=001"
        )
    }

    fn leave(tid: i32, at: &str) -> String {
        format!("  worker-{tid} [000] ..... {at}: sys_futex -> 0x1")
    }

    fn blamed(lines: &[String]) -> Vec<(i32, Ns)> {
        let mut blame = Blame::default();
        lines.iter().for_each(|line| blame.read(line));
        blame.take().into_iter().collect()
    }

    #[test]
    fn low_a_trace_with_numbers_out_of_all_reason_does_not_overflow() {
        let mut blame = Blame::default();
        for _ in 0..3 {
            blame.read("CPU:0 [LOST 9223372036854775814 EVENTS]");
        }
        assert_eq!(blame.lost(), u64::MAX);
        for text in ["18446744073.709552", "99999999999.000000", "0.49312140161473045", "1.5", "1."]
        {
            assert_eq!(nanoseconds(text), None, "{text}");
        }
        assert_eq!(nanoseconds("18446744073.709551"), Some(18_446_744_073_709_551_000));
    }

    #[test]
    fn the_waker_is_blamed_for_the_wait() {
        let lines = [
            enter(7, "0x80", "100.000100"),
            enter(8, "0x189", "100.000200"),
            enter(5, "0x81", "100.000500"),
            wake(5, 7, "dN.5.", "100.000600"),
            wake(5, 8, "d..3.", "100.000700"),
            leave(5, "100.000800"),
        ];
        assert_eq!(blamed(&lines), [(5, 500_000 + 500_000)]);
    }

    #[test]
    fn time_outs_signals_and_interrupts_blame_nobody() {
        let wait = enter(7, "0x80", "1.000000");
        let waking = enter(5, "0x81", "2.000000");
        for lines in [
            // Woken by a timer.
            vec![wait.clone(), wake(5, 7, "d.h2.", "3.000000")],
            // A timer's interrupt while the other thread wakes a third one.
            vec![wait.clone(), waking.clone(), wake(5, 7, "d.h2.", "3.000000")],
            // A thread that is not, or no longer, in a call that wakes.
            vec![wait.clone(), wake(5, 7, "d..2.", "3.000000")],
            vec![
                wait.clone(),
                waking.clone(),
                leave(5, "2.500000"),
                wake(5, 7, "d..2.", "3.000000"),
            ],
            // A thread that has left does not wait.
            vec![wait, leave(7, "1.500000"), waking, wake(5, 7, "d..2.", "3.000000")],
        ] {
            assert_eq!(blamed(&lines), [], "{lines:?}");
        }
    }

    #[test]
    fn after_a_loss_nothing_is_believed() {
        let mut blame = Blame::default();
        blame.read(&enter(7, "0x0", "1.000000"));
        blame.read(&enter(5, "0x1", "2.000000"));
        blame.read("CPU:1 [LOST 37 EVENTS]");
        blame.read(&wake(5, 7, "d..2.", "3.000000"));
        assert_eq!((blame.take().len(), blame.lost()), (0, 37));
    }

    proptest! {
        #[test]
        fn no_line_is_too_strange(line in "\\PC{0,80}", kind in 0..4usize) {
            let kind = [": sched_waking: pid=", ": sys_futex(op: ", ": sys_futex -> ", "[LOST "][kind];
            let (head, tail) = line.split_at(line.char_indices().nth(line.chars().count() / 2).map_or(0, |at| at.0));
            Blame::default().read(&format!("{head}{kind}{tail}"));
        }
    }
}
