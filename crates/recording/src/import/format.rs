//! Binary events, by the descriptions that the kernel gives of them (`events/GROUP/EVENT/format`).

use std::collections::HashMap;

use super::event::{Ask, Context, Left, NO_PRIO, Name, Raw, Story, What, prio};
use super::text::{CLONE_THREAD, call_end, waits};
use super::text_marks;

/// A field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    offset: usize,
    size: usize,
    /// Where and how long it is stands there, not the field itself.
    is_location: bool,
}

/// What an event of a number is, with the fields that are read.
#[derive(Clone, Debug)]
enum Shape {
    Switch {
        from: [Field; 3],
        prios: [Option<Field>; 2],
        to: [Field; 2],
    },
    Waking {
        woken: Field,
        name: Field,
        is_late: bool,
    },
    Fork {
        parent: Field,
        child: Field,
        name: Field,
    },
    NewTask {
        child: Field,
        name: Field,
        flags: Field,
    },
    Rename {
        tid: Option<Field>,
        name: Field,
    },
    Exec {
        tid: Field,
        old_tid: Field,
        file: Field,
    },
    Exit,
    CallEnter {
        futex: Option<Field>,
    },
    CallExit {
        call: String,
        result: Field,
    },
    TimerBegin,
    TimerEnd,
    InterruptBegin,
    InterruptEnd,
    Frequency {
        cpu: Field,
        khz: Field,
    },
    Limits {
        cpu: Field,
        min_khz: Field,
        max_khz: Field,
    },
    Idle {
        cpu: Field,
        state: Field,
    },
    Priority {
        tid: Field,
        prio: Field,
    },
    BlockedReason {
        tid: Field,
        is_storage: Field,
    },
    Clamps {
        tid: Field,
        min: Field,
        max: Field,
    },
    Cpus {
        tid: Field,
        cpus: Field,
    },
    Attach {
        tid: Field,
        hierarchy: Field,
        path: Field,
    },
    Hotplug {
        cpu: Field,
        target: Field,
    },
    Isolated {
        cpus: Field,
    },
    /// A text up to the end of the event.
    Print {
        text: Field,
    },
}

/// Reads binary events.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    shapes: HashMap<u16, Shape>,
}

/// `TRACE_FLAG_HARDIRQ | TRACE_FLAG_SOFTIRQ | TRACE_FLAG_NMI` (include/linux/trace_events.h).
const IN_INTERRUPT: u8 = 0x08 | 0x10 | 0x40;

/// Context of flags of an event.
pub fn context(flags: u8) -> Context {
    if flags & IN_INTERRUPT != 0 { Context::Interrupt } else { Context::Thread }
}

impl Decoder {
    /// Learns an event's description; those that nobody needs are passed over.
    pub fn learn(&mut self, format: &str) {
        let value = |key: &str| {
            let line = format.lines().find_map(|line| line.strip_prefix(key))?;
            Some(line.trim().to_owned())
        };
        let (Some(name), Some(number)) = (value("name:"), value("ID:")) else { return };
        let Ok(number) = number.parse() else { return };
        let fields: HashMap<String, Field> = format.lines().filter_map(field).collect();
        if let Some(shape) = shape(&name, &fields) {
            self.shapes.insert(number, shape);
        }
    }

    /// Whether it knows any event.
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// Adds an event of a core to a story, from its bytes.
    pub fn tell(&self, story: &mut Story, at_ns: u64, cpu: u16, bytes: &[u8]) {
        let &[low, high, flags, _, a, b, c, d, ..] = bytes else { return };
        let Some(shape) = self.shapes.get(&u16::from_le_bytes([low, high])) else { return };
        let tid = u32::from_le_bytes([a, b, c, d]);
        match what(shape, bytes, tid, story) {
            Some(Some(what)) => {
                story.push(Raw { at_ns, cpu, tid, context: context(flags), what });
            }
            Some(None) => {}
            None => story.unreadable += 1,
        }
    }
}

/// `field:char prev_comm[16]; offset:8; size:16; signed:0;`, with tabs between.
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let declared = parts.next()?;
    let offset = parts.next()?.strip_prefix("offset:")?.parse().ok()?;
    let size = parts.next()?.strip_prefix("size:")?.parse().ok()?;
    let name = declared.rsplit([' ', '*']).next()?.split('[').next()?.to_owned();
    Some((name, Field { offset, size, is_location: declared.starts_with("__data_loc") }))
}

fn shape(name: &str, fields: &HashMap<String, Field>) -> Option<Shape> {
    let of = |key: &str| fields.get(key).copied();
    Some(match name {
        "sched_switch" => Shape::Switch {
            from: [of("prev_pid")?, of("prev_comm")?, of("prev_state")?],
            prios: [of("prev_prio"), of("next_prio")],
            to: [of("next_pid")?, of("next_comm")?],
        },
        "sched_waking" | "sched_wakeup" => {
            Shape::Waking { woken: of("pid")?, name: of("comm")?, is_late: name == "sched_wakeup" }
        }
        "sched_process_fork" => Shape::Fork {
            parent: of("parent_pid")?,
            child: of("child_pid")?,
            name: of("child_comm")?,
        },
        "task_newtask" => {
            Shape::NewTask { child: of("pid")?, name: of("comm")?, flags: of("clone_flags")? }
        }
        "task_rename" => Shape::Rename { tid: of("pid"), name: of("newcomm")? },
        "sched_process_exec" => {
            Shape::Exec { tid: of("pid")?, old_tid: of("old_pid")?, file: of("filename")? }
        }
        "sched_process_exit" => Shape::Exit,
        "sys_enter_futex" => Shape::CallEnter { futex: Some(of("uaddr")?) },
        "hrtimer_expire_entry" => Shape::TimerBegin,
        "hrtimer_expire_exit" => Shape::TimerEnd,
        "irq_handler_entry" | "softirq_entry" | "ipi_entry" => Shape::InterruptBegin,
        "irq_handler_exit" | "softirq_exit" | "ipi_exit" => Shape::InterruptEnd,
        "cpu_frequency" => Shape::Frequency { cpu: of("cpu_id")?, khz: of("state")? },
        "cpu_frequency_limits" => {
            Shape::Limits { cpu: of("cpu_id")?, min_khz: of("min_freq")?, max_khz: of("max_freq")? }
        }
        "cpu_idle" => Shape::Idle { cpu: of("cpu_id")?, state: of("state")? },
        "sched_pi_setprio" => Shape::Priority { tid: of("pid")?, prio: of("newprio")? },
        "sched_blocked_reason" => {
            Shape::BlockedReason { tid: of("pid")?, is_storage: of("io_wait")? }
        }
        "uclamp_util_se" | "lisa__uclamp_util_se" => {
            Shape::Clamps { tid: of("pid")?, min: of("uclamp_min")?, max: of("uclamp_max")? }
        }
        "sched_enq_deq_task" => Shape::Cpus { tid: of("pid")?, cpus: of("cpus_allowed")? },
        "cgroup_attach_task" => Shape::Attach {
            tid: of("pid")?,
            hierarchy: of("dst_root")?,
            path: of("dst_path").or(of("cname"))?,
        },
        "cpuhp_enter" => Shape::Hotplug { cpu: of("cpu")?, target: of("target")? },
        "sched_isolate" => Shape::Isolated { cpus: of("isolated_cpus")? },
        "halt_cpus" => Shape::Isolated { cpus: of("halted_cpus")? },
        "print" => Shape::Print { text: of("buf")? },
        _ if name.strip_prefix("sys_enter_").is_some_and(waits) => Shape::CallEnter { futex: None },
        _ => {
            let call = name.strip_prefix("sys_exit_")?;
            call_end(call, 0)?;
            Shape::CallExit { call: call.to_owned(), result: of("ret")? }
        }
    })
}

/// None: the bytes are too short. `Some(None)`: it says nothing.
fn what(shape: &Shape, bytes: &[u8], tid: u32, story: &mut Story) -> Option<Option<What>> {
    let number = |field: &Field| number(bytes, field);
    let thread = |field: &Field| number(field).map(|number| number as u32);
    Some(Some(match shape {
        Shape::Switch { from: [from, from_name, state], prios: [before, after], to } => {
            let known = |field: &Option<Field>| match field {
                Some(field) => number(field).map(signed_prio),
                None => Some(NO_PRIO),
            };
            What::Switch {
                from: thread(from)?,
                from_name: name(bytes, from_name, story)?,
                left: Left::from_number(number(state)?),
                to: thread(&to[0])?,
                to_name: name(bytes, &to[1], story)?,
                prios: [known(before)?, known(after)?],
            }
        }
        Shape::Waking { woken, name: field, is_late } => What::Waking {
            woken: thread(woken)?,
            name: name(bytes, field, story)?,
            is_late: *is_late,
        },
        Shape::Fork { parent, child, name: field } => What::New {
            parent: Some(thread(parent)?),
            child: thread(child)?,
            name: name(bytes, field, story)?,
            is_thread: None,
        },
        Shape::NewTask { child, name: field, flags } => What::New {
            parent: None,
            child: thread(child)?,
            name: name(bytes, field, story)?,
            is_thread: Some(number(flags)? & CLONE_THREAD != 0),
        },
        Shape::Rename { tid: other, name: field } => {
            let tid = other.as_ref().map_or(Some(tid), thread)?;
            What::Rename { tid, name: name(bytes, field, story)? }
        }
        Shape::Exec { tid, old_tid, file } => What::Exec {
            tid: thread(tid)?,
            old_tid: thread(old_tid)?,
            file: name(bytes, file, story)?,
        },
        Shape::Exit => What::Exit { tid },
        Shape::CallEnter { futex: None } => What::CallEnter { futex: None },
        Shape::CallEnter { futex: Some(address) } => {
            What::CallEnter { futex: Some(number(address)?) }
        }
        Shape::CallExit { call, result } => return Some(call_end(call, number(result)? as i64)),
        Shape::TimerBegin => What::TimerBegin,
        Shape::TimerEnd => What::TimerEnd,
        Shape::InterruptBegin => What::InterruptBegin,
        Shape::InterruptEnd => What::InterruptEnd,
        Shape::Frequency { cpu, khz } => What::frequency(number(cpu)?, number(khz)?)?,
        Shape::Limits { cpu, min_khz, max_khz } => {
            What::limits(number(cpu)?, number(min_khz)?, number(max_khz)?)?
        }
        Shape::Idle { cpu, state } => What::idle(number(cpu)?, number(state)?)?,
        Shape::Priority { tid, prio } => What::priority(thread(tid)?, signed_prio(number(prio)?)),
        Shape::BlockedReason { tid, is_storage } => {
            What::BlockedReason { tid: thread(tid)?, is_storage: number(is_storage)? != 0 }
        }
        Shape::Clamps { tid, min, max } => What::clamps(thread(tid)?, number(min)?, number(max)?)?,
        Shape::Cpus { tid, cpus } => {
            What::Asks { tid: thread(tid)?, ask: Ask::Cpus(number(cpus)? as u32) }
        }
        Shape::Attach { tid, hierarchy, path } => {
            What::attach(thread(tid)?, thread(hierarchy)?, name(bytes, path, story)?)
        }
        Shape::Hotplug { cpu, target } => {
            What::Away { cpu: u16::try_from(number(cpu)?).ok()?, is_away: number(target)? == 0 }
        }
        Shape::Isolated { cpus } => What::Isolated { cpus: number(cpus)? as u32 },
        Shape::Print { text } => {
            let bytes = bytes.get(text.offset..)?;
            let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
            return text_marks::printed(story, &String::from_utf8_lossy(text)).ok();
        }
    }))
}

/// A priority of 4 bytes, which may be -1.
fn signed_prio(number: u64) -> u8 {
    prio(i64::from(number as u32 as i32))
}

/// A number of up to 8 bytes; one of 4 is not extended.
fn number(bytes: &[u8], field: &Field) -> Option<u64> {
    let bytes = bytes.get(field.offset..field.offset.checked_add(field.size)?)?;
    (bytes.len() <= 8)
        .then(|| bytes.iter().rev().fold(0, |number, &byte| (number << 8) | u64::from(byte)))
}

fn name(bytes: &[u8], field: &Field, story: &mut Story) -> Option<Name> {
    let (offset, size) = match field.is_location {
        true => {
            let location = number(bytes, field)?;
            ((location & 0xffff) as usize, (location >> 16 & 0xffff) as usize)
        }
        false => (field.offset, field.size),
    };
    let bytes = bytes.get(offset..offset.checked_add(size)?)?;
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    Some(story.names.number(&String::from_utf8_lossy(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A description with fields behind the 8 bytes that all events begin with: names, sizes.
    fn format(name: &str, number: u16, fields: &[(&str, usize)]) -> String {
        let mut text = format!("name: {name}\nID: {number}\nformat:\n");
        let mut offset = 8;
        for (field, size) in fields {
            text += &format!("\tfield:int {field};\toffset:{offset};\tsize:{size};\tsigned:1;\n");
            offset += size;
        }
        text
    }

    /// What is told of an event with these words as its fields.
    fn read_words(format: &str, words: &[u32]) -> (Vec<What>, u64) {
        let mut decoder = Decoder::default();
        decoder.learn(format);
        let mut bytes = vec![7, 0, 0, 0, 9, 0, 0, 0];
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        let mut story = Story::of(0);
        decoder.tell(&mut story, 1000, 0, &bytes);
        (story.events.iter().map(|raw| raw.what).collect(), story.unreadable)
    }

    #[test]
    fn states_of_cores_and_threads_are_read_by_their_descriptions() {
        let of = |name, fields: &[&str], words: &[u32]| {
            let fields: Vec<(&str, usize)> = fields.iter().map(|&field| (field, 4)).collect();
            read_words(&format(name, 7, &fields), words)
        };
        let clock = What::Frequency { cpu: 4, khz: 1_100_000 };
        let idle = |state| What::Idle { cpu: 2, state };
        let limits = What::FrequencyLimits { cpu: 1, min_khz: 5, max_khz: 6 };
        let minus = -1_i32 as u32;
        for (name, fields, words, what) in [
            ("cpu_frequency", &["state", "cpu_id"][..], &[1_100_000, 4][..], clock),
            ("cpu_idle", &["state", "cpu_id"], &[1, 2], idle(Some(1))),
            ("cpu_idle", &["state", "cpu_id"], &[minus, 2], idle(None)),
            ("cpu_frequency_limits", &["min_freq", "max_freq", "cpu_id"], &[5, 6, 1], limits),
            (
                "sched_pi_setprio",
                &["pid", "oldprio", "newprio"],
                &[3, 120, minus],
                What::priority(3, super::super::event::PRIO_DEADLINE),
            ),
            (
                "sched_blocked_reason",
                &["pid", "io_wait"],
                &[3, 1],
                What::BlockedReason { tid: 3, is_storage: true },
            ),
            (
                "uclamp_util_se",
                &["pid", "uclamp_min", "uclamp_max"],
                &[3, 0, 512],
                What::Asks { tid: 3, ask: Ask::Clamps(0, 512) },
            ),
            (
                "sched_enq_deq_task",
                &["pid", "cpus_allowed"],
                &[3, 0xf0],
                What::Asks { tid: 3, ask: Ask::Cpus(0xf0) },
            ),
            ("cpuhp_enter", &["cpu", "target"], &[3, 0], What::Away { cpu: 3, is_away: true }),
            ("cpuhp_enter", &["cpu", "target"], &[3, 238], What::Away { cpu: 3, is_away: false }),
            ("sched_isolate", &["isolated_cpus"], &[3], What::Isolated { cpus: 3 }),
            ("halt_cpus", &["cpus", "halted_cpus"], &[1, 3], What::Isolated { cpus: 3 }),
        ] {
            assert_eq!(of(name, fields, words), (vec![what], 0), "{name}");
        }
        assert_eq!(of("cpu_frequency", &["state", "cpu_id"], &[1, 70_000]), (vec![], 1));
        assert_eq!(of("cpu_frequency", &["state", "cpu_id"], &[1]), (vec![], 1));
        assert_eq!(
            of("uclamp_util_se", &["pid", "uclamp_min", "uclamp_max"], &[3, 0, 1025]),
            (vec![], 1)
        );
        assert_eq!(of("cpu_frequency", &["clock"], &[1]), (vec![], 0));
    }

    #[test]
    fn moves_between_groups_are_read_by_either_name_of_the_path() {
        for key in ["dst_path", "cname"] {
            let mut text = format("cgroup_attach_task", 7, &[("dst_root", 4), ("pid", 4)]);
            text += &format!("\tfield:__data_loc char[] {key};\toffset:16;\tsize:4;\tsigned:1;\n");
            let mut decoder = Decoder::default();
            decoder.learn(&text);
            let path = 20 | 4 << 16;
            let words = [7_u32, 9, 2, 300, path, u32::from_le_bytes(*b"/bg\0")];
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let mut story = Story::of(0);
            decoder.tell(&mut story, 1, 0, &bytes);
            let name = story.names.number("/bg");
            assert_eq!(story.events[0].what, What::attach(300, 2, name), "{key}");
        }
    }

    #[test]
    fn clocks_that_a_recorder_wrote_itself_are_read() {
        let print = format("print", 7, &[("ip", 8), ("buf", 0)]);
        let text = b"cpu_frequency_devlib:  state=950000 cpu_id=1\n\0\0\0";
        let words: Vec<u32> = [0; 8]
            .iter()
            .chain(text)
            .copied()
            .collect::<Vec<u8>>()
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        assert_eq!(read_words(&print, &words), (vec![What::Frequency { cpu: 1, khz: 950_000 }], 0));
        // `X|B` is nothing of ours, `B|B` a slice without a name.
        assert_eq!(read_words(&print, &[0, 0, 0x0042_7c58]), (vec![], 0));
        assert_eq!(read_words(&print, &[0, 0, 0x0042_7c42]), (vec![], 1));
    }
}
