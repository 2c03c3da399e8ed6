//! What sessions read: their journals, status and cards, what was measured beforehand, and who waits for whom.

use std::fs;

use ampsched_live_daemon::Touch;
use ampsched_live_driver::Facts;
use ampsched_live_factors::Blame;
use ampsched_live_session::{FolderSettings, JournalFile, Registration, RunDir, Status};

use super::folder::with_folder;
use super::{Format, check_refusal, one_line};

const MOST: usize = 1500;

/// A journal as it is written, or entries of it alone: what is changed in a record does not fit its checksum any more,
/// so entries are also read without one.
pub static JOURNAL: Format = Format {
    name: "journal",
    seeds: || vec![journal(), TOUCHES.to_owned()],
    read: |text| {
        with_folder(|folder| {
            let path = folder.join("journal-1");
            fs::write(&path, text).expect("a file can be written");
            let file = JournalFile::at(&path)
                .expect("the folder is one's own")
                .expect("the folder is there");
            match file.hold() {
                Ok(held) => drop(held.map(|held| held.read::<Touch>())),
                Err(error) => check_refusal(&path.display().to_string(), &error.to_string()),
            }
            let _ = fs::remove_file(&path);
        });
        for line in text.lines() {
            if let Ok(touch) = serde_json::from_str::<Touch>(line) {
                let written = serde_json::to_string(&touch).expect("plain data");
                assert_eq!(serde_json::from_str::<Touch>(&written).ok(), Some(touch), "{written}");
            }
        }
    },
    most: MOST,
    share: 2,
};
pub static STATUS: Format = Format {
    name: "status",
    seeds: || vec![serde_json::to_string(&Status::default()).expect("plain data")],
    read: |text| {
        with_folder(|folder| {
            let run_dir = RunDir::new(&FolderSettings { run_dir: Some(folder.to_owned()) });
            fs::write(folder.join("status.json"), text).expect("a file can be written");
            if let Err(error) = run_dir.status() {
                one_line(&error.to_string());
            }
        });
    },
    most: 3000,
    share: 1,
};
pub static REGISTRATION: Format = Format {
    name: "registration",
    seeds: || {
        vec![
            r#"{"boot":"0-1","pid_namespace":"pid:[4026531836]","pid":7,"journal":"/run/ampsched/journal-7"}"#
                .to_owned(),
        ]
    },
    read: |text| {
        if let Ok(registration) = serde_json::from_str::<Registration>(text) {
            let written = serde_json::to_string(&registration).expect("plain data");
            assert_eq!(
                serde_json::from_str::<Registration>(&written).ok(),
                Some(registration),
                "{written}"
            );
        }
    },
    most: 500,
    share: 1,
};
pub static FACTS: Format = Format {
    name: "facts",
    seeds: || {
        vec!["[programs.ffmpeg]\nspeedup = 2.1\nalone_ips = 3e9\nenergy_ratio = 0.4\n[programs.\"a b\"]\nspeedup = 1\n".to_owned()]
    },
    read: |text| match Facts::parse("input.toml", text) {
        Ok(facts) => {
            for program in facts.programs.keys() {
                let factors = facts.factors(program, Some(2.0), 1);
                assert!(factors.speedup.value.is_finite() && factors.speedup.value > 0.0);
            }
        }
        Err(error) => check_refusal("input.toml", &error.to_string()),
    },
    most: MOST,
    share: 2,
};
pub static FUTEX_TRACE: Format = Format {
    name: "futex-trace",
    seeds: || {
        vec![
            "   worker-12   [001] ..... 100.000001: sys_futex(uaddr: 7f, op: 80, val: 2)\n\
             \x20  main-11   [000] ..... 100.000005: sys_futex(uaddr: 7f, op: 81, val: 1)\n\
             \x20  main-11   [000] d..2. 100.000009: sched_waking: comm=worker pid=12 prio=120 target_cpu=001\n\
             \x20  worker-12   [001] ..... 100.000012: sys_futex -> 0x0\nCPU:0 [LOST 5 EVENTS]\n"
                .to_owned(),
        ]
    },
    read: |text| {
        let mut blame = Blame::default();
        text.lines().for_each(|line| blame.read(line));
        let _ = (blame.take(), blame.lost());
        assert!(blame.take().is_empty());
    },
    most: MOST,
    share: 2,
};
/// Entries of all kinds.
const TOUCHES: &str = r#"{"thread":{"process":{"tid":1,"start_ticks":3},"thread":{"tid":2,"start_ticks":3},"cpus":"0-3","nice":-5}}
{"given_cpus":{"process":{"tid":1,"start_ticks":3},"cpus":"1"}}
{"given_nice":{"process":{"tid":1,"start_ticks":3},"nice":19}}
{"cgroup":{"version":"v2","group":"/ampsched-held-7"}}
{"moved":{"version":"v1","thread":{"tid":2,"start_ticks":3},"from":"/a"}}
{"stopped":{"process":{"tid":1,"start_ticks":3}}}
{"tracing":{"instance":"ampsched-7"}}
{"clock":{"policy":0,"limit":"greatest","khz":1000}}
"#;

/// What a session writes.
fn journal() -> String {
    with_folder(|folder| {
        let path = folder.join("journal-0");
        let _ = fs::remove_file(&path);
        let file =
            JournalFile::at(&path).expect("the folder is one's own").expect("the folder is there");
        let (held, mut journal) = file.create().expect("a journal can be made");
        for line in TOUCHES.lines() {
            let touch: Touch =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            journal.write(&touch).expect("it can be written");
        }
        let text = String::from_utf8_lossy(&fs::read(&path).expect("it can be read")).into_owned();
        held.remove().expect("it can be removed");
        text
    })
}
