//! What traces are packed in, and how people print them: every form tells what the plain trace tells, and what is
//! damaged is refused in one line or named as lost.

use std::io::Write;
use std::path::Path;

use ampsched_recording::Recording;
use ampsched_recording::import::{Options, import};
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name)).unwrap()
}

fn read(bytes: &[u8]) -> Result<Recording, String> {
    import("x", bytes, &Options::default()).map_err(|error| error.to_string())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::default());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

/// An archive with its files deflated.
fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut out, mut list) = (Vec::new(), Vec::new());
    for (name, bytes) in files {
        let mut packer = DeflateEncoder::new(Vec::new(), Compression::default());
        packer.write_all(bytes).unwrap();
        let packed = packer.finish().unwrap();
        let start = out.len() as u32;
        let mut head = vec![20, 0, 0, 0, 8, 0, 0, 0, 0, 0];
        head.extend(crc32fast::hash(bytes).to_le_bytes());
        head.extend((packed.len() as u32).to_le_bytes());
        head.extend((bytes.len() as u32).to_le_bytes());
        head.extend((name.len() as u16).to_le_bytes());
        head.extend([0, 0]);
        out.extend(b"PK\x03\x04");
        out.extend(&head);
        out.extend(name.as_bytes());
        out.extend(&packed);
        list.extend(b"PK\x01\x02\x14\0");
        list.extend(&head);
        list.extend([0; 10]);
        list.extend(start.to_le_bytes());
        list.extend(name.as_bytes());
    }
    let (count, start) = (files.len() as u16, out.len() as u32);
    out.extend(&list);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend((list.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}

fn base64(bytes: &[u8]) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = Vec::new();
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0_u32, |word, &byte| word << 8 | u32::from(byte));
        let word = word << (8 * (3 - group.len()));
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= group.len() { letter } else { b'=' });
        }
    }
    out
}

fn block(text: &[u8]) -> Vec<u8> {
    let open: &[u8] = b"  <script class=\"trace-data\" type=\"application/text\">\n";
    [open, text, b"  </script>\n"].concat()
}

/// A page with 3 MB of a viewer before its blocks.
fn page(blocks: &[Vec<u8>]) -> Vec<u8> {
    let viewer = "if (a < b) find(/^  <script class=\"trace-data\">$/);\n".repeat(60_000);
    let head = format!("<!DOCTYPE html>\n<html><!-- <script> -->\n<script>\n{viewer}</script>\n");
    [head.into_bytes(), blocks.concat(), b"<!-- END TRACE -->\n</body></html>\n".to_vec()].concat()
}

/// A string of JavaScript, as the oldest pages hold the trace.
fn old_page(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text).replace('\\', "\\\\").replace('"', "\\\"");
    let text = text.replace('\n', "\\n\\\n");
    format!("<!DOCTYPE HTML>\n<script>\n  var linuxPerfData = \"\\\n{text}\\n\";\n  </script>\n")
        .into_bytes()
}

fn json(text: &[u8]) -> Vec<u8> {
    let trace = String::from_utf8_lossy(text);
    serde_json::to_vec(&serde_json::json!({"traceEvents": [], "systemTraceEvents": trace})).unwrap()
}

fn utf16(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text).replace('\n', "\r\n");
    let units = std::iter::once(0xfeff).chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

fn atrace(end: &str, data: &[u8]) -> Vec<u8> {
    [format!("capturing trace... done{end}TRACE:{end}").as_bytes(), data].concat()
}

fn with_ends(bytes: &[u8], end: &[u8]) -> Vec<u8> {
    bytes.split(|&byte| byte == b'\n').collect::<Vec<_>>().join(end)
}

/// The names of what a trace can be packed in, each with the sample in it.
fn packed(text: &[u8]) -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let frames = |bytes: &[u8]| compress_to_vec(bytes, CompressionLevel::Fastest);
    let (one, other) = text.split_at(text.len() / 2);
    let meta = block(b"{\"traceEvents\": []}");
    let log = "a line of a log [12] 1.5: x\n".repeat(4000).into_bytes();
    vec![
        ("gzip", "ftrace", gzip(text)),
        ("gzip twice over", "ftrace", [gzip(one), gzip(other)].concat()),
        ("zstd", "ftrace", frames(text)),
        ("frames of zstd", "ftrace", [frames(one), frames(other)].concat()),
        ("zip", "ftrace", zip(&[("main_entry.txt", b"a"), ("a/trace.txt", text), ("e/", b"")])),
        ("zip in zip", "ftrace", zip(&[("in.zip", &zip(&[("trace.txt", text)]))])),
        ("zip with two", "ftrace", zip(&[("no.txt", &idle_only()), ("trace.txt", text)])),
        ("atrace", "atrace", atrace("\n", text)),
        ("atrace -z", "atrace", atrace("\n", &zlib(text))),
        ("atrace -z by adb", "atrace", atrace("\r\n", &with_ends(&zlib(text), b"\r\n"))),
        ("atrace by adb", "atrace", atrace("\r\r\n", &with_ends(text, b"\r\r\n"))),
        ("atrace in base64", "atrace", atrace("\n", &base64(&zlib(text)))),
        ("page", "systrace", page(&[meta.clone(), block(text), meta])),
        ("page of trace2html", "systrace", page(&[block(&base64(&gzip(text)))])),
        ("page in gzip", "systrace", gzip(&page(&[block(text)]))),
        ("old page", "systrace", old_page(text)),
        ("JSON", "systrace", json(text)),
        ("UTF-16", "ftrace", utf16(text)),
        ("UTF-8 with a mark", "ftrace", [b"\xef\xbb\xbf", text].concat()),
        ("other ends of lines", "ftrace", with_ends(text, b"\r\n")),
        ("behind a log", "ftrace", [&log, text].concat()),
        ("behind a log in zip", "ftrace", zip(&[("l.txt", &log), ("t", &[&log, text].concat())])),
    ]
}

fn idle_only() -> Vec<u8> {
    b"# tracer: nop\n sh-12 [000] .... 1.000001: cpu_idle: state=1 cpu_id=0\n".to_vec()
}

#[test]
fn whatever_a_trace_is_packed_in_it_tells_the_same() {
    let text = sample("ftrace.txt");
    let plain = read(&text).unwrap();
    for (name, form, bytes) in packed(&text) {
        let found = read(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found.threads, plain.threads, "{name}");
        assert_eq!(found.info.recorder, form, "{name}");
        assert_eq!(found.info.unknown, plain.info.unknown, "{name}");
    }
    let trace = sample("perfetto.pftrace");
    let path = "FS/data/misc/perfetto-traces/bugreport/systrace.pftrace";
    let report = zip(&[("version.txt", b"2.0"), ("bugreport.txt", b"\n\nx"), (path, &trace)]);
    assert_eq!(read(&report), read(&trace));
}

#[test]
fn names_and_processes_come_from_the_list_of_a_page() {
    let list = b"PROCESS DUMP\n\
        USER           PID  PPID     VSZ    RSS WCHAN  PC S NAME                        COMM\n\
        root             2     0       0      0 0       0 S [kthreadd]                  kthreadd\n\
        u0_a80        2234   628 1725212 218300 0       0 S com.example.app             prog\n\
        u0_a81        4100   628 1725212 218300 0       0 S com.example.idle            idle\n\
        USER           PID   TID CMD\n\
        u0_a80        2234  2235 worker\n";
    let text = String::from_utf8(sample("ftrace.txt")).unwrap();
    let without = text.replace("(   2234)", "(-----)").replace("task_newtask", "task_x");
    let found = read(&page(&[block(list), block(without.as_bytes())])).unwrap();
    assert_eq!(found.info.name, "com.example.app");
    let of = |name: &str| found.threads.iter().find(|thread| thread.name == name).unwrap().process;
    assert_eq!(of("worker"), of("prog"));
    // A name need not be UTF-8, nor need a list be whole.
    let (mut bytes, names) = (without.into_bytes(), &list[..list.len() - 20]);
    for at in 0..bytes.len() - 6 {
        if bytes[at..].starts_with(b"worker") {
            bytes[at + 1] = 0xff;
        }
    }
    let found = read(&page(&[block(&bytes), block(names)])).unwrap();
    assert!(found.threads.iter().any(|thread| thread.name == "w\u{fffd}rker"));
    assert!(found.info.unknown.contains(&"1 lines of the list of processes".to_owned()));
    // Without a list, the process with most time names it.
    assert_eq!(read(text.as_bytes()).unwrap().info.name, "stockfish");
}

fn cut(bytes: &[u8], parts: usize, of: usize) -> Vec<u8> {
    bytes[..bytes.len() * parts / of].to_vec()
}

#[test]
fn what_is_cut_off_is_read_up_to_there_and_named_or_refused() {
    let text = sample("ftrace.txt");
    let plain = read(&text).unwrap();
    // Priorities are named only where threads with them are left.
    let named = |found: &Recording| {
        let unknown = found.info.unknown.iter();
        unknown.filter(|line| !line.contains("priorities") && !line.contains("real-time")).count()
    };
    for (name, _, bytes) in packed(&text) {
        let mut said = 0;
        for parts in 0..30 {
            match read(&cut(&bytes, parts, 30)) {
                Err(error) => {
                    assert!(error.starts_with("x: ") && !error.contains('\n'), "{name}: {error}");
                    said += 1;
                }
                Ok(found) => {
                    assert!(found.events() <= plain.events(), "{name} {parts}");
                    said += usize::from(named(&found) > named(&plain));
                }
            }
        }
        // Texts themselves may end anywhere.
        let is_text = !["gzip", "zstd", "zip", "page", "-z", "base64", "JSON"]
            .iter()
            .any(|part| name.contains(part));
        assert!(said >= 28 || is_text, "{name}: {said} of 30");
    }
}

#[test]
fn changed_bytes_are_refused_in_one_line_or_become_recordings() {
    let mut state = 1_u64;
    let mut dice = |most: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % most
    };
    for (name, _, bytes) in packed(&sample("ftrace.txt")) {
        // Before that stands what is no trace.
        let start = bytes.len().saturating_sub(20_000);
        for _ in 0..60 {
            let mut changed = bytes.clone();
            for _ in 0..1 + dice(6) {
                let at = start + dice(bytes.len() - start);
                changed[at] =
                    if dice(2) == 0 { dice(256) as u8 } else { changed[at] ^ 1 << dice(8) };
            }
            if let Err(error) = read(&changed) {
                assert!(error.starts_with("x: ") && !error.contains('\n'), "{name}: {error}");
            }
        }
    }
}

/// Hostile and partial inputs, and what is said of each.
fn hostile(text: &[u8]) -> Vec<(Vec<u8>, &'static str)> {
    let bomb = vec![b'a'; 257 << 20];
    let one = zip(&[("t.txt", text)]);
    let changed = |at: usize, byte: u8| {
        let mut bytes = one.clone();
        bytes[at] = byte;
        bytes
    };
    let list = one.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    let mut deep = text.to_vec();
    (0..8).for_each(|_| deep = gzip(&deep));
    let empty = block(b"\n");
    let idle = idle_only();
    let raw = String::from_utf8_lossy(text).replace("next_pid=", "next_tid=");
    let name_only = zip(&[("a", b"1"), ("b", b"2")]);
    vec![
        (gzip(b""), "is no trace of a form"),
        (b"\x1f\x8b\x08\0\0".to_vec(), "is damaged: gzip cannot unpack it"),
        (b"\x28\xb5\x2f\xfd\0".to_vec(), "is damaged: zstd cannot unpack it"),
        (gzip(&bomb), "takes more than 256 MiB of memory"),
        (zip(&[("bomb", &bomb)]), "is a zip archive without a trace"),
        (zip(&[("bomb.gz", &gzip(&bomb))]), "(takes more than 256 MiB of memory"),
        (deep, "is packed more than 6 times over"),
        (zip(&[]), "(it has no members)"),
        (name_only, "(it has a, b)"),
        (zip(&[("a/", b""), ("b", b"")]), "(it has b (empty))"),
        (changed(list + 8, 1), "(is encrypted)"),
        (changed(list + 10, 93), "(is packed by method 93 of zip, known are 0 and 8)"),
        (changed(list + 16, one[list + 16] ^ 1), "(is damaged: its checksum is another)"),
        (changed(list + 24, one[list + 24] ^ 1), "(is damaged: it cannot be unpacked)"),
        (changed(list, b'Q'), "is a damaged zip archive"),
        (zip(&[("a", text), ("b", text)]), "has 2 traces of the scheduler (unpack the one that"),
        (zip(&[("a", &idle), ("b", &idle)]), "has several traces, and none has events of a core"),
        (zip(&[("a\u{fffd}\n", b"1")]), "is a zip archive without a trace"),
        (page(&[]), "is a page without a trace of the kernel: none in its 0 blocks"),
        (page(&[empty.clone(), empty]), "is a page without a trace of the kernel: none in its 2"),
        (page(&[block(text), block(text)]), "has 2 traces of the scheduler (unpack the one that"),
        (page(&[block(b"H4sI****")]), "block 1: is damaged: its base64 has other letters"),
        (page(&[block(b"H4sIAAAA")]), "block 1: is damaged: gzip cannot unpack it"),
        (page(&[block(b"{\"a\"")]), "block 1: is damaged JSON: EOF"),
        (old_page(b"nothing"), "is a page without a trace of the kernel"),
        (b"{\"systemTraceEvents\": 1}".to_vec(), "is JSON without a trace of the kernel"),
        (atrace("\n", b""), "ends where its trace would begin"),
        (atrace("\n", b"x\x9cgarbage"), "is damaged: zlib cannot unpack it"),
        (atrace("\n", b"unable to start tracing"), "is no trace of a form"),
        (b"\xff\xfea".to_vec(), "is no trace of a form"),
        (b"BZh91AY".to_vec(), "is packed by bzip2: unpack it first"),
        (b"\xfd7zXZ\0".to_vec(), "is packed by xz: unpack it first"),
        (b"SIMPLEPERF\x01".to_vec(), "is a report of simpleperf"),
        (idle, "another thread: it has 1 cpu_idle (record sched_switch"),
        (
            raw.into_bytes(),
            "events that cannot be read, and no switch among the others (the first is",
        ),
        (b"sh 5 1.5: sched:sched_switch: a".to_vec(), "line 1 has no core"),
        (b"\nsh 5 [000] sched:sched_switch: a".to_vec(), "line 2 has no time"),
        (b"x = 'sched_switch'".to_vec(), "line 1 has neither core nor time"),
    ]
}

#[test]
fn what_is_hostile_or_lacks_something_is_refused_in_one_line_with_the_reason() {
    for (bytes, said) in hostile(&sample("ftrace.txt")) {
        let error = read(&bytes).unwrap_err();
        assert!(error.starts_with("x: ") && error.contains(said), "{said:?}: {error}");
        assert!(!error.contains('\n') && error.len() < 6000, "{error}");
    }
}

/// Raw fields and flags of `trace-cmd report -R` and `-l`, and what `--ts-diff` adds.
#[test]
fn raw_fields_tell_what_printed_ones_tell() {
    let head = |at_us: u64, core: u32| format!("  a-7     [{core:03}]     1.{at_us:06}: ");
    let prev = "sched_switch:  prev_comm=a b prev_pid=7 prev_prio=120 prev_state";
    let next = "sched_switch:  prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=0";
    let text = |state: &str| {
        [
            "version = 6\ncpus=6\n".to_owned(),
            head(10, 0) + next + " next_comm=a b next_pid=7 next_prio=120\n",
            head(20, 0) + "sched_process_fork: parent_comm=a parent_pid=7 child_comm=c child_pid=8\n",
            head(30, 0) + prev + "=" + state + " next_comm=c next_pid=8 next_prio=120\n",
            head(40, 0).replace("a-7", "c-8") + "(+10)  sched_waking: comm=a b pid=7 prio=120 target_cpu=0\n",
            "  c-8  0-0x1  1.000050: sched_switch: prev_comm=c prev_pid=8 prev_prio=120 prev_state=16 \
             next_comm=a b next_pid=7 next_prio=120\n"
                .to_owned(),
        ]
        .concat()
    };
    let kinds = |state: &str| {
        let found = read(text(state).as_bytes()).unwrap();
        let names: Vec<_> = found.threads.iter().map(|thread| thread.name.clone()).collect();
        assert_eq!((names, found.info.name.as_str()), (vec!["a b".into(), "c".into()], "a b"));
        found.threads[0].events.iter().map(|event| event.kind.word()).collect::<Vec<_>>()
    };
    assert_eq!(kinds("1"), ["start", "create", "join", "exit"]);
    // TASK_STATE_MAX of Linux 4.13: it has lost its core.
    assert_eq!(kinds("4096"), ["start", "create", "exit"]);
    assert_eq!(kinds("64"), ["start", "create", "exit"]);
}

/// The fields that `perf script -F` prints, of one switch to a thread and back.
#[test]
fn perf_script_is_read_with_and_without_its_fields() {
    let to = "prev_comm=swapper prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=7 next_prio=120";
    let from = "prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper next_pid=0 next_prio=120";
    let woken = "comm=a pid=7 prio=120 target_cpu=000";
    let shapes: [fn(&str, &str, &str) -> String; 9] = [
        |time, event, fields| format!("a b 7 [000] {time}: sched:{event}: {fields}\n"),
        |time, event, fields| format!("a 5/7 [000] {time}: sched:{event}: {fields}\n"),
        |time, event, fields| format!(":7 7 [000] {time}: sched:{event}: {fields}\n"),
        |time, event, fields| format!(" 7 [000]  {time}: {event}: {fields}\n"),
        |time, event, fields| format!("[000]  {time}:   sched:{event}: {fields}\n"),
        |time, event, fields| {
            format!("a 7 [000] K {time}:   138 sched:{event}: {fields} ffff1 [x]\n")
        },
        |time, event, fields| {
            format!(
                "a 7 [000] 2026-01-02 03:04:05.678901 {time}: sched:{event}: {fields}\n\tffff [k]\n\n"
            )
        },
        |time, _, fields| format!("a 7 [000] {time}: {fields}\n"),
        |time, event, fields| format!("a -1/-1 [000] {time}000: sched:{event}: {fields}\r\n"),
    ];
    for shape in shapes {
        let text = shape("1.000010", "sched_switch", to)
            + &shape("1.000030", "sched_switch", from)
            + &shape("1.000090", "sched_waking", woken).replace("7 [000]", "0 [000]")
            + &shape("1.000100", "sched_switch", to)
            + &shape("1.000130", "sched_switch", from);
        let found = read(text.as_bytes()).unwrap_or_else(|error| panic!("{text}{error}"));
        let found: Vec<_> =
            found.threads.iter().map(|one| (one.name.as_str(), one.events.len())).collect();
        assert_eq!(found, [("a", 3)], "{text}");
        assert!(read(text.replace("[000]", "").as_bytes()).unwrap_err().contains("has no core"));
    }
    let delta: String = (0..10)
        .map(|turn| shapes[0](&format!("0.00000{}", 9 - turn), "sched_switch", to))
        .collect();
    assert!(read(delta.as_bytes()).unwrap_err().contains("without --deltatime"));
    let task = "x 0 [000] 1.000020: PERF_RECORD_FORK(7:9):(7:7)\nx 0 [000] 1.000021: PERF_RECORD_COMM: k:7/9\n";
    let ran = shapes[0]("1.000011", "sched_switch", to)
        + task
        + &shapes[0](
            "1.000040",
            "sched_switch",
            &from.replace("comm=swapper next_pid=0", "comm=k next_pid=9"),
        )
        + &shapes[0]("1.000050", "sched_switch", &from.replace("a prev_pid=7", "k prev_pid=9"));
    let found = read(ran.as_bytes()).unwrap();
    let rows: Vec<_> = found.threads.iter().map(|one| (one.name.as_str(), one.process)).collect();
    assert_eq!(rows, [("a", 0), ("k", 0)]);
    assert!(
        found.info.unknown.iter().all(|line| !line.contains("who created")),
        "{:?}",
        found.info.unknown
    );
}

/// The sample of perf as simpleperf writes it: descriptions of events in a record that is split.
#[test]
fn simpleperfs_file_tells_what_perfs_does() {
    let file = sample("perf.data");
    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    let (start, size) = (number(40), number(48));
    let (at, length) = (number(start + size), number(start + size + 8));
    let formats = &file[at..at + length];
    let record = |kind: u32, body: &[u8]| {
        let size = body.len() as u32 + 8;
        let word = size.rotate_right(16);
        [&kind.to_le_bytes(), &word.to_le_bytes(), body].concat()
    };
    let whole = record(32_777, &[&(length as u32).to_le_bytes(), formats, &[0; 40]].concat());
    let mut records: Vec<u8> = whole.chunks(60_000).flat_map(|part| record(32_772, part)).collect();
    records.extend(record(32_773, &[]));
    assert!(length > 60_000 || whole.len() > 8, "{length}");
    records.extend(&file[start..start + size]);
    let mut out = file[..start].to_vec();
    out[48..56].copy_from_slice(&(records.len() as u64).to_le_bytes());
    out[72..104].fill(0);
    out.extend(records);
    let (mut found, plain) = (read(&out).unwrap(), read(&file).unwrap());
    (found.info.kernel, found.info.command) =
        (plain.info.kernel.clone(), plain.info.command.clone());
    assert_eq!(found, plain);
}
