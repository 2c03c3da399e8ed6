//! States of cores and threads as text: clocks, idle states, priorities.

use super::event::{Ask, NO_PRIO, Names, What, prio};

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
            .map(|(tid, number)| What::priority(tid, prio(number))),
        "sched_blocked_reason" => tid(fields)
            .zip(number(&["iowait", "io_wait"]))
            .map(|(tid, is_storage)| What::BlockedReason { tid, is_storage: is_storage != 0 }),
        "uclamp_util_se" | "lisa__uclamp_util_se" => {
            let clamps = number(&["uclamp_min"]).zip(number(&["uclamp_max"]));
            clamps.zip(tid(fields)).and_then(|((min, max), tid)| What::clamps(tid, min, max))
        }
        "sched_enq_deq_task" => affinity(fields),
        "cpuhp_enter" => hotplug(fields),
        "sched_cpu_hotplug" => switched(fields)?,
        "sched_isolate" => hex(fields, "cpus").map(|cpus| What::Isolated { cpus }),
        "halt_cpus" => hex(fields, "halt_cpus").map(|cpus| What::Isolated { cpus }),
        _ => return None,
    })
}

/// `comm=NAME pid=7 prio=120 ... affine=ff ...`, of Qualcomm's and MediaTek's kernels.
fn affinity(fields: &str) -> Option<What> {
    let digits = value(fields, &["affine", "cpus_allowed"])?;
    let cpus = u32::from_str_radix(digits.trim_start_matches("0x"), 16).ok()?;
    Some(What::Asks { tid: tid(fields)?, ask: Ask::Cpus(cpus) })
}

/// `cpu: 0004 target:   0 step: 238 (FUNCTION)`, or raw `cpu=4 target=0`: down to 0 is off, up to the last step is on
/// (include/linux/cpuhotplug.h).
fn hotplug(fields: &str) -> Option<What> {
    let fields = fields.replace(": ", "=").replace("= ", "=");
    let squeezed = fields.split_whitespace().collect::<Vec<_>>().join(" ").replace("= ", "=");
    let cpu = value(&squeezed, &["cpu"])?.parse().ok()?;
    let target: u32 = value(&squeezed, &["target"])?.parse().ok()?;
    Some(What::Away { cpu, is_away: target == 0 })
}

/// `cpu 4 offline error=0`, of Android's kernels; none if it has not happened.
fn switched(fields: &str) -> Option<Option<What>> {
    let mut words = fields.split_whitespace();
    let mut next = || words.next();
    let (cpu, status) = match (next(), next(), next()) {
        (Some("cpu"), Some(cpu), Some(status)) => (cpu.parse().ok(), status),
        _ => return Some(None),
    };
    if signed(fields, "error").is_some_and(|error| error != 0) {
        return None;
    }
    Some(cpu.map(|cpu| What::Away { cpu, is_away: status == "offline" }))
}

fn hex(fields: &str, key: &str) -> Option<u32> {
    u32::from_str_radix(value(fields, &[key])?.strip_prefix("0x")?, 16).ok()
}

/// `dst_root=4 dst_id=2 dst_level=1 dst_path=/background pid=7 comm=NAME`; kernels up to 4.7 state `cname`, which is
/// the group's own name. A path may have spaces, a name may be anything.
pub fn attach(names: &mut Names, fields: &str) -> Option<What> {
    let (before, _) = fields.rsplit_once(" comm=").unwrap_or((fields, ""));
    let (before, tid) = before.trim_end().rsplit_once(" pid=")?;
    let (head, path) = before.split_once("dst_path=").or_else(|| before.split_once("cname="))?;
    let hierarchy = value(head, &["dst_root"])?.parse().ok()?;
    Some(What::attach(tid.trim().parse().ok()?, hierarchy, names.number(path.trim_matches('"'))))
}

/// What a recorder has written into the trace itself, as devlib does at the begin and the end: a clock, or the group
/// that a thread is in.
pub fn marked(names: &mut Names, text: &str) -> Option<What> {
    if let Some((_, rest)) = text.split_once("cgroup_attach_task_devlib:") {
        return attach(names, rest.trim_end_matches(['\n', '\0']));
    }
    let (_, rest) = text.split_once("cpu_frequency")?;
    frequency(rest.strip_prefix("_devlib").unwrap_or(rest).strip_prefix(':')?)
}

/// The priority of one side of a switch: `prev_prio=120`, `next_prio=120`, or `NAME:TID [120] S`.
pub fn prio_of(side: &str) -> u8 {
    // A name may hold anything, and stands before it.
    let known = side.as_bytes().rsplit(|&byte| byte == b' ').take(4).find_map(|word| {
        let keyed = word.strip_prefix(b"prev_prio=").or_else(|| word.strip_prefix(b"next_prio="));
        let digits = keyed.or_else(|| word.strip_prefix(b"[")?.strip_suffix(b"]"))?;
        std::str::from_utf8(digits).ok()?.parse().ok()
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
    use crate::import::event::PRIO_DEADLINE;

    #[test]
    fn kernels_and_tools_print_the_same_in_several_ways() {
        let read = |event, fields| what(event, fields).flatten();
        let clock = Some(What::Frequency { cpu: 4, khz: 1_804_800 });
        assert_eq!(read("cpu_frequency", "state=1804800 cpu_id=4"), clock);
        for text in [
            "tracing_mark_write: cpu_frequency:        state=1804800 cpu_id=4",
            "0xffff00000819ff24s: cpu_frequency_devlib:        state=1804800 cpu_id=4",
        ] {
            assert_eq!(marked(&mut Names::default(), text), clock);
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
            Some(What::priority(7, PRIO_DEADLINE))
        );
        assert_eq!(
            read("sched_blocked_reason", "pid=9 iowait=1 caller=io_schedule+0x18/0x24"),
            Some(What::BlockedReason { tid: 9, is_storage: true })
        );
    }

    #[test]
    fn what_threads_ask_for_and_cores_that_go_are_read() {
        let asks = |ask| Some(Some(What::Asks { tid: 7, ask }));
        let away = |cpu, is_away| Some(Some(What::Away { cpu, is_away }));
        let isolated = |cpus| Some(Some(What::Isolated { cpus }));
        let util = "pid=7 comm=a b cpu=1 util_avg=9 uclamp_avg=9 uclamp_min=1 uclamp_max=300";
        for (event, fields, expected) in [
            ("uclamp_util_se", util, asks(Ask::Clamps(1, 300))),
            ("lisa__uclamp_util_se", util, asks(Ask::Clamps(1, 300))),
            (
                "sched_enq_deq_task",
                "cpu=4 enqueue comm=x pid=7 prio=120 rt_nr_running=0 affine=f0 demand=3",
                asks(Ask::Cpus(0xf0)),
            ),
            (
                "cpuhp_enter",
                "cpu: 0005 target:   0 step: 237 (sched_cpu_deactivate)",
                away(5, true),
            ),
            ("cpuhp_enter", "cpu: 0005 target: 238 step:   1 (smpboot)", away(5, false)),
            ("sched_cpu_hotplug", "cpu 3 offline error=0", away(3, true)),
            ("sched_cpu_hotplug", "cpu 3 online error=0", away(3, false)),
            ("sched_cpu_hotplug", "cpu 3 offline error=-16", None),
            ("sched_isolate", "iso cpu=6 cpus=0xc0 time=120 us isolated=1", isolated(0xc0)),
            ("halt_cpus", "req_cpus=0x1 halt_cpus=0x3 time=5 us halt=1 success=1", isolated(3)),
        ] {
            assert_eq!(what(event, fields), expected, "{event}: {fields}");
        }
    }

    #[test]
    fn moves_between_groups_are_printed_by_kernels_and_by_devlib() {
        let mut names = Names::default();
        let path = names.number("/a b");
        let expected = Some(What::attach(7, 4, path));
        for fields in [
            "dst_root=4 dst_id=2 dst_level=1 dst_path=/a b pid=7 comm=x pid=3",
            "dst_root=4 dst_id=2 cname=/a b pid=7 comm=x",
        ] {
            assert_eq!(attach(&mut names, fields), expected, "{fields}");
        }
        let written = "cgroup_attach_task_devlib: dst_root=4 dst_path=/a b pid=7\n";
        assert_eq!(marked(&mut names, written), expected);
        for fields in ["", "dst_root=x dst_path=/a pid=7", "dst_root=4 dst_path=/a pid=x", "pid=7"]
        {
            assert_eq!(attach(&mut names, fields), None, "{fields}");
        }
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
            ("uclamp_util_se", "pid=7 uclamp_min=0 uclamp_max=1025"),
            ("sched_enq_deq_task", "pid=7 affine=xyz"),
            ("sched_isolate", "cpus=12"),
            ("cpuhp_enter", "cpu: x target: 0"),
            ("sched_cpu_hotplug", "cpu x offline error=0"),
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
            ("prog:12 [-1]", PRIO_DEADLINE),
            ("prog:12", NO_PRIO),
            ("next_comm=a next_pid=3 next_prio=900", NO_PRIO),
        ] {
            assert_eq!(prio_of(side), number, "{side}");
        }
    }
}
