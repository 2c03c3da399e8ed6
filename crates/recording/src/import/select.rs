//! Of all threads of a trace those that are wanted, as a recording.

use std::collections::HashMap;

use ampsched_model::InputError;

use super::asked::asked;
use super::cgroups::Cgroups;
use super::clocks::Clocks;
use super::event::{PRIO_DEADLINE, Story, What};
use super::missing::{missing, prios};
use super::stream::{Builder, Built, SPEED_UNITS};
use super::track::Track;
use super::{Options, away, frames, lacking, naming};
use crate::model::PRIO_USUAL;
use crate::{Clocked, Core, Event, Info, Kind, Recording, Thread, Wake};

/// Beginnings of names of the kernel's own threads (ours, from kernels 3.16 to 7.3): what forms without a list leave.
const KERNEL_NAMES: &[&str] = &[
    "swapper",
    "kthreadd",
    "ksoftirqd/",
    "kworker/",
    "migration/",
    "rcu_",
    "rcuc/",
    "rcub/",
    "rcuog/",
    "rcuop/",
    "rcuos/",
    "cpuhp/",
    "idle_inject/",
    "irq/",
    "irq_work/",
    "kswapd",
    "kcompactd",
    "khugepaged",
    "ksmd",
    "kauditd",
    "khungtaskd",
    "oom_reaper",
    "writeback",
    "kdevtmpfs",
    "jbd2/",
    "ext4-rsv-conver",
    "xfsaild/",
    "xfs-",
    "scsi_eh_",
    "scsi_tmf_",
    "nvme",
    "watchdog",
    "watchdogd",
    "pool_workqueue_",
    "netns",
    "inet_frag_wq",
    "kblockd",
    "ktimers/",
    "backlog_napi/",
    "napi/",
    "hwrng",
    "psimon",
    "sugov:",
    "dmcrypt",
    "loop",
    "md",
    "btrfs-",
    "kstrp",
    "cryptd",
    "edac-poller",
    "ata_sff",
    "mm_percpu_wq",
    "slub_flushwq",
    "kvm",
    "vhost-",
    "cfinteractive",
    "sched_ext_",
];
/// Programs that record traces.
const TRACERS: &[&str] =
    &["perf", "trace-cmd", "perfetto", "traced", "traced_probes", "lttng", "lttng-sessiond"];
const TRACER_BEGINNINGS: &[&str] = &["lttng-", "perf-", "perf_"];

/// Makes a recording of what a trace has told, with the kernel's numbers of the threads and its clock.
pub fn clocked(file: &str, mut story: Story, options: &Options) -> Result<Clocked, InputError> {
    if !story.events.iter().any(|raw| matches!(raw.what, What::Switch { .. })) {
        return Err(lacking::of_switches(file, &story));
    }
    story.sort();
    let speeds: Vec<u64> = options.relative_speeds(file)?;
    let names = std::mem::take(&mut story.names);
    let clocks = Clocks::of(&story.events, &speeds, options);
    let mut builder = Builder::new(&names, &clocks, options.window.as_ref());
    for raw in &story.events {
        builder.tell(raw);
    }
    let frames = frames::marked(&story.events, &names);
    let away = away::sentence(&story.events);
    story.events = Vec::new();
    let mut told = builder.finish();
    for track in &mut told.tracks {
        if let Some(&name) = story.thread_names.get(&track.tid).filter(|_| track.names.is_empty()) {
            track.name = name;
            track.names.push(name);
        }
    }
    let text = |track: &Track| names.text(track.name).to_owned();
    clocks.check(file, told.cores)?;
    if !speeds.is_empty() && speeds.len() < told.cores {
        let message = format!("{} speeds for {} cores", speeds.len(), told.cores);
        return Err(InputError::new(file, "speeds", message)
            .with_hint("state one per core, the first that of core 0"));
    }
    let processes = processes(&told.tracks, &story);
    let all_names: Vec<Vec<&str>> = told
        .tracks
        .iter()
        .map(|track| track.names.iter().map(|&name| names.text(name)).collect())
        .collect();
    let chosen = choose(&told.tracks, &all_names, &processes, &story, options);
    if chosen.is_empty() && options.window.is_none() {
        return Err(nothing(file, &told.tracks, &all_names, options));
    }
    let order = order(&told.tracks, &chosen);
    let since_ns = options.window.as_ref().map(|window| window.since_ns);
    let cgroups = match options.cgroups.1.as_str() {
        "" => None,
        text => Some(Cgroups::parse(&options.cgroups.0, text)?),
    };
    let mut found = asked(&told.tracks, &order, &processes, &names, cgroups.as_ref(), told.cores);
    let (mut threads, origin_ns, end_ns) =
        threads(&told.tracks, &order, &processes, since_ns, text);
    for (thread, asks) in threads.iter_mut().zip(std::mem::take(&mut found.asks)) {
        thread.asks = asks;
    }
    let tids: Vec<u32> = order.iter().map(|&index| told.tracks[index].tid).collect();
    let mut info = info(&told, &story, options, &order, &speeds, end_ns.saturating_sub(origin_ns));
    info.unknown.extend(clocks.unknown(told.cores));
    info.clocks.clone_from(&clocks.held);
    info.unknown.extend(prios(order.iter().map(|&index| &told.tracks[index]), &threads));
    info.unknown.extend(found.unknown);
    info.unknown.extend(away);
    info.groups = found.groups;
    info.frames = frames::placed(frames, &tids, origin_ns);
    if info.name.is_empty() {
        info.name =
            naming::of_most_time(&threads, &order, &told.tracks, &processes, &story, &names);
    }
    let recording = Recording { info, threads, is_cut_off: false }.checked(file)?;
    Ok(Clocked { recording, tids, origin_ns })
}

/// The process of each track, by the number of its first thread.
fn processes(tracks: &[Track], story: &Story) -> Vec<u32> {
    let mut processes: Vec<u32> = Vec::with_capacity(tracks.len());
    for track in tracks {
        let stated = track.process.or_else(|| story.processes.get(&track.tid).copied());
        let of_parent = track.parent.and_then(|parent| processes.get(parent as usize)).copied();
        let is_own = track.is_thread == Some(false) || track.has_executed;
        processes.push(match (track.is_thread, stated, of_parent) {
            (Some(true), _, Some(process)) => process,
            (_, Some(process), _) => process,
            (_, None, Some(process)) if !is_own => process,
            _ => track.tid,
        });
    }
    processes
}

fn is_of_kernel(track: &Track, names: &[&str], story: &Story) -> bool {
    let is_named = |name: &&str| KERNEL_NAMES.iter().any(|beginning| starts(name, beginning));
    story.of_kernel.contains(&track.tid)
        || track.parent.is_none()
            && !track.has_executed
            && !names.is_empty()
            && names.iter().all(is_named)
}

/// Whether a name is of that kind: kinds that end in a letter are whole words, apart from numbers behind them.
fn starts(name: &str, beginning: &str) -> bool {
    let Some(rest) = name.strip_prefix(beginning) else { return false };
    !beginning.ends_with(|c: char| c.is_ascii_alphabetic())
        || rest.bytes().all(|byte| !byte.is_ascii_alphabetic())
}

fn is_tracer(names: &[&str]) -> bool {
    let Some(last) = names.last() else { return false };
    TRACERS.contains(last) || TRACER_BEGINNINGS.iter().any(|beginning| last.starts_with(beginning))
}

/// Whether one of a thread's names is the wanted one, of which the kernel keeps 15 bytes.
pub fn is_named(names: &[&str], wanted: &str) -> bool {
    names.iter().any(|name| {
        *name == wanted
            || name.rsplit('/').next() == Some(wanted)
            || name.len() == 15 && wanted.starts_with(name)
    })
}

/// Tracks of the wanted threads in the order of tracks.
fn choose(
    tracks: &[Track],
    names: &[Vec<&str>],
    processes: &[u32],
    story: &Story,
    options: &Options,
) -> Vec<usize> {
    let is_wanted = |index: usize| {
        options.pids.contains(&tracks[index].tid)
            || options.pids.contains(&processes[index])
            || options.commands.iter().any(|wanted| is_named(&names[index], wanted))
    };
    let is_all = options.pids.is_empty() && options.commands.is_empty();
    let mut is_chosen = vec![false; tracks.len()];
    let mut wanted_processes = std::collections::HashSet::new();
    for index in 0..tracks.len() {
        let of_parent = tracks[index].parent.is_some_and(|parent| is_chosen[parent as usize]);
        is_chosen[index] = match is_all {
            true => {
                !is_of_kernel(&tracks[index], &names[index], story) && !is_tracer(&names[index])
            }
            false => of_parent || is_wanted(index),
        };
        if is_chosen[index] {
            wanted_processes.insert(processes[index]);
        }
    }
    let did_something =
        |index: &usize| !tracks[*index].events.is_empty() || tracks[*index].rest_cpu_ns > 0;
    let is_in = |index: &usize| {
        is_chosen[*index] || !is_all && wanted_processes.contains(&processes[*index])
    };
    (0..tracks.len()).filter(is_in).filter(did_something).collect()
}

fn nothing(file: &str, tracks: &[Track], names: &[Vec<&str>], options: &Options) -> InputError {
    let mut found: Vec<(u64, &str)> = tracks
        .iter()
        .zip(names)
        .map(|(track, names)| {
            (track.events.len() as u64, names.last().copied().unwrap_or_default())
        })
        .filter(|(_, name)| !name.is_empty())
        .collect();
    found.sort_unstable_by(|one, other| other.cmp(one));
    found.dedup_by_key(|(_, name)| *name);
    let words: Vec<&str> = found.into_iter().map(|(_, name)| name).take(12).collect();
    let wanted: Vec<String> =
        options.commands.iter().cloned().chain(options.pids.iter().map(u32::to_string)).collect();
    let message = match wanted.is_empty() {
        true => "has no thread of a program".to_owned(),
        false => format!("has no thread of {}", wanted.join(", ")),
    };
    InputError::new(file, "", message).with_hint(format!("it has {}", words.join(", ")))
}

/// Chosen tracks by when they began, parents before their children.
fn order(tracks: &[Track], chosen: &[usize]) -> Vec<usize> {
    let mut order = chosen.to_vec();
    order.sort_by_key(|&index| tracks[index].events.first().map_or(u64::MAX, |event| event.at_ns));
    order
}

fn threads(
    tracks: &[Track],
    order: &[usize],
    processes: &[u32],
    since_ns: Option<u64>,
    name: impl Fn(&Track) -> String,
) -> (Vec<Thread>, u64, u64) {
    let places: HashMap<u32, u32> =
        (0..).zip(order).map(|(place, &index)| (index as u32, place)).collect();
    let starts = order.iter().filter_map(|&index| tracks[index].events.first());
    let origin_ns = since_ns.or_else(|| starts.map(|event| event.at_ns).min()).unwrap_or_default();
    let ends = order.iter().map(|&index| tracks[index].last_ns);
    let end_ns = ends.max().unwrap_or(origin_ns).max(origin_ns);
    let mut numbers = HashMap::new();
    let thread = |&index: &usize| {
        let next = numbers.len() as u32;
        let process = *numbers.entry(processes[index]).or_insert(next);
        let events = events(&tracks[index], &places, origin_ns);
        let (prio, _) = tracks[index].main_prio();
        let prio = prio.filter(|&prio| prio != PRIO_USUAL);
        let prio = prio.map(|prio| if prio == PRIO_DEADLINE { 0 } else { prio });
        Thread { name: name(&tracks[index]), process, events, prio, ..Thread::default() }
    };
    (order.iter().map(thread).collect(), origin_ns, end_ns)
}

/// Events of a thread, with threads by their places; what concerns others is left out, and its CPU time goes to the
/// next event.
fn events(track: &Track, places: &HashMap<u32, u32>, origin_ns: u64) -> Vec<Event> {
    let mut found: Vec<Event> = Vec::with_capacity(track.events.len() + 1);
    let (mut cpu_ns, mut work_ns, mut is_preempted) = (0_u64, 0_u64, false);
    for event in &track.events {
        let mut event = *event;
        event.cpu_ns = event.cpu_ns.saturating_add(std::mem::take(&mut cpu_ns));
        event.work_ns = event.work_ns.saturating_add(std::mem::take(&mut work_ns));
        event.is_preempted |= std::mem::take(&mut is_preempted);
        event.at_ns = event.at_ns.saturating_sub(origin_ns);
        if place(&mut event, places) {
            found.push(event);
        } else {
            (cpu_ns, work_ns, is_preempted) = (event.cpu_ns, event.work_ns, event.is_preempted);
        }
    }
    cpu_ns = cpu_ns.saturating_add(track.rest_cpu_ns);
    let rest = u64::try_from(track.rest_work / u128::from(SPEED_UNITS)).unwrap_or(u64::MAX);
    work_ns = work_ns.saturating_add(rest);
    match found.last_mut() {
        Some(last) if track.has_ended => {
            last.cpu_ns = last.cpu_ns.saturating_add(cpu_ns);
            last.work_ns = last.work_ns.saturating_add(work_ns);
        }
        Some(last) => {
            // The trace ends before it does.
            let at_ns = track.last_ns.saturating_sub(origin_ns).max(last.at_ns);
            let end = Event {
                kind: Kind::Exit,
                is_blocked: false,
                is_preempted,
                object: 0,
                aux: 0,
                at_ns,
                cpu_ns,
                work_ns,
                wait_ns: 0,
                core: last.core,
            };
            found.push(end);
        }
        None => {}
    }
    found
}

/// Names the threads of an event by their places. False: it only concerns a thread that is not there.
fn place(event: &mut Event, places: &HashMap<u32, u32>) -> bool {
    match event.kind {
        Kind::Wake | Kind::Create => match places.get(&event.object) {
            Some(&place) => event.object = place,
            None => return false,
        },
        Kind::Start => {
            let parent = event.aux.checked_sub(1).and_then(|parent| places.get(&parent));
            event.aux = parent.map_or(0, |parent| parent + 1);
        }
        Kind::Join => match places.get(&event.object) {
            Some(&place) => event.object = place,
            None => {
                event.kind = Kind::Block;
                event.object = 0;
                event.aux = Wake::Outside.to_aux();
            }
        },
        Kind::Block => {
            let wake = match Wake::from_aux(event.aux) {
                Wake::Thread(waker) => {
                    places.get(&waker).map_or(Wake::Outside, |&place| Wake::Thread(place))
                }
                other => other,
            };
            event.aux = wake.to_aux();
        }
        _ => {}
    }
    true
}

fn info(
    told: &Built,
    story: &Story,
    options: &Options,
    order: &[usize],
    speeds: &[u64],
    wall_ns: u64,
) -> Info {
    let misfits: u64 = order.iter().map(|&index| told.tracks[index].misfits).sum();
    let mut unknown = [options.unknown.as_slice(), &story.unknown].concat();
    unknown.extend(missing(&told.seen, misfits, story, speeds));
    let is_guess = |index: &&usize| {
        let track = &told.tracks[**index];
        let is_stated = story.processes.contains_key(&track.tid) || track.has_executed;
        track.is_thread.is_none() && track.parent.is_some() && !is_stated
    };
    let unseen: u64 = order.iter().map(|&index| told.tracks[index].unseen).sum();
    if unseen > 0 {
        unknown.push(format!(
            "{unseen} times when an idle core began to run a thread: taken to be when it was woken"
        ));
    }
    let is_idle = |track: &&Track| track.since_ns.is_some() && track.events.is_empty();
    let idle = told.tracks.iter().filter(is_idle).count();
    if idle > 0 {
        unknown.push(format!("what those threads wait for that did not run meanwhile: {idle}"));
    }
    let guesses = order.iter().filter(is_guess).count();
    if guesses > 0 {
        let text = "whether {} created threads are processes of their own: they count as threads";
        unknown.push(text.replace("{}", &guesses.to_string()));
    }
    let cores = told.cores.max(speeds.len());
    let core = |index: usize| Core {
        speed: speeds.get(index).map_or(1.0, |&speed| speed as f64 / SPEED_UNITS as f64),
        kind: options.kinds.get(index).cloned().unwrap_or_default(),
    };
    let command =
        if options.command.is_empty() { story.command.clone() } else { options.command.clone() };
    Info {
        name: Some(&options.name)
            .filter(|name| !name.is_empty())
            .or(options.commands.first())
            .cloned()
            .unwrap_or_default(),
        command,
        recorder: options.recorder.clone(),
        cores: (0..cores).map(core).collect(),
        kernel: if options.kernel.is_empty() {
            story.kernel.clone()
        } else {
            options.kernel.clone()
        },
        wall_ns,
        slowdown: options.slowdown,
        lost_events: told.seen.lost.saturating_add(story.lost_events),
        exit_code: options.exit_code,
        instructions: Vec::new(),
        unknown,
        machine: options.machine.clone(),
        wakeup_ns: options.wakeup_ns,
        foreign: options.foreign,
        window_ns: options.window.as_ref().map(|window| {
            window.until_ns.map_or(wall_ns, |until_ns| until_ns.saturating_sub(window.since_ns))
        }),
        ..Info::default()
    }
}
