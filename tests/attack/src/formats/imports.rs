//! Other tools' traces, which become recordings: texts, and files of bytes.

use std::sync::OnceLock;

use ampsched_recording::import::{Options, import};
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
}
