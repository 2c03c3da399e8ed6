//! Perfetto's protobuf with events of ftrace (<https://perfetto.dev/docs/reference/trace-packet-proto>).
//!
//! Only what is read of its messages is declared. Texts are bytes, for the kernel's names need not be UTF-8.

use ampsched_model::InputError;
use flate2::read::ZlibDecoder;
use prost::Message;

use super::event::{Context, Left, NO_PRIO, Name, Raw, Story, WHOEVER_RUNS, What, prio};
use super::format::context;
use super::text::CLONE_THREAD;
use super::text_marks;

/// Whether bytes look like packets of a trace: field 1 with a length.
pub fn is_form(bytes: &[u8]) -> bool {
    bytes.first() == Some(&0x0a) && field(bytes).is_some()
}

/// Numbers that Android gives to users that it makes for apps, and how many numbers each of its own users has
/// (system/core/libcutils/include/private/android_filesystem_config.h).
const APPS: std::ops::Range<i32> = 10_000..20_000;
const USERS: i32 = 100_000;

macro_rules! message {
    ($(#[doc = $doc:literal] $name:ident { $($field:ident: $type:ty = [$($attribute:tt)*];)+ })+) => {
        $(#[doc = $doc] #[derive(Clone, PartialEq, Message)] struct $name {
            $(#[prost($($attribute)*)] $field: $type,)+
        })+
    };
}

message! {
    /// `TracePacket`.
    Packet {
        ftrace: Option<Bundle> = [message, optional, tag = "1"];
        processes: Option<Processes> = [message, optional, tag = "2"];
        track_event: Option<Nothing> = [message, optional, tag = "11"];
        system: Option<System> = [message, optional, tag = "45"];
        packed: Option<Vec<u8>> = [bytes = "vec", optional, tag = "50"];
    }
    /// A message of which nothing is read.
    Nothing {
        unused: Option<u32> = [uint32, optional, tag = "536870911"];
    }
    /// `SystemInfo`.
    System {
        name: Option<SystemName> = [message, optional, tag = "1"];
    }
    /// `Utsname`.
    SystemName {
        release: Vec<u8> = [bytes = "vec", tag = "3"];
    }
    /// `ProcessTree`.
    Processes {
        processes: Vec<Process> = [message, repeated, tag = "1"];
        threads: Vec<Thread> = [message, repeated, tag = "2"];
    }
    /// `ProcessTree.Process`.
    Process {
        pid: i32 = [int32, tag = "1"];
        parent: i32 = [int32, tag = "2"];
        command: Vec<Vec<u8>> = [bytes = "vec", repeated, tag = "3"];
        user: i32 = [int32, tag = "5"];
        is_of_kernel: bool = [bool, tag = "8"];
    }
    /// `ProcessTree.Thread`.
    Thread {
        tid: i32 = [int32, tag = "1"];
        name: Vec<u8> = [bytes = "vec", tag = "2"];
        process: i32 = [int32, tag = "3"];
    }
    /// `FtraceEventBundle`.
    Bundle {
        cpu: u32 = [uint32, tag = "1"];
        events: Vec<Event> = [message, repeated, tag = "2"];
        has_lost: bool = [bool, tag = "3"];
        compact: Option<Compact> = [message, optional, tag = "4"];
    }
    /// `FtraceEventBundle.CompactSched`.
    Compact {
        switch_times: Vec<u64> = [uint64, repeated, tag = "1"];
        switch_states: Vec<i64> = [int64, repeated, tag = "2"];
        switch_tids: Vec<i32> = [int32, repeated, tag = "3"];
        switch_prios: Vec<i32> = [int32, repeated, tag = "4"];
        names: Vec<Vec<u8>> = [bytes = "vec", repeated, tag = "5"];
        switch_names: Vec<u32> = [uint32, repeated, tag = "6"];
        waking_times: Vec<u64> = [uint64, repeated, tag = "7"];
        waking_tids: Vec<i32> = [int32, repeated, tag = "8"];
        waking_names: Vec<u32> = [uint32, repeated, tag = "11"];
        waking_flags: Vec<u32> = [uint32, repeated, tag = "12"];
    }
    /// `FtraceEvent`.
    Event {
        at_ns: u64 = [uint64, tag = "1"];
        tid: u32 = [uint32, tag = "2"];
        flags: Option<u32> = [uint32, optional, tag = "5"];
        print: Option<Print> = [message, optional, tag = "3"];
        switch: Option<Switch> = [message, optional, tag = "4"];
        frequency: Option<OfCore> = [message, optional, tag = "11"];
        limits: Option<Limits> = [message, optional, tag = "12"];
        idle: Option<OfCore> = [message, optional, tag = "13"];
        wakeup: Option<Waking> = [message, optional, tag = "17"];
        blocked: Option<BlockedReason> = [message, optional, tag = "18"];
        plugged: Option<Plugged> = [message, optional, tag = "19"];
        waking: Option<Waking> = [message, optional, tag = "20"];
        ipi_begin: Option<Nothing> = [message, optional, tag = "21"];
        ipi_end: Option<Nothing> = [message, optional, tag = "22"];
        soft_begin: Option<Nothing> = [message, optional, tag = "24"];
        soft_end: Option<Nothing> = [message, optional, tag = "25"];
        handler_begin: Option<Nothing> = [message, optional, tag = "36"];
        handler_end: Option<Nothing> = [message, optional, tag = "37"];
        attach: Option<Attach> = [message, optional, tag = "67"];
        new_task: Option<NewTask> = [message, optional, tag = "235"];
        rename: Option<Rename> = [message, optional, tag = "236"];
        exec: Option<Exec> = [message, optional, tag = "237"];
        exit: Option<Exit> = [message, optional, tag = "238"];
        fork: Option<Fork> = [message, optional, tag = "239"];
        priority: Option<Priority> = [message, optional, tag = "353"];
        hotplug: Option<Hotplug> = [message, optional, tag = "345"];
        timer_begin: Option<Nothing> = [message, optional, tag = "553"];
        timer_end: Option<Nothing> = [message, optional, tag = "554"];
    }
    /// `PrintFtraceEvent`.
    Print {
        text: Vec<u8> = [bytes = "vec", tag = "2"];
    }
    /// `SchedSwitchFtraceEvent`.
    Switch {
        from_name: Vec<u8> = [bytes = "vec", tag = "1"];
        from: i32 = [int32, tag = "2"];
        from_prio: Option<i32> = [int32, optional, tag = "3"];
        state: i64 = [int64, tag = "4"];
        to_name: Vec<u8> = [bytes = "vec", tag = "5"];
        to: i32 = [int32, tag = "6"];
        to_prio: Option<i32> = [int32, optional, tag = "7"];
    }
    /// `CpuFrequencyFtraceEvent`, `CpuIdleFtraceEvent`.
    OfCore {
        state: u32 = [uint32, tag = "1"];
        cpu: u32 = [uint32, tag = "2"];
    }
    /// `CpuFrequencyLimitsFtraceEvent`.
    Limits {
        min_khz: u32 = [uint32, tag = "1"];
        max_khz: u32 = [uint32, tag = "2"];
        cpu: u32 = [uint32, tag = "3"];
    }
    /// `SchedBlockedReasonFtraceEvent`.
    BlockedReason {
        tid: i32 = [int32, tag = "1"];
        is_storage: u32 = [uint32, tag = "3"];
    }
    /// `SchedPiSetprioFtraceEvent`.
    Priority {
        prio: i32 = [int32, tag = "2"];
        tid: i32 = [int32, tag = "4"];
    }
    /// `SchedCpuHotplugFtraceEvent`.
    Plugged {
        cpu: u32 = [uint32, tag = "1"];
        error: i32 = [int32, tag = "2"];
        status: i32 = [int32, tag = "3"];
    }
    /// `CpuhpEnterFtraceEvent`.
    Hotplug {
        cpu: u32 = [uint32, tag = "1"];
        target: i32 = [int32, tag = "4"];
    }
    /// `CgroupAttachTaskFtraceEvent`.
    Attach {
        hierarchy: i32 = [int32, tag = "1"];
        tid: i32 = [int32, tag = "3"];
        name: Vec<u8> = [bytes = "vec", tag = "5"];
        path: Vec<u8> = [bytes = "vec", tag = "7"];
    }
    /// `SchedWakingFtraceEvent`, `SchedWakeupFtraceEvent`.
    Waking {
        name: Vec<u8> = [bytes = "vec", tag = "1"];
        tid: i32 = [int32, tag = "2"];
    }
    /// `TaskNewtaskFtraceEvent`.
    NewTask {
        tid: i32 = [int32, tag = "1"];
        name: Vec<u8> = [bytes = "vec", tag = "2"];
        flags: u64 = [uint64, tag = "3"];
    }
    /// `TaskRenameFtraceEvent`.
    Rename {
        tid: i32 = [int32, tag = "1"];
        name: Vec<u8> = [bytes = "vec", tag = "3"];
    }
    /// `SchedProcessExecFtraceEvent`.
    Exec {
        file: Vec<u8> = [bytes = "vec", tag = "1"];
        tid: i32 = [int32, tag = "2"];
        old_tid: i32 = [int32, tag = "3"];
    }
    /// `SchedProcessExitFtraceEvent`.
    Exit {
        tid: i32 = [int32, tag = "2"];
    }
    /// `SchedProcessForkFtraceEvent`.
    Fork {
        parent: i32 = [int32, tag = "2"];
        name: Vec<u8> = [bytes = "vec", tag = "3"];
        child: i32 = [int32, tag = "4"];
    }
}

#[derive(Default)]
struct Reader {
    story: Story,
    bundles: u64,
    track_events: u64,
}

/// Reads a trace. Errors: it has no events of ftrace.
pub fn read(file: &str, bytes: &[u8]) -> Result<Story, InputError> {
    let mut reader = Reader { story: Story::of(bytes.len()), ..Reader::default() };
    reader.packets(bytes, true);
    if reader.bundles == 0 {
        let hint =
            "record the data source linux.ftrace with sched/sched_switch and sched/sched_waking";
        let message = match reader.track_events {
            0 => "has no packet with events of ftrace".to_owned(),
            count => format!(
                "has {count} track events, as traces of simulations have, and none of the kernel's scheduler"
            ),
        };
        return Err(InputError::new(file, "", message).with_hint(hint));
    }
    Ok(reader.story)
}

/// Field, its bytes and the rest, of a field with a length.
fn field(bytes: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let mut rest = bytes;
    let (tag, kind) = prost::encoding::decode_key(&mut rest).ok()?;
    if kind != prost::encoding::WireType::LengthDelimited {
        return None;
    }
    let length = usize::try_from(prost::encoding::decode_varint(&mut rest).ok()?).ok()?;
    let data = rest.get(..length)?;
    Some((tag, data, &rest[length..]))
}

impl Reader {
    fn packets(&mut self, mut bytes: &[u8], may_unpack: bool) {
        while let Some((tag, data, rest)) = field(bytes) {
            bytes = rest;
            match (tag, Packet::decode(data)) {
                (1, Ok(packet)) => self.packet(packet, may_unpack),
                (1, Err(_)) => self.story.unreadable += 1,
                _ => {}
            }
        }
        if !bytes.is_empty() {
            self.story.unreadable += 1;
        }
    }

    fn packet(&mut self, packet: Packet, may_unpack: bool) {
        self.track_events += u64::from(packet.track_event.is_some());
        if let Some(packed) = packet.packed.filter(|_| may_unpack) {
            let (bytes, is_whole) = self.story.unpack(ZlibDecoder::new(packed.as_slice()));
            self.story.unreadable += u64::from(!is_whole);
            self.packets(&bytes, false);
        }
        if let Some(name) = packet.system.and_then(|system| system.name) {
            self.story.kernel = String::from_utf8_lossy(&name.release).into_owned();
        }
        if let Some(processes) = packet.processes {
            self.processes(&processes);
        }
        if let Some(bundle) = packet.ftrace {
            self.bundles += 1;
            self.bundle(&bundle);
        }
    }

    fn processes(&mut self, found: &Processes) {
        let story = &mut self.story;
        for process in &found.processes {
            let pid = process.pid as u32;
            story.processes.insert(pid, pid);
            // The kernel's own threads are children of kthreadd, which is number 2.
            if process.is_of_kernel || process.parent == 2 || process.pid == 2 {
                story.of_kernel.insert(pid);
            }
            if APPS.contains(&(process.user % USERS)) {
                story.apps.insert(pid);
            }
            if let Some(file) = process.command.first() {
                let text = String::from_utf8_lossy(file);
                let name = story.names.number(text.rsplit('/').next().unwrap_or_default());
                story.thread_names.entry(pid).or_insert(name);
                story.process_names.insert(pid, name);
            }
        }
        for thread in &found.threads {
            story.processes.insert(thread.tid as u32, thread.process as u32);
            if !thread.name.is_empty() {
                let name = story.names.number(&String::from_utf8_lossy(&thread.name));
                story.thread_names.insert(thread.tid as u32, name);
            }
        }
    }

    fn name(&mut self, bytes: &[u8]) -> Name {
        self.story.names.number(&String::from_utf8_lossy(bytes))
    }

    fn bundle(&mut self, bundle: &Bundle) {
        let Ok(cpu) = u16::try_from(bundle.cpu) else {
            self.story.unreadable += 1;
            return;
        };
        let compact = bundle.compact.as_ref();
        if bundle.has_lost {
            let first = bundle.events.first().map(|event| event.at_ns);
            let times = compact
                .into_iter()
                .flat_map(|compact| [&compact.switch_times, &compact.waking_times]);
            let at_ns = times
                .filter_map(|times| times.first().copied())
                .chain(first)
                .min()
                .unwrap_or_default();
            let what = What::Lost { events: 1 };
            self.story.push(Raw { at_ns, cpu, tid: 0, context: Context::Unknown, what });
        }
        for event in &bundle.events {
            if let Some(what) = self.what(event) {
                let context = event.flags.map_or(Context::Unknown, |flags| context(flags as u8));
                self.story.push(Raw { at_ns: event.at_ns, cpu, tid: event.tid, context, what });
            }
        }
        if let Some(compact) = compact {
            self.compact(cpu, compact);
        }
    }

    /// Columns of switches and of wake-ups; times are by those before them.
    fn compact(&mut self, cpu: u16, compact: &Compact) {
        let names: Vec<Name> = compact.names.iter().map(|name| self.name(name)).collect();
        let name = |index: &u32| names.get(*index as usize).copied().unwrap_or_default();
        let mut at_ns = 0_u64;
        let states =
            compact.switch_states.iter().zip(&compact.switch_tids).zip(&compact.switch_names);
        for (row, (time, ((state, tid), to_name))) in
            compact.switch_times.iter().zip(states).enumerate()
        {
            at_ns = at_ns.wrapping_add(*time);
            let what = What::Switch {
                from: WHOEVER_RUNS,
                from_name: Name::default(),
                left: Left::from_number(*state as u64),
                to: *tid as u32,
                to_name: name(to_name),
                prios: [NO_PRIO, known(compact.switch_prios.get(row))],
            };
            self.story.push(Raw { at_ns, cpu, tid: WHOEVER_RUNS, context: Context::Thread, what });
        }
        let mut at_ns = 0_u64;
        let rows = compact.waking_times.iter().zip(&compact.waking_tids).zip(&compact.waking_names);
        for (row, ((time, tid), waking_name)) in rows.enumerate() {
            at_ns = at_ns.wrapping_add(*time);
            let what = What::Waking { woken: *tid as u32, name: name(waking_name), is_late: false };
            let flags = compact.waking_flags.get(row);
            let context = flags.map_or(Context::Unknown, |&flags| context(flags as u8));
            self.story.push(Raw { at_ns, cpu, tid: WHOEVER_RUNS, context, what });
        }
    }

    fn what(&mut self, event: &Event) -> Option<What> {
        if let Some(switch) = &event.switch {
            return Some(What::Switch {
                from: switch.from as u32,
                from_name: self.name(&switch.from_name),
                left: Left::from_number(switch.state as u64),
                to: switch.to as u32,
                to_name: self.name(&switch.to_name),
                prios: [known(switch.from_prio.as_ref()), known(switch.to_prio.as_ref())],
            });
        }
        if let Some(waking) = event.waking.as_ref().or(event.wakeup.as_ref()) {
            let name = self.name(&waking.name);
            return Some(What::Waking {
                woken: waking.tid as u32,
                name,
                is_late: event.waking.is_none(),
            });
        }
        if let Some(task) = &event.new_task {
            let (name, is_thread) = (self.name(&task.name), Some(task.flags & CLONE_THREAD != 0));
            return Some(What::New { parent: None, child: task.tid as u32, name, is_thread });
        }
        if let Some(fork) = &event.fork {
            let name = self.name(&fork.name);
            let parent = Some(fork.parent as u32);
            return Some(What::New { parent, child: fork.child as u32, name, is_thread: None });
        }
        if let Some(rename) = &event.rename {
            return Some(What::Rename { tid: rename.tid as u32, name: self.name(&rename.name) });
        }
        if let Some(exec) = &event.exec {
            let file = self.name(&exec.file);
            return Some(What::Exec { tid: exec.tid as u32, old_tid: exec.old_tid as u32, file });
        }
        if event.exit.is_some() {
            return Some(What::Exit { tid: event.tid });
        }
        if let Some(print) = &event.print {
            let told = text_marks::printed(&mut self.story, &String::from_utf8_lossy(&print.text));
            self.story.unreadable += u64::from(told.is_err());
            return told.ok().flatten();
        }
        interrupt(event).or_else(|| self.remark(event))
    }

    /// What is told of cores and priorities.
    fn remark(&mut self, event: &Event) -> Option<What> {
        let told = if let Some(found) = &event.frequency {
            What::frequency(found.cpu.into(), found.state.into())
        } else if let Some(found) = &event.idle {
            What::idle(found.cpu.into(), found.state.into())
        } else if let Some(found) = &event.limits {
            What::limits(found.cpu.into(), found.min_khz.into(), found.max_khz.into())
        } else if let Some(found) = &event.blocked {
            let is_storage = found.is_storage != 0;
            Some(What::BlockedReason { tid: found.tid as u32, is_storage })
        } else if let Some(found) = &event.attach {
            let path = if found.path.is_empty() { &found.name } else { &found.path };
            let path = self.name(path);
            Some(What::attach(found.tid as u32, found.hierarchy as u32, path))
        } else if let Some(found) = &event.hotplug {
            away(found.cpu, found.target == 0)
        } else if let Some(found) = event.plugged.as_ref().filter(|found| found.error == 0) {
            away(found.cpu, found.status == 0)
        } else {
            let found = event.priority.as_ref()?;
            Some(What::priority(found.tid as u32, prio(found.prio.into())))
        };
        self.story.unreadable += u64::from(told.is_none());
        told
    }
}

/// The begin or the end of an interrupt, if it is one.
fn interrupt(event: &Event) -> Option<What> {
    let is_any = |events: [&Option<Nothing>; 3]| events.iter().any(|told| told.is_some());
    let what = [
        (event.timer_begin.is_some(), What::TimerBegin),
        (event.timer_end.is_some(), What::TimerEnd),
        (is_any([&event.ipi_begin, &event.soft_begin, &event.handler_begin]), What::InterruptBegin),
        (is_any([&event.ipi_end, &event.soft_end, &event.handler_end]), What::InterruptEnd),
    ];
    what.iter().find(|(is, _)| *is).map(|(_, what)| *what)
}

/// A core is taken away or given back.
fn away(cpu: u32, is_away: bool) -> Option<What> {
    Some(What::Away { cpu: u16::try_from(cpu).ok()?, is_away })
}

/// A priority, if it is told.
fn known(told: Option<&i32>) -> u8 {
    told.map_or(NO_PRIO, |&number| prio(number.into()))
}
