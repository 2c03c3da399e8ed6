//! Other tools' traces, which become recordings: texts, and files of bytes.

use std::sync::OnceLock;

use ampsched_recording::import::{
    Asked, KnownCluster, Observed, Options, Question, ThreadSeen, around, import, observe,
};
use ampsched_recording::read;

use super::{Format, check_refusal, once, seeds};

const SAMPLES: &str = "crates/recording/tests/samples";
/// What a reader has to tell apart is in the first lines.
const TEXT_MOST: usize = 8000;
/// The shortest file that a tool has written has 13 KiB.
const FILE_MOST: usize = 32_000;

pub static TEXT: Format = Format {
    name: "trace-text",
    seeds: || {
        static CELL: OnceLock<Vec<String>> = OnceLock::new();
        once(&CELL, || {
            let names = [
                "ftrace.txt",
                "cgroups.txt",
                "perf-script.txt",
                "report.txt",
                "report-l.txt",
                "report-R.txt",
            ];
            let texts = names.map(|name| beginning(&seeds::bytes(&format!("{SAMPLES}/{name}"))));
            let pages = pages(&texts[0]);
            texts.into_iter().chain(pages).collect()
        })
    },
    read: |text| check(text.as_bytes()),
    most: TEXT_MOST,
    share: 5,
};
/// What stands beside a trace of control groups.
pub static CGROUPS: Format = Format {
    name: "trace-cgroups",
    seeds: || {
        static CELL: OnceLock<Vec<String>> = OnceLock::new();
        once(&CELL, || {
            vec![
                text_of("cgroups.side"),
                "/sys/fs/cgroup/cgroup.controllers:cpu\n/sys/fs/cgroup/a/b/cpuset.cpus.effective:0,2-3\n\
                 /sys/fs/cgroup/a/cpu.weight:50\n/sys/fs/cgroup/a/cpu.max:20000 100000\n\
                 /sys/fs/cgroup/a/b/cgroup.threads:101\n/sys/fs/cgroup/a/b/cgroup.procs:100\n"
                    .to_owned(),
            ]
        })
    },
    read: |text| {
        let cgroups = ("input".to_owned(), text.to_owned());
        check_with(text_of("cgroups.txt").as_bytes(), &Options { cgroups, ..Options::default() });
    },
    most: TEXT_MOST,
    share: 3,
};
/// Each character of the text is a byte of the file.
pub static FILE: Format = Format {
    name: "trace-file",
    seeds: || {
        static CELL: OnceLock<Vec<String>> = OnceLock::new();
        once(&CELL, || {
            let names = [
                "trace-7.dat",
                "trace-6.dat",
                "fft.npz.zst",
                "perfetto.pftrace",
                "perfetto-compact.pftrace",
                "bugreport.zip",
                "atrace.ctrace",
            ];
            let mut samples = names.map(|name| seeds::bytes(&format!("{SAMPLES}/{name}"))).to_vec();
            let own = import("fft", &samples[2], &Options::default()).expect("a sample");
            samples.push(own.to_bytes());
            samples
                .iter()
                .map(|bytes| bytes.iter().map(|&byte| char::from(byte)).collect())
                .collect()
        })
    },
    read: |text| check(&text.chars().map(|c| c as u8).collect::<Vec<u8>>()),
    most: FILE_MOST,
    share: 5,
};

/// What a text of a trace stands in: a page with a list of processes, the oldest page, and JSON.
fn pages(text: &str) -> [String; 3] {
    let list = "PROCESS DUMP\nUSER PID PPID VSZ RSS WCHAN PC S NAME COMM\nu0_a8 9 1 0 0 0 0 S com.a b\n\
        USER PID TID CMD\nu0_a8 9 10 worker\n";
    let block = |text: &str| {
        format!("<script class=\"trace-data\" type=\"text/plain\">\n{text}\n</script>\n")
    };
    let (escaped, json) = (text.replace('\n', "\\n\\\n"), text.replace('\n', "\\n"));
    [
        format!(
            "<!DOCTYPE html>\n<!-- a --><script>x</script>{}{}</html>",
            block(list),
            block(text)
        ),
        format!(
            "<!DOCTYPE HTML>\n<script>\n  var linuxPerfData = \"\\\n{escaped}\\n\";\n</script>\n"
        ),
        format!("{{\"traceEvents\": [], \"systemTraceEvents\": \"{json}\"}}"),
    ]
}

/// The first lines of a text, and the last.
fn beginning(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().collect();
    let (first, rest) = lines.split_at(lines.len().min(30));
    let last = &rest[rest.len().saturating_sub(8)..];
    [first, last].concat().join("\n")
}

fn text_of(name: &str) -> String {
    String::from_utf8_lossy(&seeds::bytes(&format!("{SAMPLES}/{name}"))).into_owned()
}

fn check(bytes: &[u8]) {
    check_with(bytes, &Options::default());
}

fn check_with(bytes: &[u8], options: &Options) {
    match import("input", bytes, options) {
        Ok(recording) => {
            let again = read("again", &recording.to_bytes()).expect("what is written is read");
            let asks = |threads: &[ampsched_recording::Thread]| -> Vec<_> {
                threads.iter().map(|thread| thread.asks.clone()).collect()
            };
            assert_eq!(asks(&again.threads), asks(&recording.threads));
            assert_eq!(again.events(), recording.events());
        }
        Err(error) => check_refusal("input", &error.to_string()),
    }
    for clusters in [Vec::new(), two_clusters()] {
        let asked = Asked { clusters, ..Asked::default() };
        match observe("input", bytes, &asked) {
            Ok(seen) => {
                check_observed(&seen);
                seen.threads.iter().take(3).for_each(|thread| look(bytes, &asked, &seen, thread));
            }
            Err(error) => check_refusal("input", &error.to_string()),
        }
    }
}

/// Clusters for the traces of small machines.
fn two_clusters() -> Vec<KnownCluster> {
    let cluster = |name: &str, cpus: [u16; 4], top| KnownCluster {
        name: name.to_owned(),
        cpus: cpus.to_vec(),
        opps: vec![(500, top / 3.0), (1500, top)],
    };
    vec![cluster("little", [0, 2, 4, 6], 400.0), cluster("big", [1, 3, 5, 7], 1024.0)]
}

/// All time is accounted for, and parts are not greater than the whole.
fn check_observed(seen: &Observed) {
    let end_ns = seen.duration_ns;
    for cpu in &seen.cpus {
        assert_eq!(cpu.busy_ns + cpu.idle_ns + cpu.unknown_ns, end_ns, "CPU {}", cpu.cpu);
        assert_eq!(cpu.clocks.iter().map(|clock| clock.busy_ns).sum::<u64>(), cpu.busy_ns);
        let used = seen.threads.iter().flat_map(|thread| &thread.cpu_ns);
        let used_ns: u64 = used.filter(|(number, _)| *number == cpu.cpu).map(|(_, ns)| ns).sum();
        assert_eq!(used_ns, cpu.busy_ns, "CPU {}", cpu.cpu);
    }
    for thread in &seen.threads {
        let cpu_ns = thread.cpu_ns.iter().map(|(_, ns)| ns).sum::<u64>();
        assert!(thread.wait_ns <= end_ns && cpu_ns <= end_ns, "{thread:?}");
        assert!(thread.beside_greater_ns <= thread.beside_idle_ns, "{thread:?}");
        assert!(thread.beside_idle_ns <= thread.wait_ns, "{thread:?}");
        assert!(thread.too_small_ns + thread.too_big_ns <= cpu_ns, "{thread:?}");
        assert!(thread.migrations <= thread.switches, "{thread:?}");
        assert!(thread.cluster_migrations <= thread.migrations, "{thread:?}");
        assert!(thread.worst_at_ns.iter().all(|(_, at_ns)| *at_ns <= end_ns), "{thread:?}");
        assert!(thread.ran_at_ns.iter().all(|(_, at_ns)| *at_ns <= end_ns), "{thread:?}");
        assert!(thread.frames.late <= thread.frames.count, "{thread:?}");
        assert!(thread.frames.longest_until_ns <= end_ns, "{thread:?}");
    }
    if let Some(frames) = &seen.frames {
        assert!(frames.late <= frames.frames && frames.times.count == frames.frames as u64);
        assert!(frames.times.max_ns <= end_ns, "{frames:?}");
    }
}

/// What is told of a thread around the middle: in the order of time, and its recording is what an import makes.
fn look(bytes: &[u8], asked: &Asked, seen: &Observed, thread: &ThreadSeen) {
    let (at_ns, window_ns) = (seen.duration_ns / 2, seen.duration_ns / 4);
    let question = Question { thread: thread.tid.to_string(), at_ns, window_ns };
    let (found, _) = around("input", bytes, asked, &question, None).expect("it was seen");
    assert_eq!(found.tid, thread.tid);
    assert!(found.steps.is_sorted_by_key(|step| step.at_ns), "{found:?}");
    assert!(found.steps.iter().all(|step| step.at_ns.abs_diff(at_ns) <= window_ns), "{found:?}");
    assert!(found.placed.iter().all(|placed| placed.woken_ns <= placed.runs_ns), "{found:?}");
    match around("input", bytes, asked, &question, Some(&Options::default())) {
        Ok((again, made)) => {
            let made = made.expect("options were stated");
            assert_eq!(again, found);
            assert_eq!(made.tids.len(), made.recording.threads.len());
        }
        Err(error) => check_refusal("input", &error.to_string()),
    }
}
