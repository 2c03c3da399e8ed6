//! Events as text, in the ways in which the kernel, trace-cmd and perf print their fields.

use super::event::{Context, Left, Name, Raw, Story, WHOEVER_RUNS, What};
use super::text_marks::{self, Mark};
use super::text_state;

/// What a line says before its event's fields.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The thread whose turn it was.
    pub tid: u32,
    /// Its name.
    pub name: &'a str,
    /// Its process, if stated.
    pub process: Option<u32>,
    /// Where.
    pub cpu: u16,
    /// When, in ns.
    pub at_ns: u64,
    /// In what.
    pub context: Context,
}

/// Adds the event of a line to a story; events of other kinds are passed over.
pub fn tell(story: &mut Story, head: &Head<'_>, event: &str, fields: &str) {
    if let Some(process) = head.process.filter(|_| head.tid != WHOEVER_RUNS) {
        story.processes.insert(head.tid, process);
    }
    if !story.thread_names.contains_key(&head.tid) && is_name(head.name) {
        let name = story.names.number(head.name);
        story.thread_names.insert(head.tid, name);
    }
    let event_name = story.names.number(event);
    *story.met.entry(event_name).or_default() += 1;
    match what(story, head, event, fields) {
        Read::Event(what) => {
            let Head { tid, cpu, at_ns, context, .. } = *head;
            story.push(Raw { at_ns, cpu, tid, context, what });
        }
        Read::Broken => {
            if story.first_unreadable.is_empty() {
                let line = format!("{event}: {fields}");
                story.first_unreadable = line.chars().take(SHOWN).collect();
            }
            story.unreadable += 1;
        }
        Read::Other => {}
    }
}

/// Letters that are shown of what cannot be read (ours).
const SHOWN: usize = 160;

/// Whether a tracer knew the name: `<...>`, `<1234>` and perf's `:1234` stand for one that it did not know.
fn is_name(name: &str) -> bool {
    let number = name.strip_prefix(':').unwrap_or_default();
    !name.is_empty()
        && !name.starts_with('<')
        && (number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
}

/// What became of a line.
enum Read {
    Event(What),
    Other,
    Broken,
}

impl From<Option<What>> for Read {
    fn from(what: Option<What>) -> Self {
        what.map_or(Self::Broken, Self::Event)
    }
}

fn what(story: &mut Story, head: &Head<'_>, event: &str, fields: &str) -> Read {
    match event {
        "sched_switch" => switch(story, fields).into(),
        "sched_waking" => waking(story, fields, false).into(),
        "sched_wakeup" => waking(story, fields, true).into(),
        "sched_process_fork" => fork(story, fields).into(),
        "task_newtask" => new_task(story, fields).into(),
        "task_rename" => rename(story, head, fields).into(),
        "sched_process_exec" => exec(story, fields).into(),
        "sched_process_exit" => Read::Event(What::Exit { tid: head.tid }),
        "hrtimer_expire_entry" => Read::Event(What::TimerBegin),
        "hrtimer_expire_exit" => Read::Event(What::TimerEnd),
        "irq_handler_entry" | "softirq_entry" | "ipi_entry" => Read::Event(What::InterruptBegin),
        "irq_handler_exit" | "softirq_exit" | "ipi_exit" => Read::Event(What::InterruptEnd),
        "cgroup_attach_task" => text_state::attach(&mut story.names, fields).into(),
        "print" | "tracing_mark_write" => marked(story, head, fields),
        _ => match text_state::what(event, fields) {
            Some(found) => found.into(),
            None => call(event, fields),
        },
    }
}

/// A slice tells the thread's process, too.
fn marked(story: &mut Story, head: &Head<'_>, fields: &str) -> Read {
    if let Mark::Begin { process: Some(process), .. } = text_marks::mark(fields) {
        story.processes.entry(head.tid).or_insert(process);
    }
    text_marks::printed(story, fields)
        .map_or(Read::Broken, |what| what.map_or(Read::Other, Read::Event))
}

/// The number behind `key=` in fields, by the last occurrence, for names may hold anything.
fn number(fields: &str, key: &str) -> Option<u32> {
    let (_, rest) = fields.rsplit_once(key)?;
    rest.split([' ', ')', ',']).next()?.parse().ok()
}

/// What stands between two texts.
fn between<'a>(fields: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let (_, rest) = fields.split_once(from)?;
    rest.rsplit_once(to).map(|(text, _)| text)
}

/// `NAME:TID [PRIORITY]REST`, as trace-cmd and perf print a thread; the rest behind the bracket.
fn arrow_side(side: &str) -> Option<(&str, u32, &str)> {
    let (head, rest) = side.rsplit_once(" [")?;
    let (name, tid) = head.rsplit_once(':')?;
    let (_, rest) = rest.split_once(']')?;
    Some((name, tid.trim().parse().ok()?, rest.trim()))
}

/// Raw fields (`trace-cmd report -R`) have no arrow between the two threads, and the state as a number.
fn switch(story: &mut Story, fields: &str) -> Option<What> {
    let is_named = fields.starts_with("prev_comm=");
    let raw = || fields.rfind(" next_comm=").filter(|_| is_named).map(|at| fields.split_at(at));
    let (from, to) = fields.split_once(" ==> ").or_else(raw)?;
    let (from_name, from_tid, left, to_name, to_tid) = if is_named {
        let name = between(from, "prev_comm=", " prev_pid=")?;
        let state = from.rsplit_once("prev_state=")?.1;
        let to_name = between(to, "next_comm=", " next_pid=")?;
        (name, number(from, "prev_pid=")?, state, to_name, number(to, "next_pid=")?)
    } else {
        let (name, tid, state) = arrow_side(from)?;
        let (to_name, to_tid, _) = arrow_side(to)?;
        (name, tid, state, to_name, to_tid)
    };
    Some(What::Switch {
        from: from_tid,
        from_name: story.names.number(from_name),
        left: left.trim().parse().map_or_else(|_| Left::from_letters(left), Left::from_number),
        to: to_tid,
        to_name: story.names.number(to_name),
        prios: [text_state::prio_of(from), text_state::prio_of(to)],
    })
}

fn waking(story: &mut Story, fields: &str, is_late: bool) -> Option<What> {
    let (name, woken) = if fields.starts_with("comm=") {
        (between(fields, "comm=", " pid=")?, number(fields, " pid=")?)
    } else {
        let (name, tid, _) = arrow_side(fields)?;
        (name, tid)
    };
    Some(What::Waking { woken, name: story.names.number(name), is_late })
}

fn fork(story: &mut Story, fields: &str) -> Option<What> {
    let (parent, child) = fields.split_once(" child_comm=")?;
    let name = child.rsplit_once(" child_pid=")?.0;
    let parent = number(parent, "pid=");
    let child_tid = number(child, " child_pid=")?;
    Some(What::New { parent, child: child_tid, name: story.names.number(name), is_thread: None })
}

/// `CLONE_THREAD` (include/uapi/linux/sched.h).
pub const CLONE_THREAD: u64 = 0x0001_0000;

fn new_task(story: &mut Story, fields: &str) -> Option<What> {
    let name = between(fields, " comm=", " clone_flags=")?;
    let (_, flags) = fields.rsplit_once(" clone_flags=")?;
    let flags = hex(flags.split(' ').next()?)?;
    let child = number(fields.split(" comm=").next()?, "pid=")?;
    let is_thread = Some(flags & CLONE_THREAD != 0);
    Some(What::New { parent: None, child, name: story.names.number(name), is_thread })
}

/// Newer kernels leave the number out: a thread renames itself.
fn rename(story: &mut Story, head: &Head<'_>, fields: &str) -> Option<What> {
    let name = between(fields, " newcomm=", " oom_score_adj=")?;
    let tid = match fields.split_once(" oldcomm=") {
        Some((before, _)) => number(before, "pid=")?,
        None => head.tid,
    };
    Some(What::Rename { tid, name: story.names.number(name) })
}

fn exec(story: &mut Story, fields: &str) -> Option<What> {
    let file: Name = story.names.number(between(fields, "filename=", " pid=")?);
    let (tid, old_tid) = (number(fields, " pid=")?, number(fields, " old_pid=")?);
    Some(What::Exec { tid, old_tid, file })
}

/// Hexadecimal digits with or without `0x`.
fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

/// System calls: `sys_futex(uaddr: A, ...)` and `sys_futex -> 0x0` of the kernel's text, `sys_enter_futex` with its
/// fields and `sys_exit_futex` with a result of the others.
fn call(event: &str, fields: &str) -> Read {
    let (name, is_enter) = match (event.strip_prefix("sys_enter_"), event.strip_prefix("sys_exit_"))
    {
        (Some(name), _) => (name, true),
        (_, Some(name)) => (name, false),
        _ => return Read::Other,
    };
    if is_enter {
        return match name {
            "futex" => match fields.split_once("uaddr") {
                Some((_, rest)) => {
                    let rest = rest.trim_start_matches([':', '=', ' ']);
                    let address = rest.split([',', ')', ' ']).next().and_then(hex);
                    address.map(|address| What::CallEnter { futex: Some(address) }).into()
                }
                None => Read::Broken,
            },
            _ if waits(name) => Read::Event(What::CallEnter { futex: None }),
            _ => Read::Other,
        };
    }
    match exit(name, fields.trim()) {
        Some(what) => Read::Event(what),
        None => Read::Other,
    }
}

/// The end of a call whose result is hexadecimal, alone or as the last raw field.
fn exit(name: &str, result: &str) -> Option<What> {
    let result = result.rsplit_once("ret=").map_or(result, |(_, result)| result);
    let value = match result.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()? as i64,
        None => result.parse().ok()?,
    };
    call_end(name, value)
}

/// `ETIMEDOUT` (include/uapi/asm-generic/errno.h).
const TIMED_OUT: i64 = -110;
/// Calls that return 0 if their time is over.
const POLLS: [&str; 7] =
    ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"];
/// Calls that do nothing but wait for a time.
const SLEEPS: [&str; 2] = ["nanosleep", "clock_nanosleep"];

/// Whether a call may end because its time was over, futexes' aside.
pub fn waits(name: &str) -> bool {
    POLLS.contains(&name) || SLEEPS.contains(&name)
}

/// What the end of a call tells.
pub fn call_end(name: &str, result: i64) -> Option<What> {
    match name {
        "futex" if result == TIMED_OUT => Some(What::TimedOut),
        _ if waits(name) && result == 0 => Some(What::TimedOut),
        _ if name == "futex" || waits(name) => Some(What::CallExit),
        _ => None,
    }
}

/// `SECONDS.FRACTION` in ns; the fraction may have any number of digits.
pub fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let digits = fraction.as_bytes();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let ns = (0..9).fold(0, |ns, place| {
        ns * 10 + digits.get(place).map_or(0, |digit| u64::from(digit - b'0'))
    });
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// Splits `SECONDS.FRACTION: EVENT: FIELDS` (the event may have its group before it, and the time since the line above
/// in brackets). None: it is something else.
pub fn timed(rest: &str) -> Option<(u64, &str, &str)> {
    let (time, rest) = rest.split_once(": ")?;
    let at_ns = nanoseconds(time.trim())?;
    let rest = rest.trim_start();
    let since = rest.strip_prefix("(+").and_then(|rest| rest.split_once(')'));
    let (event, fields) = event(since.map_or(rest, |(_, rest)| rest.trim_start()));
    Some((at_ns, event, fields))
}

/// Splits `EVENT: FIELDS` or, as perf prints it, `GROUP:EVENT: FIELDS`; without an event, all are fields: the end of a
/// call, as the kernel prints it (`sys_futex -> 0x0`), or what perf was told to print so.
pub fn event(rest: &str) -> (&str, &str) {
    let (event, fields) = match rest.split_once(':') {
        Some((event, fields)) if is_word(event) => (event, fields),
        _ => return ("", rest),
    };
    match fields.split_once(':') {
        Some((name, fields)) if is_word(name) && !fields.is_empty() => (name, fields.trim()),
        _ => (event, fields.trim()),
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// The kernel's own way of printing calls: `sys_NAME(FIELDS)` and `sys_NAME -> RESULT`, as event and fields.
pub fn kernel_call(rest: &str) -> Option<(String, &str)> {
    let name = rest.strip_prefix("sys_")?;
    if let Some((name, result)) = name.split_once(" -> ") {
        return is_word(name).then(|| (format!("sys_exit_{name}"), result));
    }
    let (name, fields) = name.split_once('(')?;
    is_word(name).then(|| (format!("sys_enter_{name}"), fields))
}

/// Lines of a text, each without what is not UTF-8 in it and without the `\r` of other systems' ends of lines.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = std::borrow::Cow<'_, str>> {
    bytes.split(|&byte| byte == b'\n').map(|line| {
        let end = line.iter().rposition(|&byte| byte != b'\r').map_or(0, |last| last + 1);
        String::from_utf8_lossy(&line[..end])
    })
}

/// The first lines of what may be a text; none if it is not.
pub fn first_lines(bytes: &[u8]) -> Option<Vec<std::borrow::Cow<'_, str>>> {
    let first = &bytes[..bytes.len().min(1 << 16)];
    let is_text = !first.contains(&0);
    is_text.then(|| lines(first).collect())
}
