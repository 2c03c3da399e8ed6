//! Binary events, by the descriptions that the kernel gives of them (`events/GROUP/EVENT/format`).

use std::collections::HashMap;

use super::event::{Context, Left, Name, Raw, Story, What};
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
    Switch { from: Field, from_name: Field, state: Field, to: Field, to_name: Field },
    Waking { woken: Field, name: Field, is_late: bool },
    Fork { parent: Field, child: Field, name: Field },
    NewTask { child: Field, name: Field, flags: Field },
    Rename { tid: Option<Field>, name: Field },
    Exec { tid: Field, old_tid: Field, file: Field },
    Exit,
    CallEnter { futex: Option<Field> },
    CallExit { call: String, result: Field },
    TimerBegin,
    TimerEnd,
    Print { text: Field },
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
            from: of("prev_pid")?,
            from_name: of("prev_comm")?,
            state: of("prev_state")?,
            to: of("next_pid")?,
            to_name: of("next_comm")?,
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
        Shape::Switch { from, from_name, state, to, to_name } => What::Switch {
            from: thread(from)?,
            from_name: name(bytes, from_name, story)?,
            left: Left::from_number(number(state)?),
            to: thread(to)?,
            to_name: name(bytes, to_name, story)?,
        },
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
        Shape::Print { text } => {
            let bytes = bytes.get(text.offset..)?;
            let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
            return text_marks::what(story, &String::from_utf8_lossy(text)).ok();
        }
    }))
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
