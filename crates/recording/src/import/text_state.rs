//! States of cores and threads as text: clocks, idle states, priorities.

use super::event::{NO_PRIO, What, prio};

/// What an event tells; none if it is of another kind, `Some(None)` if it cannot be read.
pub fn what(event: &str, fields: &str) -> Option<Option<What>> {
    let number = |keys: &[&str]| value(fields, keys)?.parse::<u64>().ok();
    let cpu = || number(&["cpu_id"]);
    Some(match event {
        "cpu_frequency" => frequency(fields),
        "cpu_idle" => state(fields).zip(cpu()).and_then(|(state, cpu)| What::idle(cpu, state)),
        "cpu_frequency_limits" => {
            let bounds = number(&["min", "min_freq"]).zip(number(&["max", "max_freq"]));
            bounds.zip(cpu()).and_then(|((min, max), cpu)| What::limits(cpu, min, max))
        }
        "sched_pi_setprio" => tid(fields)
            .zip(signed(fields, "newprio"))
            .map(|(tid, number)| What::Priority { tid, prio: prio(number) }),
        "sched_blocked_reason" => tid(fields)
            .zip(number(&["iowait", "io_wait"]))
            .map(|(tid, is_storage)| What::BlockedReason { tid, is_storage: is_storage != 0 }),
        "print" | "tracing_mark_write" => Some(marked(fields)?),
        _ => return None,
    })
}

/// A clock that a recorder has written into the trace itself, as devlib does at the begin and the end.
pub fn marked(text: &str) -> Option<What> {
    let (_, rest) = text.split_once("cpu_frequency")?;
    frequency(rest.strip_prefix("_devlib").unwrap_or(rest).strip_prefix(':')?)
}

/// The priority of one side of a switch: `prev_prio=120`, `next_prio=120`, or `NAME:TID [120] S`.
pub fn prio_of(side: &str) -> u8 {
    // A name may hold anything, and stands before it.
    let known = side.trim_end().rsplit(' ').take(4).find_map(|word| {
        let keyed = word.strip_prefix("prev_prio=").or_else(|| word.strip_prefix("next_prio="));
        keyed.or_else(|| word.strip_prefix('[')?.strip_suffix(']'))?.parse().ok()
    });
    known.map_or(NO_PRIO, prio)
}

fn frequency(fields: &str) -> Option<What> {
    let cpu = value(fields, &["cpu_id"])?.parse().ok()?;
    What::frequency(cpu, state(fields)?)
}

fn state(fields: &str) -> Option<u64> {
    value(fields, &["state"])?.parse().ok()
}

fn tid(fields: &str) -> Option<u32> {
    value(fields, &["pid"])?.parse().ok()
}

fn signed(fields: &str, key: &str) -> Option<i64> {
    value(fields, &[key])?.parse().ok()
}

/// What stands behind `KEY=`, the last one.
fn value<'a>(fields: &'a str, keys: &[&str]) -> Option<&'a str> {
    fields.trim_end().rsplit([' ', '\t']).find_map(|word| {
        let (key, value) = word.split_once('=')?;
        keys.contains(&key).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_and_tools_print_the_same_in_several_ways() {
        let read = |event, fields| what(event, fields).flatten();
        let clock = Some(What::Frequency { cpu: 4, khz: 1_804_800 });
        assert_eq!(read("cpu_frequency", "state=1804800 cpu_id=4"), clock);
        for text in [
            "tracing_mark_write: cpu_frequency:        state=1804800 cpu_id=4",
            "0xffff00000819ff24s: cpu_frequency_devlib:        state=1804800 cpu_id=4",
        ] {
            assert_eq!(read("print", text), clock);
        }
        assert_eq!(
            read("cpu_idle", "state=4294967295 cpu_id=6"),
            Some(What::Idle { cpu: 6, state: None })
        );
        assert_eq!(
            read("cpu_idle", "state=2 cpu_id=6"),
            Some(What::Idle { cpu: 6, state: Some(2) })
        );
        let limits = Some(What::FrequencyLimits { cpu: 0, min_khz: 300_000, max_khz: 1_785_600 });
        assert_eq!(read("cpu_frequency_limits", "min=300000 max=1785600 cpu_id=0"), limits);
        assert_eq!(
            read("cpu_frequency_limits", "min_freq=300000 max_freq=1785600 cpu_id=0"),
            limits
        );
        assert_eq!(
            read("sched_pi_setprio", "comm=a pid=1 b pid=7 oldprio=120 newprio=-1"),
            Some(What::Priority { tid: 7, prio: 0 })
        );
        assert_eq!(
            read("sched_blocked_reason", "pid=9 iowait=1 caller=io_schedule+0x18/0x24"),
            Some(What::BlockedReason { tid: 9, is_storage: true })
        );
    }

    #[test]
    fn what_cannot_be_read_is_told_from_what_is_not_ours() {
        for (event, fields) in [
            ("cpu_frequency", "state=x cpu_id=0"),
            ("cpu_frequency", "state=1000"),
            ("cpu_frequency", "state=4294967295 cpu_id=0"),
            ("cpu_idle", "state=1 cpu_id=70000"),
            ("sched_pi_setprio", "pid=7 oldprio=1"),
            ("sched_blocked_reason", ""),
        ] {
            assert_eq!(what(event, fields), Some(None), "{event}: {fields}");
        }
        assert_eq!(what("sched_migrate_task", "pid=7"), None);
        assert_eq!(what("print", "B|12|measure"), None);
    }

    #[test]
    fn priorities_stand_in_both_ways_of_printing_a_switch() {
        for (side, number) in [
            ("prev_comm=a b prev_pid=3 prev_prio=139 prev_state=R+", 139),
            ("next_comm=next_prio=1 next_pid=3 next_prio=49", 49),
            ("next_comm=a next_pid=3 next_prio=120 expeller_type=0", 120),
            ("my [7] prog:12 [98] D", 98),
            ("prog:12 [100]", 100),
            ("prog:12 [-1]", 0),
            ("prog:12", NO_PRIO),
            ("next_comm=a next_pid=3 next_prio=900", NO_PRIO),
        ] {
            assert_eq!(prio_of(side), number, "{side}");
        }
    }
}
